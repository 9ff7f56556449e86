# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real ansible-playbook runs of modules that a test adds to a copy of the collection."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import textwrap

import yaml

from ansible_collections.hwaccel.gpu.tests.unit.programs import environment

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = pathlib.Path(sys.executable).with_name("ansible-playbook")


def collection_with(base: pathlib.Path, modules: dict[str, str], actions: dict[str, str]) -> pathlib.Path:
    """Folder with the collection, with these modules instead of its own. `actions` maps a module to the action plugin that runs it."""
    here = base / "ansible_collections" / "hwaccel" / "gpu"
    (here / "plugins" / "modules").mkdir(parents=True)
    (here / "meta").mkdir()
    for name in ("action", "doc_fragments", "filter", "module_utils", "plugin_utils"):
        (here / "plugins" / name).symlink_to(ROOT / "plugins" / name)
    for name, text in modules.items():
        (here / "plugins" / "modules" / f"{name}.py").write_text(text)
    runtime = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text())
    runtime["plugin_routing"] = {
        "action": {name: {"redirect": f"hwaccel.gpu.{action}"} for name, action in actions.items()}
    }
    (here / "meta" / "runtime.yml").write_text(yaml.safe_dump(runtime))
    return base


def whole_collection(base: pathlib.Path) -> pathlib.Path:
    """Folder with the collection as it is."""
    (base / "ansible_collections" / "hwaccel").mkdir(parents=True)
    (base / "ansible_collections" / "hwaccel" / "gpu").symlink_to(ROOT)
    return base


def written(collections: pathlib.Path, folder: pathlib.Path, tasks: str, strategy: str) -> dict[str, str]:
    """Writes a play of these tasks, and returns the environment variables of the run."""
    header = f"- hosts: all\n  gather_facts: false\n  connection: local\n  strategy: {strategy}\n  tasks:\n"
    (folder / "play.yml").write_text(header + textwrap.indent(textwrap.dedent(tasks), "    "))
    return environment(folder, "K8S_AUTH_") | {
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "ANSIBLE_LOCAL_TEMP": str(folder / "local"),
        "ANSIBLE_REMOTE_TEMP": str(folder / "remote"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_ASYNC_DIR": str(folder / "async"),
        "HOME": str(folder),
    }


def play(
    collections: pathlib.Path,
    folder: pathlib.Path,
    tasks: str,
    *arguments: str,
    hosts: str = "alpha,",
    strategy: str = "linear",
    environ: dict[str, str] | None = None,
) -> tuple[int, str]:
    environ = written(collections, folder, tasks, strategy) | (environ or {})
    done = subprocess.run(
        [PROGRAM, "-i", hosts, *arguments, "play.yml"],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout
