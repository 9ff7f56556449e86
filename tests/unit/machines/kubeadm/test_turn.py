# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a member has a turn, and what is left to do in it after a run that was killed at any point."""

from __future__ import annotations

import dataclasses
import hashlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Command, File, Host, Unit
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import documents, found, places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.plan import plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.turn import Turn, turn
from ansible_collections.hwaccel.gpu.tests.unit.machines.kubeadm.test_certificates import server as certified
from ansible_collections.hwaccel.gpu.tests.unit.machines.kubeadm.test_plan import SETTINGS as NEW
from ansible_collections.hwaccel.gpu.tests.unit.machines.kubeadm.test_plan import ready

OLD_SUM, NEW_SUM = "0" * 64, "1" * 64
_KUBELET = f"{places.PROGRAMS_FOLDER}/kubelet"
_SERVER = (
    places.AUTHORITY,
    places.KUBELET_CONF,
    places.KUBELET_CONFIG,
    places.ADMIN,
    places.API_SERVER,
    places.ETCD,
    places.DATA,
)
APPLIED = {places.CONFIGURATION: File(places.CONFIGURATION, documents.applied(NEW, NEW, {}))}
_INTERRUPTED = "an earlier run was interrupted there"


def host(
    kubelet: str = "1.36.4",
    control_plane: tuple[str, ...] = ("1.36.4",) * 3,
    facts: dict[str, str] | None = None,
    **more: t.Any,
) -> Host:
    """A server as it is set. kubelet: version of the program. control_plane: of its static pods."""
    images = {
        name: f"    image: mirror.example.com:5000/{name}:v{version}"
        for name, version in zip(places.CONTROL_PLANE, control_plane, strict=True)
    }
    base = ready()
    digest = NEW_SUM if kubelet == "1.36.4" else OLD_SUM
    changed = {
        "facts": {**base.facts, **images, "present": "\n".join(_SERVER), **(facts or {})},
        "units": {**base.units, "kubelet": Unit(loaded=True, active=True, enabled=True, started_at=950.0)},
        "checksums": {**base.checksums, _KUBELET: digest, **more.pop("checksums", {})},
        "commands": {**base.commands, "kubelet": Command(0, f"Kubernetes v{kubelet}")},
        "files": {**base.files, **APPLIED, **more.pop("files", {})},
    }
    return dataclasses.replace(base, **changed, **more)


def of(machine: Host, writes: tuple[str, ...] = ()) -> Turn:
    return turn(machine, NEW, found.found(machine), writes)


RECORD = {places.TURN: File(places.TURN, '{"gated": true}')}


def test_a_member_that_runs_as_it_is_set_has_no_turn() -> None:
    assert of(host()) == Turn(upgraded=True, applied=documents.components(NEW))


@pytest.mark.parametrize(
    ("machine", "reasons", "upgrade", "restart"),
    [
        (
            host("1.36.3", ("1.36.3",) * 3),
            ("its control plane is 1.36.3", "its kubelet is 1.36.3"),
            True,
            True,
        ),
        # kubeadm was killed between two static pods.
        (
            host("1.36.3", ("1.36.4", "1.36.3", "1.36.4")),
            ("its control plane is 1.36.3", "its kubelet is 1.36.3"),
            True,
            True,
        ),
        # Only its kubelet is left.
        (host("1.36.3"), ("its kubelet is 1.36.3",), True, True),
        # The program was replaced, as by a package, and not restarted. kubeadm may not have run.
        (host(facts={"kubelet_changed": "960.0"}), ("its kubelet runs an older program",), True, True),
        (
            host(facts={"kubelet_config_changed": "960.0"}),
            (f"its kubelet has not loaded {places.KUBELET_CONFIG}",),
            False,
            True,
        ),
        # Another build of the same version.
        (
            host(checksums={_KUBELET: OLD_SUM}),
            ("its kubelet is another program than the one that is set",),
            False,
            True,
        ),
        # Only its gate and its release are left.
        (host(files=RECORD), (_INTERRUPTED,), False, False),
        # kubeadm was killed after its static pods had the version.
        (
            host(files={places.TURN: File(places.TURN, '{"gated": true, "upgrade": true}')}),
            (_INTERRUPTED,),
            True,
            True,
        ),
    ],
)
def test_what_is_left_of_a_turn(machine: Host, reasons: tuple[str, ...], upgrade: bool, restart: bool) -> None:
    now = of(machine)
    assert (now.reasons, now.upgrade, now.restart) == (reasons, upgrade, restart)


