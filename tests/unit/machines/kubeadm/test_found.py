# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine is to kubeadm, from what is on it."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import ABSENT, FOREIGN, HALF, MEMBER
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Command, File, Host, Unit
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.found import found
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import BEGIN, PEM, certificate

AGENT = (places.AUTHORITY, places.KUBELET_CONF, places.KUBELET_CONFIG)
SERVER = (*AGENT, places.ADMIN, places.API_SERVER, places.ETCD, places.DATA)


def host(
    *present: str, units: dict[str, Unit] | None = None, files: dict[str, str] | None = None, **facts: str
) -> Host:
    return Host(
        facts={"present": "\n".join(present), "server": "    server: https://10.0.0.1:6443", **facts},
        files={path: File(path, text) for path, text in (files or {}).items()},
        commands={"kubelet": Command(0, "Kubernetes v1.36.4")},
        units={"kubelet": Unit(loaded=True, active=True, started_at=10.0), **(units or {})},
        now=BEGIN.timestamp(),
    )


@pytest.mark.parametrize(
    ("present", "state"),
    [
        ((), ABSENT),
        (AGENT, MEMBER),
        (SERVER, MEMBER),
        # The datastore is external.
        ((*AGENT, places.ADMIN, places.API_SERVER), MEMBER),
        ((*AGENT, places.BOOTSTRAP), HALF),
        (AGENT[:1], HALF),
        ((places.ADMIN,), HALF),
        (tuple(path for path in SERVER if path != places.DATA), HALF),
        (tuple(path for path in SERVER if path != places.ADMIN), HALF),
        ((places.DATA,), HALF),
    ],
)
def test_a_machine_is_what_kubeadm_has_left_on_it(present: tuple[str, ...], state: str) -> None:
    idle = {"kubelet": Unit(loaded=True)}
    machine = found(
        host(*present, units=idle if state == ABSENT else None)
        if places.KUBELET_CONFIG in present
        else host(*present, units=idle)
    )
    assert machine.state == state
    assert bool(machine.why) == (state == HALF)


def test_a_server_that_has_served_has_data_even_if_its_disk_has_lost_them() -> None:
    lost = tuple(path for path in SERVER if path != places.DATA)
    assert not found(host(*lost)).data
    served = host(*lost)
    served.facts["enrolled"] = places.KUBELET_CERTIFICATE
    assert found(served).data
    agent = host(*AGENT)
    agent.facts["enrolled"] = places.KUBELET_CERTIFICATE
    assert not found(agent).data


def test_what_a_member_tells() -> None:
    certificates = {
        places.AUTHORITY: PEM,
        places.CERTIFICATES[0]: certificate(300),
        places.CERTIFICATES[1]: certificate(200),
    }
    machine = found(host(*SERVER, files=certificates))
    assert (machine.serves, machine.data, machine.running) == (True, True, True)
    assert machine.version == (1, 36, 4)
    assert machine.endpoint == "https://10.0.0.1:6443"
    assert machine.days == 200
    assert len(machine.authority) == 64
    agent = found(host(*AGENT, files={places.AUTHORITY: PEM}))
    assert (agent.serves, agent.data, agent.days) == (False, False, None)


def test_a_machine_whose_authority_is_being_replaced() -> None:
    assert not found(host(*SERVER)).rotating
    assert found(host(*SERVER, rotating=places.ROTATION)).rotating
    assert not found(host(*SERVER)).rekeying and found(host(*SERVER, encryption="# replaces a")).rekeying


@pytest.mark.parametrize("unit", places.FOREIGN)
def test_other_distributions_are_foreign(unit: str) -> None:
    machine = found(host(units={unit: Unit(loaded=True)}))
    assert machine.state == FOREIGN
    assert places.FOREIGN[unit] in machine.why


def test_a_lone_kubelet_is_foreign_but_one_that_waits_for_kubeadm_is_not() -> None:
    now: t.Any = BEGIN.timestamp()
    assert found(host()).state == FOREIGN
    waits = Unit(loaded=True, active=True, started_at=now - 1)
    assert found(host(units={"kubelet": waits})).state == ABSENT
