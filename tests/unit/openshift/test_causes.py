# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The most likely cause of each hung install, from the last observation of it."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import causes
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import snapshot as s
from ansible_collections.hwaccel.gpu.tests.unit.openshift import installs as i

MASTER, WORKER = i.MASTERS[0], i.WORKERS[0]
NOT_YET = (
    "tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-29T22:00:00Z is before "
    "2026-11-30T02:00:00Z"
)
#: A certificate that has expired, and one that has not by the clock of this host.
OVER = NOT_YET.replace("before", "after").replace("11-30T02", "11-29T02")
AHEAD = NOT_YET.replace("before", "after").replace("11-30T02", "11-30T07")
KUBELET = (
    "kubelet[2301]: E1130 06:00:00.000000    2301 certificate_manager.go:562] kubernetes.io/kube-apiserver-client-kubelet: Failed while requesting a signed "
    'certificate from the control plane: cannot create certificate signing request: Post "https://api-int.a-cluster-with-a-long-name.a-department.'
    'example.com:6443/apis/certificates.k8s.io/v1/certificatesigningrequests": '
)
UNKNOWN = "GET error: Get https://api-int.dgxpod.example.com:22623/config/master: x509: certificate signed by unknown authority"
REFUSED = "csr-7: client request csr-7 is not approved (NOT_IN_INVENTORY): no expected node has this name. Next: add the machine to the inventory"
UNAUTHORIZED = "Failed to pull image quay.io/openshift-release-dev/ocp-v4.0-art-dev: unauthorized: access to the requested resource is not authorized"
ROUTE = (
    'OAuthServerRouteEndpointAccessibleControllerDegraded: Get "https://oauth-openshift.apps.dgxpod.example.com/healthz": '
    "dial tcp: lookup oauth-openshift.apps.dgxpod.example.com: no such host"
)


def booting(name: str = i.BOOTSTRAP, **fields: t.Any) -> s.Snapshot:
    return i.with_machine(i.booting(), name, **fields)


def around(found: s.Snapshot, **fields: t.Any) -> s.Snapshot:
    return dataclasses.replace(found, surroundings=dataclasses.replace(found.surroundings, **fields))


def api(found: s.Snapshot, answer: str, why: str) -> s.Snapshot:
    return dataclasses.replace(found, api=dataclasses.replace(found.api, answer=answer, why=why))


