# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expansion of shell words: quotes, parameters, command substitution, arithmetic, splitting, globs."""

from __future__ import annotations

import ast
import fnmatch
import operator
import re
from typing import Any

from fleet_agent.loop import Process
from fleet_agent.shell.parse import ShellSyntax, _skip_quoted

_PARAMETER = re.compile(r"\$(?:\{(?P<braced>[^}]*)\}|(?P<name>[A-Za-z_][A-Za-z0-9_]*|[0-9?#@*$!-]))")
_BRACED = re.compile(
    r"(?P<length>#)?(?P<name>[A-Za-z_][A-Za-z0-9_]*|[0-9?#@*$!-])(?:(?P<op>:?[-=?+]|##?|%%?|//?)(?P<word>.*))?$", re.S
)


class Unset(Exception):
    """A parameter that must not be missing because of `set -u` or ${x:?}."""


def expand(shell: Any, word: str) -> Process:
    """The fields that a word becomes."""
    if not any(c in word for c in "$`'\"\\*?[~"):
        return [word]
    pieces = yield from _pieces(shell, word)
    fields: list[list[tuple[str, bool]]] = [[]]
    for text, quoted in pieces:
        if quoted or not text:
            fields[-1].append((text, quoted))
            continue
        parts = re.split(r"[ \t\n]+", text)
        for index, part in enumerate(parts):
            if index:
                fields.append([])
            if part:
                fields[-1].append((part, False))
    result: list[str] = []
    for field in fields:
        if not field or not ("".join(text for text, _quoted in field) or any(quoted for _text, quoted in field)):
            continue
        joined = "".join(text for text, _quoted in field)
        pattern = any(not quoted and any(c in text for c in "*?[") for text, quoted in field)
        found = shell.proc.view.glob(joined) if pattern else []
        result += found or [joined]
    return result


def flat(shell: Any, word: str) -> Process:
    """A word without splitting (assignments, redirection targets, case subjects)."""
    if not any(c in word for c in "$`'\"\\"):
        return word
    pieces = yield from _pieces(shell, word)
    return "".join(text for text, _quoted in pieces)


def _pieces(shell: Any, word: str) -> Process:
    found: list[tuple[str, bool]] = []
    at, quoted = 0, False
    while at < len(word):
        char = word[at]
        if char == '"':
            quoted = not quoted
            found.append(("", True))
            at += 1
        elif char == "'" and not quoted:
            end = _skip_quoted(word, at)
            found.append((word[at + 1 : end - 1], True))
            at = end
        elif char == "\\" and at + 1 < len(word):
            keep = quoted and word[at + 1] not in '$`"\\\n'
            found.append((("\\" if keep else "") + word[at + 1], True))
            at += 2
        elif char in "$`":
            text, at = yield from _substitution(shell, word, at)
            found.append((text, quoted))
        else:
            end = at + 1
            while end < len(word) and word[end] not in "\"'\\$`":
                end += 1
            if char != "'" or quoted:
                found.append((word[at:end], quoted))
            at = end
    return list(found)


def _substitution(shell: Any, word: str, at: int) -> Process:
    if word.startswith("$((", at):
        end = _skip_quoted(word, at)
        text = yield from flat(shell, word[at + 3 : end - 2])
        return str(arithmetic(re.sub(r"[A-Za-z_]\w*", lambda m: shell.variables.get(m[0]) or "0", text))), end
    if word.startswith("$(", at) or word[at] == "`":
        end = _skip_quoted(word, at)
        script = word[at + 1 : end - 1] if word[at] == "`" else word[at + 2 : end - 1]
        text = yield from shell.capture(script)
        return text.rstrip("\n"), end
    match = _PARAMETER.match(word, at)
    if not match:
        return "$", at + 1
    if match["name"]:
        return shell.parameter(match["name"]), match.end()
    end = _closing(word, at + 1)
    value = yield from _braced(shell, word[at + 2 : end])
    return value, end + 1


def _closing(word: str, at: int) -> int:
    depth = 0
    for index in range(at, len(word)):
        depth += {"{": 1, "}": -1}.get(word[index], 0)
        if depth == 0:
            return index
    raise ShellSyntax("unterminated ${")


def _braced(shell: Any, text: str) -> Process:
    match = _BRACED.match(text)
    if not match:
        raise ShellSyntax(f"${{{text}}}: bad substitution")
    name, action, word = match["name"], match["op"] or "", match["word"] or ""
    if match["length"]:
        return str(len(shell.parameter(name)))
    value = shell.variables.get(name) if name.isidentifier() else shell.parameter(name)
    missing = value is None or (action.startswith(":") and value == "")
    if not action:
        return shell.parameter(name)
    kind = action[-1]
    if action in (":-", "-", ":=", "=", ":?", "?", ":+", "+"):
        if kind == "+":
            return "" if missing else (yield from flat(shell, word))
        if not missing:
            return value
        alternative = yield from flat(shell, word)
        if kind == "=":
            shell.variables[name] = alternative
        if kind == "?":
            raise Unset(f"{name}: {alternative or 'parameter not set'}")
        return alternative
    return _trim(value or "", action, (yield from flat(shell, word)))


def _trim(value: str, action: str, pattern: str) -> str:
    if action.startswith("/"):
        old, _slash, new = pattern.partition("/")
        return value.replace(old, new, -1 if action == "//" else 1)
    lengths = range(len(value) + 1) if action in ("#", "%%") else range(len(value), -1, -1)
    for size in lengths:
        piece, rest = (value[:size], value[size:]) if action.startswith("#") else (value[size:], value[:size])
        if fnmatch.fnmatchcase(piece, pattern):
            return rest
    return value


_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Lt: operator.lt,
    ast.Gt: operator.gt,
    ast.LtE: operator.le,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def arithmetic(text: str) -> int:
    """Integer arithmetic and comparisons of $(( ))."""

    def value(node: ast.AST) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return int(_BINARY[type(node.op)](value(node.left), value(node.right)))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _BINARY:
            return int(_BINARY[type(node.ops[0])](value(node.left), value(node.comparators[0])))
        raise ShellSyntax(f"arithmetic: {text}")

    try:
        return value(ast.parse(text.strip() or "0", mode="eval").body)
    except (SyntaxError, ZeroDivisionError) as error:
        raise ShellSyntax(f"arithmetic: {text}") from error
