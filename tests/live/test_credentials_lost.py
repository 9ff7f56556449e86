# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials that end while `site` runs: it says so once and asks no further, and one that is renewed in its file is taken up.

Runtime: four runs of site, two of which end early.
"""

from __future__ import annotations

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
from ansible_collections.hwaccel.gpu.tests.live.support.fault_server import FaultServer, spoilt
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import GPU
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox
from ansible_collections.hwaccel.gpu.tests.live.support.snapshot import ours

FLEET: dict[str, t.Any] = {
    # So slow that the gates watch.
    "time_scale": 0.05,
    "pools": [{"name": "gpu", "count": 1, "kernel": "6.8.0-134-generic", "gpu": GPU}, {"name": "cpu", "count": 1}],
}
#: Requests that may still be under way, one for each connection, when the first 401 arrives; and what a failed stage still asks.
AFTERWARDS = 40
#: Requests between two rotations: so many that one which is repeated with the new token meets no other rotation.
ROTATION = 50
DRIVERS = "app.kubernetes.io/component=driver"


@pytest.fixture(scope="module")
def sandbox(make_sandbox: t.Any) -> Sandbox:
    made: Sandbox = make_sandbox(FLEET)
    return made


def run_site(kubeconfig: str) -> site.Run:
    return site.playbook("site", {"one": site.cluster(kubeconfig, hwaccel_wait_timeout=120)})


def is_refused(run: site.Run, source: str) -> None:
    """In one message, with what to do."""
    assert run.rc != 0
    assert "Traceback" not in run.stdout
    assert len(set(run.failures)) == 1, run.failures
    for words in ("the server does not know who we are: ", "Next: check that the token or client certificate", source, "has not expired"):
        assert words in run.failures[0]


def test_a_certificate_that_has_expired(sandbox: Sandbox, tmp_path: pathlib.Path) -> None:
    """By the sandbox's own authority: the administrator's, with another end."""
    pki = sandbox.layout.pki
    old = x509.load_pem_x509_certificate((pki / "admin.crt").read_bytes())
    key = serialization.load_pem_private_key((pki / "ca.key").read_bytes(), None)
    yesterday = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    builder = x509.CertificateBuilder(old.issuer, old.subject, old.public_key(), x509.random_serial_number(), yesterday - datetime.timedelta(days=1), yesterday)
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    (tmp_path / "old.crt").write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))  # type: ignore[arg-type]
    config = yaml.safe_load(pathlib.Path(sandbox.kubeconfig).read_text(encoding="utf-8"))
    config["users"][0]["user"] = {"client-certificate": str(tmp_path / "old.crt"), "client-key": str(pki / "admin.key")}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config), encoding="utf-8")
    is_refused(run_site(str(tmp_path / "kubeconfig")), f"kubeconfig {tmp_path / 'kubeconfig'}")


def test_a_token_that_is_revoked_in_the_middle(sandbox: Sandbox, tmp_path: pathlib.Path) -> None:
    """Once the driver is being brought to nodes: far behind preflight, in the middle of a stage."""
    with spoilt(sandbox.kubeconfig) as way:
        kubeconfig = way.kubeconfig(tmp_path / "kubeconfig", token="good")
        client = connect({"kubeconfig": sandbox.kubeconfig})

        def revoke(server: FaultServer) -> None:
            if not server.token and server.requests % 5 == 0 and client.list(client.resource("apps/v1", "DaemonSet"), label_selector=DRIVERS).items:
                server.token = "another"

        way.before_each = revoke
        is_refused(run_site(kubeconfig), f"kubeconfig {kubeconfig}")
        print(f"{way.counts['401']} of {way.requests} requests were refused")
        assert 0 < way.counts["401"] <= AFTERWARDS
        way.before_each, way.token = lambda _server: None, ""
        again = run_site(kubeconfig)
        assert again.rc == 0, again.stdout[-6000:]


def test_a_token_file_that_rotates_is_read_again(sandbox: Sandbox, tmp_path: pathlib.Path) -> None:
    gone = site.playbook("teardown", {"one": site.cluster(sandbox.kubeconfig, hwaccel_wait_timeout=120)})
    assert gone.rc == 0, gone.stdout[-4000:]
    token = tmp_path / "token"

    def rotate(server: FaultServer) -> None:
        """Every few requests, as a kubelet does it: at once, and the token of before is worth nothing any more."""
        if server.requests % ROTATION == 1:
            server.token = f"token-{server.requests}"
            (tmp_path / "new").write_text(server.token, encoding="utf-8")
            os.replace(tmp_path / "new", token)

    token.write_text("first", encoding="utf-8")
    with spoilt(sandbox.kubeconfig) as way:
        way.before_each = rotate
        run = run_site(way.kubeconfig(tmp_path / "kubeconfig", tokenFile=str(token)))
        print(f"{way.counts['401']} of {way.requests} requests came with a token of before")
        assert run.rc == 0, run.stdout[-6000:]
        assert way.counts["401"] > 0
    assert len(ours(connect({"kubeconfig": sandbox.kubeconfig}))) > 20