JOINED = {"nodes": i.nodes((*i.MASTERS, *i.WORKERS)), "serving": frozenset((*i.MASTERS, *i.WORKERS))}
#: The hung install, and words of its cause: what, where, why, and next step.
HUNG: dict[str, tuple[s.Snapshot, tuple[str, str, str, str]]] = {
    "no DHCP": (
        booting(stage=s.NOTHING),
        ("no DHCP request was seen", "boot servers", i.BOOTSTRAP, "hwaccel_mac"),
    ),
    "no DHCP, worker": (
        i.with_machine(i.installing(), WORKER, stage=s.NOTHING),
        (f"{WORKER}: no DHCP request", "boot servers", WORKER, "starts from the network"),
    ),
    "DHCP is not answered": (
        booting(stage=s.REQUESTED, refused="no address available"),
        ("DHCP request is not answered", i.BOOTSTRAP, "no address available", "hwaccel_mac"),
    ),
    "rootfs 404": (
        booting(stage=s.KERNEL, refused="/images/rootfs.img was refused with status 404"),
        ("rootfs cannot be downloaded", i.BOOTSTRAP, "status 404", "of one build"),
    ),
    "ignition 403": (
        booting(stage=s.KERNEL, refused="/ignition/bootstrap.ign was refused with status 403"),
        ("cannot be downloaded", i.BOOTSTRAP, "bootstrap.ign", "hwaccel_install"),
    ),
    "no boot file": (
        booting(stage=s.ADDRESS, what="10.33.3.5"),
        ("has not downloaded its ignition file", "boot servers", "10.33.3.5", "console"),
    ),
    "wrong disk, by its console": (
        booting(said="coreos-installer-service: Error: opening /dev/sdq: No such file or directory (os error 2)"),
        ("disk to install on cannot be used", i.BOOTSTRAP, "/dev/sdq", "hwaccel_install_device"),
    ),
    "wrong disk, by silence": (
        booting(quiet=1800.0),
        ("its disk does not start", i.BOOTSTRAP, "30 min ago", "hwaccel_install_device"),
    ),
    "network loop": (
        i.with_machine(i.bootstrapping(), MASTER, stage=s.IGNITION, fetches=4),
        (f"{MASTER} is installed again and again", "boot order", "4 times", "disk first"),
    ),
    "network loop of a machine whose disk does not start": (
        i.with_machine(i.bootstrapping(), MASTER, stage=s.IGNITION, fetches=1, restarts=5),
        (f"{MASTER} restarts again and again", "boot order", "5 times", "hwaccel_install_device"),
    ),
    "clock behind": (
        i.with_machine(i.bootstrapping(), MASTER, stage=s.IGNITION, said=f"ignition[812]: {NOT_YET}"),
        ("a clock is behind", MASTER, "is before", "hardware clock"),
    ),
    "clock behind, here": (
        api(i.booting(), s.UNTIMELY, "the server's certificate is not accepted: certificate is not yet valid"),
        ("a clock is behind", i.WHERE, "not yet valid", "clock of this host"),
    ),
    "expired files": (
        dataclasses.replace(i.booting(), installation=i.EXPIRED),
        ("files of the installation have expired", "/srv/dgxpod", "2026-11-30T05:00:00Z", "regenerate: true"),
    ),
    "expired files, by a machine": (
        dataclasses.replace(i.with_machine(i.bootstrapping(), MASTER, said=OVER), installation=i.EXPIRED),
        ("files of the installation have expired", MASTER, "is after", "regenerate"),
    ),
    "expired files, whose clock is unknown": (
        dataclasses.replace(i.with_machine(i.bootstrapping(), MASTER, said=OVER), installation=s.Installation("/srv")),
        ("files of the installation have expired", MASTER, "is after", "regenerate"),
    ),
    "expired files of an earlier installation": (
        i.with_machine(i.bootstrapping(), MASTER, said=OVER),
        ("it is none of the files of the installation", MASTER, "is after", "installed again"),
    ),
    "clock ahead": (
        i.with_machine(i.bootstrapping(), MASTER, said=f"{KUBELET}{AHEAD}"),
        ("a clock is ahead", MASTER, "2026-11-30T07:00:00Z", "hardware clock to UTC"),
    ),
    "a worker's certificate of long ago": (
        i.with_machine(i.installing(), WORKER, said=OVER),
        ("it is none of the files of the installation", WORKER, "is after", "requests for certificates approved"),
    ),
    "no reverse record": (
        i.bootstrapping(requests=(s.Request("csr-7", "localhost.localdomain", "NOT_IN_INVENTORY", REFUSED),)),
        ("does not know its name", f"one of {i.MASTERS[0]}", "localhost.localdomain", "reverse records"),
    ),
    "no reverse record, of a machine that boot servers have seen": (
        i.with_machine(
            i.bootstrapping(
                requests=(s.Request("csr-7", "localhost", "NOT_IN_INVENTORY", REFUSED),), nodes=i.nodes(i.MASTERS[1:])
            ),
            MASTER,
            stage=s.IGNITION,
        ),
        ("does not know its name", MASTER, "as localhost", "reverse records"),
    ),
    "request refused": (
        i.bootstrapping(requests=(s.Request("csr-7", "stranger", "NOT_IN_INVENTORY", REFUSED),)),
        ("request of stranger is not approved", "NOT_IN_INVENTORY", "csr-7", "add the machine to the inventory"),
    ),
    "22623 blocked, by a probe": (
        around(i.booting(), config_refused="connection timed out"),
        ("machines cannot reach 22623", "22623", "timed out", "open port 22623"),
    ),
    "22623 blocked, by a machine": (
        i.with_machine(
            i.bootstrapping(),
            MASTER,
            stage=s.IGNITION,
            said="ignition: GET https://api-int.dgxpod.example.com:22623/config/master: dial tcp 10.33.3.3:22623: i/o timeout",
        ),
        ("machines cannot reach 22623", MASTER, "i/o timeout", "healthz"),
    ),
    "load balancer without bootstrap": (
        around(i.booting(), api_members=i.MASTERS, config_members=i.MASTERS),
        ("does not send to the bootstrap machine", "load balancer", "6443 and 22623", "hwaccel_new_cluster=true"),
    ),
    "load balancer without bootstrap at one port": (
        around(i.booting(), config_members=i.MASTERS),
        ("does not send to the bootstrap machine", "load balancer", "no member of 22623", "load_balancer"),
    ),
    "wrong CA, by a machine": (
        i.with_machine(i.bootstrapping(), MASTER, stage=s.IGNITION, said=UNKNOWN),
        ("of another authority", MASTER, "unknown authority", "files of this installation only"),
    ),
    "wrong CA, by the API": (
        api(i.booting(), s.UNTRUSTED, "the server's certificate is not accepted: self-signed certificate"),
        ("of another authority", i.WHERE, "self-signed", "api and api-int"),
    ),
    "masters up but no API": (
        dataclasses.replace(i.bootstrapping(), api=i.SILENT, answers=s.Answers()),
        ("masters are up, and the API is not", i.WHERE, MASTER, "bootkube"),
    ),
    "masters are up by the memory of boot servers": (
        i.with_machine(dataclasses.replace(i.nothing(), installation=i.FILES), MASTER, joined=True),
        ("masters are up, and the API is not", i.WHERE, MASTER, "bootkube"),
    ),
    "masters are up and the API is not, without a bootstrap machine": (
        dataclasses.replace(i.installing(), api=i.SILENT),
        ("masters are up, and the API is not", i.WHERE, MASTER, "crictl ps --all --name kube-apiserver"),
    ),
    "the API has not started": (
        booting(stage=s.CONFIG),
        ("the API has not started", i.BOOTSTRAP, "connection refused", "release-image"),
    ),
    "operator degraded": (
        i.installing(
            operators=(s.Operator("storage", degraded=True, reason="CSI: no driver"), s.Operator("etcd")), **JOINED
        ),
        ("operator storage is degraded", "1 of 2 operators", "CSI: no driver", "clusteroperator storage"),
    ),
    "operator not available": (
        i.installing(operators=(s.Operator("dns", available=False, reason="DNS: no pod"),), **JOINED),
        ("operator dns is not available", "1 of 1", "DNS: no pod", "clusteroperator dns"),
    ),
    "operator progresses": (
        i.installing(operators=(s.Operator("network", progressing=True, reason="Deploying: 3 of 5"),), **JOINED),
        ("operator network is not ready", "1 of 1", "3 of 5", "clusteroperator network"),
    ),
    "wildcard DNS wrong, by a probe": (
        around(i.installing(**JOINED), wildcard="it leads to 10.0.0.9, and the load balancer is 10.0.0.5"),
        ("*.apps in DNS is wrong", "*.apps.dgxpod.example.com", "10.0.0.9", "ports 443 and 80"),
    ),
    "wildcard DNS wrong, by an operator": (
        i.installing(operators=(s.Operator("authentication", degraded=True, reason=ROUTE),), **JOINED),
        ("*.apps in DNS is wrong", "operator authentication", "no such host", "*.apps"),
    ),
    "pull secret refused, by a machine": (
        booting(said=f"release-image.sh: {UNAUTHORIZED}"),
        ("refuses the pull secret", i.BOOTSTRAP, "unauthorized", "podman pull"),
    ),
    "pull secret refused, by an operator": (
        i.installing(operators=(s.Operator("console", available=False, reason=UNAUTHORIZED),), **JOINED),
        ("refuses the pull secret", "operator console", "unauthorized", "openshift-config/pull-secret"),
    ),
    "pull secret refused, by the version": (
        i.installing(version=dataclasses.replace(i.WORKING, text=UNAUTHORIZED), **JOINED),
        ("refuses the pull secret", "ClusterVersion", "unauthorized", "pull-secret"),
    ),
    "a node is not Ready": (
        i.installing(nodes=(*i.nodes(i.MASTERS), *i.nodes([WORKER], "KubeletNotReady: no network"))),
        (f"{WORKER} has not joined", "Node, not Ready", "no network", "kubelet"),
    ),
    "no request is filed": (
        i.installing(),
        (f"{WORKER} has not joined", "22623", "no certificate request", "kubelet"),
    ),
    "nothing is wrong": (i.installed(), ("no known cause", i.NAME, "5 of 5 machines", "gather")),
}


