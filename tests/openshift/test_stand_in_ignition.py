# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the stand-in makes by `create ignition-configs`: files, modes, certificates, units, manifests, sizes."""

from __future__ import annotations

import base64
import collections
import datetime
import json
import pathlib
import re
import warnings

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import NameOID

from ansible_collections.hwaccel.gpu.tests.openshift import support
from ansible_collections.hwaccel.gpu.tests.openshift.conftest import Made
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import pki
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.certificates import Key

_DAY, _YEAR = datetime.timedelta(days=1), datetime.timedelta(days=365)
_SHORT = {"featureSet": "CustomNoUpgrade", "featureGates": ["ShortCertRotation=true"]}
_FILES = {
    "auth/kubeconfig",
    "auth/kubeadmin-password",
    "master.ign",
    "worker.ign",
    "bootstrap.ign",
    "metadata.json",
    support.STATE,
    ".openshift_install.log",
}
_SERVING = (
    "kube-apiserver-lb-server",
    "kube-apiserver-internal-lb-server",
    "kube-apiserver-localhost-server",
    "kube-apiserver-service-network-server",
)


def near(found: float, real: float) -> bool:
    """Within a fiftieth."""
    return abs(found - real) <= real / 50


def subject(certificate: x509.Certificate) -> tuple[str, list[str], list[str]]:
    """Common name, organizations, units. cryptography warns of names that are too long."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = certificate.subject
    values = {
        kind: [str(one.value) for one in found.get_attributes_for_oid(kind)]
        for kind in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME)
    }
    [name], organizations, units = values.values()
    return name, organizations, units


@pytest.fixture(scope="module")
def bootstrap(made: Made) -> dict:
    return support.ignition(made.folder / "bootstrap.ign")


@pytest.fixture(scope="module")
def certificates(bootstrap: dict) -> dict[str, list[x509.Certificate]]:
    return support.certificates(bootstrap)


def test_files(made: Made) -> None:
    assert support.names(made.folder) == _FILES


def test_modes(made: Made) -> None:
    for name in _FILES - {".openshift_install.log"}:
        assert (made.folder / name).stat().st_mode & 0o777 == 0o640, name
    assert (made.folder / "auth").stat().st_mode & 0o777 == 0o750


def test_anybody_may_read_its_log(made: Made) -> None:
    assert (made.folder / ".openshift_install.log").stat().st_mode & 0o777 == 0o644


def test_its_folder_can_be_new(tmp_path: pathlib.Path) -> None:
    assert support.run(tmp_path / "a" / "b", *support.IGNITION).status == 1
    assert support.names(tmp_path / "a" / "b") == {".openshift_install.log"}


def test_inputs_are_consumed(made: Made) -> None:
    assert "Consuming Install Config from target directory" in made.run.lines("info")
    assert not (made.folder / support.INSTALL_CONFIG).exists()


def test_sizes(made: Made) -> None:
    sizes = {name: (made.folder / name).stat().st_size for name in _FILES}
    assert near(sizes["bootstrap.ign"], 290_738)
    assert sizes["master.ign"] == sizes["worker.ign"] == 1720
    assert near(sizes["auth/kubeconfig"], 8948)
    assert 800_000 < sizes[support.STATE] < 1_300_000


def test_files_of_the_bootstrap_machine(bootstrap: dict) -> None:
    files = bootstrap["storage"]["files"]
    modes = collections.Counter(entry["mode"] for entry in files)
    assert modes == {0o600: 66, 0o644: 25, 0o555: 17}
    assert all(entry["user"] == {"name": "root"} for entry in files)
    assert len({entry["path"] for entry in files}) == 108


@pytest.mark.parametrize(
    ("folder", "mode"),
    [
        ("/usr/local/bin/", 0o555),
        ("/opt/openshift/manifests/", 0o644),
        ("/opt/openshift/openshift/", 0o644),
        ("/opt/openshift/tls/", 0o600),
        ("/opt/openshift/auth/", 0o600),
        ("/etc/containers/", 0o644),
    ],
)
def test_modes_of_its_files(bootstrap: dict, folder: str, mode: int) -> None:
    files = bootstrap["storage"]["files"]
    assert {entry["mode"] for entry in files if entry["path"].startswith(folder)} == {mode}


def test_keys_and_certificates_are_counted(bootstrap: dict) -> None:
    found = support.contents(bootstrap)
    counts = {path: content.count(b"-----BEGIN CERTIFICATE-----") for path, content in found.items()}
    assert sum(counts.values()) == 48
    assert sum(1 for count in counts.values() if count) == 35
    assert sum(content.count(b"-----BEGIN RSA PRIVATE KEY-----") for content in found.values()) == 21


def test_contents_are_data_urls(bootstrap: dict) -> None:
    assert bootstrap["ignition"] == {"version": "3.2.0"}
    assert all(support.contents(bootstrap).values())


def test_appended_files(bootstrap: dict) -> None:
    appended = {entry["path"] for entry in bootstrap["storage"]["files"] if "append" in entry}
    assert appended == {"/etc/motd", "/etc/containers/containers.conf"}


def test_secrets_of_the_bootstrap_machine(bootstrap: dict) -> None:
    by_path = {entry["path"]: entry for entry in bootstrap["storage"]["files"]}
    found = support.contents(bootstrap)
    secret = support.cases()["base"]["pullSecret"].encode()
    assert found[support.DOCKER_CONFIG] == secret
    assert by_path[support.DOCKER_CONFIG]["mode"] == 0o600
    manifest = "/opt/openshift/manifests/openshift-config-secret-pull-secret.yaml"
    assert base64.b64encode(secret) in found[manifest]
    assert by_path[manifest]["mode"] == 0o644
    for path, entry in by_path.items():
        if path.startswith("/opt/openshift/tls/") and path.endswith(".key"):
            assert entry["mode"] == 0o600


def test_units(bootstrap: dict) -> None:
    units = {unit["name"]: unit for unit in bootstrap["systemd"]["units"]}
    assert len(units) == 10
    named = ("bootkube", "kubelet", "approve-csr", "progress", "release-image", "crio-configure", "chown-gatewayd-key")
    assert {f"{name}.service" for name in named} < units.keys()
    enabled = {name for name, unit in units.items() if unit.get("enabled")}
    services = {f"{name}.service" for name in ("kubelet", "approve-csr", "progress", "chown-gatewayd-key")}
    assert enabled == {*services, "systemd-journal-gatewayd.socket"}
    assert units["systemd-journal-gatewayd.socket"]["dropins"]


def test_the_user_has_two_keys(bootstrap: dict) -> None:
    [user] = bootstrap["passwd"]["users"]
    assert user["name"] == "core"
    given, own = user["sshAuthorizedKeys"]
    assert given == support.cases()["base"]["sshKey"]
    assert own.startswith("ssh-rsa ")


@pytest.mark.parametrize("pool", ["master", "worker"])
def test_pointers(made: Made, certificates: dict[str, list[x509.Certificate]], pool: str) -> None:
    found = support.ignition(made.folder / f"{pool}.ign")
    [authority] = found["ignition"]["security"]["tls"]["certificateAuthorities"]
    assert x509.load_pem_x509_certificate(support.decoded(authority["source"])) == certificates["root-ca"][0]
    source = f"https://api-int.dgxpod.example.com:22623/config/{pool}"
    assert found == {
        "ignition": {
            "config": {"merge": [{"source": source}]},
            "security": {"tls": {"certificateAuthorities": [authority]}},
            "version": "3.2.0",
        }
    }


def test_pointers_of_the_newest_release(tmp_path: pathlib.Path, keys: str) -> None:
    folder = support.configure(tmp_path)
    assert support.run(folder, *support.IGNITION, release="5.0", keys=keys).status == 0
    assert support.ignition(folder / "worker.ign")["ignition"]["version"] == "3.6.0"
    assert support.ignition(folder / "bootstrap.ign")["ignition"]["version"] == "3.2.0"


def test_metadata(made: Made) -> None:
    found = json.loads((made.folder / "metadata.json").read_bytes())
    assert found.keys() == {"clusterName", "clusterID", "infraID", "featureSet"}
    assert found["clusterName"] == "dgxpod"
    assert re.fullmatch("dgxpod-[a-z0-9]{5}", found["infraID"])
    assert re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", found["clusterID"])


def test_long_names_are_cut(tmp_path: pathlib.Path, keys: str) -> None:
    folder = support.configure(tmp_path, {"metadata.name": "a" * 54})
    assert support.run(folder, *support.IGNITION, keys=keys).status == 0
    assert re.fullmatch("a{21}-[a-z0-9]{5}", json.loads((folder / "metadata.json").read_bytes())["infraID"])


def test_password(made: Made) -> None:
    found = (made.folder / "auth" / "kubeadmin-password").read_text(encoding="ascii")
    assert re.fullmatch("[A-Za-z0-9]{5}(-[A-Za-z0-9]{5}){3}", found)


def test_kubeconfig(made: Made, certificates: dict[str, list[x509.Certificate]]) -> None:
    found = yaml.safe_load((made.folder / "auth" / "kubeconfig").read_text(encoding="utf-8"))
    [cluster], [user], [context] = found["clusters"], found["users"], found["contexts"]
    assert (cluster["name"], cluster["cluster"]["server"]) == ("dgxpod", "https://api.dgxpod.example.com:6443")
    assert user["name"] == context["name"] == found["current-context"] == "admin"
    authorities = x509.load_pem_x509_certificates(base64.b64decode(cluster["cluster"]["certificate-authority-data"]))
    names = ("kube-apiserver-localhost-signer", "kube-apiserver-service-network-signer", "kube-apiserver-lb-signer")
    assert authorities == [certificates[name][0] for name in names]
    client = x509.load_pem_x509_certificate(base64.b64decode(user["user"]["client-certificate-data"]))
    assert subject(client) == ("system:admin", ["system:masters"], [])
    assert near((client.not_valid_after_utc - client.not_valid_before_utc).days, 3650)


def test_subjects_of_signers(certificates: dict[str, list[x509.Certificate]]) -> None:
    signers = [name for name in certificates if name.endswith("-signer") or name == "root-ca"]
    assert len(signers) == 8
    for name in signers:
        assert subject(certificates[name][0]) == (name, [], ["openshift"])
        assert certificates[name][0].issuer == certificates[name][0].subject
    assert subject(certificates["aggregator-ca"][0]) == ("aggregator", [], ["bootkube"])


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("aggregator-client", ("system:kube-apiserver-proxy", ["kube-master"], [])),
        ("apiserver-proxy", ("system:kube-apiserver-proxy", ["kube-master"], [])),
        *((name, ("system:kube-apiserver", ["kube-master"], [])) for name in _SERVING),
        ("kube-control-plane-kube-controller-manager-client", ("system:admin", ["system:masters"], [])),
        ("kube-control-plane-kube-scheduler-client", ("system:admin", ["system:masters"], [])),
        ("machine-config-server", ("system:machine-config-server", [], [])),
        ("journal-gatewayd", ("journal-gatewayd", [], [])),
    ],
)
def test_subjects_of_leaves(
    certificates: dict[str, list[x509.Certificate]], file: str, found: tuple[str, list[str], list[str]]
) -> None:
    assert subject(certificates[file][0]) == found


def test_the_name_of_73_characters(certificates: dict[str, list[x509.Certificate]]) -> None:
    [certificate] = certificates["kubelet-client"]
    with pytest.warns(UserWarning, match="but it was 73"):
        assert certificate.subject
    name, organizations, units = subject(certificate)
    assert name == "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
    assert len(name) == 73
    groups = ["system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator"]
    assert (sorted(organizations), units) == (groups, [])
    with pytest.raises(ValueError, match="73"):
        x509.NameAttribute(NameOID.COMMON_NAME, name)


def test_names_of_servers(certificates: dict[str, list[x509.Certificate]]) -> None:
    def names(file: str) -> list[str]:
        found = certificates[file][0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return [*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))]

    assert names("kube-apiserver-lb-server") == ["api.dgxpod.example.com"]
    assert names("kube-apiserver-internal-lb-server") == ["api-int.dgxpod.example.com"]
    assert names("machine-config-server") == ["api-int.dgxpod.example.com"]
    assert names("kube-apiserver-localhost-server") == ["localhost", "127.0.0.1", "::1"]
    assert {"kubernetes.default.svc", "172.30.0.1"} < set(names("kube-apiserver-service-network-server"))


def test_signatures(certificates: dict[str, list[x509.Certificate]]) -> None:
    for file, described in pki.CERTIFICATES.items():
        if file in certificates and described.signer in ("", *certificates):
            signer = certificates[described.signer or file][0]
            certificate = certificates[file][0]
            certificate.verify_directly_issued_by(signer)
            assert signer.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_keys_are_of_rsa(certificates: dict[str, list[x509.Certificate]]) -> None:
    for found in certificates.values():
        for one in found:
            key = one.public_key()
            assert isinstance(key, rsa.RSAPublicKey)
            assert key.key_size == 2048
            assert isinstance(one.signature_algorithm_parameters, padding.PKCS1v15)
            assert 0 < one.serial_number < 2**63


def test_lives(made: Made, certificates: dict[str, list[x509.Certificate]]) -> None:
    ends = collections.defaultdict(list)
    for found in certificates.values():
        for one in found:
            life = one.not_valid_after_utc - one.not_valid_before_utc
            # Leaves began when their signer did, a second before perhaps.
            kind = min((_DAY, _YEAR, 10 * _YEAR), key=lambda known: abs(life - known))
            assert abs(life - kind) < datetime.timedelta(minutes=1)
            assert made.begin <= one.not_valid_before_utc <= made.end
            ends[kind].append(one.not_valid_after_utc)
    assert len(ends[_DAY]) == 13
    assert max(ends[_DAY]) - min(ends[_DAY]) < datetime.timedelta(minutes=1)
    assert max(ends[_DAY]) < made.end + _DAY


def test_thirteen_certificates_of_a_day_in_as_many_files(certificates: dict[str, list[x509.Certificate]]) -> None:
    of_a_day = {
        file
        for file, found in certificates.items()
        for one in found
        if one.not_valid_after_utc - one.not_valid_before_utc < 2 * _DAY
    }
    bundles = {"kubelet-client-ca-bundle", "kubelet-serving-ca-bundle", "kube-apiserver-complete-client-ca-bundle"}
    signed = {"aggregator-ca", "aggregator-client", "apiserver-proxy"}
    assert of_a_day == {"kubelet-signer", "aggregator-signer", "aggregator-ca-bundle", *bundles, *signed, *_SERVING}


def test_leaves_begin_with_their_signer(tmp_path: pathlib.Path, keys: str) -> None:
    folder = support.configure(tmp_path)
    assert support.run(folder, "create", "manifests", keys=keys, clock=str(-5 * support.HOUR)).status == 0
    assert support.run(folder, *support.IGNITION, keys=keys).status == 0
    found = support.certificates(support.ignition(folder / "bootstrap.ign"))
    assert found["journal-gatewayd"][0].not_valid_before_utc == found["root-ca"][0].not_valid_before_utc
    later = found["kubelet-signer"][0].not_valid_before_utc - found["root-ca"][0].not_valid_before_utc
    assert later >= datetime.timedelta(hours=4)


def test_the_clock_is_shifted(made: Made, tmp_path: pathlib.Path, keys: str) -> None:
    folder = support.configure(tmp_path)
    assert support.run(folder, *support.IGNITION, keys=keys, clock=str(-25 * support.HOUR)).status == 0
    for found in support.certificates(support.ignition(folder / "bootstrap.ign")).values():
        assert found[0].not_valid_before_utc < made.end - _DAY
    assert (folder / "bootstrap.ign").stat().st_mtime >= made.begin.timestamp()


def test_short_rotation(tmp_path: pathlib.Path, keys: str) -> None:
    folder = support.configure(tmp_path, _SHORT)
    assert support.run(folder, *support.IGNITION, keys=keys).status == 0
    found = support.certificates(support.ignition(folder / "bootstrap.ign"))
    lives = collections.Counter(
        round((one.not_valid_after_utc - one.not_valid_before_utc) / datetime.timedelta(hours=1))
        for ones in found.values()
        for one in ones
    )
    assert lives[2] == 13
    assert 24 not in lives
    assert json.loads((folder / "metadata.json").read_bytes())["featureSet"] == "CustomNoUpgrade"


@pytest.mark.parametrize(("kind", "size"), [("P-256", 256), ("P-384", 384), ("P-521", 521)])
def test_keys_of_ecdsa(tmp_path: pathlib.Path, kind: str, size: int) -> None:
    folder = support.configure(tmp_path, {"featureSet": "TechPreviewNoUpgrade"})
    assert support.run(folder, *support.IGNITION, pki=kind).status == 0
    content = support.ignition(folder / "bootstrap.ign")
    found = support.certificates(content)
    for ones in found.values():
        key = ones[0].public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        assert key.key_size == size
    found["machine-config-server"][0].verify_directly_issued_by(found["root-ca"][0])
    text = b"".join(support.contents(content).values())
    assert text.count(b"-----BEGIN EC PRIVATE KEY-----") == 21
    assert b"RSA PRIVATE KEY" not in text


def test_other_keys_of_rsa() -> None:
    assert Key.generate("RSA-3072").pem().startswith(b"-----BEGIN RSA PRIVATE KEY-----")
    key = serialization.load_der_public_key(Key.generate("RSA-3072").public_der())
    assert isinstance(key, rsa.RSAPublicKey)
    assert key.key_size == 3072


def test_ecdsa_needs_its_feature_gate(tmp_path: pathlib.Path, keys: str) -> None:
    folder = support.configure(tmp_path)
    assert support.run(folder, *support.IGNITION, pki="P-256", keys=keys).status == 0
    found = support.certificates(support.ignition(folder / "bootstrap.ign"))
    assert isinstance(found["root-ca"][0].public_key(), rsa.RSAPublicKey)


def test_without_an_ssh_key(tmp_path: pathlib.Path, keys: str) -> None:
    folder = support.configure(tmp_path, {"sshKey": None})
    assert support.run(folder, *support.IGNITION, keys=keys).status == 0
    [user] = support.ignition(folder / "bootstrap.ign")["passwd"]["users"]
    assert len(user["sshAuthorizedKeys"]) == 1


def test_in_place(tmp_path: pathlib.Path, keys: str) -> None:
    changes = {"controlPlane.replicas": 1, "bootstrapInPlace": {"installationDisk": "/dev/disk/by-id/nvme-one"}}
    folder = support.configure(tmp_path, changes)
    done = support.run(folder, "create", "single-node-ignition-config", keys=keys)
    assert done.status == 0, done.err
    only = "bootstrap-in-place-for-live-iso.ign"
    assert support.names(folder) == _FILES - {"bootstrap.ign", "master.ign"} | {only}
    assert near((folder / only).stat().st_size, 305_131)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"controlPlane.replicas": 1}, "bootstrapInPlace.installationDisk: Required value"),
        ({"bootstrapInPlace": {"installationDisk": "/dev/sda"}}, "controlPlane.replicas: Invalid value: 3"),
    ],
)
def test_in_place_is_for_one_machine_and_its_disk(tmp_path: pathlib.Path, changes: dict, reason: str) -> None:
    done = support.run(support.configure(tmp_path, changes), "create", "single-node-ignition-config")
    assert done.status == 3
    assert reason in done.lines("error")[0]
