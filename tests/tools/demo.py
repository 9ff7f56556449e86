# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of `make demo` and `make demo-down`: the collection's playbooks.

demo.py up                     ansible-playbook hwaccel.gpu.demo
demo.py down                   removes the sandbox
demo.py twice                  for the tests: up (the table is correct), up again (nothing may change or be written), down (nothing may be left behind)
   --fleet FILE                ... with this fleet instead of the default one
   --pools declared            ... and its pools with GPUs are declared as in an inventory; otherwise they are detected
   --installed                 ... from the installed tarball of the collection and another working directory, and validate on its cluster
   --options TEXT              ... with further options of ansible-playbook
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
import typing as t
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
        "tasks": [
            {
                "name": "Remove the sandbox",
                "ansible.builtin.include_role": {"name": "hwaccel.gpu.sandbox", "tasks_from": "teardown"},
            }
        ],
    }
]


@dataclasses.dataclass(frozen=True)
class Fleet:
    """path: the user's fleet file, empty for the default fleet. declared: its pools are declared for the run, as in an inventory."""

    path: str = ""
    declared: bool = False

    def pools(self) -> list[dict[str, t.Any]]:
        path = pathlib.Path(self.path) if self.path else environments.TREE / "roles" / "sandbox" / "files" / "fleet.yml"
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        return list(content["pools"])


def state_folder() -> pathlib.Path:
    base = os.environ.get("XDG_STATE_HOME") or pathlib.Path.home() / ".local" / "state"
    return pathlib.Path(base) / "hwaccel-gpu"


def playbook(*arguments: str) -> tuple[int, str]:
    """Runs ansible-playbook, and prints and returns its output."""
    lines = []
    with subprocess.Popen(
        ["ansible-playbook", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    return process.returncode, "".join(lines)


def declared_pools(pools: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """`hwaccel_pools` for the pools of a fleet file with GPUs: by labels, or by nodes if the labels do not distinguish them from other pools."""
    declared = []
    for pool in pools:
        if not pool.get("gpu"):
            continue
        labels = (pool.get("labels") or {}).items()
        apart = bool(labels) and not any(
            labels <= (other.get("labels") or {}).items() for other in pools if other is not pool
        )
        nodes = [f"{pool['name']}-{number}" for number in range(pool.get("count", 1))]
        declared.append(
            {
                "name": pool["name"],
                **({"selector": ",".join(f"{key}={value}" for key, value in labels)} if apart else {"nodes": nodes}),
                "gpu": {key: value for key, value in pool["gpu"].items() if key in ("product", "count", "memory_mib")},
                **({"driver": {"provider": "host"}} if pool.get("host_driver") else {}),
            }
        )
    return declared


def variables(fleet: Fleet) -> dict[str, t.Any]:
    """Variables of the demo's playbook."""
    if not fleet.path:
        return {}
    return {"demo_fleet": fleet.path} | ({"demo_fleet_pools": declared_pools(fleet.pools())} if fleet.declared else {})


def consent(text: str, fleet: Fleet) -> str:
    """The command of the run that a message requests; empty if it requests none."""
    match = re.search(r"run once with (\w+): (\d+) or more", text)
    if not match:
        return ""
    again = [f"FLEET={fleet.path}"] if fleet.path else []
    again += ["POOLS=declared"] if fleet.declared else []
    return " ".join(["Next, where this is meant: make demo", *again, f"ARGS='-e {match[1]}={match[2]}'"])


def up(fleet: Fleet, *options: str) -> tuple[int, str]:
    if not (environments.cache_folder() / "components").is_dir():
        print(
            "First run: the control plane is fetched or built once, which takes one to eight minutes, and up to 6 GiB of disk meanwhile.",
            flush=True,
        )
    extra = variables(fleet)
    status, text = playbook("hwaccel.gpu.demo", *(["-e", json.dumps(extra)] if extra else []), *options)
    if status and (message := consent(text, fleet)):
        print(message)
    return status, text


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
    """Playbooks run from the installed tarball, without access to files that only the checkout contains."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = tarball.only(tarball.install(tarball.build(scratch)))
        os.environ.clear()
        os.environ.update(environment)
        with contextlib.chdir(scratch):
            yield


def output_faults(text: str, fleet: Fleet) -> list[str]:
    default = yaml.safe_load((environments.TREE / "playbooks" / "vars" / "demo.yml").read_text(encoding="utf-8"))[
        "demo_pools"
    ]
    declared = variables(fleet).get("demo_fleet_pools", []) if fleet.path else default
    return demo_output.faults(text, fleet.pools(), {pool["name"] for pool in declared})


def writes(mark: int) -> list[str]:
    """Writes of the collection's client since an offset of the API server's audit log."""
    sys.path.insert(0, str(environments.TREE / "tests" / "live"))
    from support.audit import AuditLog

    (path,) = state_folder().glob("sandbox/*/audit.log")
    log = AuditLog(path)
    log.offset = mark
    return [str(request) for request in log.our_writes()]


def validation_faults(text: str, fleet: Fleet) -> list[str]:
    """Problems of hwaccel.gpu.validate on the cluster whose kubeconfig the demo has printed."""
    (kubeconfig,) = re.findall("^KUBECONFIG=(.+)$", text, re.MULTILINE)
    with tempfile.TemporaryDirectory() as scratch:
        inventory = pathlib.Path(scratch) / "inventory.json"
        one = {"ansible_connection": "local", "hwaccel_connection": {"kubeconfig": kubeconfig}}
        inventory.write_text(json.dumps({"gpu_clusters": {"hosts": {"one": one}}}), encoding="utf-8")
        status, output = playbook("-i", str(inventory), "hwaccel.gpu.validate")
    nodes = sum(pool["count"] for pool in fleet.pools() if pool.get("gpu"))
    right = status == 0 and f"validation: {nodes} of {nodes} passed" in output
    return [] if right else [f"validate ended with {status}, and does not tell that {nodes} nodes have passed"]


def twice(fleet: Fleet, *, validated: bool) -> int:
    try:
        status, text = up(fleet)
        if status:
            print(f"FAULT: the first run ended with {status}")
            return 1
        faults = output_faults(text, fleet)
        audit = next(state_folder().glob("sandbox/*/audit.log"))
        mark, start = audit.stat().st_size, time.monotonic()
        status, text = up(fleet)
        changed = sum(int(match[0]) for match in RECAP.findall(text))
        written = writes(mark)
        print(f"second run: {time.monotonic() - start:.0f} s, changed={changed}, {len(written)} writes")
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
    parser.add_argument(
        "--pools",
        choices=["found", "declared"],
        default="found",
        help="of another fleet: found, or declared as its file has them",
    )
    parser.add_argument("--options", default="", help="further options of ansible-playbook, only with up")
    parser.add_argument("--installed", action="store_true", help="of the collection's tarball, only with twice")
    arguments = parser.parse_args()
    fleet = Fleet(
        str(pathlib.Path(arguments.fleet).resolve()) if arguments.fleet else "", arguments.pools == "declared"
    )
    if arguments.action == "down":
        return down()
    if arguments.action == "up":
        return up(fleet, *shlex.split(arguments.options))[0]
    with from_tarball() if arguments.installed else contextlib.nullcontext():
        return twice(fleet, validated=arguments.installed)


if __name__ == "__main__":
    sys.exit(main())
