# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps after which machines are one cluster: every state that a cluster can be in, and that there is never a second one."""

from __future__ import annotations

import dataclasses
import itertools
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import (
    ABSENT,
    AGENT,
    FOREIGN,
    HALF,
    MEMBER,
    SERVER,
    Answer,
    Found,
    Machine,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.plan import (
    CONFIGURE,
    FORGET,
    INIT,
    JOIN_AGENTS,
    JOIN_SERVER,
    RENEW,
    RESET,
    RETIRE,
    UPGRADE_AGENTS,
    UPGRADE_SERVER,
    Cluster,
    Wish,
    decide,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import version_text

OURS, THEIRS = "a" * 64, "b" * 64
WISH = Wish((1, 36, 4), "10.0.0.1:6443", at_a_time=2)
NOTHING, OF_OURS = Answer(), Answer(True, OURS)


def found(state: str, serves: bool = True, **more: t.Any) -> Found:
    joined = {"data": serves, "authority": OURS, "version": (1, 36, 4), "serves": serves, "running": True}
    return Found(state=state, **{**(joined if state == MEMBER else {}), **more})


def older(serves: bool = True, version: tuple[int, ...] = (1, 36, 3)) -> Found:
    """A member that is to be upgraded."""
    plane = {"control_plane": version} if serves else {}
    return found(MEMBER, serves, version=version, behind=(f"its kubelet is {version_text(version)}",), **plane)


def machines(servers: list[Found | None], agents: t.Sequence[Found | None] = ()) -> list[Machine]:
    rows = [("cp", SERVER, servers), ("w", AGENT, agents)]
    return [
        Machine(f"{name}{number}", f"{name}{number}", f"10.0.0.{number}", role, one)
        for name, role, all_of_them in rows
        for number, one in enumerate(all_of_them, 1)
    ]


def steps(decision: plan.Decision) -> list[tuple[str, tuple[str, ...]]]:
    assert not decision.faults, decision.faults
    return [(step.do, step.hosts) for step in decision.steps]


def faults(decision: plan.Decision) -> str:
    assert not decision.steps, decision.steps
    return "\n".join(map(str, decision.faults))


ABSENT_SERVERS: list[Found | None] = [found(ABSENT)] * 3


def test_bare_machines_become_a_cluster_servers_one_at_a_time_and_agents_in_batches() -> None:
    decision = decide(machines(ABSENT_SERVERS, [found(ABSENT)] * 3), WISH, NOTHING)
    assert steps(decision) == [
        (INIT, ("cp1",)),
        (JOIN_SERVER, ("cp2",)),
        (JOIN_SERVER, ("cp3",)),
        (JOIN_AGENTS, ("w1", "w2")),
        (JOIN_AGENTS, ("w3",)),
    ]
    assert decision.leader == "cp1"


def test_a_complete_cluster_has_no_steps() -> None:
    members = machines([found(MEMBER)] * 3, [found(MEMBER, False)] * 2)
    assert steps(decide(members, WISH, OF_OURS)) == []
    # Also if one of its servers is lost for the moment.
    lost = [members[0], dataclasses.replace(members[1], found=None), *members[2:]]
    assert steps(decide(lost, WISH, OF_OURS)) == []


def test_servers_are_upgraded_one_at_a_time_and_then_agents_in_batches() -> None:
    decision = decide(machines([older()] * 3, [older(False)] * 3), WISH, OF_OURS)
    assert steps(decision) == [
        (UPGRADE_SERVER, ("cp1",)),
        (UPGRADE_SERVER, ("cp2",)),
        (UPGRADE_SERVER, ("cp3",)),
        (UPGRADE_AGENTS, ("w1", "w2")),
        (UPGRADE_AGENTS, ("w3",)),
    ]
    assert str(decision.steps[0]) == "upgrade the server cp1: its kubelet is 1.36.3"


def test_what_keeps_its_version_is_updated_in_the_same_turns() -> None:
    renewed = found(MEMBER, behind=("a certificate expires",))
    decision = decide(machines([renewed, found(MEMBER), renewed], [found(MEMBER, False, behind=("x",))]), WISH, OF_OURS)
    assert steps(decision) == [(UPGRADE_SERVER, ("cp1",)), (UPGRADE_SERVER, ("cp3",)), (UPGRADE_AGENTS, ("w1",))]
    assert str(decision.steps[0]) == "update the server cp1: a certificate expires"
    assert str(decision.steps[2]) == "update w1: x"


def test_expired_certificates_are_renewed_on_all_servers_at_once_before_anything_else() -> None:
    expired = found(MEMBER, expired=True)
    decision = decide(machines([expired, expired, found(MEMBER)], [found(ABSENT, False)]), WISH, OF_OURS)
    assert steps(decision) == [(RENEW, ("cp1", "cp2")), (JOIN_AGENTS, ("w1",))]
    assert str(decision.steps[0]) == "renew the certificates of cp1, cp2: they have expired"


def retired(machine: Machine, **more: t.Any) -> Machine:
    return dataclasses.replace(machine, retired=True, **more)


def test_machines_leave_once_those_that_replace_them_have_joined_agents_first() -> None:
    first, old, *others = machines(
        [found(MEMBER), found(MEMBER), found(MEMBER), found(ABSENT)], [found(MEMBER, False)] * 2
    )
    decision = decide([retired(old), first, *others[:-1], retired(others[-1])], WISH, OF_OURS)
    assert steps(decision) == [(JOIN_SERVER, ("cp4",)), (RETIRE, ("w2",)), (RETIRE, ("cp2",))]
    assert decision.leader == "cp1"
    assert str(decision.steps[1]) == "take out w2: it is retired"


def test_what_an_interrupted_run_has_left_on_a_retired_machine_is_removed() -> None:
    *members, gone = machines([found(MEMBER)], [found(ABSENT, False)])
    assert steps(decide([*members, retired(gone)], WISH, OF_OURS)) == []
    assert steps(decide([*members, retired(gone, left=True)], WISH, OF_OURS)) == [(RETIRE, ("w1",))]


def test_the_last_server_cannot_be_retired() -> None:
    old, new = machines([found(MEMBER), found(ABSENT)])
    assert "the cluster has no server" in faults(decide([retired(old)], WISH, OF_OURS))
    assert "all servers that are members are retired (cp1)" in faults(decide([retired(old), new], WISH, OF_OURS))


def test_no_second_cluster_is_made_where_only_a_retired_server_or_agents_know_the_first() -> None:
    new, lost = machines([found(ABSENT), None])
    for answer in (NOTHING, OF_OURS):
        assert "cp2 could not be observed" in faults(decide([new, retired(lost)], WISH, answer))
    agent = machines([], [found(MEMBER, False)])
    assert "w1 belongs to a cluster, and no server is a member of it" in faults(decide([new, *agent], WISH, NOTHING))


def test_the_server_whose_address_is_the_endpoint_stays() -> None:
    first, *others = machines([found(MEMBER)] * 3)
    lone = dataclasses.replace(first, address="10.0.0.1")
    assert "cp1 is retired, and its address is the endpoint" in faults(
        decide([retired(lone), *others], dataclasses.replace(WISH, even_servers=True), OF_OURS)
    )


def test_a_server_whose_retirement_was_interrupted_goes_before_anything_else() -> None:
    first, ill, new, last = machines([found(MEMBER), found(MEMBER, running=False), found(ABSENT), found(MEMBER)])
    wish = dataclasses.replace(WISH, even_servers=True, endpoint="10.0.0.9:6443")
    decision = decide([first, retired(ill), new, retired(last)], wish, OF_OURS)
    assert steps(decision) == [(RETIRE, ("cp2",)), (JOIN_SERVER, ("cp3",)), (RETIRE, ("cp4",))]


def test_the_server_that_other_nodes_use_stays() -> None:
    first, *others = machines([found(MEMBER)] * 3, [found(MEMBER, False, endpoint="https://10.0.0.2:6443")])
    assert "cp2 is retired, and its address is the endpoint" in faults(
        decide([first, retired(others[0]), *others[1:]], dataclasses.replace(WISH, even_servers=True), OF_OURS)
    )


def test_no_server_leaves_during_an_upgrade() -> None:
    first, second, *others = machines([older()] * 4)
    text = faults(decide([first, retired(second), *others], WISH, OF_OURS))
    assert "cp2 is retired, and the control plane is to be upgraded to 1.36.4" in text


def test_no_server_leaves_while_another_one_cannot_be_seen() -> None:
    first, *others = machines([found(MEMBER), None, found(MEMBER), found(MEMBER)])
    assert "cp2 could not be observed" in faults(decide([retired(first), *others], WISH, OF_OURS))


def test_an_interrupted_upgrade_goes_on_with_what_is_left() -> None:
    stopped = found(MEMBER, version=(1, 36, 3), control_plane=(1, 36, 4), behind=("its kubelet is 1.36.3",))
    decision = decide(machines([found(MEMBER), stopped, older()], [older(False)]), WISH, OF_OURS)
    assert [hosts for _do, hosts in steps(decision)] == [("cp2",), ("cp3",), ("w1",)]


def test_a_server_that_was_lost_in_the_middle_joins_before_another_one_is_upgraded() -> None:
    decision = decide(machines([found(MEMBER), found(ABSENT), older()], [older(False), found(ABSENT)]), WISH, OF_OURS)
    assert steps(decision) == [
        (JOIN_SERVER, ("cp2",)),
        (UPGRADE_SERVER, ("cp3",)),
        (JOIN_AGENTS, ("w2",)),
        (UPGRADE_AGENTS, ("w1",)),
    ]


def test_machines_that_an_earlier_run_has_left_in_the_middle_come_first() -> None:
    left = dataclasses.replace(older(), begun=True)
    decision = decide(
        machines([older(), left, older()], [older(False), dataclasses.replace(older(False), begun=True)]), WISH, OF_OURS
    )
    assert [hosts for _do, hosts in steps(decision)] == [("cp2",), ("cp1",), ("cp3",), ("w2", "w1")]


def test_new_agents_join_a_control_plane_that_was_upgraded_and_new_servers_before_another_is_taken_away() -> None:
    upgraded = decide(machines([older()] * 3, [older(False), found(ABSENT, False)]), WISH, OF_OURS)
    assert [do for do, _hosts in steps(upgraded)] == [*[UPGRADE_SERVER] * 3, JOIN_AGENTS, UPGRADE_AGENTS]
    restarted = found(MEMBER, behind=("its kubelet runs with an older unit",))
    joined = decide(machines([restarted, found(MEMBER), found(ABSENT)]), WISH, OF_OURS)
    assert steps(joined) == [(JOIN_SERVER, ("cp3",)), (UPGRADE_SERVER, ("cp1",))]


def test_a_first_server_that_was_reinstalled_joins() -> None:
    decision = decide(machines([found(ABSENT), found(MEMBER), found(MEMBER)]), WISH, OF_OURS)
    assert steps(decision) == [(JOIN_SERVER, ("cp1",))]
    assert decision.leader == "cp2"


def test_machines_of_an_interrupted_run_are_reset_before_they_join() -> None:
    decision = decide(
        machines([found(MEMBER), found(HALF, why="x"), found(MEMBER)], [found(HALF, False)]), WISH, OF_OURS
    )
    assert steps(decision) == [
        (RESET, ("cp2",)),
        (RESET, ("w1",)),
        (JOIN_SERVER, ("cp2",)),
        (JOIN_AGENTS, ("w1",)),
    ]
    first = decide(machines([found(HALF), found(ABSENT), found(ABSENT)]), WISH, NOTHING)
    assert steps(first)[:2] == [(RESET, ("cp1",)), (INIT, ("cp1",))]


def test_data_that_no_member_knows_stop_the_run() -> None:
    text = faults(decide(machines([found(ABSENT), found(HALF, data=True), found(ABSENT)]), WISH, NOTHING))
    assert "cp2 belongs to a cluster, and no server is a member of it" in text
    assert "as the page of its installer says" in text and "remove it from cp2 by the entry teardown" in text


def test_servers_of_two_clusters_are_a_fault_with_both_fingerprints() -> None:
    text = faults(decide(machines([found(MEMBER), found(MEMBER, authority=THEIRS), found(ABSENT)]), WISH, OF_OURS))
    assert "the machines are of 2 clusters" in text
    assert f"{'a' * 16}… on cp1; {'b' * 16}… on cp2" in text


def test_nothing_is_done_while_the_authority_is_being_replaced() -> None:
    """Machines have the old one, the new one, or both, and are of one cluster nevertheless."""
    servers = [found(MEMBER, rotating=True), found(MEMBER, authority=THEIRS, rotating=True), found(ABSENT)]
    decision = decide(machines(servers), WISH, Answer(True, "c" * 64))
    assert decision.steps == ()
    text = faults(decision)
    assert "which is not completed on cp1, cp2" in text and "the entry rotate_ca" in text
    assert "2 clusters" not in text and "another cluster" not in text


def test_nothing_is_done_while_the_key_of_secrets_is_being_replaced() -> None:
    decision = decide(machines([found(MEMBER, rekeying=True), found(MEMBER), found(ABSENT)]), WISH, OF_OURS)
    assert decision.steps == ()
    text = faults(decision)
    assert "is being replaced, which is not completed on cp1" in text and "the entry rotate_encryption_keys" in text


@pytest.mark.parametrize("authority", [THEIRS, ""])
def test_an_endpoint_of_others_is_a_fault_where_no_machine_is_a_member(authority: str) -> None:
    text = faults(decide(machines(ABSENT_SERVERS), WISH, Answer(True, authority)))
    assert "the endpoint answers, and no machine of the group is a member" in text


def test_nothing_is_initialized_while_an_endpoint_answers() -> None:
    """A server that was begun, has the authority of its cluster, and no data."""
    begun = [found(HALF, authority=OURS), *ABSENT_SERVERS[1:]]
    told = faults(decide(machines(begun), WISH, OF_OURS))
    assert "the endpoint answers, and no machine of the group is a member" in told
    assert (INIT, ("cp1",)) in steps(decide(machines(begun), WISH, NOTHING))


def test_an_endpoint_that_answers_is_no_fault_where_servers_could_not_be_observed() -> None:
    text = faults(decide(machines([None, None, None]), WISH, OF_OURS))
    assert "the endpoint answers" not in text
    assert "cp1, cp2, cp3 could not be observed" in text


def test_an_endpoint_of_another_cluster_is_a_fault_with_both_fingerprints() -> None:
    text = faults(decide(machines([found(MEMBER)] * 3), WISH, Answer(True, THEIRS)))
    assert "the endpoint is that of another cluster" in text
    assert f"it is {'b' * 16}…, and that of cp1, cp2, cp3 is {'a' * 16}…" in text


def test_even_numbers_of_servers_are_a_fault_unless_they_are_known() -> None:
    two = machines([found(ABSENT)] * 2)
    assert "the cluster has 2 servers" in faults(decide(two, WISH, NOTHING))
    assert len(steps(decide(two, dataclasses.replace(WISH, even_servers=True), NOTHING))) == 2


@pytest.mark.parametrize(
    ("group", "wish", "told"),
    [
        (machines([], [found(ABSENT)]), WISH, "the cluster has no server"),
        (machines(ABSENT_SERVERS), dataclasses.replace(WISH, endpoint=""), "the cluster has 3 servers and no endpoint"),
        (
            machines([found(FOREIGN, why="K3s is installed (unit k3s)")]),
            WISH,
            "cp1 belongs to something else (10.0.0.1): K3s",
        ),
        (
            machines([found(MEMBER), *ABSENT_SERVERS[:2]], [found(MEMBER, True)]),
            WISH,
            "w1 is a server of the cluster and an agent",
        ),
        (machines([found(MEMBER, False)]), WISH, "cp1 is an agent of the cluster and a server"),
        (machines([older(version=(1, 34, 2))]), WISH, "cp1 runs Kubernetes 1.34.2, and 1.36.4 is set"),
        (machines([older(), older(), found(ABSENT)]), WISH, "cp3 is no member of the cluster, whose control plane"),
        (machines([older(), older(), None]), WISH, "cp3 could not be observed"),
    ],
)
def test_what_is_told_before_anything_is_changed(group: list[Machine], wish: Wish, told: str) -> None:
    text = faults(decide(group, wish, NOTHING))
    assert told in text
    assert "Next: " in text


def test_all_faults_are_told_at_once() -> None:
    group = machines([found(FOREIGN, why="x"), found(MEMBER, authority=THEIRS)], [found(MEMBER, False)])
    text = faults(decide(group, dataclasses.replace(WISH, endpoint=""), NOTHING))
    for told in ("2 servers", "no endpoint", "something else", "of 2 clusters"):
        assert told in text


def test_nothing_joins_while_a_server_cannot_be_seen_and_a_lost_agent_is_left_out() -> None:
    text = faults(decide(machines([found(MEMBER), None, found(ABSENT)], [found(ABSENT)]), WISH, OF_OURS))
    assert "cp2 could not be observed" in text
    others = decide(machines([found(MEMBER)] * 3, [None, found(ABSENT, False)]), WISH, OF_OURS)
    assert steps(others) == [(JOIN_AGENTS, ("w2",))]


def test_copies_of_one_disk_are_a_fault() -> None:
    group = [
        dataclasses.replace(one, identity={"machine-id": "1234", "node name": one.node})
        for one in machines(ABSENT_SERVERS)
    ]
    assert "3 machines have the machine-id 1234 (cp1, cp2, cp3)" in faults(decide(group, WISH, NOTHING))


STATES = [None, found(ABSENT), found(HALF), found(HALF, data=True), found(MEMBER), found(MEMBER, authority=THEIRS)]


def test_no_state_of_three_servers_leads_to_a_second_cluster() -> None:
    """Whatever the servers are, a cluster is only initialized if none of them has data and nothing answers, and at most once."""
    initialized = 0
    for servers in itertools.product(STATES, repeat=3):
        for answer in (NOTHING, OF_OURS, Answer(True, THEIRS)):
            decision = decide(machines(list(servers)), WISH, answer)
            inits = [step for step in decision.steps if step.do == INIT]
            initialized += len(inits)
            if inits:
                assert len(inits) == 1
                assert not answer.answers
                assert not any(one is None or one.data or one.state == MEMBER for one in servers)
    assert initialized == 8


def test_five_hundred_machines_are_planned_within_the_budget() -> None:
    group = machines(ABSENT_SERVERS, [found(ABSENT)] * 497)
    decision = decide(group, dataclasses.replace(WISH, at_a_time=50), NOTHING)
    assert len(steps(decision)) == 3 + 10


def test_the_configuration_of_the_cluster_changes_before_its_machines() -> None:
    behind = found(MEMBER, False, behind=("its kubelet has another configuration than the one that is set",))
    of_it = machines([found(MEMBER), found(MEMBER), found(ABSENT)], [behind])
    decision = decide(of_it, WISH, OF_OURS, Cluster(("KubeletConfiguration (maxPods)",)))
    assert steps(decision) == [(CONFIGURE, ("cp1",)), (JOIN_SERVER, ("cp3",)), (UPGRADE_AGENTS, ("w1",))]
    assert str(decision.steps[0]) == "change the configuration of the cluster on cp1: KubeletConfiguration (maxPods)"


def test_nothing_is_changed_if_the_configuration_cannot_be() -> None:
    fault = Fault("the network of pods of a cluster cannot be changed")
    decision = decide(machines([found(MEMBER)] * 3), WISH, OF_OURS, Cluster(("a",), (fault,)))
    assert (decision.faults, decision.steps) == ((fault,), ())


def lost(*names: str) -> list[Machine]:
    """Machines of which nothing is observed."""
    return [
        Machine(name, name, f"10.0.0.{9 + place}", AGENT if name.startswith("w") else SERVER, lost=True)
        for place, name in enumerate(names)
    ]


def test_what_is_left_of_lost_machines_is_removed_before_others_join_in_their_place() -> None:
    known = Cluster(names=frozenset(("cp1", "cp2", "cp9", "w9")))
    of_it = [*machines([found(MEMBER), found(MEMBER), found(ABSENT)]), *lost("w9", "cp9", "cp8")]
    assert steps(decide(of_it, WISH, OF_OURS, known)) == [
        (FORGET, ("cp9",)),
        (FORGET, ("w9",)),
        (JOIN_SERVER, ("cp3",)),
    ]
    # Nothing is left, or the cluster cannot be asked.
    members = [*machines([found(MEMBER)] * 3), *lost("cp9")]
    assert steps(decide(members, WISH, OF_OURS, Cluster(names=frozenset(("cp1",))))) == []
    assert steps(decide(members, WISH, OF_OURS)) == []


def test_a_lost_server_does_not_hold_up_the_others() -> None:
    of_it = [*machines([older()] * 3), *lost("cp9")]
    assert steps(decide(of_it, WISH, OF_OURS))[0] == (UPGRADE_SERVER, ("cp1",))


def test_a_machine_that_runs_is_not_lost() -> None:
    known = Cluster(names=frozenset(("w9",)), ready=frozenset(("w9",)))
    told = faults(decide([*machines([found(MEMBER)] * 3), *lost("w9")], WISH, OF_OURS, known))
    assert (
        "w9 is lost, and its node is Ready (hwaccel_lost). Next: remove hwaccel_lost; a machine that runs leaves by"
        in told
    )


def test_a_lost_server_whose_address_is_the_endpoint_is_a_fault() -> None:
    wish = dataclasses.replace(WISH, endpoint="10.0.0.9:6443")
    told = faults(decide([*machines([found(MEMBER)] * 3), *lost("cp9")], wish, OF_OURS))
    assert "cp9 is lost, and its address is the endpoint" in told
