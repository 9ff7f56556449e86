# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serving certificates that real kubelets request, approved by the role and the module, and requests of whoever has stolen credentials.

Certificates are valid for twelve minutes, so that kubelets renew them meanwhile.
"""

from __future__ import annotations

import base64
import ipaddress
import typing as t

import pytest
import yaml
from cryptography import x509

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.kubelets import serving_certificate
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import CSR
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.run import approve
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.settings import Settings
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import CONFIGURATION, Site
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import POD
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.unit.approval import signing

pytestmark = pytest.mark.slow
_BINDING = Resource("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", False)
_PORT = 10250
_OWN, _SERVING = (f"/var/lib/kubelet/pki/kubelet-{name}-current.pem" for name in ("client", "server"))
#: Nobody's in the rig's network.
_FOREIGN = "10.99.0.250"
_REQUEST = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}


@pytest.fixture(scope="module")
def site(rig: ClusterRig) -> Site:
    site = Site(rig, servers=("s1",), agents=("a1",))
    lifetime = {"extraArgs": [{"name": "cluster-signing-duration", "value": "12m"}]}
    site.variables["cluster_kubeadm_configuration"] = {
        **CONFIGURATION,
        "ClusterConfiguration": {"controllerManager": lifetime},
    }
    site.done()
    return site


def decided(site: Site, **options: t.Any) -> Outcome:
    """What the module does, with the inventory's machines as expected nodes."""
    nodes = [{"name": name, "ip_addresses": [site.machines[name].address], "dns_names": []} for name in ("s1", "a1")]
    return approve(Settings(nodes, "kubeadm", **options), site.client(), Clock(), serving_certificate)


def logs(site: Site, node: str) -> str:
    """Of kube-proxy there, which the API server asks the kubelet for."""
    client = site.client()
    pods = client.list(POD, namespace="kube-system", field_selector=f"spec.nodeName={node}").items
    (name,) = [pod["metadata"]["name"] for pod in pods if pod["metadata"]["name"].startswith("kube-proxy-")]
    return str(client.logs("kube-system", name, "kube-proxy", tail_lines=5))


def identity(site: Site, **user: str) -> Client:
    """A client of somebody else, at the same server."""
    config = yaml.safe_load(site.machines["s1"].read(site.admin))
    config["users"][0]["user"] = user
    config["clusters"][0]["cluster"]["server"] = f"https://{site.machines['s1'].address}:6443"
    return connect({"kubeconfig": config})


def file(client: Client, filed: signing.Filed) -> None:
    spec = filed.object()["spec"]
    asked = {key: spec[key] for key in ("request", "signerName", "usages")}
    client.create({**_REQUEST, "metadata": {"name": filed.name}, "spec": asked}, CSR)


def serial(machine: Machine) -> int:
    return x509.load_der_x509_certificate(serving_certificate(machine.address, _PORT)).serial_number


def test_kubelets_serve_with_certificates_of_the_cluster_once_the_run_has_ended(site: Site) -> None:
    for name in ("s1", "a1"):
        assert logs(site, name)
    outcome = decided(site, signers=("serving",), wait=True, wait_timeout=1.0)
    assert outcome.failure is None and not outcome.changed, outcome.failure
    again = site.done()
    assert again.changed() == 0


def test_a_request_that_was_filed_meanwhile_is_approved_by_the_next_run(site: Site) -> None:
    machine = site.machines["a1"]
    machine.sh(f"rm {_SERVING} && systemctl restart kubelet")

    def filed() -> set[str]:
        requests = site.client().list(CSR, field_selector=f"spec.signerName={signing.SERVING}").items
        return {one["metadata"]["name"] for one in requests if not one["status"].get("conditions")}

    machine.wait("a request", lambda: bool(filed()), seconds=120)
    with pytest.raises(ApiError):
        logs(site, "a1")
    before = filed()
    assert site.done("--check").changed() == 1
    assert filed() >= before

    def served() -> bool:
        # A kubelet that has only just started files another one once it knows all addresses of its node.
        site.done()
        return bool(serving_certificate(machine.address, _PORT))

    machine.wait("its certificate", served, seconds=240)
    assert logs(site, "a1")


def test_who_has_a_token_or_the_credentials_of_a_node_gets_nothing_more(site: Site) -> None:
    admin = site.client()
    # With it, kube-controller-manager itself approves a client certificate of any name for whoever has a token.
    admin.delete(_BINDING, "kubeadm:node-autoapprove-bootstrap")
    token = site.machines["s1"].sh("kubeadm token create --ttl 10m").split()[-1]
    thief = identity(site, token=token)
    requests = {
        "stolen-foreign-name": signing.Filed(subject=signing.node_subject("intruder")),
        "stolen-known-name": signing.Filed(subject=signing.node_subject("a1")),
    }
    for name, filed in requests.items():
        file(thief, filed.but(name=name))
    own = base64.b64encode(site.machines["a1"].read(_OWN).encode()).decode()
    node = identity(site, **{"client-certificate-data": own, "client-key-data": own})
    for name, address in (("foreign-address", _FOREIGN), ("another-s-address", site.machines["s1"].address)):
        names = (x509.DNSName("a1"), x509.IPAddress(ipaddress.ip_address(address)))
        filed = signing.Filed(
            name=name,
            signer=signing.SERVING,
            usages=("digital signature", "server auth"),
            subject=signing.node_subject("a1"),
            names=names,
        )
        file(node, filed)
    outcome = decided(site)
    # Kubelets may have left older ones.
    codes = {one["name"]: one["reason_code"] for one in outcome.values["ignored"] if one["reason_code"] != "SUPERSEDED"}
    assert codes == {
        "stolen-foreign-name": "NOT_IN_INVENTORY",
        "stolen-known-name": "NODE_EXISTS",
        "foreign-address": "SAN_NOT_ALLOWED",
        "another-s-address": "SAN_NOT_ALLOWED",
    }
    assert not outcome.changed
    for name in codes:
        status = admin.get(CSR, name)["status"]
        assert not status.get("certificate") and not status.get("conditions")


def test_kubelets_renew_both_certificates(site: Site) -> None:
    machine = site.machines["a1"]
    served, own = serial(machine), machine.read(_OWN)

    def renewed() -> bool:
        decided(site, signers=("serving",))
        return serial(machine) != served and machine.read(_OWN) != own

    machine.wait("both certificates to be renewed", renewed, seconds=900)
    assert logs(site, "a1")
