# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make demo` and `make demo-down` start, beside their environment: the collection's own playbooks.

demo.py up [--fleet FILE]      ansible-playbook hwaccel.gpu.demo
demo.py down                   takes the sandbox away again
demo.py twice [--fleet FILE]   for the tests: up (the table is right), up again (nothing may change or be written), down (nothing may be left)
   --installed                 ... of the collection's tarball, installed by itself, from another working directory, and validate on its cluster
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import demo_output
import environments
import tarball
import yaml

RECAP = re.compile(r"^\S+\s+:\s+ok=\d+\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)
REMOVE = [
    {
        "name": "Take the sandbox away",
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}"},
        "tasks": [{"name": "Remove the sandbox", "ansible.builtin.include_role": {"name": "hwaccel.gpu.sandbox", "tasks_from": "teardown"}}],
    }
]


def state_folder() -> pathlib.Path:
    base = os.environ.get("XDG_STATE_HOME") or pathlib.Path.home() / ".local" / "state"
    return pathlib.Path(base) / "hwaccel-gpu"


def playbook(*arguments: str) -> tuple[int, str]:
    """Runs ansible-playbook, shows its output as it comes and returns it."""
    lines = []
    with subprocess.Popen(["ansible-playbook", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    return process.returncode, "".join(lines)


def up(fleet: str | None) -> tuple[int, str]:
    if not (environments.cache_folder() / "components").is_dir():
        print("First run: the control plane is fetched or built once, which takes one to eight minutes, and up to 6 GiB of disk meanwhile.", flush=True)
    return playbook("hwaccel.gpu.demo", *(["-e", json.dumps({"demo_fleet": fleet})] if fleet else []))


def down() -> int:
    path = environments.BUILD / "demo-down.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(REMOVE), encoding="utf-8")
    status, text = playbook("-i", "localhost,", str(path))
    folder = state_folder()
    for empty in (folder / "sandbox", folder):
        if empty.is_dir() and not any(empty.iterdir()):
            empty.rmdir()
    if not status:
        print(f"Gone: the sandbox and its state. Kept: the cache in {environments.cache_folder()}")
    del text
    return status


@contextlib.contextmanager
def from_tarball() -> Iterator[None]:
    """Playbooks run from the tarball, without a way to what only the checkout has."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = tarball.only(tarball.install(tarball.build(scratch)))
        os.environ.clear()
        os.environ.update(environment)
        with contextlib.chdir(scratch):
            yield


def fleet_file(fleet: str | None) -> pathlib.Path:
    return pathlib.Path(fleet) if fleet else environments.TREE / "roles" / "sandbox" / "files" / "fleet.yml"


def output_faults(text: str, fleet: str | None) -> list[str]:
    pools = yaml.safe_load(fleet_file(fleet).read_text(encoding="utf-8"))["pools"]
    declared = yaml.safe_load((environments.TREE / "playbooks" / "vars" / "demo.yml").read_text(encoding="utf-8"))["demo_pools"]
    return demo_output.faults(text, pools, set() if fleet else {pool["name"] for pool in declared})


def writes(mark: int) -> list[str]:
    """What the collection's own client has written since, by the API server's audit log."""
    sys.path.insert(0, str(environments.TREE / "tests" / "live"))
    from support.audit import AuditLog

    (path,) = state_folder().glob("sandbox/*/audit.log")
    log = AuditLog(path)
    log.offset = mark
    return [str(request) for request in log.our_writes()]


def validation_faults(text: str, fleet: str | None) -> list[str]:
    """What is wrong with hwaccel.gpu.validate on the cluster whose files the demo's output names."""
    (kubeconfig,) = re.findall("^KUBECONFIG=(.+)$", text, re.MULTILINE)
    with tempfile.TemporaryDirectory() as scratch:
        inventory = pathlib.Path(scratch) / "inventory.json"
        one = {"ansible_connection": "local", "hwaccel_connection": {"kubeconfig": kubeconfig}}
        inventory.write_text(json.dumps({"gpu_clusters": {"hosts": {"one": one}}}), encoding="utf-8")
        status, told = playbook("-i", str(inventory), "hwaccel.gpu.validate")
    pools = yaml.safe_load(fleet_file(fleet).read_text(encoding="utf-8"))["pools"]
    nodes = sum(pool["count"] for pool in pools if pool.get("gpu"))
    right = status == 0 and f"validation: {nodes} of {nodes} passed" in told
    return [] if right else [f"validate ended with {status}, and does not tell that {nodes} nodes have passed"]


def twice(fleet: str | None, *, validated: bool) -> int:
    try:
        status, text = up(fleet)
        if status:
            print(f"FAULT: the first run ended with {status}")
            return 1
        faults = output_faults(text, fleet)
        audit = next(state_folder().glob("sandbox/*/audit.log"))
        mark, began = audit.stat().st_size, time.monotonic()
        status, text = up(fleet)
        changed = sum(int(found[0]) for found in RECAP.findall(text))
        written = writes(mark)
        print(f"second run: {time.monotonic() - began:.0f} s, changed={changed}, {len(written)} writes")
        faults += [f"the second run ended with {status}"] if status or not RECAP.search(text) else []
        faults += [f"the second run says changed={changed}"] if changed else []
        faults += [f"the second run wrote {line}" for line in written]
        faults += validation_faults(text, fleet) if validated else []
    finally:
        gone = down()
    faults += ["taking down failed"] if gone else []
    faults += [f"left behind: {path}" for path in state_folder().rglob("*")]
    print("\n".join(f"FAULT: {fault}" for fault in faults) or "twice: as it should be")
    return 1 if faults else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="The demo")
    parser.add_argument("action", choices=["up", "down", "twice"])
    parser.add_argument("--fleet", help="a fleet file instead of the default fleet")
    parser.add_argument("--installed", action="store_true", help="of the collection's tarball, only with twice")
    arguments = parser.parse_args()
    fleet = arguments.fleet and str(pathlib.Path(arguments.fleet).resolve())
    if arguments.action == "down":
        return down()
    if arguments.action == "up":
        return up(fleet)[0]
    with from_tarball() if arguments.installed else contextlib.nullcontext():
        return twice(fleet, validated=arguments.installed)


if __name__ == "__main__":
    sys.exit(main())
