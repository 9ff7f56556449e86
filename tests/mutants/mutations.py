# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutants of a Python source: each is a small change that a test should detect.

There are no mutants in docstrings, texts, log calls, type annotations and decorators. A mutant is identified by its function, its operator, the source
of its statement without layout, and its number among equal ones, so that it can be identified in another tree, also after other changes of the file.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
from collections.abc import Callable, Iterator

OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.In: ast.NotIn,
}
OPPOSITES |= {other: one for one, other in OPPOSITES.items()}
BOUNDARIES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
LOGS = frozenset({"debug", "log", "logger", "logging", "warn", "warnings", "vvv", "vvvv"})

#: Operator, and the replacement of the node.
Change = tuple[str, ast.AST]


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change of one file.

    path: relative to the collection. lines: first and last line of its statement (of the head of a compound one). inside: whether it is in a function.
    start, end: bytes of the file that `after` replaces.
    """

    path: str
    function: str
    operator: str
    before: str
    after: str
    statement: str
    ordinal: int
    lines: tuple[int, int]
    inside: bool
    start: int
    end: int

    @property
    def identity(self) -> str:
        parts = (self.path, self.function, self.operator, self.statement, self.before, self.after, str(self.ordinal))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]

    @property
    def change(self) -> str:
        return f"{self.operator}: {self.before} -> {self.after}"

    def applied(self, source: str) -> str:
        raw = source.encode()
        return (raw[: self.start] + self.after.encode() + raw[self.end :]).decode()


def mutants(path: str, source: str) -> list[Mutant]:
    """Every mutant of a file, in the order of the source."""
    candidates = list(_Search(path, source).within(ast.parse(source), "", False))
    ordinals: dict[str, int] = {}
    result = []
    for mutant in candidates:
        ordinal = ordinals[mutant.identity] = ordinals.get(mutant.identity, -1) + 1
        result.append(dataclasses.replace(mutant, ordinal=ordinal))
    return result


class _Search:
    def __init__(self, path: str, source: str) -> None:
        self.path = path
        # Offsets in ast are in bytes of a line.
        self.starts = [0]
        for line in source.encode().splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def within(self, parent: ast.AST, function: str, inside: bool) -> Iterator[Mutant]:
        """Mutants of the statements below a node."""
        for statement in _statements(parent):
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{function}.{statement.name}".lstrip(".")
                if not isinstance(statement, ast.ClassDef):
                    for default in filter(None, (*statement.args.defaults, *statement.args.kw_defaults)):
                        yield from self._of(statement, default, name, inside)
                yield from self.within(statement, name, inside or not isinstance(statement, ast.ClassDef))
                continue
            for operator, node in _removed(statement):
                yield self._mutant(statement, statement, operator, node, function, inside)
            for expression in _expressions(statement):
                yield from self._of(statement, expression, function, inside)
            yield from self.within(statement, function, inside)

    def _of(self, statement: ast.stmt, expression: ast.AST, function: str, inside: bool) -> Iterator[Mutant]:
        for node in _code(expression):
            for operator, other in _changes(node):
                yield self._mutant(statement, node, operator, other, function, inside)

    def _mutant(
        self, statement: ast.stmt, node: ast.AST, operator: str, other: ast.AST, function: str, inside: bool
    ) -> Mutant:
        body = getattr(statement, "body", None)
        last = body[0].lineno - 1 if isinstance(body, list) else statement.end_lineno or statement.lineno
        before = ast.unparse(node.test if isinstance(node, _Condition) else node)
        after = ast.unparse(ast.fix_missing_locations(other))
        return Mutant(
            self.path,
            function,
            operator,
            before,
            after if isinstance(node, ast.stmt) else f"({after})",
            _head(statement),
            0,
            (statement.lineno, max(last, statement.lineno)),
            inside,
            self.starts[node.lineno - 1] + node.col_offset,
            self.starts[node.end_lineno - 1] + node.end_col_offset,  # type: ignore[attr-defined]
        )


def _statements(parent: ast.AST) -> Iterator[ast.stmt]:
    for _field, value in ast.iter_fields(parent):
        for entry in value if isinstance(value, list) else ():
            if isinstance(entry, ast.stmt):
                yield entry
            elif isinstance(entry, ast.ExceptHandler | ast.match_case):
                yield from _statements(entry)


def _head(statement: ast.stmt) -> str:
    """The source of a statement without its body, which is not part of its identity."""
    return ast.unparse(statement).split("\n", 1)[0] if getattr(statement, "body", None) else ast.unparse(statement)


def _removed(statement: ast.stmt) -> Iterator[Change]:
    match statement:
        case ast.Return(value=value) if value is not None and not (
            isinstance(value, ast.Constant) and value.value is None
        ):
            yield "return removed", ast.Pass()
        case ast.Raise(exc=exc) if not (isinstance(exc, ast.Name) and exc.id == "NotImplementedError"):
            yield "raise removed", ast.Pass()
        case ast.Expr(value=ast.Call() as call) if not _logs(call):
            yield "call removed", ast.Pass()
        case ast.AugAssign(op=op) if type(op) in ARITHMETIC and not _textual(statement.value):
            yield "arithmetic", ast.AugAssign(statement.target, ARITHMETIC[type(op)](), statement.value)
        case _:
            pass


def _expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without annotations and without messages."""
    if isinstance(statement, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom):
        return
    if isinstance(statement, ast.Expr) and (isinstance(statement.value, ast.Constant) or _logs(statement.value)):
        return
    if isinstance(statement, ast.If | ast.While) and _negatable(statement.test):
        yield _Condition(statement.test)
    for field, value in ast.iter_fields(statement):
        if field != "annotation":
            yield from (
                entry
                for entry in (value if isinstance(value, list) else [value])
                if isinstance(entry, ast.expr | ast.withitem)
            )
            if isinstance(value, list):
                yield from (entry.guard for entry in value if isinstance(entry, ast.match_case) and entry.guard)


