# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The decision table: each row with its message, and which row wins if several apply."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import hashlib
import itertools
import pathlib
import re
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import decision, ignition
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.decision import Decision, decide
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.inputs import Inputs
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.lifetimes import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.observed import (
    Cluster,
    Folder,
    Observed,
    Requested,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.record import Record, Tool
from ansible_collections.hwaccel.gpu.tests.unit.openshift import installation as i

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "openshift-files.md"
HOUR = datetime.timedelta(hours=1)
PATH, NAME, OWN = "/srv/dgxpod", "dgxpod.example.com", "dgxpod-x7k2p"
SUMS = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("bootstrap.ign", "master.ign", "worker.ign")}
TOOL = Tool("4.20.1", "quay.io/release@sha256:aa", "amd64")
INPUTS = Inputs({"install-config.yaml: metadata.name": "dgxpod"})
RECORD = Record(INPUTS, "salt", TOOL, SUMS, OWN, "2026-11-30T06:00:00Z")
INSTALLED = dataclasses.replace(RECORD, installed="2026-11-30T07:00:00Z")


@functools.cache
def clock(hours: float = 0, lifetime: datetime.timedelta = i.DAY, algorithm: str = "rsa") -> Clock:
    """Of files that were created that long ago."""
    installation = i.Installation(i.NOW - hours * HOUR, lifetime, algorithm)
    found = ignition.read(i.written(installation.bootstrap()), "bootstrap.ign").clock
    assert found is not None
    return found


NONE = Folder(PATH)
FRESH = Folder(PATH, SUMS, True, ("auth", "metadata.json"), OWN, clock(1))
NOBODY = Cluster(NAME)
BOOTING = Cluster(NAME, True, OWN)
COMPLETE = Cluster(NAME, True, OWN, bootstrapped=True)
READY = Cluster(NAME, True, OWN, True, True, ("master-0", "worker-0"))
OTHER = Cluster(NAME, True, "dgxpod-zzzzz")
SAME = Requested(INPUTS, TOOL)
CHANGED = Requested(Inputs({"install-config.yaml: metadata.name": "dgx"}), TOOL)
UPGRADED = Requested(INPUTS, Tool("4.20.2", "quay.io/release@sha256:bb", "amd64"))
ADOPT = dataclasses.replace(SAME, adopt=True)
AGAIN = dataclasses.replace(SAME, regenerate=True)
DEFAULT: dict[str, t.Any] = {"folder": FRESH, "record": RECORD, "cluster": NOBODY, "requested": SAME, "now": i.NOW}


def folder(**changes: t.Any) -> Folder:
    return dataclasses.replace(FRESH, **changes)


def named(*machines: str, **changes: t.Any) -> Requested:
    return dataclasses.replace(AGAIN, regenerate_named=machines, **changes)


def decided(**changes: t.Any) -> Decision:
    return decide(Observed(**(DEFAULT | changes)))


TAMPERED = folder(checksums=SUMS | {"worker.ign": "f" * 64})
ONLY_STATE = folder(checksums={}, clock=None)
OLD, EXPIRED, AHEAD = folder(clock=clock(13)), folder(clock=clock(25)), folder(clock=clock(-1))
WITHOUT_STATE = folder(state=False)
FOREIGN = Folder(PATH, others=("passwd",))
REFUSED = Fault(
    "the path is not valid", "/srv/dgxpod/worker.ign: storage.files[0].path", "it is not absolute", "correct it"
)
LEFT = ("/srv/.dgxpod.staging-1",)

