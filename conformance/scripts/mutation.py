"""Change the reference adapter in one place at a time, and count how many of the changes the kit notices.

``python conformance/scripts/mutation.py [--sample N] [--seed N] [--json FILE]``. Every mutant is a
copy of the module in a temporary folder; nothing of the checkout is touched. FILE is written after every
mutant; a run that was stopped goes on from it, as long as module and cases are the same.
``conformance/mutation.json`` is what docs/conformance.md shows.
"""

# ruff: noqa: T201  (a command prints)

from __future__ import annotations

import argparse
import ast
import copy
import datetime as dt
import hashlib
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

MODULE = "threadkeep.reference"
_CPU_S = 120  # a whole run takes a tenth of it, and it counts only what the mutant itself uses
_TIMEOUT_S = 1200  # for one that waits for ever
_LEAST = 95.0  # percent
ALIVE, HANGS = "survived", "hangs"
_SAME = "the same either way round"
_OWN = "the reference adapter's own promise, which core_spec/tests/test_reference.py holds"
REASONS = {
    "_holds: _same(stored, value) -> _same(value, stored)": _SAME,
    "_holds: _same(stored, values[0]) -> _same(values[0], stored)": _SAME,
    "clone_thread: True -> False": "strict, of two lists of one length",
    "_forget: _shared.clear() -> pass": _OWN,
    "the module: if sys.platform != 'win32': -> if not sys.platform != 'win32':": _OWN,
    "the module: sys.platform != 'win32' -> sys.platform == 'win32'": _OWN,
    "the module: os.register_at_fork(after_in_child=_forget) -> pass": _OWN,
    "connect: raise InvalidArgumentError('url', 'memory: or memory:NAME, without slashes',"
    " 'a memory URL with a host') -> pass": _OWN,
}
"""Why known mutants survive. They count as survivors all the same."""
_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}


class Mutant(NamedTuple):
    """A changed copy of the module: where, how, and its text."""

    place: str
    change: str
    text: str

    @property
    def name(self) -> str:
        """Unique in the module."""
        return f"{self.place} {self.change}"


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Each other form of one node."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPPED:
        swapped = _SWAPPED[type(node.ops[0])]()
        yield ast.Compare(node.left, [swapped, *node.ops[1:]], node.comparators)  # pyright: ignore[reportArgumentType]  (an operator for an operator)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(_SWAPPED[type(node.op)](), node.values)  # pyright: ignore[reportArgumentType]  (an operator for an operator)
    elif isinstance(node, ast.BinOp) and type(node.op) in _SWAPPED:
        yield ast.BinOp(node.left, _SWAPPED[type(node.op)](), node.right)  # pyright: ignore[reportArgumentType]  (an operator for an operator)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, (bool, int)):
        yield ast.Constant(not node.value if isinstance(node.value, bool) else node.value + 1)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.If):
        yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.keyword) and node.arg == "reverse":
        yield ast.keyword("reverse", ast.UnaryOp(ast.Not(), node.value))
    elif isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords and not _symmetric(node):
        yield ast.Call(node.func, node.args[::-1], [])
    elif _is_action(node):
        yield ast.Pass()


def _symmetric(call: ast.Call) -> bool:
    """Whether swapped arguments change nothing."""
    return isinstance(call.func, ast.Name) and call.func.id in ("min", "max")


def _is_action(node: ast.AST) -> bool:
    """Whether a statement can go: a call, a raise, a delete, or a write into a table."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    written = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)
    removed = isinstance(node, ast.Delete) and isinstance(node.targets[0], ast.Subscript)
    return written or removed or isinstance(node, ast.Raise)


def mutants(source: str) -> Generator[Mutant]:
    """Every mutant of the module: of its functions, its methods and its own statements."""
    tree = ast.parse(source)
    for scope in ast.walk(tree):
        if not isinstance(scope, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for index, node in enumerate(_nodes(scope)):
            for change in changes(node):
                mutated = copy.deepcopy(tree)
                here = next(one for one in ast.walk(mutated) if _same_place(one, scope))
                _put(mutated, list(_nodes(here))[index], change)
                text = ast.unparse(ast.fix_missing_locations(mutated))
                before, after = (ast.unparse(one).partition("\n")[0] for one in (node, change))
                place = f"{getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)}"
                name = "the module" if isinstance(scope, ast.Module) else scope.name
                yield Mutant(place, f"{name}: {before} -> {after}", text)


def _nodes(scope: ast.AST) -> Generator[ast.AST]:
    """What is inside a module or function, in order, without the classes and functions inside it."""
    body: list[ast.AST] = list(getattr(scope, "body", ()))
    for statement in body:
        stack = [statement]
        while stack:
            node = stack.pop()
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            yield node
            stack += reversed(list(ast.iter_child_nodes(node)))


def _same_place(node: ast.AST, scope: ast.AST) -> bool:
    return type(node) is type(scope) and getattr(node, "lineno", 0) == getattr(scope, "lineno", 0)


def _put(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    """Replace one node of a tree."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, new)
            elif isinstance(value, list) and any(one is old for one in value):  # pyright: ignore[reportUnknownVariableType]  (of nodes)
                setattr(parent, field, [new if one is old else one for one in value])  # pyright: ignore[reportUnknownVariableType]  (of nodes)


