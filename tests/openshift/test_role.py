# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The entry point files of role cluster_openshift, by ansible-playbook, on an example and the install tool's stand-in."""

from __future__ import annotations

import collections.abc as c
import functools
import http.server
import pathlib
import stat
import tarfile
import tempfile
import threading
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.hashing import file_digest
from ansible_collections.hwaccel.gpu.tests.node.rig.repository import Signer
from ansible_collections.hwaccel.gpu.tests.openshift import support
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import launcher
from ansible_collections.hwaccel.gpu.tests.unit.repository.test_playbooks import TOP
from ansible_collections.hwaccel.gpu.tests.unit.roles.openshift_play import SECRET, played

#: The example's pull secret, as it stands there and in the clear.
SECRETS = (SECRET, "user:password")


class Site(t.NamedTuple):
    place: pathlib.Path
    keys: str

    @property
    def folder(self) -> pathlib.Path:
        return self.place / "installations" / "edge"

    def play(self, *arguments: str, **cluster: t.Any) -> tuple[int, str]:
        tool = launcher.write(self.place, keys=self.keys, calls=str(self.place / "calls"))
        given = {
            "cluster_openshift_folder": str(self.folder),
            "cluster_openshift_installer": str(tool),
            "cluster_openshift_method": "in_place",
        }
        return played(self.place, "files", *arguments, **{**given, **cluster})


@pytest.fixture
def site(tmp_path: pathlib.Path, keys: str) -> Site:
    return Site(tmp_path, keys)


def test_files_are_created_once_and_no_secret_is_shown(site: Site) -> None:
    code, checked = site.play("--check")
    assert code == 0 and not site.folder.exists() and not (site.place / "calls").exists(), checked[-3000:]
    code, first = site.play()
    assert code == 0, first[-4000:]
    assert support.names(site.folder) >= {"bootstrap-in-place-for-live-iso.ign", "worker.ign", "auth/kubeconfig"}
    code, second = site.play()
    assert code == 0 and "changed=0" in second, second[-3000:]
    assert "are used again" in second and "approves every certificate signing request" in second
    password = (site.folder / "auth" / "kubeadmin-password").read_text(encoding="utf-8")
    for shown in (checked, first, second, (site.place / "installations" / "edge.hwaccel-gpu.json").read_text()):
        assert not any(secret in shown for secret in (*SECRETS, password, "PRIVATE KEY"))
    for path in site.folder.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    contents = support.contents(support.ignition(site.folder / "bootstrap-in-place-for-live-iso.ign"))
    assert any(b"intel_iommu=on" in content for content in contents.values()), "the MachineConfig of the inventory"


def test_what_an_agent_boots_is_created_once_and_no_secret_is_shown(site: Site) -> None:
    outputs = [site.play(*arguments, cluster_openshift_method="agent") for arguments in (("--check",), (), ())]
    assert [code for code, _output in outputs] == [0, 0, 0], outputs[-1][1][-4000:]
    assert "changed=0" in outputs[2][1] and "are used again" in outputs[2][1]
    names = {path.name for path in (site.folder / "boot-artifacts").iterdir()}
    assert names == {"agent.x86_64-initrd.img", "agent.x86_64-rootfs.img", "agent.x86_64-vmlinuz"}
    for _code, shown in outputs:
        assert not any(secret in shown for secret in (*SECRETS, "PRIVATE KEY"))