def test_a_unit_that_this_run_writes_is_loaded_in_a_turn() -> None:
    assert of(host(), (places.UNIT,)).reasons == ("its kubelet runs with an older unit",)
    changed = {places.UNIT: File(places.UNIT, "x", changed_at=960.0)}
    assert of(host(files=changed)).restart


def test_a_change_in_the_future_is_none_because_the_clock_was_set() -> None:
    assert of(host(facts={"kubelet_changed": "5000.0"})).reasons == ()


@pytest.mark.parametrize(
    ("text", "gated"), [('{"gated": true}', True), ('{"gated": false}', False), ("{", None), ("[]", None)]
)
def test_what_was_recorded_when_it_began(text: str, gated: bool | None) -> None:
    now = of(host(files={places.TURN: File(places.TURN, text)}))
    assert (now.begun, now.gated) == (True, gated)


def test_secrets_of_a_run_that_was_killed_are_removed_in_a_turn() -> None:
    machine = host(facts={"secrets": places.SECRETS})
    now = turn(machine, NEW, found.found(machine), ())
    assert (now.reasons, now.begun, now.gated, now.restart) == ((_INTERRUPTED,), True, None, False)


def test_kubeadm_that_still_runs_is_reported() -> None:
    machine = dataclasses.replace(host(), processes={"4711": 900.0})
    assert plan(machine, NEW)["busy"] == ["4711"] and plan(host(), NEW)["busy"] == []


def test_a_machine_that_is_no_member_has_no_turn() -> None:
    assert of(Host(commands={"kubelet": Command(0, "Kubernetes v1.36.3")}, files=RECORD)) == Turn()


def test_the_kubelet_of_a_member_is_made_ready_and_replaced_in_its_turn_only() -> None:
    made = plan(host("1.36.3", ("1.36.3",) * 3), NEW)
    assert made["faults"] == []
    assert [(one["name"], one["path"]) for one in made["programs"]] == [("kubelet", places.STAGED)]
    assert (
        made["found"]["behind"] == made["turn"]["reasons"] == ["its control plane is 1.36.3", "its kubelet is 1.36.3"]
    )
    ready = plan(host("1.36.3", ("1.36.3",) * 3, checksums={places.STAGED: NEW_SUM}), NEW)
    assert ready["programs"] == ready["absent"] == []
    # It is in its place.
    assert plan(host(checksums={places.STAGED: NEW_SUM}), NEW)["absent"] == [places.STAGED]


def test_containerd_of_a_member_is_restarted_in_its_turn_only() -> None:
    """All nodes at the same time would be without a runtime, and with the cgroup driver of the next kubelet."""
    made = plan(host(), {**NEW, "pause_image": "mirror.example.com:5000/pause:3.11"})
    assert [one["path"] for one in made["files"]] == [places.CONTAINERD]
    assert made["actions"] == []
    assert made["found"]["behind"] == [f"its containerd has not loaded {places.CONTAINERD}"]
    assert made["turn"]["runtime"] and made["turn"]["restart"] and not made["turn"]["upgrade"]
    # A run was killed between the two.
    written = dataclasses.replace(host().files[places.CONTAINERD], changed_at=950.0)
    again = plan(host(files={places.CONTAINERD: written}), NEW)
    assert (again["files"], again["actions"], again["turn"]["runtime"]) == ([], [], True)


def test_a_member_keeps_the_configuration_that_the_package_of_containerd_has_brought() -> None:
    """Its kubelet has the cgroup driver that goes with it."""
    text = "version = 2\n"
    files = {places.CONTAINERD: File(places.CONTAINERD, text)}
    known = {"conffiles": f"{places.CONTAINERD} {hashlib.md5(text.encode()).hexdigest()}"}
    assert places.CONTAINERD not in plan(host(files=files, facts=known), NEW)["contents"]