def fate(mutant: Mutant) -> str:
    """The test that fails on a mutant, ``survived`` if none does, ``hangs`` if the run does not end."""
    with tempfile.TemporaryDirectory(prefix="threadkeep-") as folder:
        path = Path(folder) / "mutant.py"
        path.write_text(mutant.text, encoding="utf-8")
        command = [sys.executable, __file__, "--run", str(path)]
        try:
            run = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            return HANGS
    if run.returncode == 0:
        return ALIVE
    if run.returncode < 0:  # ended by the limit on CPU time
        return HANGS
    failed = re.search(r"^(?:FAILED|ERROR) \S*?::(\S+)", run.stdout, re.MULTILINE)
    return failed[1] if failed else "does not run"


class _Mutated:
    """Finds the mutant where the reference adapter is looked for."""

    def __init__(self, path: str) -> None:
        self._path = path

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        """The module's place."""
        del path, target
        return spec_from_file_location(name, self._path) if name == MODULE else None


def run_suite(path: str) -> int:
    """Run the suite in this process, on a mutant; stops at the first failure."""
    import pytest

    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    sys.meta_path.insert(0, _Mutated(path))  # pyright: ignore[reportArgumentType]  (a finder)
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist"]
    return pytest.main([*options, "--threadkeep-url=memory:", "--pyargs", "threadkeep_conformance"])


class Results:
    """The fates of mutants, kept in a file as they become known.

    Args:
        file: Where, or None to keep them nowhere.
        basis: What the fates depend on; those found under another are forgotten.
    """

    def __init__(self, file: Path | None, basis: dict[str, str]) -> None:
        self._file, self._basis, self._lock = file, basis, threading.Lock()
        found: dict[str, Any] = json.loads(file.read_bytes()) if file is not None and file.exists() else {}
        self.fates: dict[str, str] = found.get("fates", {}) if found.get("basis") == basis else {}

    def of(self, mutant: Mutant) -> str:
        """The fate of a mutant, known already or found now."""
        if mutant.name not in self.fates:
            found = fate(mutant)
            with self._lock:
                self.fates[mutant.name] = found
                self.write()
        return self.fates[mutant.name]

    def write(self) -> None:
        """Keep what is known so far."""
        if self._file is not None:
            today = dt.datetime.now(dt.UTC).date().isoformat()
            found = {
                "basis": self._basis,
                "date": today,
                "score": score(list(self.fates.values())),
                "reasons": {name: reason_of(name) for name in self.fates if self.fates[name] == ALIVE},
                "fates": dict(sorted(self.fates.items())),
            }
            part = self._file.with_suffix(".part")
            part.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
            part.replace(self._file)


def main() -> int:
    """Run the mutants, two at a time, and print the score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=None, metavar="N", help="only N random mutants")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the sample (default: 0)")
    parser.add_argument("--json", type=Path, default=None, metavar="FILE", help="keep the results there")
    parser.add_argument("--run", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run is not None:
        return run_suite(options.run)
    source = source_of_module()
    every = list(mutants(source))
    chosen = every if options.sample is None else random.Random(options.seed).sample(every, options.sample)
    results = Results(options.json, basis(source))
    with ThreadPoolExecutor(2) as pool:
        fates = list(pool.map(results.of, chosen))
    for mutant, found in zip(chosen, fates, strict=True):
        if found in (ALIVE, HANGS):
            print(f"{found}: line {mutant.name} ({reason_of(mutant.name)})")
    reached = score(fates)
    print(f"{len(chosen)} of {len(every)} mutants run, {fates.count(ALIVE)} survived, score {reached} %")
    return 0 if reached >= _LEAST else 1


def score(fates: list[str]) -> float:
    """How many mutants are noticed, in percent; one that hangs is."""
    return round(100 * (1 - fates.count(ALIVE) / len(fates)), 1)


def reason_of(name: str) -> str:
    """Why a mutant survives, as far as that is known."""
    return REASONS.get(name.partition(" ")[2], "")


def source_of_module() -> str:
    """The text of the module that is mutated."""
    spec = find_spec(MODULE)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{MODULE} is not installed")
    return Path(spec.origin).read_text(encoding="utf-8")


def basis(source: str) -> dict[str, str]:
    """What a mutant's fate depends on: the module and the list of cases."""
    from threadkeep_conformance.cases import list_hash, suite_imported

    suite_imported()
    return {"module": hashlib.sha256(source.encode()).hexdigest()[:16], "cases": list_hash()}


if __name__ == "__main__":
    sys.exit(main())
