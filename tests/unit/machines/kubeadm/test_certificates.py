# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which certificates of a server are renewed, and which of its static pods are restarted for them."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import File, Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.certificates import (
    Certificates,
    certificates,
)
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import BEGIN, certificate

MANIFESTS = {places.moment(places.manifest(pod)): "1000.0" for pod in places.STATIC_PODS}
KEYS = "\n".join((*places.AUTHORITY_KEYS, places.ETCD_AUTHORITY_KEY))
#: Of the certificate of its API server.
NAMES = ("api.example.com", "10.0.0.1", "fd00::1")
_ALL = tuple(places.STATIC_PODS)


def server(left: int = 200, valid: int = 365, facts: dict[str, str] | None = None) -> Host:
    """A server whose first certificate, that of its API server, expires in so many days, and the others later."""
    return Host(
        facts={**MANIFESTS, "keys": KEYS, **(facts or {})},
        files={
            places.CERTIFICATES[0]: File(places.CERTIFICATES[0], certificate(valid, NAMES)),
            places.CERTIFICATES[-1]: File(places.CERTIFICATES[-1], certificate(valid + 30)),
        },
        now=BEGIN.timestamp() + 86400 * (valid - left),
    )


def written(path: str, at: float = 2000.0) -> dict[str, str]:
    return {places.moment(path): str(at)}


@pytest.mark.parametrize(
    ("host", "due"),
    [
        (server(), False),
        (server(60), False),
        (server(59), True),
        (server(-1), True),
        # Certificates that are issued for 90 days are not renewed all the time.
        (server(59, valid=90), False),
        (server(29, valid=90), True),
    ],
)
def test_certificates_are_renewed_before_they_expire(host: Host, due: bool) -> None:
    found = certificates(host)
    assert (found.due, found.renew, found.pods) == (due, due, _ALL if due else ())


def test_expired_ones_are_told_apart() -> None:
    assert not certificates(server(0)).expired and certificates(server(-1)).expired
    assert certificates(server(-3)).state == "a certificate of its control plane expired 3 days ago"
    assert certificates(server(12)).state == "a certificate of its control plane expires in 12 days"


@pytest.mark.parametrize(
    ("facts", "renewable"),
    [
        ({"keys": KEYS}, True),
        ({"keys": "\n".join(places.AUTHORITY_KEYS)}, False),
        # That of the front proxy is elsewhere.
        ({"keys": f"{places.AUTHORITY_KEYS[0]}\n{places.ETCD_AUTHORITY_KEY}"}, False),
        ({"keys": ""}, False),
        # etcd is external.
        ({"keys": "\n".join(places.AUTHORITY_KEYS), places.moment(places.ETCD): ""}, True),
    ],
)
def test_kubeadm_renews_them_with_the_keys_of_their_authorities(facts: dict[str, str], renewable: bool) -> None:
    found = certificates(server(10, facts=facts))
    assert found.due
    assert (found.renewable, found.renew, bool(found.pods)) == (renewable, renewable, renewable)


@pytest.mark.parametrize(
    ("path", "pods"),
    [(path, (pod,)) for pod, paths in places.STATIC_PODS.items() for path in paths],
)
def test_a_pod_whose_credentials_are_newer_than_its_manifest_is_restarted(path: str, pods: tuple[str, ...]) -> None:
    assert certificates(server(facts=written(path))).pods == pods
    assert certificates(server(facts=written(path, 999.0))).pods == ()


def test_an_agent_has_none() -> None:
    assert certificates(Host(facts={"keys": ""})) == Certificates()


@pytest.mark.parametrize("names", [(), NAMES, ("FD00:0::1".lower(), "10.0.0.1")])
def test_a_certificate_that_is_valid_for_all_names_stays(names: tuple[str, ...]) -> None:
    assert certificates(server(), names) == certificates(server())


def test_the_api_server_is_restarted_for_a_certificate_with_more_names() -> None:
    found = certificates(server(), ("10.0.0.1", "api.example.org"))
    assert (found.lacking, found.pods, found.renew) == (("api.example.org",), ("kube-apiserver",), False)
    # Without the key of the authority, nobody but its owner can issue it.
    assert certificates(server(facts={"keys": ""}), ("api.example.org",)).pods == ()
    # An agent has none.
    assert certificates(Host(), ("api.example.org",)).lacking == ()
