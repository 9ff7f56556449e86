# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of an installation, as it is decided about."""

from __future__ import annotations

import hashlib
import json

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.folders import contents_needed, folder
from ansible_collections.hwaccel.gpu.tests.unit.openshift import installation as i

PATH = "/srv/dgxpod"
INSTALLATION = i.Installation()
CONTENTS = {
    "bootstrap.ign": i.written(INSTALLATION.bootstrap()),
    "master.ign": i.written(INSTALLATION.pointer("master")),
    "worker.ign": i.written(INSTALLATION.pointer("worker")),
    "metadata.json": b'{"clusterName":"dgxpod","infraID":"dgxpod-x7k2p"}',
}
STATE = ".openshift_install_state.json"
NAMES = [*CONTENTS, STATE, ".openshift_install.log", "auth"]


def test_only_files_that_matter_are_read() -> None:
    assert contents_needed(NAMES) == sorted(CONTENTS)


def test_a_folder_as_the_tool_leaves_it() -> None:
    found = folder(PATH, NAMES, CONTENTS, ["/srv/.dgxpod.staging-1"])
    assert found.checksums == {
        name: hashlib.sha256(CONTENTS[name]).hexdigest() for name in ("bootstrap.ign", "master.ign", "worker.ign")
    }
    assert (found.state, found.others) == (True, (".openshift_install.log", "auth", "metadata.json"))
    assert (found.infrastructure, found.faults, found.empty) == ("dgxpod-x7k2p", (), False)
    assert found.clock is not None
    assert found.clock.not_after == i.NOW + i.DAY
    assert found.staging == ("/srv/.dgxpod.staging-1",)


def test_the_clock_is_that_of_the_file_that_expires_first() -> None:
    later = i.Installation(i.NOW + i.DAY / 2)
    name = "bootstrap-in-place-for-live-iso.ign"
    for first, second in ((INSTALLATION, later), (later, INSTALLATION)):
        contents = {"bootstrap.ign": i.written(first.bootstrap()), name: i.written(second.bootstrap())}
        clock = folder(PATH, contents, contents).clock
        assert clock is not None
        assert clock.not_after == i.NOW + i.DAY


def test_files_that_hold_keys_are_marked_and_those_that_cannot_be_read() -> None:
    installation = i.Installation()
    contents = {
        "bootstrap.ign": i.written(installation.bootstrap()),
        "worker.ign": i.written(installation.pointer("worker")),
        "torn.ign": b"{",
    }
    assert folder("/x", contents, contents).secret == {"bootstrap.ign", "torn.ign"}


def test_nothing_is_an_empty_folder() -> None:
    found = folder(PATH, (), {})
    assert (found.empty, found.of_installation, found.clock, found.faults) == (True, False, None, ())
    assert folder(PATH, ["passwd"], {}).of_installation is False
    assert folder(PATH, [STATE], {}).of_installation is True


@pytest.mark.parametrize(
    ("name", "data", "where"),
    [
        ("bootstrap.ign", b"{", "/srv/dgxpod/bootstrap.ign"),
        (
            "worker.ign",
            json.dumps({"ignition": {"version": "3.2.0"}, "storage": {"files": [{"path": "a"}]}}).encode(),
            "/srv/dgxpod/worker.ign: storage.files[0].path",
        ),
        ("metadata.json", b"{", "/srv/dgxpod/metadata.json"),
        ("metadata.json", b"[]", "/srv/dgxpod/metadata.json"),
        ("metadata.json", b'{"infraID": ""}', "/srv/dgxpod/metadata.json"),
        ("metadata.json", b'{"infraID": 1}', "/srv/dgxpod/metadata.json"),
    ],
)
def test_a_damaged_file_is_a_fault_and_keeps_its_checksum(name: str, data: bytes, where: str) -> None:
    found = folder(PATH, NAMES, CONTENTS | {name: data})
    assert [fault.where for fault in found.faults] == [where]
    assert all(fault.what and fault.why and fault.next_step for fault in found.faults)
    if name.endswith(".ign"):
        assert found.checksums[name] == hashlib.sha256(data).hexdigest()
