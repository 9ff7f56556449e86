# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What progress.service of the bootstrap machine and the operators of OpenShift write into the cluster, by the schemas of github.com/openshift/api. Pure.

Conditions have no time here: it is that of their last change, which whoever writes them knows (`dated`).
"""

from __future__ import annotations

import collections.abc as c
import typing as t

Obj = dict[str, t.Any]

CONFIG, OPERATOR = "config.openshift.io/v1", "operator.openshift.io/v1"
MASTER, WORKER = POOLS = ("master", "worker")
PROGRESSING, COMPLETE = "progressing", "complete"
_MANAGED = "openshift-config-managed"
_IMAGE = "quay.io/openshift-release-dev/ocp-release@sha256:" + "0" * 64


def bootstrap(status: str) -> Obj:
    """As report-progress.sh of the bootstrap machine writes it."""
    return _object("v1", "ConfigMap", "bootstrap", "kube-system", data={"status": status})


def etcd(removed: bool) -> Obj:
    """The condition by which cluster-etcd-operator (pkg/operator/bootstrapteardown) says whether the member of the bootstrap machine has left."""
    told = (
        ("True", "BootstrapMemberRemoved", "etcd bootstrap member is removed")
        if removed
        else ("False", "BootstrapMemberPresent", "etcd bootstrap member etcd-bootstrap is still a member")
    )
    status = {"conditions": [_condition("EtcdBootstrapMemberRemoved", *told)]}
    return _object(OPERATOR, "Etcd", "cluster", spec={"managementState": "Managed"}, status=status)


def operator(name: str, version: str, *, waiting: str = "", degraded: str = "", unavailable: str = "") -> Obj:
    """A ClusterOperator, which is as it should be without a message. waiting, degraded, unavailable: messages of its conditions."""
    missing = unavailable or waiting
    conditions = [
        _condition("Available", _no(missing), f"{_word(name)}_NotAvailable" if missing else "AsExpected", missing),
        _condition("Progressing", _yes(waiting), "Rollout" if waiting else "AsExpected", waiting),
        _condition("Degraded", _yes(degraded), f"{_word(name)}_SyncError" if degraded else "AsExpected", degraded),
        _condition("Upgradeable", _no(waiting), "AsExpected", ""),
    ]
    versions = [] if waiting else [{"name": "operator", "version": version}]
    return _object(CONFIG, "ClusterOperator", name, spec={}, status={"conditions": conditions, "versions": versions})


def version(number: str, done: int, of: int, failing: str, history: Obj, cluster_id: str) -> Obj:
    """ClusterVersion. done, of: operators that are as they should be, and all. history: its only entry. cluster_id: for one that does not exist yet."""
    completed = history["state"] == "Completed"
    told = f"Working towards {number}: {done} of {of} done ({done * 100 // of}% complete)"
    if completed:
        told = f"Cluster version is {number}"
    elif failing:
        told = f"Unable to apply {number}: {failing}"
    conditions = [
        _condition("Available", "True" if completed else "False", "", f"Done applying {number}" if completed else ""),
        _condition("Failing", _yes(failing), "ClusterOperatorDegraded" if failing else "", failing),
        _condition("Progressing", "False" if completed else "True", "", told),
        _condition("RetrievedUpdates", "False", "NoChannel", "The update channel has not been configured."),
    ]
    status = {
        "desired": {"version": number, "image": _IMAGE},
        "history": [history],
        "conditions": conditions,
        "observedGeneration": 1,
        "versionHash": "x",
        "availableUpdates": None,
    }
    return _object(CONFIG, "ClusterVersion", "version", spec={"clusterID": cluster_id}, status=status)


def release(number: str, started: str, completed: str) -> Obj:
    """An entry of ClusterVersion's history. started, completed: times, "" while it is not complete."""
    return {
        "state": "Completed" if completed else "Partial",
        "version": number,
        "image": _IMAGE,
        "verified": False,
        "startedTime": started,
        "completionTime": completed or None,
    }


def pool(name: str, machines: int, ready: int) -> Obj:
    """A MachineConfigPool. machines, ready: Nodes of its role, and those of them that are Ready with its configuration."""
    configuration = {"name": f"rendered-{name}-{'0' * 32}"}
    complete = machines == ready
    conditions = [
        _condition("Updated", "True" if complete else "False", "", ""),
        _condition("Updating", "False" if complete else "True", "", ""),
        _condition("Degraded", "False", "", ""),
    ]
    status = {
        "configuration": configuration,
        "machineCount": machines,
        "readyMachineCount": ready,
        "updatedMachineCount": ready,
        "unavailableMachineCount": machines - ready,
        "degradedMachineCount": 0,
        "observedGeneration": 1,
        "conditions": conditions,
    }
    spec = {
        "configuration": configuration,
        "machineConfigSelector": {"matchLabels": {"machineconfiguration.openshift.io/role": name}},
        "nodeSelector": {"matchLabels": {f"node-role.kubernetes.io/{name}": ""}},
        "paused": False,
    }
    return _object("machineconfiguration.openshift.io/v1", "MachineConfigPool", name, spec=spec, status=status)


def router_authority(pem: str) -> Obj:
    """The certificate of *.apps for clients, as the ingress operator publishes it."""
    return _object("v1", "ConfigMap", "default-ingress-cert", _MANAGED, data={"ca-bundle.crt": pem})


def dated(obj: Obj, known: c.Mapping[str, t.Any], now: str) -> Obj:
    """The object with times of its conditions: that of the known object where the status is the same, now where it has changed."""
    conditions = (obj.get("status") or {}).get("conditions")
    if conditions is None:
        return obj
    before = {one["type"]: one for one in (known.get("status") or {}).get("conditions") or ()}
    times = [
        before[one["type"]]["lastTransitionTime"] if before.get(one["type"], {}).get("status") == one["status"] else now
        for one in conditions
    ]
    status = obj["status"] | {
        "conditions": [one | {"lastTransitionTime": moment} for one, moment in zip(conditions, times, strict=True)]
    }
    return obj | {"status": status}


def _object(api_version: str, kind: str, name: str, namespace: str = "", **more: t.Any) -> Obj:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def _condition(kind: str, status: str, reason: str, message: str) -> Obj:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _yes(message: str) -> str:
    return "True" if message else "False"


def _no(message: str) -> str:
    return "False" if message else "True"


def _word(name: str) -> str:
    return name.title().replace("-", "")
