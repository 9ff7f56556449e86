# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rig's control plane: real components that have nothing but the keys on the bootstrap machine's disk. Runtime: three starts, half a minute."""

from __future__ import annotations

import base64
import collections.abc as c
import dataclasses
import pathlib
import shutil
import socket
import ssl
import typing as t

import pytest
from cryptography import x509

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import kubeconfig as files
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.identity import Credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.transport import Transport
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden, Unauthorized
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import CSR, NODE
from ansible_collections.hwaccel.gpu.tests.live.support.approvals import Machine, certificate, file, join
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import find_programs
from ansible_collections.hwaccel.gpu.tests.openshift import support
from ansible_collections.hwaccel.gpu.tests.openshift.conftest import Made
from ansible_collections.hwaccel.gpu.tests.openshift.rig.control_plane import ControlPlane
from ansible_collections.hwaccel.gpu.tests.openshift.rig.disk import Disk, unpack
from ansible_collections.hwaccel.gpu.tests.openshift.rig.world import furnish
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.kubeconfig import authorities_of
from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s

SECRET = Resource("", "v1", "Secret", "secrets", True)
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)
POD = Resource("", "v1", "Pod", "pods", True)
DOMAIN = "dgxpod.example.com"
#: Names of the API, and the certificate that answers to each.
NAMES = {
    f"api.{DOMAIN}": "kube-apiserver-lb-server",
    f"api-int.{DOMAIN}": "kube-apiserver-internal-lb-server",
    "localhost": "kube-apiserver-localhost-server",
    "kubernetes.default.svc": "kube-apiserver-service-network-server",
    "": "kube-apiserver-service-network-server",
}


