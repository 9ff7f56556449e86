# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials that end while `site` runs: it says so once and asks no further, and one that is renewed in its file is taken up.

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
    # So slow that the gates watch.
    "time_scale": 0.05,
    "pools": [{"name": "gpu", "count": 1, "kernel": "6.8.0-134-generic", "gpu": GPU}, {"name": "cpu", "count": 1}],
}
#: Requests that may still be under way, one for each connection, when the first 401 arrives; and what a failed stage still asks.
AFTERWARDS = 40
#: Requests between two rotations: so many that one which is repeated with the new token meets no other rotation.
ROTATION = 50
#: Seconds that the last certificate is valid for: longer than any slice of a gate, so that one begins with it; shorter than a gate bears a pod without image.
SHORT = 45
DRIVERS = "app.kubernetes.io/component=driver"


@pytest.fixture(scope="module")
def sandbox(make_sandbox: t.Any) -> Sandbox:
    made: Sandbox = make_sandbox(FLEET)
    return made


def run_site(kubeconfig: str) -> site.Run:
    return site.playbook("site", {"one": site.cluster(kubeconfig, hwaccel_wait_timeout=240)})


def is_refused(run: site.Run, *words: str) -> None:
    """In one message, with what to do."""
    assert run.rc != 0
    assert "Traceback" not in run.stdout
    assert len(set(run.failures)) == 1, run.failures
    for part in ("the server does not accept the credentials: ", *words):
        assert part in run.failures[0], run.stdout[-6000:]


def signed(sandbox: Sandbox, user: str, end: datetime.datetime) -> bytes:
    """An administrator's certificate for the key of the sandbox's own, by its authority, as PEM."""
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


def comes_with(sandbox: Sandbox, certificate: pathlib.Path) -> str:
    """A kubeconfig beside the certificate, which it names by its path."""
    config = yaml.safe_load(pathlib.Path(sandbox.kubeconfig).read_text(encoding="utf-8"))
    config["users"][0]["user"] = {
        "client-certificate": str(certificate),
        "client-key": str(sandbox.layout.pki / "admin.key"),
    }
    path = certificate.with_name("kubeconfig")
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return str(path)


def in_seconds(seconds: float) -> datetime.datetime:
    """Certificates end at a full second."""
    return (datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)).replace(microsecond=0)


def is_watched(requests: list[Request]) -> bool:
    """Whether a gate looks, since the driver was brought."""
    brought = [
        place
        for place, one in enumerate(requests)
        if one.is_write and one.resource == "daemonsets" and one.name.startswith("nvidia-driver")
    ]
    return bool(brought) and any(one.verb == "watch" for one in requests[brought[-1] :])


def test_a_certificate_that_has_expired(sandbox: Sandbox, tmp_path: pathlib.Path) -> None:
    certificate, yesterday = tmp_path / "old.crt", in_seconds(-24 * 3600)
    certificate.write_bytes(signed(sandbox, "old", yesterday))
    kubeconfig = comes_with(sandbox, certificate)
    is_refused(
        run_site(kubeconfig),
        f"the client certificate expired at {yesterday.isoformat()}",
        f"Next: renew the client certificate of kubeconfig {kubeconfig}",
    )


def test_a_token_that_is_revoked_in_the_middle(sandbox: Sandbox, tmp_path: pathlib.Path) -> None:
    """Once the driver is being brought to nodes: far behind preflight, in the middle of a stage."""
    with spoilt(sandbox.kubeconfig) as way:
        kubeconfig = way.kubeconfig(tmp_path / "kubeconfig", token="good")
        client = connect({"kubeconfig": sandbox.kubeconfig})

        def revoke(server: FaultServer) -> None:
            if (
                not server.token
                and server.requests % 5 == 0
                and client.list(client.resource("apps/v1", "DaemonSet"), label_selector=DRIVERS).items
            ):
                server.token = "another"

        way.before_each = revoke
        is_refused(
            run_site(kubeconfig),
            f"Next: check that the token or client certificate of kubeconfig {kubeconfig}",
            "has not expired",
        )
        print(f"{way.counts['401']} of {way.requests} requests were refused")
        assert 0 < way.counts["401"] <= AFTERWARDS


@dataclasses.dataclass(frozen=True)
class Rotated:
    """refused: requests that came with a token of before. found: what there is then."""

    run: site.Run
    refused: int
    found: dict[str, dict[str, t.Any]]


@pytest.fixture(scope="module")
def rotated(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Rotated:
    """A run with a token file that changes all the time. It finishes what the one before it, whose token was revoked, has begun."""
    folder = tmp_path_factory.mktemp("token")
    token = folder / "token"

    def rotate(server: FaultServer) -> None:
        """Every few requests, as a kubelet does it: at once, and the token of before is worth nothing any more."""
        if server.requests % ROTATION == 1:
            server.token = f"token-{server.requests}"
            (folder / "new").write_text(server.token, encoding="utf-8")
            os.replace(folder / "new", token)

    token.write_text("first", encoding="utf-8")
    with spoilt(sandbox.kubeconfig) as way:
        way.before_each = rotate
        run = run_site(way.kubeconfig(folder / "kubeconfig", tokenFile=str(token)))
        print(f"{way.counts['401']} of {way.requests} requests came with a token of before")
        return Rotated(run, way.counts["401"], ours(connect({"kubeconfig": sandbox.kubeconfig})))


def test_a_token_file_that_rotates_is_read_again(rotated: Rotated) -> None:
    assert rotated.run.rc == 0, rotated.run.stdout[-6000:]
    assert rotated.run.changed() > 0
    assert rotated.refused > 0
    assert len(rotated.found) > 20


def test_a_certificate_that_expires_in_the_middle(
    make_sandbox: t.Any, sandbox: Sandbox, rotated: Rotated, tmp_path: pathlib.Path
) -> None:
    """While the gate of the driver watches, which nothing opens before: no registry has the driver's image, and no node.

    The API server looks at a certificate's end with each request, not when a connection is opened (k8s.io/apiserver 0.36.4,
    pkg/server/secure_serving.go and pkg/authentication/request/x509/x509.go).
    """
    assert rotated.run.rc == 0
    other: Sandbox = make_sandbox(FLEET)
    client, audit, certificate = (
        connect({"kubeconfig": other.kubeconfig}),
        AuditLog(other.audit_log),
        tmp_path / "user.crt",
    )
    other.add_fault("image_pull_failure", pool="gpu", image="driver")
    certificate.write_bytes(signed(other, "until tomorrow", in_seconds(24 * 3600)))
    kubeconfig = comes_with(other, certificate)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_site, kubeconfig)
        until(lambda: running.done() or is_watched(audit.ours()), "the gate of the driver")
        end = in_seconds(SHORT)
        (tmp_path / "new").write_bytes(signed(other, "for a moment", end))
        os.replace(tmp_path / "new", certificate)
        run = running.result()
    is_refused(
        run,
        "gate driver lost the connection to the cluster",
        f"the client certificate expired at {end.isoformat()}",
        f"Next: renew the client certificate of kubeconfig {kubeconfig}",
    )
    assert run.failures[0].endswith(", and run again")
    assert [str(request) for request in audit.ours() if request.user == "for a moment" and request.status == 200], (
        "it was valid, and in use"
    )
    other.clear_faults()
    interrupted = ours(client)
    finished, again = run_site(other.kubeconfig), run_site(other.kubeconfig)
    assert (finished.rc, again.rc, again.changed()) == (0, 0, 0), finished.stdout[-6000:] + again.stdout[-6000:]
    found = ours(client)
    assert len(interrupted) < len(found), "the run had not come to its end"
    # The other cluster of this kind, which was taken there in another way.
    there = connect({"kubeconfig": sandbox.kubeconfig})
    await_alike(found, lambda: ours(there))