@pytest.mark.parametrize("name", HUNG)
def test_each_hung_install_has_its_cause(name: str) -> None:
    found, words = HUNG[name]
    fault = causes.likely(found)
    for field, word in zip((fault.what, fault.where, fault.why, fault.next_step), words, strict=True):
        assert word in field, fault


def test_each_rule_names_a_cause() -> None:
    first = {next(rule for rule in causes._RULES if rule(found)) for found, _words in HUNG.values()}
    assert first == set(causes._RULES)


def test_the_page_has_each_cause() -> None:
    page = (pathlib.Path(__file__).parents[3] / "docs" / "openshift-wait.md").read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip().strip("`") for line in page.splitlines() if line.startswith("| `")}
    names = re.compile(r"\b\w+-?\d?\.dgxpod\.example\.com\b|(?<=operator )\w+|(?<=request of )\w+")
    told = {names.sub("NAME", causes.likely(found).what) for found, _words in HUNG.values()}
    assert told <= rows, told - rows


def test_a_cause_is_one_line_that_says_all() -> None:
    for name, (found, _words) in HUNG.items():
        text = str(causes.likely(found))
        assert ("\n" in text, len(text) < 1500, " Next: " in text) == (False, True, True), name


def test_no_cause_sends_to_a_playbook_that_does_not_know_the_files() -> None:
    """dns_pxe alone has nothing of the installation, so that it would remove ignition files, and let machines boot their disks."""
    steps = {name: causes.likely(found).next_step for name, (found, _words) in HUNG.items()}
    assert [name for name, step in steps.items() if "hwaccel.gpu.dns_pxe" in step] == []
    told = {name.partition(",")[0] for name, step in steps.items() if "hwaccel.gpu.site" in step}
    assert told == {"DHCP is not answered", "rootfs 404", "ignition 403", "no reverse record"}


