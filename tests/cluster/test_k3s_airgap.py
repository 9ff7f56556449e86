# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters of K3s without a way out: archives of images that do not do are refused before anything is touched, and the right one goes. Then nodes share
images, and snapshots go to S3.

Tests use the same machines, in their order.
"""

from __future__ import annotations

import gzip
import io
import json
import pathlib
import tarfile
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import ARCHIVE, K3sRig, system_images
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_binaries import VERSION
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import DATA, FOLDER, K3sSite
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import file_of
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(k3s_rig: K3sRig, tmp_path_factory: pytest.TempPathFactory) -> K3sSite:
    site = K3sSite(k3s_rig, servers=("s1",))
    listed = tmp_path_factory.mktemp("release") / "k3s-images.txt"
    listed.write_text("".join(f"{name}\n" for name in system_images().values()), encoding="utf-8")
    site.variables |= {"cluster_k3s_image_list": str(listed), "cluster_k3s_datastore": "etcd"}
    return site


def changed(original: pathlib.Path, target: pathlib.Path, change: t.Callable[[str], str]) -> pathlib.Path:
    """The archive with other names of images. Those for which `change` returns nothing are left out."""
    with tarfile.open(original) as source, tarfile.open(target, "w") as made:
        for member in source:
            data = source.extractfile(member)
            assert data
            if member.name != "manifest.json":
                made.addfile(member, data)
                continue
            images = [{**one, "RepoTags": [change(name) for name in one["RepoTags"]]} for one in json.load(data)]
            text = json.dumps([one for one in images if any(one["RepoTags"])]).encode()
            member.size = len(text)
            made.addfile(member, io.BytesIO(text))
    return target


def original(site: K3sSite) -> pathlib.Path:
    assert isinstance(site.rig, K3sRig)
    return site.rig.k3s.images / ARCHIVE


def refused(site: K3sSite, images: list[dict[str, str]], *arguments: str) -> str:
    """What a run tells that must not have touched anything."""
    before = dict(site.variables)
    # All components, so that all images are needed.
    site.variables |= {"cluster_k3s_images": images, "cluster_k3s_disable": []}
    try:
        run = site.play("", *arguments)
    finally:
        site.variables = before
    assert run.rc != 0 and run.changed() == 0
    left = site.machines["s1"].sh(f"ls -d {FOLDER} /etc/rancher /var/lib/rancher/* /usr/local/bin/k3s 2>/dev/null || :")
    assert left == ""
    return json.dumps(run.summary)


@pytest.mark.parametrize("arguments", [(), ("--check",)])
def test_an_archive_without_one_of_the_images(
    site: K3sSite, tmp_path: pathlib.Path, arguments: tuple[str, ...]
) -> None:
    path = changed(original(site), tmp_path / "images.tar", lambda name: "" if "klipper-lb" in name else name)
    told = refused(site, [file_of(path)], *arguments)
    assert f"images of K3s {VERSION.removeprefix('v')} are in no archive: {system_images()['klipper-lb']}" in told


def test_an_archive_of_another_release(site: K3sSite, tmp_path: pathlib.Path) -> None:
    lb = system_images()["klipper-lb"]
    older = f"{lb.rpartition(':')[0]}:v0.4.13"
    path = changed(original(site), tmp_path / "images.tar", lambda name: older if name == lb else name)
    told = refused(site, [file_of(path)])
    assert f"{path} is of another release of K3s than" in told and f"it has {older}, and {lb} is needed" in told


def test_an_archive_with_the_registry_of_another_release(site: K3sSite, tmp_path: pathlib.Path) -> None:
    path = changed(
        original(site), tmp_path / "images.tar", lambda name: name.replace("docker.io/rancher", "ghcr.io/k3s-io")
    )
    assert "it has ghcr.io/k3s-io/" in refused(site, [file_of(path)])


def test_an_archive_of_which_one_byte_is_changed(site: K3sSite, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "images.tar"
    data = bytearray(original(site).read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    told = refused(site, [{**file_of(original(site)), "source": str(path)}])
    assert f"{path} is another file than the one that is set" in told


def test_a_damaged_archive_and_a_missing_program_are_told_at_once(site: K3sSite, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "images.tar.gz"
    path.write_bytes(gzip.compress(original(site).read_bytes()[:1_000_000]))
    before = dict(site.variables)
    site.variables["cluster_k3s_programs"] = [{**file_of(path), "source": str(tmp_path / "k3s")}]
    try:
        told = refused(site, [file_of(path)])
    finally:
        site.variables = before
    assert f"the archive {path} is damaged" in told and f"{tmp_path / 'k3s'} cannot be read" in told


def test_the_archive_of_the_release_goes_and_is_not_read_again(site: K3sSite, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "k3s-airgap-images-amd64.tar.gz"
    with path.open("wb") as file, gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1, mtime=0) as packed:
        packed.write(original(site).read_bytes())
    site.variables["cluster_k3s_images"] = [file_of(path)]
    run = site.done()
    assert [one["metadata"]["name"] for one in site.client().list(NODE).items] == ["s1"]
    print([(task["name"], task.get("seconds")) for task in run.tasks if "sources |" in task["name"]])
    again = site.done()
    assert again.changed() == 0
    assert [
        task["name"] for task in again.tasks if "sources |" in task["name"] and not task["result"].get("skipped")
    ] == []


@pytest.fixture(scope="module")
def made(site: K3sSite) -> K3sSite:
    site.done()
    return site


ACCESS, SECRET = "AKIAPLANTEDKEY", "planted-secret-key"


def test_snapshots_go_to_s3_without_credentials_in_a_file(made: K3sSite) -> None:
    made.variables |= {
        "cluster_k3s_snapshot_s3": {"bucket": "snapshots", "endpoint": "s3.example.com:9000", "folder": "edge"},
        "cluster_k3s_snapshot_s3_access_key": ACCESS,
        "cluster_k3s_snapshot_s3_secret_key": SECRET,
        "cluster_k3s_embedded_registry": True,
        "cluster_k3s_registries": {"mirrors": {"docker.io": {"endpoint": ["https://mirror.example.com"]}}},
    }
    server = made.machines["s1"]
    planned = made.done("--check", "--diff")
    run = made.done("--diff")
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == ["update the server s1"]
    assert made.done().changed() == 0
    assert [one for one in (ACCESS, SECRET) if one in planned.stdout + run.stdout] == []
    said = server.sh("k3s etcd-snapshot save --name wanted 2>&1; journalctl --no-pager --unit k3s --since -2min")
    assert 'Using etcd s3 configuration from etcd-s3-config-secret \\"hwaccel-gpu-etcd-s3\\"' in said
    assert 'endpoint=\\"https://s3.example.com:9000\\" bucket=\\"snapshots\\" folder=\\"edge\\"' in said
    assert server.sh(f"ls {DATA}/server/db/snapshots | grep -c wanted").strip() == "1"
    shown = server.sh(
        "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; journalctl --no-pager"
    )
    assert [one for one in (ACCESS, SECRET) if one in shown] == []
    # Also not in the datastore, as Secrets are encrypted there.
    assert server.sh(f"grep -rlE '{ACCESS}|{SECRET}' /etc /opt /run /root /tmp /var 2>/dev/null || :") == ""
    assert "embedded-registry: true" in server.read("/etc/rancher/k3s/config.yaml.d/50-hwaccel-gpu.yaml")


def test_another_key_changes_the_secret_only(made: K3sSite) -> None:
    made.variables["cluster_k3s_snapshot_s3_secret_key"] = "another"
    before = made.machines["s1"].sh("systemctl show --property=InvocationID k3s")
    assert made.done("--check").changed() == 1
    assert made.done().changed() == 1
    assert made.machines["s1"].sh("systemctl show --property=InvocationID k3s") == before


def test_settings_that_cannot_be_are_told_at_once(made: K3sSite) -> None:
    before = dict(made.variables)
    made.variables |= {
        "cluster_k3s_registries": {},
        "cluster_k3s_snapshot_s3": {"folder": "edge"},
        "cluster_k3s_service_network": "10.43.0.0/16,2001:cafe:43::/64",
    }
    try:
        run = made.play()
    finally:
        made.variables = before
    told = json.dumps(run.summary)
    assert run.rc != 0 and run.changed() == 0
    for one in (
        "nodes would share no images",
        "neither or both of bucket and secret",
        "Services have a family",
        "is too large",
    ):
        assert one in told
