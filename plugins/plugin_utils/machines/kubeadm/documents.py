# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration that kubeadm reads, as documents. Pure.

Source: https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/.
"""

from __future__ import annotations

import collections.abc as c
import copy
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import plain_yaml
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import places

_API, _KUBELET, _PROXY = "kubeadm.k8s.io/v1beta4", "kubelet.config.k8s.io/v1beta1", "kubeproxy.config.k8s.io/v1alpha1"
CLUSTER, KUBELET, PROXY = "ClusterConfiguration", "KubeletConfiguration", "KubeProxyConfiguration"
UPGRADE = "UpgradeConfiguration"
#: How long a bootstrap token is valid at most. The run deletes it at its end.
_TOKEN_TTL = "15m"
#: Taint of a server (https://kubernetes.io/docs/reference/labels-annotations-taints/#node-role-kubernetes-io-control-plane).
_SERVER_TAINT = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
#: Of kube-apiserver.
ENCRYPTION_ARGUMENT = "encryption-provider-config"
Data = c.Mapping[str, t.Any]
Document = dict[str, t.Any]


def init(settings: Data, machine: Data, secrets: Data) -> str:
    """For `kubeadm init`, and for its phases on a server that exists.

    settings: of the cluster. machine: node, address, taints. secrets: token and certificate_key, which are valid for this run.
    """
    configuration = {
        "apiVersion": _API,
        "kind": "InitConfiguration",
        # Those of runs that were killed are found by their description (roles/cluster_kubeadm/files/control.py).
        "bootstrapTokens": [{"token": secrets["token"], "ttl": _TOKEN_TTL, "description": "hwaccel.gpu"}],
        "certificateKey": secrets["certificate_key"],
        "localAPIEndpoint": {"advertiseAddress": machine["address"]},
        "nodeRegistration": _registration(settings, machine, [_SERVER_TAINT]),
        "skipPhases": _skipped(settings),
    }
    documents = [configuration, _cluster(settings), _kubelet(settings), _proxy(settings)]
    return _text(settings, documents)


def names(settings: Data, machine: Data, secrets: Data) -> str:
    """For `kubeadm init phase certs apiserver`, which writes to another folder. secrets: as of init, and folder: that one."""
    elsewhere = {"ClusterConfiguration": {"certificatesDir": secrets["folder"]}}
    given = merged(settings["configuration"], elsewhere)
    return init({**settings, "configuration": given}, machine, secrets)


def components(settings: Data) -> dict[str, Document]:
    """What the cluster keeps in itself for its machines, by kind: what `init` gives it, and later runs change it to. Without the version."""
    found = [_cluster(settings), _kubelet(settings)]
    found += [_proxy(settings)] if settings["proxy_mode"] != "none" else []
    given = _given(settings)
    made = {one["kind"]: merged(one, given.get(one["kind"], {})) for one in found}
    del made[CLUSTER]["kubernetesVersion"]
    return made


def applied(settings: Data, machine: Data, _secrets: Data) -> str:
    """What a machine runs with once kubeadm has made or changed it, in JSON, for later runs: as components returns it."""
    parts = components(settings)
    kept = parts if machine["serves"] else {KUBELET: parts[KUBELET]}
    return json.dumps(kept, sort_keys=True) + "\n"


def join(settings: Data, machine: Data, secrets: Data) -> str:
    """For `kubeadm join`. machine: in addition, whether it serves. secrets: in addition, certificate: the cluster's authority in PEM."""
    configuration: Document = {
        "apiVersion": _API,
        "kind": "JoinConfiguration",
        "discovery": {
            "bootstrapToken": {
                "apiServerEndpoint": settings["endpoint"],
                "token": secrets["token"],
                "caCertHashes": [authority.key_hash(secrets["certificate"])],
            }
        },
        "nodeRegistration": _registration(settings, machine, [_SERVER_TAINT] if machine["serves"] else []),
    }
    if machine["serves"]:
        configuration["controlPlane"] = {
            "certificateKey": secrets["certificate_key"],
            "localAPIEndpoint": {"advertiseAddress": machine["address"]},
        }
    return _text(settings, [configuration])


def upgrade(settings: Data, machine: Data, _secrets: Data) -> str:
    """For `kubeadm upgrade apply` and `kubeadm upgrade node`. It holds no secret.

    machine: same_etcd: whether its etcd has the version already. applied: as components returns it, what the machine runs with.
    """
    return _upgrade(settings, machine)


def reconfigure(settings: Data, machine: Data, _secrets: Data) -> str:
    """The same, for a server whose kubelet is to run on."""
    return _upgrade(settings, machine, "kubelet-config")