#: Name: what was observed, row, action, whether it is a change, and a part of the message.
ROWS: dict[str, tuple[dict[str, t.Any], int, str, bool, str]] = {
    "no folder": ({"folder": NONE, "record": None}, 1, decision.CREATE, True, "there are none yet"),
    "files that can be used": (
        {},
        2,
        decision.REUSE,
        False,
        "expires at 2026-12-01T05:00:00Z, in 23 h. Next: boot all masters, and the bootstrap",
    ),
    "less than the margin": (
        {"folder": OLD},
        3,
        decision.FAIL,
        False,
        "CN=kubelet-signer (/opt/openshift/tls/kubelet-signer.crt), created 2026-11-29T17:00:00Z, "
        "expires at 2026-11-30T17:00:00Z, in 11 h, and less than 12 h",
    ),
    "expired": ({"folder": EXPIRED}, 4, decision.FAIL, False, "expired at 2026-11-30T05:00:00Z, 1 h ago"),
    "other inputs": (
        {"requested": CHANGED},
        5,
        decision.FAIL,
        False,
        'install-config.yaml: metadata.name ("dgxpod" is now "dgx")',
    ),
    "another tool": (
        {"requested": UPGRADED},
        6,
        decision.FAIL,
        False,
        "version 4.20.1 is now 4.20.2; release image quay.io/release@sha256:aa is now quay.io/release@sha256:bb",
    ),
    "a file that was changed": (
        {"folder": TAMPERED},
        7,
        decision.FAIL,
        False,
        f"worker.ign is not the file that was created, and is not published (/srv/dgxpod): its SHA-256 is {'f' * 64}",
    ),
    "a file that is gone": (
        {"folder": folder(checksums={name: SUMS[name] for name in ("bootstrap.ign", "worker.ign")})},
        7,
        decision.FAIL,
        False,
        "master.ign is not the file that was created, and is not published (/srv/dgxpod): it is gone",
    ),
    "only the state of the tool": (
        {"folder": ONLY_STATE},
        8,
        decision.FAIL,
        False,
        "from its .openshift_install_state.json the tool would write the previous certificates again",
    ),
    "no state of the tool": ({"folder": WITHOUT_STATE}, 9, decision.REUSE, False, "are used again"),
    "no record": (
        {"record": None},
        10,
        decision.FAIL,
        False,
        "it contains .openshift_install_state.json, auth, bootstrap.ign and 3 more, and has no record (/srv/dgxpod.hwaccel-gpu.json)",
    ),
    "adopted": ({"record": None, "requested": ADOPT}, 10, decision.ADOPT, True, "adopt is true; the first certificate"),
    "valid in an hour": (
        {"folder": AHEAD},
        11,
        decision.FAIL,
        False,
        "is valid from 2026-11-30T07:00:00Z, and the clock of this host says 2026-11-30T06:00:00Z",
    ),
    "complete": ({"cluster": COMPLETE}, 12, decision.REUSE, False, "has completed its bootstrap"),
    "installed": ({"cluster": READY, "record": INSTALLED}, 12, decision.REUSE, False, "is installed"),
    "installed, other inputs": (
        {"cluster": READY, "record": INSTALLED, "requested": CHANGED},
        13,
        decision.REUSE,
        False,
        "install-config is not applied to a cluster that is installed: install-config.yaml: metadata.name",
    ),
    "another cluster": (
        {"cluster": OTHER},
        14,
        decision.FAIL,
        False,
        "its infrastructureName is dgxpod-zzzzz, and infraID in metadata.json is dgxpod-x7k2p",
    ),
    "a cluster without files": (
        {"folder": NONE, "record": None, "cluster": OTHER},
        14,
        decision.FAIL,
        False,
        "new ones would be those of another cluster with the same name",
    ),
    "regenerate with machines": (
        {"requested": AGAIN, "cluster": Cluster(NAME, written=("master-0", "gpu-1"))},
        15,
        decision.FAIL,
        False,
        "gpu-1, master-0 have been installed with the previous ones",
    ),
    "installed, no answer": (
        {"record": INSTALLED},
        16,
        decision.NOTHING,
        False,
        "it was installed (observed at 2026-11-30T07:00:00Z)",
    ),
    "an interrupted run": ({"folder": folder(staging=LEFT)}, 2, decision.REUSE, True, "are used again"),
    "regenerated": ({"requested": AGAIN, "folder": OLD}, 3, decision.REGENERATE, True, "/srv/dgxpod.bak-<time>"),
}


