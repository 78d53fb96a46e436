"""Write the README's table of backends from what the adapters of this workspace declare.

Run by ``./dev generate``; with ``--check`` it only says whether the table is current (exit code 1 if not).
"""

from __future__ import annotations

import sys
from pathlib import Path

from threadkeep import AdapterSpec, Capabilities, Capability, Pushdown
from threadkeep.registry import registry

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
BEGIN, END = "<!-- backends:begin -->", "<!-- backends:end -->"
OURS = ("memory", "libsql", "postgres", "mongo", "chroma")


def pushdown(declared: Pushdown) -> str:
    """One word where all three parts are alike, else each part."""
    parts = {"filter": declared.filter, "order": declared.order, "limit": declared.limit}
    if len(set(parts.values())) == 1:
        return declared.filter.value
    return ", ".join(f"{name} {support.value}" for name, support in parts.items())


def cell(spec: AdapterSpec, capability: Capability) -> str:
    """What a backend declares of one capability."""
    capabilities = Capabilities(spec.support)
    if capability is Capability.METADATA_PUSHDOWN:
        return pushdown(capabilities.pushdown)
    return capabilities[capability].value


def table(specs: list[AdapterSpec]) -> str:
    """The table: a row a capability, a column a backend."""
    rows = [["capability", *[spec.name for spec in specs]], ["---"] * (len(specs) + 1)]
    rows.append(["URL schemes", *[", ".join(f"`{scheme}:`" for scheme in spec.schemes) for spec in specs]])
    rows += [[f"`{capability}`", *[cell(spec, capability) for spec in specs]] for capability in Capability]
    rows.append(["contract", *[spec.contract for spec in specs]])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> int:
    """Write the table, or check it."""
    text = README.read_text("utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    specs = registry().specs
    fresh = f"{head}{BEGIN}\n{table([specs[name] for name in OURS if name in specs])}\n{END}{tail}"
    if fresh == text:
        return 0
    if "--check" in sys.argv[1:]:
        sys.stderr.write("README.md: the table of backends is not current; run ./dev generate\n")
        return 1
    README.write_text(fresh, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
