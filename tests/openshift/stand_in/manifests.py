# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `create manifests` makes: names and kinds of section 1 of behaviours.yml, with as much content as readers of these look for."""

from __future__ import annotations

import base64
import ipaddress
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.install_config import InstallConfig

_OPERATOR = "openshift-machine-config-operator"


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _object(api: str, kind: str, name: str, namespace: str = "", **more: t.Any) -> dict[str, t.Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


def _secret(name: str, namespace: str, kind: str = "Opaque", **data: bytes) -> dict[str, t.Any]:
    encoded = {key.replace("_", "."): _base64(value) for key, value in data.items()}
    return _object("v1", "Secret", name, namespace, type=kind, data=encoded)


def _files(folder: str, objects: dict[str, dict[str, t.Any]]) -> dict[str, bytes]:
    return {f"{folder}/{name}": yaml.safe_dump(one, sort_keys=True).encode() for name, one in objects.items()}


def schedulable(config: InstallConfig) -> bool:
    """Without workers masters are: whoever lets workers join later has to set it back between the two commands."""
    return config.workers == 0


def common(config: InstallConfig, infra: str, cluster_id: str, tls: dict[str, bytes]) -> dict[str, bytes]:
    """manifests/. tls: the files of root-ca and of the machine config server."""
    content = config.content
    root, root_key = tls["tls/root-ca.crt"], tls["tls/root-ca.key"]
    server = (tls["tls/machine-config-server.crt"], tls["tls/machine-config-server.key"])
    public = yaml.safe_dump({**content, "pullSecret": ""}).encode().decode()
    return _files(
        "manifests",
        {
            **_configs(config, infra),
            "cluster-config.yaml": _object(
                "v1", "ConfigMap", "cluster-config-v1", "kube-system", data={"install-config": public}
            ),
            "cvo-overrides.yaml": _object(
                "config.openshift.io/v1",
                "ClusterVersion",
                "version",
                spec={"channel": "stable-4.20", "clusterID": cluster_id},
            ),
            "kube-cloud-config.yaml": _object("v1", "Secret", "kube-cloud-cfg", "kube-system", type="Opaque"),
            "kube-system-configmap-root-ca.yaml": _object(
                "v1", "ConfigMap", "root-ca", "kube-system", data={"ca.crt": root.decode()}
            ),
            "machine-config-server-ca-configmap.yaml": _object(
                "v1", "ConfigMap", "machine-config-server-ca", _OPERATOR, data={"ca-bundle.crt": root.decode()}
            ),
            "machine-config-server-ca-secret.yaml": _secret(
                "machine-config-server-ca", _OPERATOR, "kubernetes.io/tls", tls_crt=root, tls_key=root_key
            ),
            "machine-config-server-tls-secret.yaml": _secret(
                "machine-config-server-tls", _OPERATOR, tls_crt=server[0], tls_key=server[1]
            ),
            "openshift-config-secret-pull-secret.yaml": _object(
                "v1",
                "Secret",
                "pull-secret",
                "openshift-config",
                type="kubernetes.io/dockerconfigjson",
                data={".dockerconfigjson": _base64(content["pullSecret"].encode())},
            ),
        },
    )


def _configs(config: InstallConfig, infra: str) -> dict[str, dict[str, t.Any]]:
    domain, networking = config.domain, config.content["networking"]
    platform = {"none": "None", "external": "External", "baremetal": "BareMetal"}.get(config.platform, config.platform)

    def one(kind: str, **more: t.Any) -> dict[str, t.Any]:
        return _object("config.openshift.io/v1", kind, "cluster", **more)

    networks = {
        "clusterNetwork": networking["clusterNetwork"],
        "networkType": networking["networkType"],
        "serviceNetwork": networking["serviceNetwork"],
    }
    found = config.content.get("proxy", {})
    return {
        "cluster-dns-02-config.yml": one("DNS", spec={"baseDomain": domain}),
        "cluster-infrastructure-02-config.yml": one(
            "Infrastructure",
            spec={"platformSpec": {"type": platform}},
            status={
                "apiServerInternalURI": f"https://api-int.{domain}:6443",
                "apiServerURL": f"https://api.{domain}:6443",
                "controlPlaneTopology": "SingleReplica" if config.masters == 1 else "HighlyAvailable",
                "infrastructureName": infra,
                "infrastructureTopology": "SingleReplica" if config.masters == 1 else "HighlyAvailable",
                "platform": platform,
            },
        ),
        "cluster-ingress-02-config.yml": one("Ingress", spec={"domain": f"apps.{domain}"}),
        "cluster-network-02-config.yml": one("Network", spec=networks),
        "cluster-proxy-01-config.yaml": one("Proxy", spec={**found, "trustedCA": {"name": ""}}),
        "cluster-scheduler-02-config.yml": one("Scheduler", spec={"mastersSchedulable": schedulable(config)}),
    }


def openshift(config: InstallConfig, password: bytes, pointers: dict[str, bytes], version: str) -> dict[str, bytes]:
    """openshift/. pointers: master.ign and worker.ign, by pool."""
    gates = {"featureSet": config.content["featureSet"]} if config.content.get("featureSet") else {}
    objects = {
        "99_feature-gate.yaml": _object("config.openshift.io/v1", "FeatureGate", "cluster", spec=gates),
        "99_kubeadmin-password-secret.yaml": _secret("kubeadmin", "kube-system", kubeadmin=password),
        "openshift-install-manifests.yaml": _object(
            "v1",
            "ConfigMap",
            "openshift-install-manifests",
            "openshift-config",
            data={"invoker": "user", "version": version},
        ),
    }
    for pool, pointer in pointers.items():
        objects[f"99_openshift-cluster-api_{pool}-user-data-secret.yaml"] = _secret(
            f"{pool}-user-data", "openshift-machine-api", disableTemplating=b"true\n", userData=pointer
        )
        objects[f"99_openshift-machineconfig_99-{pool}-ssh.yaml"] = _ssh_config(pool, config.content.get("sshKey", ""))
    return _files("openshift", objects)


def _ssh_config(pool: str, key: str) -> dict[str, t.Any]:
    users = [{"name": "core", "sshAuthorizedKeys": key.splitlines()}]
    found = _object(
        "machineconfiguration.openshift.io/v1",
        "MachineConfig",
        f"99-{pool}-ssh",
        spec={"config": {"ignition": {"version": "3.2.0"}, "passwd": {"users": users}}},
    )
    found["metadata"]["labels"] = {"machineconfiguration.openshift.io/role": pool}
    return found


def service_address(config: InstallConfig) -> str:
    """The first address of Services."""
    return str(ipaddress.ip_network(config.content["networking"]["serviceNetwork"][0])[1])
