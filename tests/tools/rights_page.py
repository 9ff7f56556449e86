# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generates docs/rights.md from the roles' vars/rights.yml and the example of the approver, by `make docs`.

Tests compare the tables with the manifests, and the page with the tables.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from typing import Any

import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]
HEAD = """<!-- Generated from roles/*/vars/rights.yml and examples/csr-approver by `make docs`: change it there. -->

# Rights

What the workloads of the cluster roles may do, and why: on the host by what their containers are given, in the cluster by what their ServiceAccounts may
ask of the API server. Nothing else is granted. Tests compare these tables with the manifests, and each right with the calls in the programs' sources at the
version that the roles bring. A live test takes a cluster from `site` through reboots, late and leaving nodes and another driver to `teardown`, and fails on
a right that nobody has used and on a request that was refused.

Node agents run in `hwaccel_namespace`, at the Pod Security level `privileged`: whoever may create pods there owns the nodes, so let nobody else. Controllers
run in another namespace, at the level `restricted`.

What a node agent may write, NodeFeatures and the switches of NVIDIA's driver manager, it may write about its own node alone: admission policies compare
each write with the node that the token names, so a token that is stolen on one node changes nothing about another. That takes Kubernetes 1.32 or newer;
on 1.30 and 1.31 it holds where the feature ServiceAccountTokenPodNodeInfo is on, as it is by default, and on 1.29, which has no such policies, nothing
enforces it. `preflight` says so. nfd-master writes labels of all nodes, and takes them from NodeFeatures: it runs on one node, a control plane's where the
cluster has some.

On OpenShift each ServiceAccount is bound to the SecurityContextConstraints that the column SCC names.
"""


APPROVER = """## Module `node_csr_approve`

It runs outside of the cluster, with the kubeconfig of `examples/csr-approver` and these rights of the ServiceAccount `hwaccel-gpu-approver/approver`. A live
test approves requests with them alone, and fails on one that is unused. Whoever steals its token can approve requests of kubelets and read Nodes and requests
([approving certificates](approving-certificates.md#credentials-of-the-approver)).
"""
WAIT = """## Module `openshift_wait`

It needs these rights of the same ServiceAccount, by `examples/csr-approver/wait.yaml`, beside those above (without `expected_nodes` only those to list and
watch `nodes` of them). A live test waits for an installation with them alone, also in check mode, and fails on one that is unused. Playbooks use
`auth/kubeconfig` of the installation, which is that of an administrator.
"""
#: Why the approver has each right, by the resource.
APPROVER_NEEDS = {
    "certificatesigningrequests": "reads requests of the two signers, again before it approves one, and watches them while it waits",
    "certificatesigningrequests/approval": "approves a request",
    "signers": "the API server asks for it with each approval, by the signer",
    "nodes": "which nodes exist, under which addresses, and whether they are Ready",
    "namespaces": "the uid that the option `cluster_uid` is compared with",
    "configmaps": "the CA that signs serving certificates, unless the option `serving_ca` has it",
    "machines": "nodes with a Machine object are left to the platform; on OpenShift only",
}
#: The same of a wait.
WAIT_NEEDS = {
    "clusterversions": "whether the first version is installed, and what it waits for",
    "clusteroperators": "which operators lag, and why",
    "infrastructures": "which cluster it is, by `infrastructureName`",
    "etcds": "whether etcd does without the bootstrap machine",
    "configmaps": "whether bootstrap is complete",
}

SELINUX = """## SELinux

It stays enforcing, on RHEL and on CoreOS: nothing of this collection switches it off or makes a domain permissive, and no file of the host is relabeled. Tests
decide each host path, socket and device of each pod by a compiled policy with the rules of container-selinux v2.250.0. What runs as `spc_t` is not confined: it
is privileged, or waits for a file or asks at a socket that belongs to the host. All others run as `container_t`, with no path of the host but these:
"""


def code(values: list[str]) -> str:
    return ", ".join(f"`{value}`" for value in values)


def on_the_host(row: dict[str, Any]) -> str:
    """Differences from a container without a security context."""
    parts = [f"user {row['user']}" if row["user"] else "root"]
    parts += [
        name for name, there in (("privileged", row["privileged"]), ("the host's processes", row["host_pid"])) if there
    ]
    parts += [f"capabilities {code(row['capabilities_added'])} more"] * bool(row["capabilities_added"])
    parts += [f"capabilities {code(row['capabilities_dropped'])} less"] * bool(row["capabilities_dropped"])
    parts += [f"SELinux level `{value}`" for key, value in row["selinux"].items() if key == "level"]
    return "; ".join(parts)


def domain(row: dict[str, Any]) -> str:
    """The SELinux type of its processes. Container runtimes do not confine privileged containers."""
    return str(row["selinux"].get("type") or ("spc_t" if row["privileged"] else "container_t"))


