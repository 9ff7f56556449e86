# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in's target directory: manifests, what is consumed, kept and generated again, expired files, statuses, and waits."""

from __future__ import annotations

import base64
import json
import pathlib
import shutil

import pytest
import yaml
from cryptography import x509

from ansible_collections.hwaccel.gpu.tests.openshift import support
from ansible_collections.hwaccel.gpu.tests.openshift.conftest import Made

_MANIFESTS = {
    "cluster-config.yaml",
    "cluster-dns-02-config.yml",
    "cluster-infrastructure-02-config.yml",
    "cluster-ingress-02-config.yml",
    "cluster-network-02-config.yml",
    "cluster-proxy-01-config.yaml",
    "cluster-scheduler-02-config.yml",
    "cvo-overrides.yaml",
    "kube-cloud-config.yaml",
    "kube-system-configmap-root-ca.yaml",
    "machine-config-server-ca-configmap.yaml",
    "machine-config-server-ca-secret.yaml",
    "machine-config-server-tls-secret.yaml",
    "openshift-config-secret-pull-secret.yaml",
}
_OPENSHIFT = {
    "99_feature-gate.yaml",
    "99_kubeadmin-password-secret.yaml",
    "99_openshift-cluster-api_master-user-data-secret.yaml",
    "99_openshift-cluster-api_worker-user-data-secret.yaml",
    "99_openshift-machineconfig_99-master-ssh.yaml",
    "99_openshift-machineconfig_99-worker-ssh.yaml",
    "openshift-install-manifests.yaml",
}
_SCHEDULER = "manifests/cluster-scheduler-02-config.yml"
_IGNITION = ("bootstrap.ign", "master.ign", "worker.ign")
_LATE = {"clock": str(25 * support.HOUR)}
_DISCARDED = "Discarding the {} that was provided in the target directory because its dependencies are dirty and it needs to be regenerated"


