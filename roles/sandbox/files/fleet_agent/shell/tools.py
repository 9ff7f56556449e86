# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The usual small programs of an image with a shell. Each is a simulated process that returns its exit code."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import Any

from fleet_agent.clock import timestamp
from fleet_agent.loop import Process, Sleep
from fleet_agent.machine import gpu_tools
from fleet_agent.shell import text_tools
from fleet_agent.shell.testexpr import evaluate_test
from fleet_agent.shell.text_tools import inputs, plain

__all__ = ["TOOLS", "evaluate_test", "seconds"]


def seconds(text: str) -> float | None:
    """Duration of `sleep`; None if it is invalid."""
    if text in ("inf", "infinity"):
        return float("inf")
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]] if match else None


@plain
def _echo(proc: Any, letters: list[str], _words: list[str]) -> int:
    words = proc.argv[1:]
    while words and words[0] in ("-n", "-e", "-en", "-ne"):
        words = words[1:]
    text = " ".join(words)
    end = "" if proc.argv[1:2] in (["-n"], ["-en"], ["-ne"]) else "\n"
    proc.out((text.replace("\\n", "\n") if "e" in letters else text) + end)
    return 0


@plain
def _printf(proc: Any, _letters: list[str], _words: list[str]) -> int:
    text, values = proc.argv[1].replace("\\n", "\n").replace("\\t", "\t"), list(proc.argv[2:])
    while True:
        proc.out(re.sub(r"%[-0-9.]*[sdbi]", lambda _m: values.pop(0) if values else "", text).replace("%%", "%"))
        if not values or "%" not in text:
            return 0


@plain
def _cat(proc: Any, _letters: list[str], words: list[str]) -> int:
    proc.out(inputs(proc, words))
    return 0


@plain
def _ls(proc: Any, letters: list[str], words: list[str]) -> int:
    code = 0
    for word in words or ["/"]:
        if proc.view.is_folder(word):
            proc.out(
                "".join(
                    name + "\n"
                    for name in proc.view.names(word)
                    if "A" in letters or "a" in letters or not name.startswith(".")
                )
            )
        elif proc.view.is_file(word):
            proc.say(word)
        else:
            proc.container.write_log(f"ls: cannot access '{word}': No such file or directory\n")
            code = 2
    return code


@plain
def _stat(proc: Any, _letters: list[str], words: list[str]) -> int:
    code = 0
    for word in words:
        if proc.view.exists(word):
            proc.say(f"  File: {word}")
        else:
            proc.container.write_log(f"stat: cannot statx '{word}': No such file or directory\n")
            code = 1
    return code


@plain
def _touch(proc: Any, _letters: list[str], words: list[str]) -> int:
    for word in words:
        proc.view.write(word, "", append=True)
    return 0


@plain
def _rm(proc: Any, letters: list[str], words: list[str]) -> int:
    code = 0
    for word in words:
        if not proc.view.remove(word) and "f" not in letters:
            proc.container.write_log(f"rm: cannot remove '{word}': No such file or directory\n")
            code = 1
    return code


@plain
def _mkdir(proc: Any, letters: list[str], words: list[str]) -> int:
    for word in words:
        proc.view.make_folder(word, "p" in letters)
    return 0


@plain
def _move(proc: Any, _letters: list[str], words: list[str]) -> int:
    *sources, target = words
    for source in sources:
        goal = posixpath.join(target, posixpath.basename(source)) if proc.view.is_folder(target) else target
        proc.view.write(goal, proc.view.read(source))
        if proc.argv[0].endswith("mv"):
            proc.view.remove(source)
    return 0


@plain
def _link(proc: Any, _letters: list[str], words: list[str]) -> int:
    proc.view.write(words[-1], "")
    return 0


@plain
def _seq(proc: Any, _letters: list[str], _words: list[str]) -> int:
    numbers = [int(w) for w in proc.argv[1:]]
    first, last = (1, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[-1])
    proc.out("".join(f"{n}\n" for n in range(first, last + 1, numbers[1] if len(numbers) == 3 else 1)))
    return 0


@plain
def _uname(proc: Any, letters: list[str], _words: list[str]) -> int:
    spec = proc.host.spec
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(spec.image_arch, spec.image_arch)
    proc.say(spec.kernel if "r" in letters else machine if "m" in letters else spec.name if "n" in letters else "Linux")
    return 0


@plain
def _names(proc: Any, _letters: list[str], words: list[str]) -> int:
    name = proc.argv[0].rsplit("/", 1)[-1]
    if name in ("basename", "dirname"):
        result = getattr(posixpath, name)(words[0])
        proc.say(result.removesuffix(words[1]) if name == "basename" and len(words) > 1 else result or ".")
    else:
        user = str(proc.view.uid)
        proc.say(
            {
                "hostname": proc.env.get("HOSTNAME", ""),
                "id": user,
                "whoami": "root" if user == "0" else user,
                "date": timestamp(),
                "pwd": "/",
                "nproc": "64",
            }[name]
        )
    return 0


@plain
def _env(proc: Any, _letters: list[str], words: list[str]) -> int:
    if proc.argv[0].endswith("printenv") and words:
        proc.say(proc.env.get(words[0], ""))
        return int(words[0] not in proc.env)
    proc.out("".join(f"{k}={v}\n" for k, v in proc.env.items()))
    return 0


@plain
def _tee(proc: Any, letters: list[str], words: list[str]) -> int:
    for word in words:
        proc.view.write(word, proc.stdin, append="a" in letters)
    proc.out(proc.stdin)
    return 0


@plain
def _test(proc: Any, _letters: list[str], _words: list[str]) -> int:
    words = proc.argv[1:-1] if proc.argv[0] == "[" else proc.argv[1:]
    return int(not evaluate_test(proc.view, words))


@plain
def _true(proc: Any, _letters: list[str], _words: list[str]) -> int:
    return int(proc.argv[0].rsplit("/", 1)[-1] == "false")


def _usleep(proc: Any) -> Process:
    yield Sleep(0.001)
    return 0


TOOLS: dict[str, Callable[[Any], Process]] = {
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    "ls": _ls,
    "stat": _stat,
    "touch": _touch,
    "rm": _rm,
    "mkdir": _mkdir,
    "mv": _move,
    "cp": _move,
    "ln": _link,
    **text_tools.TOOLS,
    "seq": _seq,
    "uname": _uname,
    "basename": _names,
    "dirname": _names,
    "hostname": _names,
    "id": _names,
    "whoami": _names,
    "date": _names,
    "pwd": _names,
    "nproc": _names,
    "env": _env,
    "printenv": _env,
    "tee": _tee,
    "[": _test,
    "test": _test,
    "true": _true,
    "false": _true,
    "chmod": _true,
    "chown": _true,
    "sync": _true,
    "kill": _true,
    "usleep": _usleep,
    **gpu_tools.TOOLS,
}