@pytest.mark.parametrize("name", ROWS)
def test_each_row_has_its_action_and_message(name: str) -> None:
    changes, row, action, changed, message = ROWS[name]
    found = decided(**changes)
    assert (found.row, found.action, found.changed) == (row, action, changed)
    assert message in found.message
    assert bool(found.faults) == (action == decision.FAIL)
    if action == decision.FAIL:
        assert found.message == str(found.faults[0])
        assert all(fault.what and fault.where and fault.why and fault.next_step for fault in found.faults)
        assert found.publishable == ()


def test_every_row_is_tested_and_has_its_place_on_the_page() -> None:
    assert {row for _changes, row, *_more in ROWS.values()} | {17} == set(range(1, 18))
    text = PAGE.read_text(encoding="utf-8")
    assert [int(row) for row in re.findall(r"^### Row (\d+):", text, re.MULTILINE)] == list(range(1, 18))


@pytest.mark.parametrize(
    ("hours", "row"),
    [(0, 2), (11, 2), (11.99, 2), (12, 3), (13, 3), (23.9, 3), (24, 4), (25, 4), (-0.01, 11), (-2, 11)],
)
@pytest.mark.parametrize("algorithm", ["rsa", "ecdsa"])
def test_the_clock_decides_by_the_certificates(hours: float, row: int, algorithm: str) -> None:
    assert decided(folder=folder(clock=clock(hours, algorithm=algorithm))).row == row


def test_certificates_of_two_hours_have_half_of_them_as_margin() -> None:
    short = [clock(hours, 2 * HOUR) for hours in (0, 0.9, 1, 2)]
    assert [decided(folder=folder(clock=one)).row for one in short] == [2, 2, 3, 4]
    assert "less than 1 h may not be enough" in decided(folder=folder(clock=short[2])).message


def test_the_margin_can_be_set() -> None:
    for hours, row in ((2, 2), (11, 3), (0, 2)):
        requested = dataclasses.replace(SAME, margin=hours * HOUR)
        assert decided(folder=OLD, requested=requested).row == row
    assert decided(folder=folder(clock=clock(24)), requested=dataclasses.replace(SAME, margin=0 * HOUR)).row == 4


def test_files_without_certificates_that_expire_have_no_clock() -> None:
    found = decided(folder=folder(clock=None))
    assert (found.row, "they have no certificate that expires soon" in found.message) == (2, True)


