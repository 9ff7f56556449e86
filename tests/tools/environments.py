# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python environments of the Makefile, cached by their content below the XDG cache folder.

environments.py path PROFILE             prints the environment's folder, and creates it if it is missing
environments.py run PROFILE -- COMMAND   runs COMMAND in it, from the collection's tree
environments.py list                     prints the profiles, and why one of them is not available on this machine

The name of an environment's folder contains a hash of its requirements and its Python, so changed requirements lead to a new one. An
interrupted installation is not regarded as complete, because the marker file is written last, under a lock.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

PLACE = (".build", "ansible_collections", "hwaccel", "gpu")


def checkout() -> pathlib.Path:
    """The clone, also if this file runs from its copy in the tree."""
    here = pathlib.Path(__file__).resolve().parents[2]
    return here.parents[3] if here.parts[-4:] == PLACE else here


ROOT = checkout()
BUILD = ROOT / ".build"
TREE = ROOT.joinpath(*PLACE)
#: Ansible's configuration for tests: seconds between two polls of workers, an option without a variable. With its default, a waiting run needs a fortieth of a
#: core.
CONFIGURATION = "[defaults]\ninternal_poll_interval = 0.01\n"
MARKER = ".complete"
PROBE = "import sys, platform; print(*sys.version_info[:2], sys.base_prefix, platform.python_version(), sep='|'); import venv, ensurepip"


class Unavailable(Exception):
    """The environment is not available on this machine; the text is the reason."""


@dataclasses.dataclass(frozen=True)
class Profile:
    """requirements: a file at the top level. extra: additional requirements. pythons: lowest and highest supported minor version."""

    requirements: str
    extra: tuple[str, ...] = ()
    pythons: tuple[int, int] = (11, 14)
    about: str = ""


PROFILES = {
    "demo": Profile("requirements-demo.txt", about="ansible-core and what the collection imports"),
    "dev": Profile("requirements-dev.txt", about="linters, types, molecule, changelog"),
    "release": Profile("requirements-release.txt", about="what Galaxy runs on a tarball, and ansible-builder"),
    "core-2.16": Profile(
        "requirements-test.txt", ("ansible-core~=2.16.0",), (11, 12), "tests on the oldest supported core"
    ),
    "core-2.19": Profile(
        "requirements-test.txt", ("ansible-core~=2.19.0",), (11, 13), "tests on the newest core for Python 3.11"
    ),
    "metal": Profile(
        "requirements-test.txt",
        ("ansible-core~=2.19.0", "ansible~=12.0", "molecule"),
        (11, 13),
        "tests of host roles, with their collections",
    ),
    "mutants": Profile(
        "tests/mutants/requirements.txt",
        ("ansible-core~=2.19.0",),
        (11, 13),
        "mutation tests: which test runs which line",
    ),
    "bmc": Profile("tests/boot/rig/requirements-bmc.txt", about="an emulator of BMCs, for the tests of machine_boot"),
    "answers": Profile(
        "tests/unit/machines/dns_pxe/requirements-answers.txt",
        about="validators of answer files, for the tests of dns_pxe",
    ),
    "core-newest": Profile("requirements-test.txt", ("ansible-core>=2.21",), (12, 14), "tests on the newest core"),
}


@dataclasses.dataclass(frozen=True)
class Interpreter:
    path: str
    minor: int
    identity: str
    complete: bool


def cache_folder() -> pathlib.Path:
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "hwaccel-gpu"


