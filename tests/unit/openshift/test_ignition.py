# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of ignition files, and that nothing of it is a secret."""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime
import gzip
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import ignition
from ansible_collections.hwaccel.gpu.tests.unit.openshift import installation as i

MINUTE = datetime.timedelta(minutes=1)


def read(config: dict[str, t.Any]) -> ignition.Ignition:
    return ignition.checked(i.written(config), "/srv/file.ign")


def config(*files: dict[str, t.Any], **sections: t.Any) -> dict[str, t.Any]:
    return {"ignition": {"version": "3.2.0"}, "storage": {"files": list(files)}, **sections}


@pytest.mark.parametrize("algorithm", ["rsa", "ecdsa", "ed25519"])
def test_a_bootstrap_file_is_read_as_the_installer_writes_it(algorithm: str) -> None:
    data = i.written(i.Installation(algorithm=algorithm).bootstrap())
    found = ignition.checked(data, "/srv/bootstrap.ign")
    assert (found.version, found.size, found.warnings) == ("3.2.0", len(data), ())
    assert len(found.files) == 108
    assert collections.Counter(file.mode for file in found.files) == {"0600": 66, "0644": 25, "0555": 17}
    assert (len(found.certificates), len({one.path for one in found.certificates})) == (48, 35)
    assert (len(found.private_keys), len(found.units)) == (21, 10)
    assert found.pull_secrets == (
        "/opt/openshift/manifests/openshift-config-secret-pull-secret.yaml",
        f"{i.HOME}/.docker/config.json",
    )
    assert found.users == (ignition.User("core", 2, False),)
    assert ignition.Unit("approve-csr.service", True, False, ()) in found.units


def test_the_clock_of_a_bootstrap_file_is_a_day_after_its_creation() -> None:
    found = read(i.Installation().bootstrap()).clock
    assert found is not None
    assert (found.not_before, found.not_after) == (i.NOW, i.NOW + i.DAY)
    assert (found.expires.subject, found.certificates) == ("CN=kubelet-signer", 48)
    short = read(i.Installation(day=120 * MINUTE).bootstrap()).clock
    assert short is not None
    assert (short.not_after, short.lifetime) == (i.NOW + 120 * MINUTE, 120 * MINUTE)


def test_a_file_of_workers_has_a_source_and_no_keys() -> None:
    found = read(i.Installation().pointer("worker"))
    place = "ignition.security.tls.certificateAuthorities[0]"
    assert found.sources == (
        ignition.Source("ignition.config.merge[0]", "https://api-int.dgxpod.example.com:22623/config/worker"),
    )
    assert [(one.path, one.subject) for one in found.certificates] == [(place, "CN=root-ca")]
    assert (found.clock, found.private_keys, found.pull_secrets, found.files) == (None, (), (), ())


@pytest.mark.parametrize("minor", range(7))
def test_all_versions_are_read(minor: int) -> None:
    pointer = i.Installation().pointer("master")
    pointer["ignition"]["version"] = f"3.{minor}.0"
    assert read(pointer).version == f"3.{minor}.0"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:planted@h:8080/a?token=planted#planted", "https://h:8080/a?…"),
        ("http://planted@[fd00::1]/a", "http://[fd00::1]/a"),
        ("s3://bucket/key?versionId=1", "s3://bucket/key?…"),
        (f"http://h/{'a' * 400}", f"http://h/{'a' * 191}…"),
    ],
)
def test_urls_are_shown_without_credentials(url: str, shown: str) -> None:
    contents = {"source": url, "httpHeaders": [{"name": "A", "value": "planted"}] if url.startswith("http") else []}
    found = read(config({"path": "/a", "contents": contents}))
    assert found.sources == (ignition.Source("storage.files[0].contents", shown),)
    assert found.files == (ignition.File("/a", "0644", 0, True),)
    assert "planted" not in str(found)


