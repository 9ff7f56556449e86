# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make bench`: one table with peers in the same run on the same sandbox, and the results for the budgets.

Each measurement is a whole `ansible-playbook` process with one task, as users run it. The row "a module that only exits"
shows the part of Ansible itself; the rest must not exceed that of the peer (a limit in seconds would judge the machine).
Requests are counted in the API server's audit log. The exit status is 1 if a budget is exceeded. Times on a busy machine
are not reliable: compare requests, CPU and the ratios.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import peers
import yaml
from api import Api
from delay_proxy import delayed
from measure import Cost, Stage, medians
from subjects import WISH, fat_node, group, objects

from ansible_collections.hwaccel.gpu.tests.live.support import many_machines

Rows = list[tuple[str, str, Cost]]
ROUND_TRIP = 0.020
IDLE = "a module that only exits"
PLAN = "cluster_plan"
PREFLIGHT = "preflight"
SITE, SITE_BEFORE = "site", "site of another commit"
#: Machines of two clusters of OpenShift that are to be installed.
TOTALS = (50, 100, 200)
CALLBACKS = pathlib.Path(__file__).resolve().parents[1] / "live" / "support" / "callbacks"
SSA = {"state": "present", "apply": True, "server_side_apply": {"field_manager": "bench", "force_conflicts": True}}


@dataclasses.dataclass(frozen=True)
class Budget:
    """One limit, with the measured value and that of the peer, if there is one."""

    what: str
    measured: float
    allowed: float
    peer: float | None = None

    @property
    def met(self) -> bool:
        return self.measured <= self.allowed

    def __str__(self) -> str:
        ratio = f"{self.measured / self.peer:.2f} of the peer's {self.peer:g}" if self.peer else ""
        return f"| {self.what} | {self.measured:.3g} | {self.allowed:g} | {'met' if self.met else '**MISSED**'} | {ratio} |"


def ours(kubeconfig: str, namespace: str) -> list[dict[str, Any]]:
    return [
        {
            "name": "Apply",
            "hwaccel.gpu.manifest_set": {
                "name": namespace,
                "kubeconfig": kubeconfig,
                "definition": objects(namespace),
                "wait": False,
            },
        }
    ]


def peer_list(kubeconfig: str, namespace: str) -> list[dict[str, Any]]:
    return [
        {"name": "Apply", "kubernetes.core.k8s": {"kubeconfig": kubeconfig, "definition": objects(namespace), **SSA}}
    ]


def peer_loop(kubeconfig: str, namespace: str) -> list[dict[str, Any]]:
    task = {"kubeconfig": kubeconfig, "definition": "{{ item }}", **SSA}
    label = {"label": "{{ item.metadata.name }}"}
    return [{"name": "Apply", "kubernetes.core.k8s": task, "loop": objects(namespace), "loop_control": label}]


CONTENDERS: dict[str, Callable[[str, str], list[dict[str, Any]]]] = {
    "manifest_set": ours,
    "kubernetes.core.k8s, list": peer_list,
    "kubernetes.core.k8s, loop": peer_loop,
}


def drift(api: Api, namespace: str) -> None:
    """Edits a value of ours in one ConfigMap."""
    path = f"/api/v1/namespaces/{namespace}/configmaps/bench-0?fieldManager=somebody"
    api.call("PATCH", path, {"data": {"key-0": "edited"}}, "application/merge-patch+json")


def apply_rows(stage: Stage, api: Api, runs: int) -> Rows:
    # The first set of a cluster also creates the namespace of the records, which is not part of this measurement.
    first = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first", "namespace": "default"}}
    task = {"name": "first", "kubeconfig": str(stage.kubeconfig), "definition": [first], "wait": False}
    stage.run(stage.playbook("first", [{"name": "Apply", "hwaccel.gpu.manifest_set": task}]))
    rows = lifecycle_rows(stage, api, stage.kubeconfig, runs)
    with delayed(str(api.address.hostname), int(api.address.port or 443), ROUND_TRIP) as port:
        rows += lifecycle_rows(stage, api, api.kubeconfig_at(port, stage.work / "far"), min(3, runs), ", +20 ms")
    return sorted(rows, key=lambda row: [IDLE, *CONTENDERS].index(row[0]))


def idle(stage: Stage) -> pathlib.Path:
    return stage.playbook("exit", [{"name": "Exit", "ansible.builtin.ping": {}}])


