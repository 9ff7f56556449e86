# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parses the part of the POSIX shell language that manifests use. Pure.

Nodes are tuples: ("simple", assignments, words, redirections), ("pipe", negated, commands), ("andor", first, [(operator, command)]),
("list", commands), ("if", [(condition, body)], otherwise), ("while", until, condition, body), ("for", name, words, body),
("case", word, [(patterns, body)]), ("group", body, redirections), ("subshell", body, redirections), ("function", name, body).
A word remains raw text here; expansion.py expands it. A redirection is (descriptor, operator, target).
"""

from __future__ import annotations

import functools
import re
from typing import Any

Node = tuple[Any, ...]


class ShellSyntax(Exception):
    """The script is not supported or invalid."""


OPERATORS = ("&&", "||", ";;", ">>", "<<", "&>", ">&", "<&", ";", "&", "|", "(", ")", "<", ">", "\n")
RESERVED = {
    "if",
    "then",
    "elif",
    "else",
    "fi",
    "while",
    "until",
    "for",
    "do",
    "done",
    "case",
    "esac",
    "{",
    "}",
    "!",
    "in",
}


def _skip_quoted(text: str, at: int) -> int:
    """Index after the quoted or substituted part that starts at `at`."""
    char = text[at]
    if char == "'":
        end = text.find("'", at + 1)
    elif char == '"':
        end = at + 1
        while end < len(text) and text[end] != '"':
            end = _skip_quoted(text, end) if text[end] in "$`" else end + (2 if text[end] == "\\" else 1)
    elif char == "`":
        end = text.find("`", at + 1)
    elif text.startswith("$(", at):
        depth, end = 1, at + 2
        while end < len(text) and depth:
            if text[end] in "'\"":
                end = _skip_quoted(text, end)
                continue
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 2 if text[end] == "\\" else 1
        end -= 1
    elif text.startswith("${", at):
        end = text.find("}", at)
    else:
        return at + 1
    if end < 0 or end >= len(text):
        raise ShellSyntax("unterminated quoted string")
    return end + 1


def tokens(text: str) -> list[tuple[str, str]]:
    """("word"|"op"|"io", text) in order; here-documents become a word after '<<'."""
    result: list[tuple[str, str]] = []
    pending: list[tuple[int, str]] = []
    at = 0
    text = text.replace("\\\n", "")
    while at < len(text):
        char = text[at]
        if char in " \t\r":
            at += 1
            continue
        if char == "#":
            end = text.find("\n", at)
            at = end if end >= 0 else len(text)
            continue
        match = re.match(r"\d(?=[<>])", text[at:])
        if match:
            result.append(("io", match[0]))
            at += 1
            continue
        operator = next((o for o in OPERATORS if text.startswith(o, at)), "")
        if operator:
            result.append(("op", operator))
            at += len(operator)
            if operator == "\n" and pending:
                at = _here_documents(text, at, pending, result)
            continue
        start = at
        while at < len(text) and text[at] not in " \t\r\n;&|()<>":
            at = _skip_quoted(text, at) if text[at] in "'\"`$" else at + (2 if text[at] == "\\" else 1)
        result.append(("word", text[start:at]))
        if len(result) > 1 and result[-2] == ("op", "<<"):
            pending.append((len(result) - 1, text[start:at]))
    return result


def _here_documents(text: str, at: int, pending: list[tuple[int, str]], result: list[tuple[str, str]]) -> int:
    for index, word in pending:
        strip, name = word.startswith("-"), word.lstrip("-").strip("'\"")
        lines = []
        while at < len(text):
            line, _newline, _rest = text[at:].partition("\n")
            at += len(line) + 1
            if (line.lstrip("\t") if strip else line) == name:
                break
            lines.append(line.lstrip("\t") if strip else line)
        body = "".join(line + "\n" for line in lines)
        result[index] = (
            "word",
            "'" + body.replace("'", "'\\''") + "'" if word != name else '"' + body.replace('"', '\\"') + '"',
        )
    pending.clear()
    return at


class _Parser:
    def __init__(self, found: list[tuple[str, str]]) -> None:
        self.tokens, self.at = found, 0

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def take(self) -> tuple[str, str]:
        token = self.peek()
        self.at += 1
        return token

    def expect(self, text: str) -> None:
        if self.take()[1] != text:
            raise ShellSyntax(f"expected {text!r}")

    def skip_lines(self) -> None:
        while self.peek() in (("op", "\n"), ("op", ";")):
            self.at += 1

    def commands(self, *ends: str) -> Node:
        found: list[Node] = []
        self.skip_lines()
        while self.peek()[0] != "end" and self.peek()[1] not in ends:
            found.append(self.and_or())
            if self.peek() == ("op", "&"):
                self.at += 1
                found[-1] = ("background", found[-1])
            elif self.peek()[1] not in (";", "\n", ";;", ")", *ends) and self.peek()[0] != "end":
                raise ShellSyntax(f"unexpected {self.peek()[1]!r}")
            self.skip_lines()
        return ("list", tuple(found))

    def and_or(self) -> Node:
        first, rest = self.pipeline(), []
        while self.peek() in (("op", "&&"), ("op", "||")):
            operator = self.take()[1]
            while self.peek() == ("op", "\n"):
                self.at += 1
            rest.append((operator, self.pipeline()))
        return ("andor", first, tuple(rest)) if rest else first

    def pipeline(self) -> Node:
        negated = False
        while self.peek() == ("word", "!"):
            self.at += 1
            negated = not negated
        found = [self.command()]
        while self.peek() == ("op", "|"):
            self.at += 1
            while self.peek() == ("op", "\n"):
                self.at += 1
            found.append(self.command())
        return ("pipe", negated, tuple(found)) if negated or len(found) > 1 else found[0]

    def command(self) -> Node:
        kind, text = self.peek()
        if kind == "op" and text == "(":
            self.at += 1
            body = self.commands(")")
            self.expect(")")
            return ("subshell", body, self.redirections())
        compound = {
            "if": self._if,
            "while": self._while,
            "until": self._while,
            "for": self._for,
            "case": self._case,
            "{": self._group,
        }.get(text)
        if kind == "word" and compound:
            self.at += 1
            node = compound(text)
            extra = self.redirections()
            return ("group", node, extra) if extra else node
        if kind == "word" and self.tokens[self.at + 1 : self.at + 3] == [("op", "("), ("op", ")")]:
            self.at += 3
            self.skip_lines()
            return ("function", text, self.command())
        return self.simple()

    def redirections(self) -> tuple[tuple[str, str, str], ...]:
        found = []
        while self.peek()[0] == "io" or self.peek()[1] in ("<", ">", ">>", ">&", "<&", "&>", "<<"):
            descriptor = self.take()[1] if self.peek()[0] == "io" else ""
            operator = self.take()[1]
            found.append((descriptor or ("0" if operator.startswith("<") else "1"), operator, self.take()[1]))
        return tuple(found)

    def simple(self) -> Node:
        assignments, words, redirections = list[Any](), list[str](), list[Any]()
        while True:
            kind, text = self.peek()
            found = self.redirections()
            if found:
                redirections += found
                continue
            if kind != "word":
                break
            if not words and re.match(r"[A-Za-z_][A-Za-z0-9_]*\+?=", text):
                assignments.append(tuple(text.split("=", 1)))
            elif not words and not assignments and text in RESERVED - {"{", "}", "!", "in"}:
                raise ShellSyntax(f"unexpected {text!r}")
            else:
                words.append(text)
            self.at += 1
        if not assignments and not words and not redirections:
            raise ShellSyntax(f"unexpected {self.peek()[1]!r}")
        return ("simple", tuple(assignments), tuple(words), tuple(redirections))

    def _if(self, _word: str) -> Node:
        branches = []
        otherwise = None
        condition = self.commands("then")
        self.expect("then")
        branches.append((condition, self.commands("elif", "else", "fi")))
        while self.peek()[1] == "elif":
            self.at += 1
            condition = self.commands("then")
            self.expect("then")
            branches.append((condition, self.commands("elif", "else", "fi")))
        if self.peek()[1] == "else":
            self.at += 1
            otherwise = self.commands("fi")
        self.expect("fi")
        return ("if", tuple(branches), otherwise)

    def _while(self, word: str) -> Node:
        condition = self.commands("do")
        return ("while", word == "until", condition, self._do())

    def _do(self) -> Node:
        self.skip_lines()
        self.expect("do")
        body = self.commands("done")
        self.expect("done")
        return body

    def _for(self, _word: str) -> Node:
        name, words = self.take()[1], None
        while self.peek() == ("op", "\n"):
            self.at += 1
        if self.peek() == ("word", "in"):
            self.at += 1
            words = []
            while self.peek()[0] == "word":
                words.append(self.take()[1])
        return ("for", name, None if words is None else tuple(words), self._do())

    def _case(self, _word: str) -> Node:
        subject = self.take()[1]
        self.skip_lines()
        self.expect("in")
        arms = []
        self.skip_lines()
        while self.peek()[1] != "esac":
            if self.peek() == ("op", "("):
                self.at += 1
            patterns = [self.take()[1]]
            while self.peek() == ("op", "|"):
                self.at += 1
                patterns.append(self.take()[1])
            self.expect(")")
            arms.append((tuple(patterns), self.commands(";;", "esac")))
            if self.peek()[1] == ";;":
                self.at += 1
            self.skip_lines()
        self.expect("esac")
        return ("case", subject, tuple(arms))

    def _group(self, _word: str) -> Node:
        body = self.commands("}")
        self.expect("}")
        return ("group", body, ())


@functools.lru_cache(maxsize=512)
def parse(text: str) -> Node:
    """The whole script as a ("list", …); raises ShellSyntax."""
    parser = _Parser(tokens(text))
    node = parser.commands()
    if parser.peek()[0] != "end":
        raise ShellSyntax(f"unexpected {parser.peek()[1]!r}")
    return node
