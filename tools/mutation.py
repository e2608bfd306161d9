"""The sites of five kinds in a Python source, and the changes that a mutant may have there.

    constant      a whole number plus one, a float doubled (below 1e-3, a tolerance: ten times it),
                  a flag flipped
    sign          + and -, += and -=, and the minus before a value, gone
    comparison    < is <= or >=, and so on; == is !=, `is` is `is not`, `in` is `not in`
    index         a whole number in brackets plus one, [i, j] is [j, i]
    missing term  a side of + - * / & |, a part of `and` and `or`, an augmented assignment

What words an error, an f-string or an annotation is no site.
"""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass

SIGNS = {ast.Add: ast.Sub, ast.Sub: ast.Add}
ONE_SIDE, EITHER_SIDE = (ast.Sub, ast.Div), (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}


@dataclass(frozen=True)
class Mutant:
    """A change: `after` in the place of the bytes from start to end of a file."""

    path: str
    line: int
    kind: str
    start: int
    end: int
    before: str
    after: str

    def of(self, source: bytes) -> bytes:
        """The changed file."""
        return source[: self.start] + self.after.encode() + source[self.end :]

    def __str__(self) -> str:
        before, after = (" ".join(text.split())[:60] for text in (self.before, self.after))
        return f"{self.path}:{self.line} {self.kind}: {before}  ->  {after}"


class Finder(ast.NodeVisitor):
    """The sites of a source: of each, its mutants."""

    def __init__(self, path: str, source: str) -> None:
        self.path, self.found, self.inside = path, [], 0
        self.text = source.encode()
        self.lines = [0]
        for line in self.text.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.visit(ast.parse(source))

    def add(self, kind: str, node: ast.AST, *changed: ast.AST) -> None:
        start = self.lines[node.lineno - 1] + node.col_offset
        end = self.lines[node.end_lineno - 1] + node.end_col_offset
        place = (self.path, node.lineno, kind, start, end, self.text[start:end].decode())
        words = [ast.unparse(ast.fix_missing_locations(each)) for each in changed]
        bare = isinstance(node, ast.stmt | ast.Tuple)
        self.found.append([Mutant(*place, each if bare else f"({each})") for each in words])

    def visit_Raise(self, node) -> None:
        """Words."""

    visit_JoinedStr = visit_arg = visit_Raise

    def visit_AnnAssign(self, node) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node) -> None:
        for each in (*node.decorator_list, node.args, *node.body):
            self.visit(each)

    def visit_If(self, node) -> None:
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self.generic_visit(node)

    def visit_Constant(self, node) -> None:
        value = node.value
        if isinstance(value, bool):
            self.add("constant", node, ast.Constant(not value))
        elif isinstance(value, int):
            self.add("index" if self.inside else "constant", node, ast.Constant(value + 1))
        elif isinstance(value, float):
            other = 1.0 if value == 0 else value * (2 if value >= 1e-3 else 10)
            self.add("constant", node, ast.Constant(other))

    def visit_Subscript(self, node) -> None:
        self.visit(node.value)
        names = getattr(node.slice, "elts", [])
        if len(names) == 2 and all(isinstance(each, ast.Name) for each in names):
            self.add("index", node.slice, ast.Tuple(names[::-1], ast.Load()))
        self.inside += 1
        self.visit(node.slice)
        self.inside -= 1

    def visit_UnaryOp(self, node) -> None:
        if isinstance(node.op, ast.USub):
            self.add("sign", node, node.operand)
        self.generic_visit(node)

    def visit_BinOp(self, node) -> None:
        kind = type(node.op)
        if not (is_text(node.left) or is_text(node.right)):
            if kind in SIGNS:
                self.add("sign", node, ast.BinOp(node.left, SIGNS[kind](), node.right))
            if kind in ONE_SIDE:
                self.add("missing term", node, node.left)
            if kind in EITHER_SIDE:
                self.add("missing term", node, node.left, node.right)
        self.generic_visit(node)

    def visit_BoolOp(self, node) -> None:
        parts = [node.values[:k] + node.values[k + 1 :] for k in range(len(node.values))]
        whole = [each[0] if len(each) == 1 else ast.BoolOp(node.op, each) for each in parts]
        self.add("missing term", node, *whole)
        self.generic_visit(node)

    def visit_AugAssign(self, node) -> None:
        if not is_text(node.value):
            kind = type(node.op)
            if kind in SIGNS:
                self.add("sign", node, ast.AugAssign(node.target, SIGNS[kind](), node.value))
            self.add("missing term", node, ast.Pass())
        self.generic_visit(node)

    def visit_Compare(self, node) -> None:
        for k, op in enumerate(node.ops):
            ops = [[*node.ops[:k], other(), *node.ops[k + 1 :]] for other in COMPARISONS[type(op)]]
            whole = [ast.Compare(node.left, each, node.comparators) for each in ops]
            self.add("comparison", node, *whole)
        self.generic_visit(node)


def is_text(node: ast.AST) -> bool:
    text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return text or isinstance(node, ast.JoinedStr)


def draw(sites: list[list[Mutant]], seed: int, count: int) -> list[Mutant]:
    """So many sites, of each one change."""
    chosen = random.Random(seed)
    return [chosen.choice(site) for site in chosen.sample(sites, min(count, len(sites)))]
