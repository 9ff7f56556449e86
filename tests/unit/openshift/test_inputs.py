# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inputs are compared by key, and shown without their secrets."""

from __future__ import annotations

import copy
import json
import typing as t

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.inputs import Inputs, differences, named

INSTALL_CONFIG: dict[str, t.Any] = {
    "metadata": {"name": "dgxpod"},
    "networking": {"machineNetwork": [{"cidr": "10.33.3.0/24"}], "serviceNetwork": ["172.30.0.0/16"]},
    "platform": {"none": {}},
    "pullSecret": '{"auths":{"r":{"auth":"planted"}}}',
    "sshKey": "ssh-ed25519 AAAA me",
    "fips": False,
    "proxy": {"httpProxy": "http://user:planted@proxy:3128"},
    "additionalTrustBundle": "-----BEGIN CERTIFICATE-----\nplanted\n-----END CERTIFICATE-----\n",
    "hosts": [{"bmc": {"username": "root", "password": "planted"}}],
}
MANIFESTS: dict[str, t.Any] = {
    "99-secret.yaml": {
        "kind": "Secret",
        "metadata": {"name": "s"},
        "stringData": {"user": "planted", "list": ["planted"]},
    },
    "99-config.yaml": {"kind": "MachineConfig", "spec": {"files": [{"contents": {"source": "data:,planted"}}]}},
}
DOCUMENTS = {"install-config.yaml": INSTALL_CONFIG, **MANIFESTS}
SALT = "0123456789abcdef"


def changed(path: str, value: t.Any) -> list[str]:
    """Differences after a change of install-config. path: keys and positions, separated by blanks."""
    after = copy.deepcopy(DOCUMENTS)
    *above, last = path.split()
    place: t.Any = after
    for key in above:
        place = place[int(key) if isinstance(place, list) else key]
    place[int(last) if isinstance(place, list) else last] = value
    return list(map(str, differences(Inputs.of(DOCUMENTS, SALT), Inputs.of(after, SALT))))


def test_the_same_inputs_do_not_differ() -> None:
    assert differences(Inputs.of(DOCUMENTS, SALT), Inputs.of(copy.deepcopy(DOCUMENTS), SALT)) == ()
    reordered = {name: dict(reversed(document.items())) for name, document in reversed(DOCUMENTS.items())}
    assert differences(Inputs.of(DOCUMENTS, SALT), Inputs.of(reordered, SALT)) == ()


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (
            "install-config.yaml networking machineNetwork 0 cidr",
            "10.33.4.0/24",
            'install-config.yaml: networking.machineNetwork[0].cidr ("10.33.3.0/24" is now "10.33.4.0/24")',
        ),
        ("install-config.yaml fips", True, "install-config.yaml: fips (false is now true)"),
        ("install-config.yaml fips", 0, "install-config.yaml: fips (false is now 0)"),
        ("install-config.yaml publish", "External", 'install-config.yaml: publish ("External" is new)'),
    ],
)
def test_keys_are_named_with_both_values(path: str, value: t.Any, expected: str) -> None:
    assert changed(path, value) == [expected]


def test_a_key_that_is_gone_is_named() -> None:
    after = copy.deepcopy(DOCUMENTS)
    del after["install-config.yaml"]["sshKey"]
    (found,) = differences(Inputs.of(DOCUMENTS, SALT), Inputs.of(after, SALT))
    assert str(found) == 'install-config.yaml: sshKey ("ssh-ed25519 AAAA me" is gone)'


def test_a_platform_that_was_empty_differs() -> None:
    assert changed("install-config.yaml platform", {"external": {}}) == [
        'install-config.yaml: platform.external ("{}" is new)',
        'install-config.yaml: platform.none ("{}" is gone)',
    ]


@pytest.mark.parametrize(
    "path",
    [
        "install-config.yaml pullSecret",
        "install-config.yaml proxy httpProxy",
        "install-config.yaml additionalTrustBundle",
        "install-config.yaml hosts 0 bmc password",
        "99-secret.yaml stringData user",
        "99-secret.yaml stringData list 0",
        "99-config.yaml spec files 0 contents source",
    ],
)
def test_secrets_differ_by_hash_only(path: str) -> None:
    (found,) = changed(path, "http://user:planted-again@proxy")
    assert "planted" not in found
    assert found.count("hash ") == 2


@pytest.mark.parametrize("sign", ["?", "#", "'", '"', " ", "/", "@"])
def test_a_password_in_a_url_may_have_any_character(sign: str) -> None:
    found = Inputs.of({"a": {"proxy": f"http://user:planted{sign}planted@proxy"}}, SALT)
    assert "planted" not in str(found)


def test_secrets_inside_a_list_of_objects_are_hashed() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "stringData": {"word": "planted"}}
    found = Inputs.of({"a": {"kind": "List", "items": [secret]}}, SALT).values
    assert "planted" not in str(found) and found["a: items[0].metadata.name"] == "s"


def test_no_value_that_is_kept_is_a_secret() -> None:
    kept = Inputs.of(DOCUMENTS, SALT).values
    assert "planted" not in str(dict(kept))
    assert kept["99-secret.yaml: metadata.name"] == "s"
    assert kept["install-config.yaml: hosts[0].bmc.username"] == "root"


def test_hashes_depend_on_the_salt() -> None:
    """Otherwise a weak password could be guessed from its hash, and equal ones of two clusters would be known as such."""
    key = "install-config.yaml: pullSecret"
    assert Inputs.of(DOCUMENTS, "a").values[key] != Inputs.of(DOCUMENTS, "b").values[key]


def test_values_that_only_yaml_has_are_kept_as_text() -> None:
    found = Inputs.of({"a": yaml.safe_load("{b: 2026-11-30, c: .inf, d: !!binary cGxhbnRlZA==, 1: x}")}, SALT)
    assert json.loads(json.dumps(dict(found.values), allow_nan=False)) == found.values
    assert (found.values["a: b"], found.values["a: c"], found.values["a: 1"]) == ("2026-11-30", "inf", "x")
    assert str(found.values["a: d"]).startswith("hmac-sha256:")


def test_many_differences_are_counted() -> None:
    found = differences(Inputs({}), Inputs(dict.fromkeys("abcdefghijklm", 1)))
    assert named(found).startswith("a (1 is new); b (1 is new); ")
    assert named(found).endswith("; j (1 is new); and 3 more")
    assert named(found[:11]).endswith("; j (1 is new); and 1 more")
    assert named(found[:10]).endswith("; j (1 is new)")
    assert named(found[:2]) == "a (1 is new); b (1 is new)"


def test_long_values_are_not_shown() -> None:
    for length, shown in ((200, 1), (201, 0)):
        (found,) = differences(Inputs({}), Inputs.of({"a": {"b": "x" * length}}, SALT))
        assert found.after.count("x" * length) == shown


LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
TREES = st.dictionaries(
    st.text(min_size=1, max_size=3),
    st.recursive(
        LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_size=3,
)


@settings(max_examples=50)
@given(TREES, TREES)
def test_differences_of_any_documents_are_the_keys_that_changed(
    before: dict[str, t.Any], after: dict[str, t.Any]
) -> None:
    one, two = Inputs.of({"a": before}, SALT), Inputs.of({"a": after}, SALT)
    changed = {
        key for key in {*one.values, *two.values} if repr(one.values.get(key, ...)) != repr(two.values.get(key, ...))
    }
    assert [difference.key for difference in differences(one, two)] == sorted(changed)