#: What was observed, the row that wins, and the rows of all faults.
WINS: dict[str, tuple[dict[str, t.Any], int, list[str]]] = {
    "changed file, other inputs, another tool, expired": (
        {
            "folder": dataclasses.replace(TAMPERED, clock=clock(25)),
            "requested": dataclasses.replace(UPGRADED, inputs=CHANGED.inputs),
        },
        7,
        [
            "worker.ign is not",
            "the inputs differ",
            "openshift-install differs",
            "the files of the installation have expired",
        ],
    ),
    "two changed files": (
        {"folder": folder(checksums=dict.fromkeys(SUMS, "f" * 64))},
        7,
        ["bootstrap.ign is not", "master.ign is not", "worker.ign is not"],
    ),
    "only the state, other inputs": (
        {"folder": ONLY_STATE, "requested": CHANGED},
        8,
        ["the folder has only the state", "the inputs differ"],
    ),
    "ahead of now, other inputs": (
        {"folder": AHEAD, "requested": CHANGED},
        11,
        ["the files of the installation are not valid yet", "the inputs differ"],
    ),
    "other inputs, another tool": (
        {"requested": dataclasses.replace(UPGRADED, inputs=CHANGED.inputs)},
        5,
        ["the inputs differ", "openshift-install differs"],
    ),
    "another tool, less than the margin": (
        {"folder": OLD, "requested": UPGRADED},
        6,
        ["openshift-install differs", "the files of the installation expire soon"],
    ),
    "no state, expired": (
        {"folder": dataclasses.replace(WITHOUT_STATE, clock=clock(25))},
        4,
        ["the files of the installation have expired"],
    ),
    "another cluster, changed file": ({"cluster": OTHER, "folder": TAMPERED}, 14, ["another cluster answers"]),
    "another cluster, no record": ({"cluster": OTHER, "record": None}, 14, ["another cluster answers"]),
    "another cluster, regenerate": ({"cluster": OTHER, "requested": named("a")}, 14, ["another cluster answers"]),
    "another cluster, adopt": (
        {"cluster": OTHER, "record": None, "requested": ADOPT},
        14,
        ["another cluster answers"],
    ),
    "installed and no answer, changed file": ({"record": INSTALLED, "folder": TAMPERED}, 16, []),
    "installed and no answer, expired and other inputs": (
        {"record": INSTALLED, "folder": EXPIRED, "requested": CHANGED},
        16,
        [],
    ),
    "installed and no answer, no folder": ({"record": INSTALLED, "folder": NONE}, 16, []),
    "complete, expired": ({"cluster": COMPLETE, "folder": EXPIRED}, 12, []),
    "complete, ahead of now": ({"cluster": COMPLETE, "folder": AHEAD}, 12, []),
    "complete, changed file": ({"cluster": COMPLETE, "folder": TAMPERED}, 7, ["worker.ign is not"]),
    "complete, deleted files": ({"cluster": COMPLETE, "folder": ONLY_STATE}, 12, []),
    "complete, no folder": ({"cluster": COMPLETE, "folder": NONE}, 12, []),
    "complete, other inputs": ({"cluster": COMPLETE, "requested": CHANGED}, 5, ["the inputs differ"]),
    "installed, another tool": ({"cluster": READY, "requested": UPGRADED}, 12, []),
    "installed, changed file": (
        {"cluster": READY, "folder": TAMPERED, "requested": CHANGED},
        7,
        ["worker.ign is not"],
    ),
    "no record, expired": ({"record": None, "folder": EXPIRED}, 10, ["the folder has files of somebody else"]),
    "no record, only the state": ({"record": None, "folder": ONLY_STATE}, 8, ["the folder has only the state"]),
    "adopt, expired": (
        {"record": None, "folder": EXPIRED, "requested": ADOPT},
        4,
        ["the files of the installation have expired"],
    ),
    "adopt, ahead of now": (
        {"record": None, "folder": AHEAD, "requested": ADOPT},
        11,
        ["the files of the installation are not valid yet"],
    ),
    "adopt, complete and expired": (
        {"record": None, "folder": EXPIRED, "requested": ADOPT, "cluster": COMPLETE},
        10,
        [],
    ),
    "adopt, files that Ignition refuses": (
        {"record": None, "folder": folder(faults=(REFUSED,)), "requested": ADOPT},
        10,
        ["the path is not valid"],
    ),
    "changed file that cannot be read": (
        {"folder": dataclasses.replace(TAMPERED, clock=None, faults=(REFUSED,))},
        7,
        ["worker.ign is not"],
    ),
    "metadata that cannot be read": (
        {"folder": folder(infrastructure="", faults=(REFUSED,))},
        7,
        ["the path is not valid"],
    ),
    "no folder and no record, installed": ({"folder": NONE, "record": None, "cluster": READY}, 12, []),
    "no folder and no record, nobody knows which cluster": (
        {"folder": NONE, "record": None, "cluster": Cluster(NAME, True)},
        14,
        ["another cluster answers"],
    ),
    "adopt, nothing to adopt": (
        {"record": None, "folder": FOREIGN, "requested": ADOPT},
        10,
        ["the folder has files of somebody else"],
    ),
    "adopt, with a record": ({"requested": ADOPT}, 2, []),
    "no folder, machines have its files": (
        {"folder": NONE, "cluster": Cluster(NAME, written=("master-0",))},
        15,
        ["the files of the installation are gone and cannot be created again"],
    ),
    "no folder, its cluster boots": (
        {"folder": NONE, "cluster": BOOTING},
        15,
        ["the files of the installation are gone and cannot be created again"],
    ),
}