@pytest.mark.parametrize(
    "source", ["planted", "ftp://planted", "password: planted", "http:planted", "http://planted:x/"]
)
def test_what_is_no_url_is_not_shown(source: str) -> None:
    found = ignition.read(i.written(config({"path": "/a", "contents": {"source": source}})), "/srv/file.ign")
    assert found.sources == (ignition.Source("storage.files[0].contents", "(not a valid URL)"),)
    assert "planted" not in str(found)
    assert len(found.faults) == 1


def test_sizes_are_those_after_decompression() -> None:
    packed = f"data:;base64,{base64.b64encode(gzip.compress(b'a' * 1000)).decode()}"
    contents = {"source": packed, "compression": "gzip"}
    found = read(config({"path": "/a", "mode": 0o600, "contents": contents, "append": [{"source": "data:,bc"}]}))
    assert found.files == (ignition.File("/a", "0600", 1002, False),)


def test_units_are_enabled_masked_or_neither() -> None:
    units = [
        {"name": "a.service", "mask": True},
        {"name": "b.service", "enabled": False, "dropins": [{"name": "x.conf", "contents": "[Unit]\n"}]},
    ]
    assert read(config(systemd={"units": units})).units == (
        ignition.Unit("a.service", None, True, ()),
        ignition.Unit("b.service", False, False, ("x.conf",)),
    )


KEY = "-----BEGIN {}PRIVATE KEY-----\nAAAA\n-----END {}PRIVATE KEY-----\n"
ENCODED_PULL_SECRET = base64.b64encode(i.PULL_SECRET.encode()).decode()