def test_programs_of_another_version_than_the_one_that_is_set_are_a_fault() -> None:
    machine = host("1.36.3", checksums={_KUBELET: NEW_SUM})
    (fault,) = plan(machine, NEW)["faults"]
    assert (
        "kubelet is 1.36.3, and 1.36.4 is set (cluster_kubeadm_version): it is the kubelet of cluster_kubeadm_programs"
        in fault["text"]
    )
    (fault,) = plan(host("1.36.3"), {**NEW, "programs": []})["faults"]
    assert "set cluster_kubeadm_packages or cluster_kubeadm_programs, or install the package of 1.36.4" in fault["text"]


def test_another_kubeadm_is_no_fault_where_there_is_nothing_to_upgrade() -> None:
    machine = host()
    newer = dataclasses.replace(machine, commands={**machine.commands, "kubeadm": Command(0, "v1.36.5")})
    assert plan(newer, {**NEW, "programs": []})["faults"] == []


def issued(left: int, **facts: str) -> Host:
    """A server as it is set, whose certificate expires in so many days."""
    server = certified(left)
    return host(facts={**server.facts, **facts}, files=server.files, now=server.now)


def test_a_certificate_that_expires_soon_is_renewed_in_a_turn() -> None:
    now = of(issued(12))
    assert now.reasons == ("a certificate of its control plane expires in 12 days",)
    assert (now.renew, now.pods, now.upgrade, now.restart) == (True, tuple(places.STATIC_PODS), False, False)


def test_expired_certificates_are_renewed_before_any_turn() -> None:
    machine = issued(-1)
    now = of(machine)
    assert (now.reasons, now.renew) == ((), True)
    assert found.found(machine).expired
    assert not found.found(issued(-1, keys="")).expired


def test_static_pods_that_have_not_loaded_renewed_certificates_have_a_turn() -> None:
    now = of(issued(200, **{places.moment(path): "2000.0" for path in places.STATIC_PODS["kube-scheduler"]}))
    assert now.reasons == ("static pods have not loaded renewed certificates (kube-scheduler)",)
    assert (now.renew, now.pods) == (False, ("kube-scheduler",))


_OTHER = "has another configuration than the one that is set"


@pytest.mark.parametrize(
    ("configuration", "reasons", "restart"),
    [
        ({"ClusterConfiguration": {"featureGates": {"A": True}}}, (f"its control plane {_OTHER}",), False),
        ({"KubeletConfiguration": {"maxPods": 50}}, (f"its kubelet {_OTHER}",), True),
        # Machines have nothing of it.
        ({"KubeProxyConfiguration": {"mode": "iptables"}}, (), False),
    ],
)
def test_a_changed_configuration_restarts_what_it_concerns(
    configuration: dict[str, t.Any], reasons: tuple[str, ...], restart: bool
) -> None:
    machine = host()
    now = turn(machine, {**NEW, "configuration": configuration}, found.found(machine), ())
    assert (now.reasons, now.upgrade, now.restart) == (reasons, bool(reasons), restart)


@pytest.mark.parametrize("text", ["", "{", "[1]", "{}"])
def test_a_machine_of_which_no_configuration_is_known_gets_the_one_that_is_set(text: str) -> None:
    now = of(host(files={places.CONFIGURATION: File(places.CONFIGURATION, text)}))
    assert now.reasons == (f"its control plane {_OTHER}", f"its kubelet {_OTHER}")


def test_an_upgrade_brings_the_configuration_too() -> None:
    machine = host("1.36.3", ("1.36.3",) * 3, files={places.CONFIGURATION: File(places.CONFIGURATION, "{}")})
    assert of(machine).reasons == ("its control plane is 1.36.3", "its kubelet is 1.36.3")


def test_a_certificate_that_lacks_names_is_issued_again_in_a_turn() -> None:
    machine = issued(200)
    now = turn(machine, {**NEW, "names": ["api.example.org"]}, found.found(machine), ())
    assert "the certificate of its API server lacks api.example.org" in now.reasons
    assert (now.names, now.renew, now.pods) == (True, False, ("kube-apiserver",))