@pytest.mark.parametrize("name", WINS)
def test_the_row_that_wins_and_all_faults(name: str) -> None:
    changes, row, faults = WINS[name]
    found = decided(**changes)
    assert found.row == row
    assert [fault.what.startswith(expected) for fault, expected in itertools.zip_longest(found.faults, faults)] == [
        True
    ] * len(faults)


@pytest.mark.parametrize(
    ("changes", "row", "action"),
    [
        ({"folder": NONE, "record": None, "requested": AGAIN}, 1, decision.CREATE),
        ({"requested": AGAIN}, 2, decision.REGENERATE),
        ({"folder": TAMPERED, "requested": AGAIN}, 7, decision.REGENERATE),
        ({"folder": ONLY_STATE, "requested": AGAIN}, 8, decision.REGENERATE),
        ({"record": None, "requested": AGAIN}, 10, decision.REGENERATE),
        ({"record": None, "folder": FOREIGN, "requested": AGAIN}, 10, decision.FAIL),
        ({"cluster": BOOTING, "requested": AGAIN}, 15, decision.FAIL),
        ({"cluster": COMPLETE, "requested": AGAIN}, 15, decision.FAIL),
        ({"cluster": READY, "requested": AGAIN}, 15, decision.FAIL),
        ({"cluster": READY, "requested": named("master-0")}, 15, decision.FAIL),
        ({"cluster": READY, "requested": named("master-0", "worker-0", "another")}, 12, decision.REGENERATE),
        ({"record": INSTALLED, "requested": AGAIN}, 15, decision.FAIL),
        ({"record": INSTALLED, "requested": named("master-0")}, 16, decision.REGENERATE),
        ({"cluster": BOOTING, "requested": named("master-0")}, 2, decision.REGENERATE),
        ({"cluster": Cluster(NAME, written=("a",)), "folder": NONE, "requested": named("a")}, 1, decision.CREATE),
    ],
)
def test_regenerate_replaces_what_no_machine_has(changes: dict[str, t.Any], row: int, action: str) -> None:
    found = decided(**changes)
    assert (found.row, found.action) == (row, action)
    assert found.changed == (action != decision.FAIL)


def test_only_machines_that_are_not_named_are_reported() -> None:
    (fault,) = decided(cluster=READY, requested=named("master-0")).faults
    assert "worker-0 has been installed" in fault.why
    assert "regenerate_named: [worker-0]" in fault.next_step
    (fault,) = decided(record=INSTALLED, requested=AGAIN).faults
    assert "was installed, and does not answer" in fault.why


def test_check_mode_does_not_know_the_tool_and_says_so() -> None:
    unknown = dataclasses.replace(SAME, tool=None)
    found = decided(requested=unknown)
    assert (found.row, found.notes) == (2, ()) and "it is not compared" in found.message
    assert decided(requested=unknown, cluster=READY).notes == ()
    assert decided(requested=dataclasses.replace(CHANGED, tool=None)).row == 5


def test_names_without_regenerate_have_no_effect_and_say_so() -> None:
    found = decided(requested=named("a", regenerate=False))
    assert (found.row, found.notes) == (2, ("regenerate_named has no effect without regenerate: true",))


def test_only_unchanged_files_are_published() -> None:
    extra = folder(checksums=SUMS | {"extra.ign": "0" * 64})
    assert decided(folder=extra).publishable == ("bootstrap.ign", "master.ign", "worker.ign")
    assert decided(folder=WITHOUT_STATE).publishable == ("bootstrap.ign", "master.ign", "worker.ign")
    assert decided(record=INSTALLED).publishable == ()


