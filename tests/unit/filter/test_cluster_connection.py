# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection to a cluster that was installed."""

from __future__ import annotations

import base64
import json
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.filter.cluster_connection import cluster_connection
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import PEM, certificate


def kubeconfig(server: str) -> str:
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(PEM.encode()).decode()}
    user = {"client-certificate-data": "Y2VydA==", "client-key-data": "a2V5"}
    return yaml.safe_dump(
        {
            "clusters": [{"name": "kubernetes", "cluster": cluster}],
            "contexts": [{"name": "admin", "context": {"cluster": "kubernetes", "user": "admin"}}],
            "current-context": "admin",
            "users": [{"name": "admin", "user": user}],
        }
    )


def test_a_connection_is_that_of_the_endpoint() -> None:
    found = cluster_connection(kubeconfig("https://10.0.0.11:6443"), endpoint="api.example.com:6443")
    assert found["kubeconfig"]["clusters"][0]["cluster"]["server"] == "https://api.example.com:6443"
    assert found["kubeconfig"]["users"][0]["user"]["client-key-data"] == "a2V5"


def test_servers_are_verified_by_another_name_only_as_long_as_it_is_given() -> None:
    found = cluster_connection(kubeconfig("https://10.0.0.11:6443"), "api.example.com:6443", server_name="kubernetes")
    assert found["kubeconfig"]["clusters"][0]["cluster"]["tls-server-name"] == "kubernetes"
    # As JSON: on ansible-core 2.16 the result holds strings of a type that PyYAML has no representer for.
    lasting = cluster_connection(json.dumps(found["kubeconfig"]), "api.example.com:6443")
    assert "tls-server-name" not in lasting["kubeconfig"]["clusters"][0]["cluster"]


def test_certificates_of_a_router_stand_before_those_of_the_kubeconfig_each_once() -> None:
    """As openshift-install joins them. One that has been joined before stays as it is."""
    router, later = certificate(common="router"), certificate(common="later")
    joined = cluster_connection(kubeconfig("https://api:6443"), "api.example.com:6443", authorities=router)[
        "kubeconfig"
    ]
    assert _trusted(joined) == f"{router}{PEM}"
    again = cluster_connection(json.dumps(joined), "api.example.com:6443", authorities=router)["kubeconfig"]
    assert again == joined
    rotated = cluster_connection(kubeconfig("https://api:6443"), "api.example.com:6443", authorities=later)[
        "kubeconfig"
    ]
    assert _trusted(rotated) == f"{later}{PEM}"


def test_a_kubeconfig_without_certificates_trusts_those_of_the_system_still() -> None:
    config = yaml.safe_load(kubeconfig("https://api:6443"))
    del config["clusters"][0]["cluster"]["certificate-authority-data"]
    found = cluster_connection(json.dumps(config), "api.example.com:6443", authorities=PEM)
    assert "certificate-authority-data" not in found["kubeconfig"]["clusters"][0]["cluster"]


def _trusted(config: dict[str, t.Any]) -> str:
    return base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
