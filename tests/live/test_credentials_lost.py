# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials that expire while `site` runs: one message reports it and no further requests are sent. Credentials that are renewed in their file are used.

Runtime: six runs of site, three of which end early.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import datetime
import os
import pathlib
import typing as t

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import connect
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog, Request
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import GPU, until
from ansible_collections.hwaccel.gpu.tests.live.support.fault_server import FaultServer, spoilt
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox
from ansible_collections.hwaccel.gpu.tests.live.support.snapshot import await_alike, ours

FLEET: dict[str, t.Any] = {
    # Slow enough that the gates have to watch.
    "time_scale": 0.05,
    "pools": [{"name": "gpu", "count": 1, "kernel": "6.8.0-134-generic", "gpu": GPU}, {"name": "cpu", "count": 1}],
}
#: Requests that may be in flight on all connections when the first 401 arrives, and later ones of a failed stage.
AFTERWARDS = 40
#: Requests between two rotations: enough that a request which is retried with the new token meets no second rotation.
ROTATION = 50
#: Seconds of validity of the last certificate: longer than a slice of a gate, so that one starts with it; shorter than the grace time for a missing image.
SHORT = 45
DRIVERS = "app.kubernetes.io/component=driver"


@pytest.fixture(scope="module")
def sandbox(make_sandbox: t.Any) -> Sandbox:
    sandbox: Sandbox = make_sandbox(FLEET)
    return sandbox


def run_site(kubeconfig: str) -> site.Run:
    return site.playbook("site", {"one": site.cluster(kubeconfig, hwaccel_wait_timeout=240)})


def assert_refused(run: site.Run, *words: str) -> None:
    """The run failed with a message that contains these words, and what ends it repeats no other."""
    assert run.rc != 0
    assert "Traceback" not in run.stdout
    assert all("the server does not accept the credentials: " in text for text in run.failures), run.failures
    for part in ("the server does not accept the credentials: ", *words):
        assert part in run.failures[0], run.stdout[-6000:]


def signed(sandbox: Sandbox, user: str, end: datetime.datetime) -> bytes:
    """An administrator's certificate as PEM, for the key of the sandbox's administrator, signed by the sandbox's authority."""
    pki = sandbox.layout.pki
    old = x509.load_pem_x509_certificate((pki / "admin.crt").read_bytes())
    groups = old.subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)
    subject = x509.Name([*groups, x509.NameAttribute(x509.NameOID.COMMON_NAME, user)])
    builder = x509.CertificateBuilder(
        old.issuer, subject, old.public_key(), x509.random_serial_number(), end - datetime.timedelta(days=1), end
    )
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    key = serialization.load_pem_private_key((pki / "ca.key").read_bytes(), None)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)  # type: ignore[arg-type]


def kubeconfig_of(sandbox: Sandbox, certificate: pathlib.Path) -> str:
    """The path of a new kubeconfig that refers to the certificate by its path."""
    config = yaml.safe_load(pathlib.Path(sandbox.kubeconfig).read_text(encoding="utf-8"))
    config["users"][0]["user"] = {
        "client-certificate": str(certificate),
        "client-key": str(sandbox.layout.pki / "admin.key"),
    }
    path = certificate.with_name("kubeconfig")
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return str(path)


def in_seconds(seconds: float) -> datetime.datetime:
    """A time without microseconds, as in certificates."""
    return (datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)).replace(microsecond=0)


def is_watched(requests: list[Request]) -> bool:
    """Whether a gate has started a watch after the driver was deployed."""
    deployed = [
        index
        for index, one in enumerate(requests)
        if one.is_write and one.resource == "daemonsets" and one.name.startswith("nvidia-driver")
    ]
    return bool(deployed) and any(one.verb == "watch" for one in requests[deployed[-1] :])


def test_an_expired_certificate_is_reported(sandbox: Sandbox, tmp_path: pathlib.Path) -> None:
    certificate, yesterday = tmp_path / "old.crt", in_seconds(-24 * 3600)
    certificate.write_bytes(signed(sandbox, "old", yesterday))
    kubeconfig = kubeconfig_of(sandbox, certificate)
    assert_refused(
        run_site(kubeconfig),
        f"the client certificate expired at {yesterday.isoformat()}",
        f"Next: renew the client certificate of kubeconfig {kubeconfig}",
    )