@pytest.fixture
def folder(made: Made, tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of an installation."""
    return shutil.copytree(made.folder, tmp_path / "folder")


@pytest.fixture
def rendered(tmp_path: pathlib.Path, keys: str) -> pathlib.Path:
    """A folder with manifests."""
    folder = support.configure(tmp_path / "folder")
    assert support.run(folder, "create", "manifests", keys=keys).status == 0
    return folder


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in support.names(folder) - {".openshift_install.log"}}


def root_ca(folder: pathlib.Path) -> x509.Certificate:
    return support.certificates(support.ignition(folder / "bootstrap.ign"))["root-ca"][0]


def test_manifests(rendered: pathlib.Path) -> None:
    assert support.names(rendered / "manifests") == _MANIFESTS
    assert support.names(rendered / "openshift") == _OPENSHIFT
    assert not (rendered / support.INSTALL_CONFIG).exists()
    for path in (*(rendered / "manifests").iterdir(), *(rendered / "openshift").iterdir()):
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert {"apiVersion", "kind", "metadata"} <= found.keys(), path


def test_the_clusters_own_name_is_in_its_infrastructure(rendered: pathlib.Path, keys: str) -> None:
    found = yaml.safe_load(
        (rendered / "manifests" / "cluster-infrastructure-02-config.yml").read_text(encoding="utf-8")
    )
    assert support.run(rendered, *support.IGNITION, keys=keys).status == 0
    metadata = json.loads((rendered / "metadata.json").read_bytes())
    assert found["status"]["infrastructureName"] == metadata["infraID"]


def test_manifests_are_consumed(rendered: pathlib.Path, keys: str) -> None:
    done = support.run(rendered, *support.IGNITION, keys=keys)
    assert {f"Consuming {name} Manifests from target directory" for name in ("Common", "Openshift")} < set(
        done.lines("info")
    )
    assert not (rendered / "manifests").exists()
    assert not (rendered / "openshift").exists()


def test_manifests_that_were_changed_are_taken(rendered: pathlib.Path, keys: str) -> None:
    path = rendered / _SCHEDULER
    path.write_text(
        path.read_text(encoding="utf-8").replace("mastersSchedulable: true", "mastersSchedulable: false"),
        encoding="utf-8",
    )
    (rendered / "openshift" / "99-worker-time.yaml").write_text("kind: MachineConfig\n", encoding="utf-8")
    assert support.run(rendered, *support.IGNITION, keys=keys).status == 0
    content = support.ignition(rendered / "bootstrap.ign")
    found = support.contents(content)
    assert len(content["storage"]["files"]) == len(found) == 109, "each path is there once"
    assert b"mastersSchedulable: false" in found[f"/opt/openshift/{_SCHEDULER}"]
    assert found["/opt/openshift/openshift/99-worker-time.yaml"] == b"kind: MachineConfig\n"


def test_masters_are_schedulable_in_the_manifest(rendered: pathlib.Path, tmp_path: pathlib.Path, keys: str) -> None:
    assert yaml.safe_load((rendered / _SCHEDULER).read_text(encoding="utf-8"))["spec"] == {"mastersSchedulable": True}
    other = support.configure(tmp_path / "other", {"compute": [{"name": "worker", "replicas": 2}]})
    assert support.run(other, "create", "manifests", keys=keys).status == 0
    assert yaml.safe_load((other / _SCHEDULER).read_text(encoding="utf-8"))["spec"] == {"mastersSchedulable": False}


def test_the_state_file_holds_everything(made: Made) -> None:
    state = json.loads((made.folder / support.STATE).read_bytes())
    assert all(name.startswith("*") and "." in name for name in state)
    held = b"".join(base64.b64decode(one["Data"]) for entry in state.values() for one in entry["FileList"])
    assert b"RSA PRIVATE KEY" in held
    assert support.cases()["base"]["pullSecret"].encode() in held
    assert (made.folder / "auth" / "kubeadmin-password").read_bytes() in held


def test_the_same_again_changes_nothing(folder: pathlib.Path) -> None:
    before = contents(folder)
    assert support.run(folder, *support.IGNITION).status == 0
    assert contents(folder) == before


def test_deleted_files_come_from_the_state_file(folder: pathlib.Path) -> None:
    before = contents(folder)
    for name in _IGNITION:
        (folder / name).unlink()
    assert support.run(folder, *support.IGNITION, **_LATE).status == 0
    assert contents(folder) == before, "the old certificates again, though they have expired"


def test_an_unchanged_input_changes_nothing(folder: pathlib.Path) -> None:
    before = contents(folder)
    done = support.run(support.configure(folder), *support.IGNITION)
    assert done.status == 0
    assert contents(folder) == before


def test_a_changed_input_beside_an_old_state_makes_a_second_pki(folder: pathlib.Path, keys: str) -> None:
    before = root_ca(folder)
    infra = json.loads((folder / "metadata.json").read_bytes())["infraID"]
    done = support.run(
        support.configure(folder, {"networking.machineNetwork": [{"cidr": "10.33.4.0/24"}]}),
        *support.IGNITION,
        keys=keys,
    )
    assert done.status == 0, done.err
    assert root_ca(folder) != before
    assert json.loads((folder / "metadata.json").read_bytes())["infraID"] != infra
    names = ("Master Ignition Config", "Worker Ignition Config", "Bootstrap Ignition Config", "Kubeconfig Admin Client")
    assert {_DISCARDED.format(name) for name in names} <= set(done.lines("warning"))


def test_manifests_of_a_changed_input_are_discarded(rendered: pathlib.Path, keys: str) -> None:
    (rendered / "manifests" / "extra.yaml").write_text("kind: ConfigMap\n", encoding="utf-8")
    support.configure(rendered, {"networking.machineNetwork": [{"cidr": "10.33.4.0/24"}]})
    done = support.run(rendered, *support.IGNITION, keys=keys)
    assert _DISCARDED.format("Common Manifests") in done.lines("warning")
    found = support.contents(support.ignition(rendered / "bootstrap.ign"))
    assert "/opt/openshift/manifests/extra.yaml" not in found


def test_a_changed_file_is_taken_and_what_depends_on_it_generated(folder: pathlib.Path, keys: str) -> None:
    path = folder / "worker.ign"
    content = support.ignition(path)
    content["passwd"] = {"users": [{"name": "core"}]}
    path.write_text(json.dumps(content), encoding="utf-8")
    done = support.run(folder, *support.IGNITION, keys=keys)
    assert support.ignition(path) == content
    assert _DISCARDED.format("Bootstrap Ignition Config") in done.lines("warning")
    encoded = base64.b64encode(json.dumps(content).encode())
    manifest = "/opt/openshift/openshift/99_openshift-cluster-api_worker-user-data-secret.yaml"
    assert encoded in support.contents(support.ignition(folder / "bootstrap.ign"))[manifest]


def test_expired_files_end_it(folder: pathlib.Path) -> None:
    before = contents(folder)
    done = support.run(folder, *support.IGNITION, **_LATE)
    assert done.status == 1
    assert done.lines("error")[0].endswith("13 certificates expired")
    assert any("kubelet-signer.crt expired at" in line for line in done.lines("warning"))
    assert contents(folder) == before


def test_a_day_is_not_over_before_its_end(folder: pathlib.Path) -> None:
    assert support.run(folder, *support.IGNITION, clock=str(23 * support.HOUR)).status == 0


def test_in_place_files_expire_too(tmp_path: pathlib.Path, keys: str) -> None:
    changes = {"controlPlane.replicas": 1, "bootstrapInPlace": {"installationDisk": "/dev/disk/by-id/nvme-one"}}
    folder = support.configure(tmp_path, changes)
    command = ("create", "single-node-ignition-config")
    assert support.run(folder, *command, keys=keys).status == 0
    done = support.run(folder, *command, **_LATE)
    assert (done.status, done.lines("error")[0][-23:]) == (1, "13 certificates expired")


def test_order_of_writing(tmp_path: pathlib.Path, keys: str) -> None:
    order = ("auth/kubeconfig", "auth/kubeadmin-password", "master.ign", "worker.ign", "bootstrap.ign", "metadata.json")
    for count in range(1, len(order)):
        folder = support.configure(tmp_path / str(count))
        assert support.run(folder, *support.IGNITION, keys=keys, fault=f"exit=1@{count}").status == 1
        assert support.names(folder) & set(order) == set(order[:count])


def test_a_failure_leaves_the_first_files_and_their_state(tmp_path: pathlib.Path, keys: str) -> None:
    folder = support.configure(tmp_path)
    support.run(folder, *support.IGNITION, keys=keys, fault="exit=1@3")
    assert not (folder / support.INSTALL_CONFIG).exists()
    before = contents(folder)
    assert support.run(folder, *support.IGNITION).status == 0
    after = contents(folder)
    for name in before.keys() - {support.STATE}:
        assert after[name] == before[name]


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_broken_state_file_ends_it(folder: pathlib.Path, text: str) -> None:
    (folder / support.STATE).write_text(text, encoding="utf-8")
    done = support.run(folder, *support.IGNITION)
    assert done.status == 1
    assert "failed to unmarshal state file" in done.lines("error")[0]


def test_a_torn_bootstrap_file_ends_it(folder: pathlib.Path) -> None:
    content = (folder / "bootstrap.ign").read_bytes()
    (folder / "bootstrap.ign").write_bytes(content[: len(content) // 2])
    done = support.run(folder, *support.IGNITION)
    assert done.status == 1
    assert 'failed to load asset "Bootstrap Ignition Config"' in done.lines("error")[0]


@pytest.mark.parametrize(
    ("phase", "cluster", "status"),
    [
        ("bootstrap-complete", "complete", 0),
        ("bootstrap-complete", "no-api", 5),
        ("bootstrap-complete", "bootstrap-failed", 5),
        ("install-complete", "complete", 0),
        ("install-complete", "failed", 6),
        ("install-complete", "unstable", 7),
    ],
)
def test_statuses_of_waits(folder: pathlib.Path, phase: str, cluster: str, status: int) -> None:
    assert support.run(folder, "wait-for", phase, cluster=cluster).status == status


@pytest.mark.parametrize(
    ("phase", "cluster", "status"),
    [
        ("install-complete", "bootstrap-failed", 5),
        ("install-complete", "failed", 6),
        ("bootstrap-complete", "no-api", 5),
    ],
)
def test_statuses_of_the_agents_waits(folder: pathlib.Path, phase: str, cluster: str, status: int) -> None:
    assert support.run(folder, "agent", "wait-for", phase, cluster=cluster).status == status


def test_how_long_it_waits(folder: pathlib.Path) -> None:
    done = support.run(folder, "wait-for", "bootstrap-complete", cluster="complete", release="5.0")
    assert "Waiting up to 20m0s for the Kubernetes API..." in done.lines("info")
    assert "Waiting for the bootstrap etcd member to be removed..." in done.lines("info")
    done = support.run(folder, "wait-for", "bootstrap-complete", cluster="complete")
    assert not any("etcd member" in line for line in done.lines("info"))
    done = support.run(folder, "wait-for", "install-complete", cluster="complete")
    minutes = [line.split()[3] for line in done.lines("info") if line.startswith("Waiting up to")]
    assert minutes == ["40m0s", "30m0s"]


def test_files_that_it_needs_are_missing(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (folder / "auth" / "kubeconfig").unlink()
    done = support.run(folder, "wait-for", "install-complete", cluster="complete")
    assert (done.status, done.lines("error")) == (1, [f"open {folder}/auth/kubeconfig: no such file or directory"])
    done = support.run(folder / "metadata.json", *support.IGNITION)
    assert (done.status, done.lines("error")) == (1, [f"open {folder}/metadata.json: file exists"])


def test_a_wait_needs_the_state_file(folder: pathlib.Path) -> None:
    (folder / support.STATE).unlink()
    done = support.run(folder, "wait-for", "install-complete", cluster="complete")
    assert done.status == 1
    assert done.lines("error") == ["failed to installconfig: received nil"]


def test_the_router_comes_before_the_other_authorities(folder: pathlib.Path) -> None:
    def authorities() -> list[x509.Certificate]:
        found = yaml.safe_load((folder / "auth" / "kubeconfig").read_text(encoding="utf-8"))
        encoded = found["clusters"][0]["cluster"]["certificate-authority-data"]
        return x509.load_pem_x509_certificates(base64.b64decode(encoded))

    before = authorities()
    assert support.run(folder, "wait-for", "install-complete", cluster="complete").status == 0
    assert authorities()[1:] == before
    assert "ingress-operator" in authorities()[0].subject.rfc4514_string()


def test_the_end_of_an_installation_prints_the_password(folder: pathlib.Path) -> None:
    password = (folder / "auth" / "kubeadmin-password").read_text(encoding="utf-8")
    done = support.run(folder, "wait-for", "install-complete", cluster="complete")
    assert password in done.err
    assert password in (folder / ".openshift_install.log").read_text(encoding="utf-8")
    assert "Install complete!" in done.lines("info")