@pytest.mark.parametrize("label", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
@pytest.mark.parametrize("form", ["{}", "kind: Secret\ndata:\n  tls.key: {}\n", '{{"client-key-data": "{}"}}'])
def test_private_keys_are_found_in_files_kubeconfigs_and_secrets(label: str, form: str) -> None:
    text = KEY.replace("{}", label)
    contents = form.format(text if form == "{}" else base64.b64encode(text.encode()).decode())
    found = read(config(i.file("/a", contents), i.file("/b", "no key")))
    assert (found.private_keys, found.pull_secrets) == (("/a",), ())


@pytest.mark.parametrize(
    "contents",
    [
        i.PULL_SECRET,
        json.dumps(json.loads(i.PULL_SECRET), indent=2),
        f"data:\n  .dockerconfigjson: {ENCODED_PULL_SECRET}\n",
        f"x: {base64.b64encode(json.dumps(json.loads(i.PULL_SECRET), indent=2).encode()).decode()}",
        f"source: data:text/plain;base64,{ENCODED_PULL_SECRET}",
    ],
)
def test_pull_secrets_are_found_plain_and_encoded(contents: str) -> None:
    found = read(config(i.file("/a", contents)))
    assert (found.private_keys, found.pull_secrets) == ((), ("/a",))


@pytest.mark.parametrize(
    "contents",
    [
        '{"auths": {}}',
        base64.b64encode(b'{"auths": {}}').decode(),
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE REQUEST-----",
        "eyJhbGciOiJIUzI1NiJ9.eyJhdXRocyI",
    ],
)
def test_what_is_no_secret_is_not_marked(contents: str) -> None:
    found = read(config(i.file("/a", contents)))
    assert (found.private_keys, found.pull_secrets) == ((), ())


def test_secrets_in_units_and_disks_are_found_too() -> None:
    unit = {
        "name": "a.service",
        "dropins": [{"name": "x.conf", "contents": f"[Service]\nEnvironment=A={i.PULL_SECRET}\n"}],
    }
    luks = {"name": "root", "device": "/dev/sda", "keyFile": {"source": "data:,passphrase"}}
    found = read({"ignition": {"version": "3.2.0"}, "storage": {"luks": [luks]}, "systemd": {"units": [unit]}})
    assert (found.private_keys, found.pull_secrets) == (("storage.luks[0].keyFile",), ("a.service.d/x.conf",))


def test_nothing_in_the_result_is_a_secret() -> None:
    bootstrap = i.Installation().bootstrap()
    bootstrap["passwd"]["users"].append({"name": "admin", "passwordHash": "$6$planted"})
    shown = str(dataclasses.asdict(read(bootstrap)))
    key = i.private_key()
    planted = [i.PULL_SECRET, ENCODED_PULL_SECRET, "cGxhbnRlZDpwdWxsLXNlY3JldA", "planted", *key.splitlines()[1:-1]]
    assert "AAAAC3NzaC1lZDI1NTE5" not in shown
    assert [secret for secret in planted if secret in shown] == []
    assert ignition.User("admin", 0, True) in read(bootstrap).users


def test_certificates_that_count_have_to_be_readable() -> None:
    with pytest.raises(ManyFaults) as caught:
        read(config(i.file(f"{i.TLS}/a.crt", "no certificate"), i.file("/a.crt", "no certificate")))
    (fault,) = caught.value.faults
    assert (fault.where, fault.why) == (
        f"/srv/file.ign: storage.files[0].contents.source ({i.TLS}/a.crt)",
        "there is none in the file",
    )


def merged(inner: dict[str, t.Any], **resource: t.Any) -> dict[str, t.Any]:
    """A file with a config inside it."""
    data = i.written(inner)
    source = i.source(gzip.compress(data) if resource.get("compression") else data)
    return {"ignition": {"version": "3.2.0", "config": {"merge": [{"source": source, **resource}]}}}


@pytest.mark.parametrize("compression", ["", "gzip"])
def test_what_a_merged_config_has_is_what_the_file_has(compression: str) -> None:
    alone = read(i.Installation().bootstrap())
    outer = merged(merged(i.Installation().bootstrap()), compression=compression)
    outer["passwd"] = {"users": [{"name": "outer"}]}
    found = read(outer)
    assert (found.clock, found.certificates, found.units, found.files) == (
        alone.clock,
        alone.certificates,
        alone.units,
        alone.files,
    )
    assert (found.private_keys, found.pull_secrets) == (alone.private_keys, alone.pull_secrets)
    assert [user.name for user in found.users] == ["outer", "core"]


def test_places_in_a_merged_config_name_both() -> None:
    unit = {"name": "a.service", "contents": f"[Service]\nEnvironment=A={i.PULL_SECRET}\n"}
    inner = i.Installation().pointer("worker") | {"systemd": {"units": [unit, {"name": "b"}], "typo": 1}}
    found = ignition.read(i.written(merged(inner)), "/srv/file.ign")
    outer = "ignition.config.merge[0]"
    assert [source.field for source in found.sources] == [f"{outer}: {outer}"]
    assert found.pull_secrets == (f"{outer}: a.service",)
    assert [fault.where for fault in found.faults] == [f"/srv/file.ign: {outer}: systemd.units[1].name"]
    assert found.warnings == (f"{outer}: systemd.typo is not in version 3.2.0, and Ignition ignores it",)


@pytest.mark.parametrize(
    ("inner", "where", "why"),
    [
        (b"{", "", "it is not valid JSON: line 1, column 2"),
        (b'{"ignition": {}}', ": ignition.version", "it has no version"),
        (b'{"ignition": {"version": "3.2.0"}, "storage": 1}', ": storage", "it has to be an object, and is an integer"),
        (
            b'{"ignition": {"version": "3.2.0"}, "storage": {"files": [{"path": "/a", "contents": {"source": "data:"}}]}}',
            ": storage.files[0].contents.source (/a)",
            "it is not a data URL",
        ),
    ],
)
def test_a_merged_config_that_cannot_be_read_is_an_error(inner: bytes, where: str, why: str) -> None:
    outer = {"ignition": {"version": "3.2.0", "config": {"replace": {"source": i.source(inner)}}}}
    with pytest.raises(ManyFaults) as caught:
        ignition.read(i.written(outer), "/srv/file.ign")
    (fault,) = caught.value.faults
    assert (fault.where, fault.why.startswith(why)) == (f"/srv/file.ign: ignition.config.replace{where}", True)


def test_configs_inside_each_other_are_limited() -> None:
    deep = i.Installation().pointer("worker")
    for _level in range(3):
        deep = merged(deep)
    assert len(read(deep).sources) == 1
    with pytest.raises(ManyFaults, match="there are more than 3 configs inside each other"):
        read(merged(deep))