def lifecycle_rows(stage: Stage, api: Api, kubeconfig: pathlib.Path, runs: int, connection: str = "") -> Rows:
    """Creation, runs without changes and one drifted object for each contender; the loop, which takes half a minute, has one run without changes.

    The contenders alternate in runs without changes, so that a changed speed of the machine affects all of them.
    """
    namespaces = {name: f"bench{'-far' if connection else ''}-{number}" for number, name in enumerate(CONTENDERS)}
    playbooks = {
        name: stage.playbook(namespaces[name], tasks(str(kubeconfig), namespaces[name]))
        for name, tasks in CONTENDERS.items()
    }
    rows: Rows = []
    for name, playbook in playbooks.items():
        progress(f"{name}{connection}: create")
        rows.append((name, f"create 40{connection}", stage.run(playbook)))
        stage.run(playbook)
    progress(f"no-op{connection}, {runs} times in turn")
    playbooks[IDLE] = idle(stage)
    once = {name: functools.partial(stage.run, playbook) for name, playbook in playbooks.items()}
    quick = {name: run for name, run in once.items() if "loop" not in name}
    slow = {name: run for name, run in once.items() if "loop" in name}
    rows += [(name, f"no-op{connection}", cost) for name, cost in (medians(runs, quick) | medians(1, slow)).items()]
    for name, namespace in namespaces.items():
        progress(f"{name}{connection}: one drifted")
        drift(api, namespace)
        rows.append((name, f"one drifted{connection}", once[name]()))
    return rows


def fleet_rows(stage: Stage, api: Api, count: int) -> Rows:
    progress(f"creating {count} nodes of 30 KB each")
    api.each(lambda number: api.call("POST", "/api/v1/nodes", fat_node(number)), range(count))
    progress("waiting until the controllers have processed them")
    stage.await_rest()
    rows: Rows = []
    kubeconfig = str(stage.kubeconfig)
    tasks = {
        "node_info": {"name": "Read", "hwaccel.gpu.node_info": {"kubeconfig": kubeconfig}},
        "kubernetes.core.k8s_info": {
            "name": "Read",
            "kubernetes.core.k8s_info": {"kubeconfig": kubeconfig, "kind": "Node"},
            "no_log": True,
        },
    }
    for name, task in tasks.items():
        progress(f"{name} over {count} nodes")
        rows.append((name, f"{count} nodes", stage.run(stage.playbook("fleet", [task]))))
    return rows


def site_rows(stage: Stage, runs: int, before: str) -> Rows:
    """before: folder with the collection of another commit (.build of a clone), whose runs without changes are in turn with ours; none if empty."""
    inventory = stage.work / "site.yml"
    cluster = {"ansible_connection": "local", "hwaccel_connection": {"kubeconfig": str(stage.kubeconfig)}}
    inventory.write_text(yaml.safe_dump({"gpu_clusters": {"hosts": {"bench": cluster}}}), encoding="utf-8")
    progress("site on 20 nodes, then its no-op")
    first = stage.run("hwaccel.gpu.site", "-i", str(inventory))
    once = {SITE: functools.partial(stage.run, "hwaccel.gpu.site", "-i", str(inventory))}
    if before:
        once[SITE_BEFORE] = functools.partial(once[SITE], environment={"ANSIBLE_COLLECTIONS_PATH": before})
    again = medians(runs, once)
    print(where(stage, "hwaccel.gpu.site", "-i", str(inventory)))
    return [(SITE, "20 nodes", first), *((name, "no-op", cost) for name, cost in again.items())]


def where(stage: Stage, *run: str) -> str:
    """A table of one more run: where its time goes."""
    record = stage.work / "record.json"
    recording = {
        "HWACCEL_RECORD": str(record),
        "ANSIBLE_CALLBACK_PLUGINS": str(CALLBACKS),
        "ANSIBLE_CALLBACKS_ENABLED": "recorder",
    }
    cost = stage.run(*run, environment=recording)
    rows = [(task["name"], task["seconds"]) for task in json.loads(record.read_text(encoding="utf-8"))["tasks"]]
    rows.append(("ansible-playbook: start, plays, between tasks", cost.wall - sum(seconds for _name, seconds in rows)))
    lines = [f"| {name} | {seconds:.2f} |" for name, seconds in rows]
    return "\n".join([f"| {run[0]}, no-op | s |", "|---|---:|", *lines, ""])