@pytest.fixture(scope="module")
def plane(disk: Disk, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[ControlPlane]:
    with ControlPlane(find_programs(), disk, tmp_path_factory.mktemp("plane") / "state") as started:
        furnish(started.admin, disk)
        print(f"ready after {started.seconds:.1f} s")
        yield started


def reached(plane: ControlPlane, kubeconfig: t.Any) -> Credentials:
    """Credentials of a kubeconfig, of whose server the name is kept for TLS and the address is that of the rig."""
    found = files.load(kubeconfig)
    name = found.host.removeprefix("https://").partition(":")[0]
    return dataclasses.replace(found, host=f"https://{plane.endpoint}", server_name=name)


def client(plane: ControlPlane, kubeconfig: t.Any) -> Client:
    return Client(Transport(reached(plane, kubeconfig)))


def presented(plane: ControlPlane, name: str) -> bytes:
    """The certificate that a client of auth/kubeconfig is shown, by the name it asks for: its authorities are those of the kubeconfig."""
    authorities = authorities_of(plane.disk.path("auth/kubeconfig").read_bytes())
    context = ssl.create_default_context(cadata=b"".join(authorities).decode())
    context.check_hostname = bool(name)
    host, _colon, port = plane.endpoint.partition(":")
    with (
        socket.create_connection((host, int(port)), timeout=10) as connection,
        context.wrap_socket(connection, server_hostname=name or None) as secured,
    ):
        return secured.getpeercert(binary_form=True) or b""


@pytest.mark.parametrize("name", NAMES)
def test_each_name_of_the_api_has_its_certificate(plane: ControlPlane, name: str) -> None:
    first = x509.load_pem_x509_certificates(plane.disk.tls(f"{NAMES[name]}.crt").read_bytes())[0]
    assert x509.load_der_x509_certificate(presented(plane, name)) == first


def test_the_administrator_is_that_of_the_folder(plane: ControlPlane, made: Made) -> None:
    admin = client(plane, str(made.folder / "auth" / "kubeconfig"))
    assert admin.allowed("*", Resource("*", "*", "", "*", False))


def test_what_the_installer_made_is_in_the_cluster(plane: ControlPlane, made: Made) -> None:
    admin = plane.admin
    metadata = support.ignition(made.folder / "metadata.json")
    found = admin.get(admin.resource("config.openshift.io/v1", "Infrastructure"), "cluster")
    assert found["status"]["infrastructureName"] == metadata["infraID"] == plane.disk.infrastructure
    root = plane.disk.tls("root-ca.crt").read_text(encoding="ascii")
    assert admin.get(CONFIG_MAP, "root-ca", "kube-system")["data"]["ca.crt"] == root
    operator = "openshift-machine-config-operator"
    assert admin.get(CONFIG_MAP, "machine-config-server-ca", operator)["data"]["ca-bundle.crt"] == root
    secret = admin.get(SECRET, "machine-config-server-ca", operator)
    assert base64.b64decode(secret["data"]["tls.crt"]).decode() == root
    password = (made.folder / "auth" / "kubeadmin-password").read_bytes()
    assert base64.b64decode(admin.get(SECRET, "kubeadmin", "kube-system")["data"]["kubeadmin"]) == password
    signer = plane.disk.tls("kubelet-signer.crt").read_text(encoding="ascii")
    assert admin.get(CONFIG_MAP, "csr-controller-ca", "openshift-config-managed")["data"]["ca-bundle.crt"] == signer
    assert admin.list(admin.resource("security.openshift.io/v1", "SecurityContextConstraints")).items == []


def test_a_machine_joins_by_what_22623_hands_out(plane: ControlPlane, tmp_path: pathlib.Path) -> None:
    server = reached(plane, plane.disk.kubeconfig("kubelet"))
    bootstrap = Client(Transport(server))
    with pytest.raises(Forbidden):
        bootstrap.list(NODE)
    with pytest.raises(Forbidden):
        bootstrap.list(SECRET, "kube-system")
    machine = Machine(server, bootstrap, tmp_path, f"worker-0.{DOMAIN}")
    request = s.client(machine.name, key=machine.key)
    stored = file(request, bootstrap)
    assert (stored["spec"]["username"], set(stored["spec"]["groups"])) == (s.BOOTSTRAPPER, set(s.BOOTSTRAPPER_GROUPS))
    assert "status" not in bootstrap.get(CSR, request.name) or not bootstrap.get(CSR, request.name)["status"]
    approve(plane.admin, request.name)
    node = machine.node(certificate(bootstrap, request.name))
    join(node, machine.name, "127.0.0.1")
    serving = s.serving(machine.name, *s.dns(machine.name), *s.ips("127.0.0.1"), key=machine.key)
    file(serving, node)
    approve(plane.admin, serving.name)
    signer = x509.load_pem_x509_certificate(plane.disk.tls("kubelet-signer.crt").read_bytes())
    for name in (request.name, serving.name):
        signed = x509.load_pem_x509_certificate(base64.b64decode(certificate(plane.admin, name)))
        signed.verify_directly_issued_by(signer)
    # The identity is the node's, and not more.
    with pytest.raises(Forbidden):
        node.list(SECRET, "kube-system")


def approve(admin: Client, name: str) -> None:
    decided = {"type": "Approved", "status": "True", "reason": "Test", "message": "by a test"}
    admin.replace(admin.get(CSR, name) | {"status": {"conditions": [decided]}}, CSR, subresource="approval")


def test_its_controllers_make_pods_of_daemonsets_and_deployments(plane: ControlPlane) -> None:
    admin = plane.admin
    join(admin, "master-0", "127.0.0.1")
    for kind, more in (("DaemonSet", {}), ("Deployment", {"replicas": 2})):
        label = {"app": kind.lower()}
        containers = [{"name": "probe", "image": "registry.example.com/probe:1"}]
        # A new Node has taints until the controllers have seen it, and again when its status gets old.
        template = {
            "metadata": {"labels": label},
            "spec": {"containers": containers, "tolerations": [{"operator": "Exists"}]},
        }
        spec = {"selector": {"matchLabels": label}, "template": template, **more}
        metadata = {"name": "probe", "namespace": "default"}
        obj = {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}
        admin.create(obj, admin.resource("apps/v1", kind))

    def bound() -> set[str]:
        pods = admin.list(POD, "default").items
        return {pod["metadata"]["labels"]["app"] for pod in pods if pod["spec"].get("nodeName")}

    until(lambda: bound() == {"daemonset", "deployment"}, "pods of both on nodes", seen=bound)


def test_one_that_was_away_comes_back_with_its_data(plane: ControlPlane) -> None:
    admin = plane.admin
    uid = admin.get(NODE, "master-0")["metadata"]["uid"]
    plane.stop()
    host, _colon, port = plane.endpoint.partition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=10)
    plane.start()
    assert admin.get(NODE, "master-0")["metadata"]["uid"] == uid


def test_a_wrong_key_on_the_disk_shows(disk: Disk, tmp_path: pathlib.Path) -> None:
    """Nothing is taken from anywhere else: the folder of the installation is whole meanwhile."""
    broken = Disk(tmp_path / "disk")
    shutil.copytree(disk.root, broken.root)
    server = broken.tls("kube-apiserver-lb-server.key")
    shutil.copyfile(disk.tls("kubelet-signer.key"), server)
    with (
        pytest.raises(AssertionError, match="private key does not match public key"),
        ControlPlane(find_programs(), broken, tmp_path / "state"),
    ):
        pass
    assert not (tmp_path / "state").exists()
    server.unlink()
    with (
        pytest.raises(FileNotFoundError, match=r"kube-apiserver-lb-server\.key: Ignition has not written it"),
        ControlPlane(find_programs(), broken, tmp_path / "state"),
    ):
        pass


def test_the_identity_of_another_installation_is_nobody(plane: ControlPlane, keys: str, tmp_path: pathlib.Path) -> None:
    other = support.configure(tmp_path / "other")
    assert support.run(other, *support.IGNITION, keys=keys).status == 0
    stranger = unpack(other / "bootstrap.ign", tmp_path / "disk")
    mixed = stranger.kubeconfig("kubelet")
    mixed["clusters"] = plane.disk.kubeconfig("kubelet")["clusters"]
    with pytest.raises(Unauthorized):
        client(plane, mixed).list(CSR)
    assert connect({"kubeconfig": plane.kubeconfig}).list(CSR).items