def _upgrade(settings: Data, machine: Data, *skipped: str) -> str:
    shared: Document = {
        "ignorePreflightErrors": list(settings["ignored_errors"]),
        # Of the phases of init, an upgrade has only these too.
        "skipPhases": [*(one for one in _skipped(settings) if one.startswith("addon")), *skipped],
    }
    if machine.get("same_etcd") and not _changes_etcd(settings, machine["applied"]):
        # kubeadm would restart it only to renew its certificates (upgradeComponent in cmd/kubeadm/app/phases/upgrade/staticpods.go), and the role renews all
        # in time. Meanwhile the API server of the machine answers nothing, and its clients wait.
        shared["etcdUpgrade"] = False
    configuration = {
        "apiVersion": _API,
        "kind": UPGRADE,
        "apply": {"kubernetesVersion": f"v{settings['version']}", **shared},
        "node": shared,
    }
    return _text(settings, [configuration])


def _changes_etcd(settings: Data, applied: Data) -> bool:
    """Whether kubeadm may have to write another manifest of etcd for the same version. A user's configuration of the upgrade can name patches."""
    before, wanted = applied.get(CLUSTER), components(settings)[CLUSTER]
    if before is None or UPGRADE in settings["configuration"]:
        return True
    return any(before.get(key) != wanted.get(key) for key in ("etcd", "imageRepository", "certificatesDir"))


def _registration(settings: Data, machine: Data, taints: c.Sequence[Data]) -> Document:
    found: Document = {
        "name": machine["node"],
        "kubeletExtraArgs": [{"name": "node-ip", "value": machine["address"]}],
        "ignorePreflightErrors": list(settings["ignored_errors"]),
        "taints": [*taints, *map(dict, machine.get("taints", ()))],
    }
    if settings["runtime_socket"]:
        found["criSocket"] = settings["runtime_socket"]
    return found


def _skipped(settings: Data) -> list[str]:
    proxy = ["addon/kube-proxy"] if settings["proxy_mode"] == "none" else []
    return [*settings["skipped_phases"], *proxy]


def _cluster(settings: Data) -> Document:
    host = settings["endpoint"].rpartition(":")[0].strip("[]")
    found: Document = {
        "apiVersion": _API,
        "kind": CLUSTER,
        "kubernetesVersion": f"v{settings['version']}",
        "controlPlaneEndpoint": settings["endpoint"],
        "networking": {
            "podSubnet": settings["pod_network"],
            "serviceSubnet": settings["service_network"],
            "dnsDomain": settings["dns_domain"],
        },
        "apiServer": {"certSANs": list(dict.fromkeys([host, *settings["names"]]))},
    }
    if settings["image_repository"]:
        found["imageRepository"] = settings["image_repository"]
    return found


def _kubelet(settings: Data) -> Document:
    # Otherwise each kubelet signs its serving certificate itself, and who asks it cannot tell it from another one.
    return {
        "apiVersion": _KUBELET,
        "kind": KUBELET,
        "cgroupDriver": settings["cgroup_driver"],
        "serverTLSBootstrap": True,
    }


def _proxy(settings: Data) -> Document:
    mode = {} if settings["proxy_mode"] == "none" else {"mode": settings["proxy_mode"]}
    return {"apiVersion": _PROXY, "kind": PROXY, **mode}


def given_arguments(settings: Data) -> list[str]:
    """Names of arguments of kube-apiserver that users set."""
    return [str(one.get("name")) for one in _arguments(settings) if isinstance(one, c.Mapping)]


def _arguments(settings: Data) -> list[t.Any]:
    found = settings["configuration"].get(CLUSTER, {}).get("apiServer") or {}
    listed = found.get("extraArgs") if isinstance(found, c.Mapping) else None
    return list(listed) if isinstance(listed, list) else []


def _given(settings: Data) -> Document:
    """What is merged into the role's own. Lists replace one another, and with other arguments of a user nothing would be encrypted."""
    given: Document = dict(settings["configuration"])
    if not settings["secrets_encryption"]:
        return given
    arguments = [*_arguments(settings), {"name": ENCRYPTION_ARGUMENT, "value": places.ENCRYPTION}]
    return merged(given, {CLUSTER: {"apiServer": {"extraArgs": arguments}}})


def _text(settings: Data, documents: c.Sequence[Document]) -> str:
    given = _given(settings)
    merged_documents = [merged(one, given.get(one["kind"], {})) for one in documents]
    return plain_yaml.text(merged_documents, start=True)


def merged(into: c.Mapping[str, t.Any], other: c.Mapping[str, t.Any]) -> Document:
    """Dictionaries are merged key by key, everything else is replaced."""
    found = dict(copy.deepcopy(into))
    for key, value in other.items():
        both = isinstance(value, c.Mapping) and isinstance(found.get(key), c.Mapping)
        found[key] = merged(found[key], value) if both else copy.deepcopy(value)
    return found