def selinux_tables(data: dict[str, Any]) -> list[str]:
    lines = [SELINUX, "| workload | host path | type of what it reads | SELinux | why |", "|---|---|---|---|---|"]
    for workload, rows in data["confined"].items():
        for row in rows:
            verdict, why = ("denied, which does no harm", row["denied"]) if "denied" in row else ("allowed", row["why"])
            lines.append(f"| `{workload}` | `{row['path']}` | `{row['type']}` | {verdict} | {why} |")
    lines += [
        "",
        "GPUs in confined pods, as those that validate nodes and those of users:",
        "",
        "| what | type | SELinux |",
        "|---|---|---|",
    ]
    for row in data["devices"]:
        verdict = (
            f"denied without the boolean `{row['boolean']}` (role `node_runtime`) or `{row['narrower']}`"
            if "boolean" in row
            else "allowed"
        )
        lines.append(f"| {row['what']} | `{row['type']}` | {verdict} |")
    return [*lines, ""]


def host_table(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| workload | container | security | SELinux type | host paths, read only | host paths, writable | SCC | why |",
        "|" + "---|" * 8,
    ]
    for row in rows:
        paths = {mode: code([path for path, how in row["host_paths"].items() if how == mode]) for mode in ("ro", "rw")}
        cells = [
            f"`{row['workload']}`",
            f"`{row['container']}`",
            on_the_host(row),
            f"`{domain(row)}`",
            paths["ro"],
            paths["rw"],
            f"`{row['scc']}`",
            row["why"],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def api_table(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| ServiceAccount | verbs | of | where | why |", "|---|---|---|---|---|"]
    for row in rows:
        resources = code([f"{resource}.{row['group']}".rstrip(".") for resource in row["resources"]])
        where = "the cluster" if row["cluster"] else "its own namespace"
        lines.append(f"| `{row['account']}` | {', '.join(row['verbs'])} | {resources} | {where} | {row['why']} |")
    return lines


def approver_table(top: pathlib.Path, head: str, needs: dict[str, str], *names: str) -> list[str]:
    """names: of the files of the example."""
    lines = [head, "| verbs | of | named | where | why |", "|---|---|---|---|---|"]
    for name in names:
        objects = yaml.safe_load((top / "examples" / "csr-approver" / f"{name}.yaml").read_text(encoding="utf-8"))
        for role in objects["items"]:
            where = f"`{role['metadata']['namespace']}`" if role["kind"] == "Role" else "the cluster"
            for rule in role.get("rules", []):
                full = [f"{one}.{group}".rstrip(".") for group in rule["apiGroups"] for one in rule["resources"]]
                why = "; ".join(needs[one] for one in rule["resources"])
                named = code(rule.get("resourceNames", []))
                lines.append(f"| {', '.join(rule['verbs'])} | {code(full)} | {named} | {where} | {why} |")
    return [*lines, ""]


def calls_table(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| ServiceAccount | program | calls | kept from |", "|---|---|---|---|"]
    for row in rows:
        calls = [f"{call['verb']} `{call['resource']}` ({', '.join(call['at'])})" for call in row["calls"]]
        kept = [f"{one['what']} ({', '.join(one['at'])}): {because(one['because'])}" for one in row["not_made"]]
        lines.append(
            f"| `{row['account']}` | {row['program']} {row['version']} | {'; '.join(calls) or 'none'} | {'; '.join(kept)} |"
        )
    return lines


def because(what: str | dict[str, str]) -> str:
    return what if isinstance(what, str) else ", ".join(f"`{name}={value}`" for name, value in what.items())


def page(top: pathlib.Path = TOP) -> str:
    lines = [HEAD]
    for path in sorted(top.glob("roles/*/vars/rights.yml")):
        role = path.parents[1].name
        tables = yaml.safe_load(path.read_text(encoding="utf-8"))
        lines += [f"## Role `{role}`", "", "On the node:", "", *host_table(tables[f"__{role}_rights"]), ""]
        lines += [
            "At the API server; ServiceAccounts that are not named may nothing:",
            "",
            *api_table(tables[f"__{role}_api_rights"]),
            "",
        ]
        if calls := tables.get(f"__{role}_api_calls"):
            lines += ["What the programs ask of the API server, by their sources:", "", *calls_table(calls), ""]
    lines += approver_table(top, APPROVER, APPROVER_NEEDS, "rights", "openshift")
    lines += approver_table(top, WAIT, WAIT_NEEDS, "wait")
    lines += selinux_tables(
        yaml.safe_load((top / "tests" / "unit" / "roles" / "selinux.yml").read_text(encoding="utf-8"))
    )
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Generates the page of rights")
    parser.add_argument("--write", type=pathlib.Path, required=True, metavar="FILE")
    parser.parse_args().write.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