def test_changed_inputs_stop_the_run_and_are_named(site: Site) -> None:
    assert site.play()[0] == 0
    before = file_digest(site.folder / "worker.ign")
    code, output = site.play(cluster_openshift_service_network=["172.31.0.0/16"])
    assert code == 2 and "networking.serviceNetwork[0]" in output and "regenerate: true" in output
    assert file_digest(site.folder / "worker.ign") == before
    code, output = site.play(
        "-e", "cluster_openshift_regenerate=true", cluster_openshift_service_network=["172.31.0.0/16"]
    )
    assert code == 0 and file_digest(site.folder / "worker.ign") != before, output[-3000:]
    assert [path for path in site.folder.parent.iterdir() if path.name.startswith("edge.bak-") and path.is_dir()]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"cluster_openshift_folder": "", "cluster_openshift_installer": "", "cluster_openshift_pull_secret": ""},
            [
                "no absolute path (cluster_openshift_folder)",
                "neither an absolute path nor an archive",
                "there is no pull secret",
            ],
        ),
        ({"awx_job_id": 7}, ["would be gone with this job", "bastion"]),
        ({"cluster_openshift_installer": {}}, ["no address or no checksum"]),
        (
            {
                "cluster_openshift_installer": {
                    "url": "https://mirror.example.com/x.tar.gz",
                    "checksum": "sha256:" + 64 * "0",
                    "signature": "https://mirror.example.com/x.sig",
                },
                "cluster_openshift_own_approver": True,
            },
            ["signature and keyring belong together", "no bootstrap machine whose program could be masked"],
        ),
    ],
)
def test_places_that_cannot_be_are_refused_before_anything_is_touched(
    site: Site, given: dict[str, t.Any], says: list[str]
) -> None:
    code, output = site.play(**given)
    assert code == 2 and all(one in output for one in says) and "Nothing was changed." in output, output[-3000:]
    assert not site.folder.parent.exists() and "Traceback" not in output


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {
                "cluster_openshift_timeout": 0,
                "cluster_openshift_margin": -1,
                "cluster_openshift_artifacts_mirror": ["mirror"],
            },
            [
                "0 is not a number of seconds above 0 (cluster_openshift_timeout)",
                "-1 is not a number of seconds (cluster_openshift_margin)",
                "a list is not the address of a web server (cluster_openshift_artifacts_mirror)",
            ],
        ),
        ({"cluster_openshift_stream": 9}, ["unknown flag: --stream"]),
    ],
)
def test_options_that_are_refused_leave_no_trace(site: Site, given: dict[str, t.Any], says: list[str]) -> None:
    code, output = site.play(**given)
    assert code == 2 and all(one in output for one in says), output[-3000:]
    assert not site.folder.parent.exists() and "Traceback" not in output


def test_the_installer_is_fetched_once_and_only_with_its_checksum_and_signature(site: Site, signer: Signer) -> None:
    mirror = site.place / "mirror"
    mirror.mkdir()
    tool = launcher.write(mirror, keys=site.keys)
    with tarfile.open(mirror / "openshift-install-linux.tar.gz", "w:gz") as archive:
        archive.add(tool, "openshift-install")
        archive.add(TOP / "README.md", "README.md")
    handler = functools.partial(Quiet, directory=str(mirror))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/openshift-install-linux.tar.gz"
        checksum = file_digest(mirror / "openshift-install-linux.tar.gz")
        code, output = site.play(cluster_openshift_installer={"url": url, "checksum": "sha256:" + 64 * "0"})
        assert code == 2 and "checksum" in output and not site.folder.exists()
        wanted = {"url": url, "checksum": f"sha256:{checksum}", "signature": f"{url}.sig"}
        wanted["keyring"] = str(signer.keyring(site.place / "keyring"))
        (mirror / "openshift-install-linux.tar.gz.sig").write_bytes(b"none")
        code, output = site.play(cluster_openshift_installer=wanted)
        assert code == 2 and "has no signature by a key of" in output and not site.folder.exists(), output[-3000:]
        assert not list(site.place.rglob("installations/**/openshift-install"))
        (mirror / "openshift-install-linux.tar.gz.sig").unlink()
        signer.detached(mirror / "openshift-install-linux.tar.gz")
        code, output = site.play(cluster_openshift_installer=wanted)
        assert code == 0 and (site.folder / "worker.ign").exists(), output[-4000:]
        (program,) = site.place.rglob("installations/**/openshift-install")
        for above in (program.parent, program.parents[1], site.folder.parent):
            assert stat.S_IMODE(above.stat().st_mode) == 0o700, above
        server.shutdown()
    code, output = site.play(cluster_openshift_installer=wanted)
    assert code == 0 and "changed=0" in output, output[-4000:]


@pytest.fixture
def signer() -> c.Iterator[Signer]:
    # The path of a GPG socket must be short.
    with tempfile.TemporaryDirectory(prefix="hw-") as folder, Signer.made(pathlib.Path(folder) / "gpg") as signer:
        yield signer


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: t.Any) -> None:
        """Its lines are no output of the test."""
