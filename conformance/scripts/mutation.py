"""Change the reference adapter in one place at a time, and count how many of the changes the kit notices.

``python conformance/scripts/mutation.py [--sample N] [--seed N] [--json FILE]``. Every mutant is a
copy of the module in a temporary folder; nothing of the checkout is touched.
"""

# ruff: noqa: T201  (a command prints)

from __future__ import annotations

import argparse
import ast
import copy
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from typing import NamedTuple

MODULE = "threadkeep.reference"
_TIMEOUT_S = 120  # a whole run takes a tenth of it; a mutant that hangs is noticed
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
    """A changed copy of the module: where and how, and its text."""

    name: str
    text: str


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
    return written or isinstance(node, (ast.Raise, ast.Delete))


def mutants(source: str) -> Generator[Mutant]:
    """Every mutant of the module's functions and methods; a statement's annotations stay as they are."""
    tree = ast.parse(source)
    for scope in ast.walk(tree):
        if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for index, node in enumerate(_nodes(scope)):
            for change in changes(node):
                mutated = copy.deepcopy(tree)
                here = next(one for one in ast.walk(mutated) if _same_place(one, scope))
                _put(mutated, list(_nodes(here))[index], change)
                text = ast.unparse(ast.fix_missing_locations(mutated))
                before, after = (ast.unparse(one).partition("\n")[0] for one in (node, change))
                line = getattr(node, "lineno", scope.lineno)
                yield Mutant(f"{line} {scope.name}: {before} -> {after}", text)


def _nodes(scope: ast.AST) -> Generator[ast.AST]:
    """What is inside a function, in order, without the functions inside it."""
    body: list[ast.AST] = list(getattr(scope, "body", ()))
    for statement in body:
        stack = [statement]
        while stack:
            node = stack.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            yield node
            stack += reversed(list(ast.iter_child_nodes(node)))


def _same_place(node: ast.AST, scope: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return type(node) is type(scope) and getattr(node, "lineno", 0) == scope.lineno


def _put(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    """Replace one node of a tree."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, new)
            elif isinstance(value, list) and any(one is old for one in value):  # pyright: ignore[reportUnknownVariableType]  (of nodes)
                setattr(parent, field, [new if one is old else one for one in value])  # pyright: ignore[reportUnknownVariableType]  (of nodes)


def survives(mutant: Mutant) -> bool:
    """Whether the whole suite passes on a mutant."""
    with tempfile.TemporaryDirectory(prefix="threadkeep-") as folder:
        path = Path(folder) / "mutant.py"
        path.write_text(mutant.text, encoding="utf-8")
        command = [sys.executable, __file__, "--run", str(path)]
        try:
            run = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return False
        return run.returncode == 0


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

    sys.meta_path.insert(0, _Mutated(path))  # pyright: ignore[reportArgumentType]  (a finder)
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist"]
    return pytest.main([*options, "--threadkeep-url=memory:", "--pyargs", "threadkeep_conformance"])


def main() -> int:
    """Run the mutants, two at a time, and print the score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=None, metavar="N", help="only N random mutants")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the sample (default: 0)")
    parser.add_argument("--json", type=Path, default=None, metavar="FILE", help="write the result there")
    parser.add_argument("--run", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run is not None:
        return run_suite(options.run)
    spec = find_spec(MODULE)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{MODULE} is not installed")
    every = list(mutants(Path(spec.origin).read_text(encoding="utf-8")))
    chosen = every if options.sample is None else random.Random(options.seed).sample(every, options.sample)
    with ThreadPoolExecutor(2) as pool:
        lives = list(pool.map(survives, chosen))
    survived = [mutant.name for mutant, alive in zip(chosen, lives, strict=True) if alive]
    score = round(100 * (1 - len(survived) / len(chosen)), 1)
    for name in survived:
        print(f"survived: line {name}")
    print(f"{len(chosen)} of {len(every)} mutants run, {len(survived)} survived, score {score} %")
    if options.json is not None:
        result = {"mutants": len(every), "run": len(chosen), "survived": survived, "score": score}
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