class _Condition(ast.expr):
    """An expression as a condition. Its other mutants are those of the expression itself."""

    def __init__(self, test: ast.expr) -> None:
        super().__init__()
        self.test = test
        ast.copy_location(self, test)


def _code(expression: ast.AST) -> Iterator[ast.AST]:
    """The nodes of an expression, without those within formatted texts."""
    if isinstance(expression, ast.JoinedStr) or _logs(expression):
        return
    yield expression
    if isinstance(expression, _Condition):
        return
    if isinstance(expression, ast.comprehension):
        yield from (_Condition(test) for test in expression.ifs if _negatable(test))
    for child in ast.iter_child_nodes(expression):
        yield from _code(child)


def _logs(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and any(
        part.strip("_") in LOGS for part in ast.unparse(node.func).lower().split(".")
    )


def _textual(node: ast.AST) -> bool:
    """Whether a node is a text or a list, for which any operator except addition would only fail."""
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _negatable(test: ast.expr) -> bool:
    """Whether a condition can be negated. Comparisons and `not` have their own operators with the same effect."""
    return not (isinstance(test, ast.Compare) and len(test.ops) == 1) and not (
        isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    )


def _negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def _changes(node: ast.AST) -> Iterator[Change]:
    yield from _OPERATORS.get(type(node), lambda _node: ())(node)


def _of_compare(node: ast.Compare) -> Iterator[Change]:
    for number, op in enumerate(node.ops):
        for operator, table in (("comparison", OPPOSITES), ("boundary", BOUNDARIES)):
            if other := table.get(type(op)):
                yield (
                    operator,
                    ast.Compare(node.left, [*node.ops[:number], other(), *node.ops[number + 1 :]], node.comparators),
                )


def _of_bool(node: ast.BoolOp) -> Iterator[Change]:
    yield "and/or", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def _of_not(node: ast.UnaryOp) -> Iterator[Change]:
    if isinstance(node.op, ast.Not):
        yield "not removed", node.operand


def _of_constant(node: ast.Constant) -> Iterator[Change]:
    if isinstance(node.value, bool):
        yield "constant", ast.Constant(not node.value)
    elif isinstance(node.value, int | float):
        yield "constant", ast.Constant(node.value + 1)


def _of_arithmetic(node: ast.BinOp) -> Iterator[Change]:
    other = ARITHMETIC.get(type(node.op))
    if other and not _textual(node.left) and not _textual(node.right):
        yield "arithmetic", ast.BinOp(node.left, other(), node.right)


def _of_choice(node: ast.IfExp) -> Iterator[Change]:
    if _negatable(node.test):
        yield "negation", ast.IfExp(_negated(node.test), node.body, node.orelse)


def _of_condition(node: _Condition) -> Iterator[Change]:
    yield "negation", _negated(node.test)


_OPERATORS: dict[type, Callable[..., Iterator[Change]]] = {
    ast.Compare: _of_compare,
    ast.BoolOp: _of_bool,
    ast.UnaryOp: _of_not,
    ast.Constant: _of_constant,
    ast.BinOp: _of_arithmetic,
    ast.IfExp: _of_choice,
    _Condition: _of_condition,
}