def test_a_token_that_is_revoked_during_the_run_is_reported(sandbox: Sandbox, tmp_path: pathlib.Path) -> None:
    """The token is revoked while the driver is deployed: after preflight, within a stage."""
    with spoilt(sandbox.kubeconfig) as server:
        kubeconfig = server.kubeconfig(tmp_path / "kubeconfig", token="good")
        client = connect({"kubeconfig": sandbox.kubeconfig})

        def revoke(server: FaultServer) -> None:
            if (
                not server.token
                and server.requests % 5 == 0
                and client.list(client.resource("apps/v1", "DaemonSet"), label_selector=DRIVERS).items
            ):
                server.token = "another"

        server.before_each = revoke
        assert_refused(
            run_site(kubeconfig),
            f"Next: check that the token or client certificate of kubeconfig {kubeconfig}",
            "has not expired",
        )
        print(f"{server.counts['401']} of {server.requests} requests were refused")
        assert 0 < server.counts["401"] <= AFTERWARDS


@dataclasses.dataclass(frozen=True)
class Rotated:
    """refused: number of requests with a previous token. objects: those of the cluster after the run."""

    run: site.Run
    refused: int
    objects: dict[str, dict[str, t.Any]]


@pytest.fixture(scope="module")
def rotated(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Rotated:
    """A run whose token file changes continuously. It completes the previous run, whose token was revoked."""
    folder = tmp_path_factory.mktemp("token")
    token = folder / "token"

    def rotate(server: FaultServer) -> None:
        """Replaces the token file atomically every few requests, as a kubelet does. The previous token is invalid then."""
        if server.requests % ROTATION == 1:
            server.token = f"token-{server.requests}"
            (folder / "new").write_text(server.token, encoding="utf-8")
            os.replace(folder / "new", token)

    token.write_text("first", encoding="utf-8")
    with spoilt(sandbox.kubeconfig) as server:
        server.before_each = rotate
        run = run_site(server.kubeconfig(folder / "kubeconfig", tokenFile=str(token)))
        print(f"{server.counts['401']} of {server.requests} requests had a previous token")
        return Rotated(run, server.counts["401"], ours(connect({"kubeconfig": sandbox.kubeconfig})))


def test_a_rotated_token_file_is_read_again(rotated: Rotated) -> None:
    assert rotated.run.rc == 0, rotated.run.stdout[-6000:]
    assert rotated.run.changed() > 0
    assert rotated.refused > 0
    assert len(rotated.objects) > 20


def test_a_certificate_that_expires_during_the_run_is_reported(
    make_sandbox: t.Any, sandbox: Sandbox, rotated: Rotated, tmp_path: pathlib.Path
) -> None:
    """It expires while the gate of the driver watches. The gate cannot pass before, because the image of the driver is not available.

    The API server checks the expiry of a certificate with each request, not only for a new connection (k8s.io/apiserver 0.36.4,
    pkg/server/secure_serving.go and pkg/authentication/request/x509/x509.go).
    """
    assert rotated.run.rc == 0
    other: Sandbox = make_sandbox(FLEET)
    client, audit = connect({"kubeconfig": other.kubeconfig}), AuditLog(other.audit_log)
    certificate = tmp_path / "user.crt"
    other.add_fault("image_pull_failure", pool="gpu", image="driver")
    certificate.write_bytes(signed(other, "until tomorrow", in_seconds(24 * 3600)))
    kubeconfig = kubeconfig_of(other, certificate)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_site, kubeconfig)
        until(lambda: running.done() or is_watched(audit.ours()), "the gate of the driver")
        end = in_seconds(SHORT)
        (tmp_path / "new").write_bytes(signed(other, "for a moment", end))
        os.replace(tmp_path / "new", certificate)
        run = running.result()
    assert_refused(
        run,
        "gate driver lost the connection to the cluster",
        f"the client certificate expired at {end.isoformat()}",
        f"Next: renew the client certificate of kubeconfig {kubeconfig}",
    )
    assert ", and run again\n" in run.failures[0]
    assert [str(request) for request in audit.ours() if request.user == "for a moment" and request.status == 200], (
        "the certificate was valid, and in use"
    )
    other.clear_faults()
    interrupted = ours(client)
    finished, again = run_site(other.kubeconfig), run_site(other.kubeconfig)
    assert (finished.rc, again.rc, again.changed()) == (0, 0, 0), finished.stdout[-6000:] + again.stdout[-6000:]
    complete = ours(client)
    assert len(interrupted) < len(complete), "the run had not completed"
    # The same state as on the other cluster, whose runs were interrupted differently.
    second = connect({"kubeconfig": sandbox.kubeconfig})
    await_alike(complete, lambda: ours(second))