def plan_rows(stage: Stage, count: int, runs: int) -> Rows:
    """The plan of a cluster of new machines, from what was observed on each, in a whole run of Ansible."""
    progress(f"the plan of a cluster of {count} machines, {runs} times in turn with {IDLE}")
    machines, observed = group(count)
    variables = {"machines": machines, "observed": observed, "wish": WISH}
    planned = "{{ machines | hwaccel.gpu.cluster_plan('cluster_kubeadm', plans=observed, wish=wish) }}"
    all_of_them = f"plan.steps | map(attribute='hosts') | flatten | length == {count}"
    tasks = [
        {"name": "Plan", "ansible.builtin.set_fact": {"plan": planned}},
        {"name": "Verify", "ansible.builtin.assert": {"that": [all_of_them]}},
    ]
    playbooks = {
        PLAN: stage.playbook("plan", tasks, variables),
        IDLE: idle(stage),
    }
    once = {name: functools.partial(stage.run, playbook) for name, playbook in playbooks.items()}
    return [(name, f"{count} machines", cost) for name, cost in medians(runs, once).items()]


def preflight_rows(stage: Stage) -> Rows:
    """Of many machines, for which nothing is there: its problems are expected."""
    rows: Rows = []
    for total in TOTALS:
        progress(f"preflight of {total} machines of two clusters")
        clusters, machines = many_machines.inventory(total, stage.work)
        inventory = stage.work / "machines.yml"
        groups = {group: {"hosts": hosts} for group, hosts in {"gpu_clusters": clusters, **machines}.items()}
        inventory.write_text(yaml.safe_dump(groups), encoding="utf-8")
        cost = stage.run("hwaccel.gpu.preflight", "-i", str(inventory), expect_success=False)
        rows.append((PREFLIGHT, f"{total} machines", cost))
    return rows


def demo_rows(stage: Stage, fleet: pathlib.Path) -> Rows:
    """What `make demo` runs, on the benchmark's sandbox."""
    run = ("hwaccel.gpu.demo", "-e", "sandbox_name=bench", "-e", f"demo_fleet={fleet}")
    progress("demo, twice")
    return [("demo", what, stage.run(*run)) for what in ("after site", "again")]


def of_preflight(cost: Mapping[tuple[str, str], Cost]) -> list[Budget]:
    """What it takes with the most machines, and whether one machine more costs more with many than with few."""
    few, some, many = (cost[PREFLIGHT, f"{total} machines"] for total in TOTALS)
    before, after = (some.cpu - few.cpu) / (TOTALS[1] - TOTALS[0]), (many.cpu - some.cpu) / (TOTALS[2] - TOTALS[1])
    name = f"{PREFLIGHT}, {TOTALS[2]} machines"
    return [
        Budget(f"{name}: seconds", many.wall, 60),
        Budget(f"{name}: CPU of one more, beside that with {TOTALS[1]}", after / before, 1.5),
    ]


def budgets(rows: Rows) -> list[Budget]:
    cost = {(name, what): value for name, what, value in rows}
    result = []
    own, peer = "manifest_set", "kubernetes.core.k8s, list"
    if (own, "no-op") in cost:
        no_op, other, idle = cost[own, "no-op"], cost[peer, "no-op"], cost[IDLE, "no-op"]
        result += [
            Budget("no-op: requests", no_op.requests, 12, other.requests),
            Budget("no-op: writes", no_op.writes, 0, other.writes or None),
            Budget("no-op: changed tasks", no_op.changed, 0),
            Budget(
                f"no-op: CPU seconds above {IDLE}",
                no_op.cpu - idle.cpu,
                min(0.20, round((other.cpu - idle.cpu) / 2, 2)),
                round(other.cpu - idle.cpu, 2),
            ),
            Budget("create: requests", cost[own, "create 40"].requests, 2 * 40 + 15, cost[peer, "create 40"].requests),
            Budget("create: writes", cost[own, "create 40"].writes, 40 + 2, cost[peer, "create 40"].writes),
            Budget(
                "one drifted: writes (the object; the record before and after)",
                cost[own, "one drifted"].writes,
                3,
                cost[peer, "one drifted"].writes,
            ),
        ]
    for name, what, value in rows:
        if name == "node_info":
            other = next(other for peer_name, peer_what, other in rows if peer_name == "kubernetes.core.k8s_info")
            result.append(Budget(f"node_info, {what}: seconds", value.wall, 8, round(other.wall, 1)))
            result.append(Budget(f"node_info, {what}: peak MiB", value.peak_mib, 150, round(other.peak_mib)))
        if name == SITE_BEFORE:
            own = cost[SITE, what]
            result.append(Budget(f"{SITE}, {what}: requests", own.requests, value.requests, value.requests))
            result.append(
                Budget(f"{SITE}, {what}: CPU seconds", own.cpu, round(1.03 * value.cpu, 2), round(value.cpu, 2))
            )
        if name == SITE and what == "no-op":
            result.append(Budget("site, no-op: seconds", value.wall, 5))
            result.append(Budget("site, no-op: writes", value.writes, 0))
            result.append(Budget("site, no-op: changed tasks", value.changed, 0))
        if name == PLAN:
            result.append(Budget(f"{name}, {what}: seconds above {IDLE}", value.wall - cost[IDLE, what].wall, 2))
            result.append(Budget(f"{name}, {what}: peak MiB", value.peak_mib, 150))
        if name == PREFLIGHT and what == f"{TOTALS[-1]} machines":
            result += of_preflight(cost)
        if name == "demo" and what == "again":
            result.append(Budget("demo, again: seconds", value.wall, 15))
    return result