def probe(path: str) -> Interpreter | None:
    """The Python at a path, if it can be started: a name on PATH can be a version manager's shim without an installed Python."""
    try:
        done = subprocess.run([path, "-c", PROBE], capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return None
    if "|" not in done.stdout:
        return None
    major, minor, prefix, version = done.stdout.split("\n", 1)[0].split("|")
    if major != "3":
        return None
    return Interpreter(path, int(minor), f"{version} {prefix}", done.returncode == 0)


def candidates(minor: int) -> Iterator[str]:
    """Paths of Pythons, with those of the distribution first for the reason in the script `python` beside this file."""
    if sys.version_info.minor == minor:
        yield sys.executable
    yield f"/usr/bin/python3.{minor}"
    yield f"python3.{minor}"
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv")
    for folder in sorted(pyenv.glob(f"versions/3.{minor}.*"), reverse=True):
        yield str(folder / "bin" / "python3")


def find_python(profile: Profile) -> Interpreter:
    """The Python that runs this script if it is suitable, otherwise another suitable one."""
    low, high = profile.pythons
    here = sys.version_info.minor
    incomplete: list[Interpreter] = []
    for minor in sorted(range(low, high + 1), key=lambda version: (version != here, version)):
        for path in candidates(minor):
            found = probe(path)
            if found and found.minor == minor and found.complete:
                return found
            if found and found.minor == minor:
                incomplete.append(found)
    if incomplete:
        name = f"python3.{incomplete[0].minor}-venv"
        raise Unavailable(
            f"{incomplete[0].path} comes without the venv and ensurepip modules. Next: apt-get install {name} (Debian keeps them in that package)."
        )
    raise Unavailable(f"no Python from 3.{low} to 3.{high} on this machine")


def requirement_text(file: pathlib.Path) -> str:
    """The file with the files that it includes, without comments, so that a changed comment leads to no new environment."""
    lines = []
    for line in file.read_text(encoding="utf-8").splitlines():
        entry = line.split("#", maxsplit=1)[0].strip()
        lines.append(requirement_text(file.parent / entry[3:]) if entry.startswith("-r ") else entry)
    return "\n".join(line for line in lines if line)


def folder_of(name: str, profile: Profile, python: Interpreter) -> pathlib.Path:
    content = "\n".join([requirement_text(ROOT / profile.requirements), *profile.extra, python.identity])
    return cache_folder() / "venv" / f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


@contextlib.contextmanager
def locked(folder: pathlib.Path) -> Iterator[None]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def install(folder: pathlib.Path, name: str, profile: Profile, python: Interpreter) -> None:
    started = time.monotonic()
    say(
        f"environment {name}: installing {profile.about} for Python 3.{python.minor} (once, about a minute) into {folder}"
    )
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python.path, "-m", "venv", str(folder)], check=True)
    command = [
        str(folder / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--progress-bar",
        "off",
        "--no-input",
    ]
    command += ["-r", str(ROOT / profile.requirements), *profile.extra]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        tail = report_progress(name, pip.stdout or iter(()))
    if pip.returncode:
        why = "".join(tail[-15:])
        raise Unavailable(
            f"pip could not install {profile.requirements}:\n{why}Next: see that the package index can be reached (pip config list)."
        )
    (folder / MARKER).write_text(requirement_text(ROOT / profile.requirements), encoding="utf-8")
    say(f"environment {name}: ready after {time.monotonic() - started:.0f} s")


def report_progress(name: str, lines: Iterator[str]) -> list[str]:
    """Prints a progress line every few seconds, and returns all lines."""
    tail: list[str] = []
    collected, last = 0, time.monotonic()
    for line in lines:
        tail.append(line)
        collected += line.startswith("Collecting ")
        if time.monotonic() - last > 5:
            say(f"environment {name}: {collected} packages so far, {line.strip()[:100]}")
            last = time.monotonic()
    return tail


def ensure(name: str) -> pathlib.Path:
    profile = PROFILES[name]
    python = find_python(profile)
    folder = folder_of(name, profile, python)
    if not (folder / MARKER).exists():
        with locked(folder):
            if not (folder / MARKER).exists():
                install(folder, name, profile, python)
    return folder


def variables(folder: pathlib.Path) -> dict[str, str]:
    """Environment variables with which Ansible uses our tree, ignores the user's configuration, and writes its files below .build only."""
    home = BUILD / "ansible"
    home.mkdir(parents=True, exist_ok=True)
    configuration = home / "ansible.cfg"
    configuration.write_text(CONFIGURATION, encoding="utf-8")
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "MOLECULE_", "PYTHON"))
    }
    return inherited | {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "VIRTUAL_ENV": str(folder),
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(BUILD),
        "ANSIBLE_CONFIG": str(configuration),
        "ANSIBLE_COLLECTIONS_PATH": str(BUILD),
        "ANSIBLE_HOME": str(home),
        "ANSIBLE_REMOTE_TMP": str(home / "tmp"),
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
        "ANSIBLE_NOCOWS": "1",
    }


def quick() -> pathlib.Path:
    """A folder that makes Pythons with it on their path faster. It is outside of the tree, because it contains compiled code."""
    folder = BUILD / "quick"
    folder.mkdir(parents=True, exist_ok=True)
    for source in filter(pathlib.Path.is_file, (TREE / "tests" / "tools" / "quick").iterdir()):
        if not (folder / source.name).exists() or (folder / source.name).read_bytes() != source.read_bytes():
            shutil.copy2(source, folder / f"{source.name}.{os.getpid()}")
            (folder / f"{source.name}.{os.getpid()}").replace(folder / source.name)
    return folder


def run(name: str, command: list[str]) -> int:
    folder = ensure(name)
    os.chdir(TREE if TREE.exists() else ROOT)
    os.execvpe(command[0], command, variables(folder))


def show_list() -> int:
    for name, profile in PROFILES.items():
        try:
            python = find_python(profile)
            folder = folder_of(name, profile, python)
            state = f"Python {python.identity.split()[0]}, {'ready' if (folder / MARKER).exists() else 'not installed yet'}: {folder}"
        except Unavailable as reason:
            state = f"skipped: {reason}"
        print(f"{name:12} {profile.about}; {state}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Python environments of the Makefile")
    parser.add_argument("action", choices=["path", "run", "list"])
    parser.add_argument("profile", nargs="?", choices=list(PROFILES))
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if arguments.action == "list":
        return show_list()
    if not arguments.profile:
        parser.error(f"{arguments.action} needs a profile")
    try:
        if arguments.action == "path":
            print(ensure(arguments.profile))
            return 0
        return run(arguments.profile, [part for part in arguments.command if part != "--"] or ["python"])
    except Unavailable as reason:
        say(f"environment {arguments.profile}: {reason}")
        return 3


if __name__ == "__main__":
    sys.exit(main())
