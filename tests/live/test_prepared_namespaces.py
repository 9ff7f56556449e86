# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Namespaces that an administrator made beforehand, with a pull secret in each: site uses them, teardown leaves them.

Runtime: about a minute on two cores.
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.tests.live.support.site import cluster, playbook

GPU = {"product": "NVIDIA-L4", "count": 1, "memory_mib": 23034}
FLEET = {"time_scale": 0.01, "pools": [{"name": "gpu", "count": 1, "kernel": "6.8.0-134-generic", "gpu": GPU}]}
SPACES = ("hwaccel-gpu", "hwaccel-gpu-system")


def prepare(client: Client) -> None:
    for name in SPACES:
        client.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, client.resource("v1", "Namespace")
        )
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "mirror", "namespace": name},
            "stringData": {"a": "b"},
        }
        client.create(secret, client.resource("v1", "Secret"))


def kept(client: Client) -> list[t.Any]:
    """Uids of the namespaces and of what was put into them."""
    spaces = [client.get(client.resource("v1", "Namespace"), name)["metadata"]["uid"] for name in SPACES]
    return spaces + [client.get(client.resource("v1", "Secret"), "mirror", name)["metadata"]["uid"] for name in SPACES]


def test_prepared_namespaces_are_used_and_stay(make_sandbox: t.Any) -> None:
    sandbox = make_sandbox(FLEET)
    client = connect({"kubeconfig": sandbox.kubeconfig})
    prepare(client)
    before = kept(client)
    hosts = {"one": cluster(sandbox.kubeconfig, hwaccel_image_pull_secrets=["mirror"], hwaccel_wait_timeout=240)}

    refused = playbook("preflight", hosts, "-e", '{"hwaccel_image_pull_secrets": ["miror"]}')
    assert refused.rc != 0
    assert "Secret hwaccel-gpu/miror does not exist (hwaccel_image_pull_secrets)" in "\n".join(refused.failures)
    assert "kubectl label --overwrite namespace hwaccel-gpu pod-security.kubernetes.io/enforce=privileged" in "\n".join(
        refused.failures
    )

    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}
    client.patch(client.resource("v1", "Namespace"), "hwaccel-gpu", "", label)
    done = playbook("site", hosts)
    assert done.rc == 0, done.stdout[-6000:]
    assert "namespace hwaccel-gpu exists and is used unchanged" in done.stdout

    gone = playbook("teardown", hosts)
    assert gone.rc == 0, gone.stdout[-6000:]
    assert kept(client) == before
    sandbox.close()