def progress(text: str) -> None:
    print(f"... {text}", file=sys.stderr, flush=True)


def table(rows: Rows) -> str:
    lines = [
        f"Peers: {peers.version()}; Python {sys.version.split()[0]}, {os.cpu_count()} cores; medians where repeated.",
        "",
    ]
    lines += ["| what | run | requests | writes | CPU s | wall s | peak MiB |", "|---|---|---:|---:|---:|---:|---:|"]
    lines += [
        f"| {name} | {what} | {cost.requests} | {cost.writes} | {cost.cpu:.2f} | {cost.wall:.2f} | {cost.peak_mib:.0f} |"
        for name, what, cost in rows
    ]
    return "\n".join(lines)


@contextlib.contextmanager
def sandbox(fleet: dict[str, Any]) -> Iterator[Stage]:
    """A sandbox of the benchmark, which is always removed at the end."""
    state = peers.environments.BUILD / "state" / "bench"
    os.environ["XDG_STATE_HOME"] = str(state)
    root = state / "hwaccel-gpu" / "sandbox" / "bench"
    stage = Stage(root / "kubeconfig", root / "audit.log", peers.environments.BUILD / "bench")
    role = {"name": "hwaccel.gpu.sandbox"}
    variables = {"sandbox_name": "bench", "sandbox_fleet": fleet}
    try:
        progress("starting a sandbox (the first run builds its control plane: minutes)")
        stage.run(stage.playbook("up", [{"name": "Start", "ansible.builtin.include_role": role}], variables))
        yield stage
    finally:
        stage.run(
            stage.playbook(
                "down",
                [{"name": "Remove", "ansible.builtin.include_role": role}],
                variables | {"sandbox_state": "absent"},
            )
        )


def main() -> int:
    parser = argparse.ArgumentParser(description="The benchmark")
    parser.add_argument(
        "--nodes", type=int, default=5000, help="fat nodes for node_info (5,000 take about 6 GiB of memory)"
    )
    parser.add_argument("--runs", type=int, default=10, help="repetitions of each no-op")
    parser.add_argument(
        "--parts",
        default="apply,site,demo,plan,preflight,fleet",
        help="fleet leaves its nodes to the sandbox's end, so it comes last",
    )
    parser.add_argument(
        "--before",
        default="",
        help="folder .build of a clone of another commit, after `make tree` there, to compare site with",
    )
    arguments = parser.parse_args()
    os.environ["ANSIBLE_COLLECTIONS_PATH"] = os.pathsep.join(
        [str(peers.environments.BUILD), str(peers.collections_folder())]
    )
    fleet_file = pathlib.Path(__file__).with_name("fleet.yml")
    rows: Rows = []
    with sandbox(yaml.safe_load(fleet_file.read_text(encoding="utf-8"))) as stage:
        api = Api(stage.kubeconfig)
        for part in arguments.parts.split(","):
            rows += {
                "apply": lambda: apply_rows(stage, api, arguments.runs),
                "site": lambda: site_rows(stage, min(3, arguments.runs), arguments.before),
                "demo": lambda: demo_rows(stage, fleet_file),
                "plan": lambda: plan_rows(stage, 500, min(3, arguments.runs)),
                "preflight": lambda: preflight_rows(stage),
                "fleet": lambda: fleet_rows(stage, api, arguments.nodes),
            }[part]()
    judged = budgets(rows)
    print(
        table(rows)
        + "\n\n| budget | measured | allowed | | beside the peer |\n|---|---:|---:|---|---|\n"
        + "\n".join(map(str, judged))
    )
    return 0 if all(budget.met for budget in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
