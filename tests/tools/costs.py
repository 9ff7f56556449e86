# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Budgets of the jobs of `make test`, and problems that only one job can find: the table in docs/contributing.md.

costs.py    the costs of the last run become the budgets, and the table is rewritten (`make costs`, after a run on an otherwise idle machine)

Budgets are in budgets.json, which is generated: {"pace": seconds (pace.py), "jobs": {job: {"cpu": seconds, "wall": seconds}}}, the latter rounded up.
"""

from __future__ import annotations

import json
import math
import pathlib
import sys
import typing as t

import environments
from jobs import SUITES, Job

BUDGETS = pathlib.Path("tests/tools/budgets.json")
MEASURED = environments.BUILD / "logs" / "costs.json"
PAGE = pathlib.Path("docs/contributing.md")
BEGIN, END = "<!-- made by `make costs` -->", "<!-- end of what is made -->"
#: Budgets are rounded up to a multiple of these seconds, so that a short job does not exceed its budget by a second.
STEP = 10
#: A job that exceeds its budget by half is reported.
TOLERATED = 1.5

#: Problems that no other job would find. A job without any is not needed.
FINDS = {
    "control plane": "a control plane that cannot be built from its modules, started or removed; fills the cache",
    "parts of real nodes": "a kubelet, containerd or image of a machine that cannot be built; fills the cache",
    "parts of machines that boot": "firmware, boot loaders or packages that can no longer be had; fills the cache",
    "parts of clusters": "a kubeadm or an image of the control plane that cannot be built; fills the cache",
    "parts of OpenShift": "definitions of OpenShift's kinds, and packages of its machines, that can no longer be had; fills the cache",
    "OpenShift": "files of an installation that are created, kept or replaced against the decision table, and a stand-in that differs from its own",
    "parts of an installation": "keys, requests and operators of an installation with which a real control plane and the GPU half do not work",
    "machines to OpenShift": "what machines with empty disks do between two phases of an installation, and a run that is killed among them",
    "machines to K3s": "what a role for K3s does that etcd, API server and kubelet do not take, and a stand-in that differs from its table",
    "machines to clusters": "what kubeadm, kubelets and etcd do otherwise than the plan of a cluster expects",
    "live parts": "what a real API server refuses, defaults or races, module by module",
    "live runs": "stages that do not fit together in whole runs: gates, lost credentials, dead nodes, mutated roles",
    "live installations": "playbooks that do not fit to an installation of OpenShift: its phases, secrets, rights, and machines that are added",
    "machines that boot": "names, addresses and boot files that real firmware, DHCP clients and installers do not take",
    "load balancers": "configurations that HAProxy and keepalived refuse, connections lost when they change",
    "power": "BMCs and hypervisors that answer otherwise than their emulation in unit tests",
    "molecule metal": "host roles that do not converge, or change something the second time, on a machine with systemd",
    "real node": "manifests that a real kubelet, containerd or admission refuses; pods that do not start",
    "real machines": "what a drain evicts on a real node, and a rig that leaves something behind",
    "real runtimes": "settings that containerd, CRI-O or NVIDIA's toolkit do not take",
    "ruff": "style, unused and shadowed names",
    "words": "misspelled words, and words that have another in their place",
    "mypy": "types that do not fit, in the collection",
    "mypy fleet agent": "types that do not fit, in the sandbox's agent",
    "layers": "an import upwards",
    "ansible-lint": "tasks against the profile production",
    "stand-ins": "stand-ins of NVIDIA's programs that answer otherwise than these",
    "changelog": "a fragment that antsibull-changelog does not take",
    "tarball": "files that ought (not) to be in the collection's tarball",
    "galaxy-importer": "what Galaxy would refuse or warn of",
    "execution environment": "an execution environment that ansible-builder does not take",
    "sanity core-2.19": "style of texts, by the pylint, pep8 and yamllint of ansible-test",
    "sanity core-2.16": "documentation, imports, arguments and files that the oldest core or its Python does not take",
    "sanity core-newest": "documentation, imports, arguments and files that the newest core or its Python does not take",
    "unit layers": "logic that is wrong, whatever runs it",
    "unit core-2.16": "what the oldest core does otherwise",
    "unit core-newest": "what the newest core or its Python does otherwise",
    "molecule": "scenarios that a fork's CI copies and that do not pass",
    "demo twice": "the README's first command, its table, and a second run that changes something",
    "site core-2.16": "a whole run on the oldest core",
    "gates core-2.16": "failed nodes that the oldest core tells otherwise",
    "gates core-newest": "failed nodes that the newest core tells otherwise",
    "site core-newest": "a whole run on the newest core, from the installed collection, with two container runtimes",
}


class Cost(t.TypedDict):
    """Seconds. cpu: of all cores and of all processes of the job, None if it was not measured."""

    cpu: float | None
    wall: float


UNKNOWN = Cost(cpu=None, wall=0)


class Costs(t.TypedDict):
    """pace: that of the machine of the measurement."""

    pace: float
    jobs: dict[str, Cost]


def read(path: pathlib.Path) -> Costs:
    content: Costs = json.loads(path.read_text(encoding="utf-8"))
    return content


def budgets() -> dict[str, Cost]:
    return read(environments.ROOT / BUDGETS)["jobs"]


def slower(pace: float) -> float:
    """The factor by which a machine with this pace is slower than that of the budgets."""
    return pace / read(environments.ROOT / BUDGETS)["pace"]


def rounded(measured: Cost) -> Cost:
    def up(seconds: float) -> int:
        return math.ceil(seconds / STEP) * STEP

    return {"cpu": None if measured["cpu"] is None else up(measured["cpu"]), "wall": up(measured["wall"])}


def figure(seconds: float | None) -> str:
    return f"{seconds:.0f} s" if seconds else "not measured"


def table(jobs: tuple[Job, ...], known: dict[str, Cost]) -> str:
    """A table with the most expensive job first."""
    costs = {job.name: known.get(job.name, UNKNOWN) for job in jobs}
    lines = ["| job | CPU | wall | what only it can find |", "|---|---|---|---|"]
    for name in sorted(costs, key=lambda name: (-(costs[name]["cpu"] or 0), -costs[name]["wall"])):
        lines.append(f"| {name} | {figure(costs[name]['cpu'])} | {figure(costs[name]['wall'])} | {FINDS[name]} |")
    spent = [cost["cpu"] for cost in costs.values()]
    lines.append(f"| together | {figure(None if None in spent else sum(seconds or 0 for seconds in spent))} | | |")
    return "\n".join(lines)


def page(text: str, made: str) -> str:
    before, _begin, rest = text.partition(BEGIN)
    _old, _end, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{after}"


def over(measured: dict[str, Cost], known: dict[str, Cost], factor: float = 1.0) -> list[str]:
    """A warning for each job that exceeds its budget by half, on a machine that is slower by this factor."""
    warnings = []
    for name, cost in measured.items():
        limit = known.get(name, UNKNOWN)
        pairs = (("CPU", cost["cpu"], limit["cpu"]), ("wall", cost["wall"], limit["wall"]))
        above = [
            f"{spent:.0f} s {kind}, budget {budget:.0f} s"
            for kind, spent, budget in pairs
            if spent and budget and spent > TOLERATED * factor * budget
        ]
        warnings += (
            [
                f"warning: {name} is over its budget by half: {'; '.join(above)}. Next: make it cheaper, or `make costs` and say why."
            ]
            if above
            else []
        )
    return warnings


def ranks(jobs: tuple[Job, ...], known: dict[str, Cost]) -> dict[str, float]:
    """Seconds from a job's start to the end of the longest chain of jobs that wait for it. For a job without a budget, its limit is used."""
    seconds: dict[str, float] = {}

    def rank(job: Job) -> float:
        if job.name not in seconds:
            after = [rank(other) for other in jobs if job.name in other.after]
            seconds[job.name] = (known[job.name]["wall"] if job.name in known else job.limit) + max(after, default=0.0)
        return seconds[job.name]

    return {job.name: rank(job) for job in jobs}


def main() -> int:
    measured = read(MEASURED)
    jobs = SUITES["all"]
    known = budgets() | {name: rounded(cost) for name, cost in measured["jobs"].items()}
    known = {job.name: known[job.name] for job in jobs if job.name in known}
    made: Costs = {"pace": round(measured["pace"], 3), "jobs": known}
    (environments.ROOT / BUDGETS).write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    text = (environments.ROOT / PAGE).read_text(encoding="utf-8")
    (environments.ROOT / PAGE).write_text(page(text, table(jobs, known)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