def test_the_end_of_a_long_line_is_shown() -> None:
    """Go writes an URL first, and why the request has failed behind it."""
    found = i.with_machine(i.bootstrapping(), MASTER, said=f"{KUBELET}{OVER}")
    for one in (found, i.with_machine(i.bootstrapping(), MASTER, said=f"{KUBELET}{UNKNOWN}")):
        fault = causes.likely(one)
        assert fault.why.startswith("…") and "x509: " in fault.why and len(fault.why) <= 301, fault
    pull = i.installing(operators=(s.Operator("dns", available=False, reason=f"{'x' * 400}{UNAUTHORIZED}"),), **JOINED)
    assert causes.likely(pull).why.endswith(UNAUTHORIZED)


def test_valid_files_are_never_created_again_for_a_certificate() -> None:
    """That would be another cluster, and machines would be lost."""
    for said in (OVER, AHEAD, "certificate has expired"):
        for found in (i.booting(), i.bootstrapping(), i.installing(), i.installed()):
            fault = causes.likely(i.with_machine(found, i.BOOTSTRAP, said=said))
            assert "regenerate" not in fault.next_step and "expired" in fault.what, fault


def test_restarts_of_each_installation_are_no_loop() -> None:
    """CoreOS restarts when it is written and at its first boot, and a machine that has joined may restart as often as it likes."""
    for found in (
        i.with_machine(i.bootstrapping(), MASTER, stage=s.IGNITION, fetches=1, restarts=4),
        i.with_machine(i.bootstrapping(nodes=i.nodes(i.MASTERS)), MASTER, restarts=9),
    ):
        assert "again and again" not in causes.likely(found).what


def test_workers_that_wait_as_usual_are_no_cause() -> None:
    """22623 answers them with 500 until masters serve it."""
    found = i.bootstrapping(**JOINED | {"nodes": i.nodes(i.MASTERS)})
    assert causes.likely(found).what == "no known cause applies"
    said = i.with_machine(found, WORKER, said="GET result: Internal Server Error", stage=s.IGNITION)
    assert causes.likely(said).what == "no known cause applies"


def test_expired_files_are_no_cause_of_an_installed_cluster() -> None:
    found = dataclasses.replace(i.booting(), installation=i.INSTALLED)
    assert "expired" not in causes.likely(found).what


def test_the_awaited_machine_is_named_before_another() -> None:
    found = booting(said=f"bootkube: {UNAUTHORIZED}")
    both = i.with_machine(found, MASTER, said=UNAUTHORIZED)
    assert causes.likely(both).where == i.BOOTSTRAP
    # A worker without DHCP does not keep the API from starting.
    assert i.BOOTSTRAP in causes.likely(booting(WORKER, stage=s.NOTHING)).where
