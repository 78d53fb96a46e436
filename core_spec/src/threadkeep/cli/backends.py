"""``threadkeep backends``: what is installed and what it can do. Imports no driver, and nothing slow."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from ..capabilities import Capabilities, Capability, Pushdown, Support
from ..hookspecs import AdapterSpec
from ..registry import missing_drivers, registry
from ._command import json_option
from ._group import cli

__all__ = ["backends", "print_backends"]


@click.command()
@json_option
def backends(*, as_json: bool) -> None:
    """List the installed backends: URL schemes, capabilities, limits, driver present or not."""
    errors = cli.plugin_errors()
    if as_json:
        found = {
            "backends": [_described(spec) for spec in registry().specs.values()],
            "errors": [{"plugin": name, "error": error.reason} for name, error in errors.items()],
        }
        click.echo(msgspec.json.format(msgspec.json.encode(found)))
    else:
        print_backends()
    for error in errors.values():
        click.echo(f"threadkeep: {' '.join(str(error).split())}", err=True)


def print_backends() -> None:
    """The backends as aligned text: rich's tables alone would take half of the time this command is given."""
    click.echo("\n\n".join(map(_text, registry().specs.values())))


def _described(spec: AdapterSpec) -> dict[str, Any]:
    missing = missing_drivers(spec)
    capabilities = Capabilities(spec.support)
    return {
        "name": spec.name,
        "schemes": spec.schemes,
        "contract": spec.contract,
        "driver": {
            "present": not missing,
            "modules": spec.drivers,
            "missing": missing,
            "install": spec.install,
        },
        "capabilities": {
            name.value: capabilities.pushdown if name is Capability.METADATA_PUSHDOWN else support.value
            for name, support in capabilities.items()
        },
        "limits": spec.limits,
    }


def _text(spec: AdapterSpec) -> str:
    missing = missing_drivers(spec)
    driver = ", ".join(spec.drivers) or "none needed"
    if missing:
        driver = f"missing: {', '.join(missing)}; install with: {spec.install}"
    capabilities = Capabilities(spec.support)
    lines = [("schemes", ", ".join(f"{scheme}:" for scheme in spec.schemes)), ("driver", driver)]
    for kind in Support:
        names = [_name(name, capabilities) for name, support in capabilities.items() if support is kind]
        if names:
            lines.append((kind.value, ", ".join(names)))
    lines.extend([(name.replace("_", " "), limit) for name, limit in spec.limits.items()])
    width = max(len(name) for name, _ in lines)
    return "\n".join(
        [click.style(spec.name, bold=True), *[f"  {name:<{width}}  {text}" for name, text in lines]]
    )


def _name(capability: Capability, capabilities: Capabilities) -> str:
    """A capability's name; with its parts where they are not all alike."""
    parts: Pushdown = capabilities.pushdown
    if capability is not Capability.METADATA_PUSHDOWN or len({parts.filter, parts.order, parts.limit}) == 1:
        return capability.value
    return f"{capability.value} (filter {parts.filter}, order {parts.order}, limit {parts.limit})"