def test_the_bootstrap_file_is_published_only_until_the_bootstrap_is_complete() -> None:
    for cluster in (COMPLETE, READY):
        assert decided(cluster=cluster).publishable == ("master.ign", "worker.ign")
    assert decided(cluster=BOOTING).publishable == ("bootstrap.ign", "master.ign", "worker.ign")
    in_place = {"bootstrap-in-place-for-live-iso.ign": "a", "worker.ign": "b"}
    record = dataclasses.replace(RECORD, checksums=in_place)
    assert decided(folder=folder(checksums=in_place), record=record, cluster=COMPLETE).publishable == ("worker.ign",)


def test_what_agents_boot_is_published_until_the_cluster_is_installed() -> None:
    """Their workers boot the same files, and may come after the masters."""
    sums = {f"boot-artifacts/agent.x86_64-{end}": "a" for end in ("initrd.img", "rootfs.img", "vmlinuz")}
    record = dataclasses.replace(RECORD, checksums=sums)
    given = folder(checksums=sums, clock=None)
    for cluster in (BOOTING, COMPLETE):
        assert decided(folder=given, record=record, cluster=cluster).publishable == tuple(sums), cluster
    assert decided(folder=given, record=record, cluster=READY).publishable == ()


def test_notes_say_what_does_not_work_and_what_is_unknown() -> None:
    (note,) = decided(folder=WITHOUT_STATE).notes
    assert "wait-for and gather do not work" in note
    found = decided(record=INSTALLED)
    assert (found.unreachable, found.notes) == (True, (found.message,))
    assert decided().notes == ()
    assert decided(cluster=READY, requested=CHANGED).notes == (decided(cluster=READY, requested=CHANGED).message,)


@pytest.mark.parametrize("name", ROWS)
def test_what_an_interrupted_run_has_left_is_removed_whatever_the_row_is(name: str) -> None:
    changes, row, action, _changed, _message = ROWS[name]
    left = dataclasses.replace(changes.get("folder", FRESH), staging=LEFT)
    found = decided(**{**changes, "folder": left})
    assert (found.row, found.action, found.staging, found.changed) == (row, action, LEFT, True)
    assert found.notes[-1] == "an interrupted run has left /srv/.dgxpod.staging-1, which is removed"
    assert decided(**changes).staging == (LEFT if name == "an interrupted run" else ())


def test_every_combination_is_decided_without_a_contradiction() -> None:
    """Whatever is observed: never a second set of files over one that a machine has, unless it is named, and nothing is published that has changed."""
    folders = [NONE, FRESH, TAMPERED, ONLY_STATE, OLD, EXPIRED, AHEAD, WITHOUT_STATE, FOREIGN]
    clusters = [NOBODY, BOOTING, COMPLETE, READY, OTHER, Cluster(NAME, written=("gpu-1",)), Cluster(NAME, True)]
    requests = [SAME, CHANGED, UPGRADED, ADOPT, AGAIN, named("master-0", "worker-0", "gpu-1")]
    for found, record, cluster, requested in itertools.product(folders, [None, RECORD, INSTALLED], clusters, requests):
        result = decided(folder=found, record=record, cluster=cluster, requested=requested)
        context = (found, record, cluster, requested, result)
        creates = result.action in (decision.CREATE, decision.REGENERATE)
        assert not (creates and cluster.written and not requested.regenerate_named), context
        assert not (creates and cluster == OTHER), context
        assert not (creates and cluster.answers and not requested.regenerate_named), context
        assert not (result.action == decision.REGENERATE and not requested.regenerate), context
        assert not (result.publishable and (found is TAMPERED and record is not None)), context
        assert bool(result.faults) == (result.action == decision.FAIL), context
        assert result.changed == (result.action in (decision.CREATE, decision.REGENERATE, decision.ADOPT)), context
        assert result.message, context
