# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The expected nodes: names that a Node may have, and all problems of the option."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.identities import parse


def test_a_machine_has_the_name_of_its_reverse_record_and_its_first_label() -> None:
    expected, faults = parse(
        [
            {
                "name": "Worker-0.GPU.example.com.",
                "ip_addresses": ["10.0.0.1", "FD00:0::1"],
                "dns_names": ["Storage.example.com."],
            }
        ]
    )
    (machine,) = expected.identities
    assert faults == []
    assert machine.node_names == {"worker-0.gpu.example.com", "worker-0"}
    assert machine.names == machine.node_names | {"storage.example.com"}
    assert machine.addresses == {"10.0.0.1", "fd00::1"}
    assert [expected.find(name)[0] is machine for name in sorted(machine.node_names)] == [True, True]
    assert expected.find("storage.example.com") == (None, "no expected node has this name")


def test_a_whole_name_takes_precedence_over_a_first_label() -> None:
    expected, faults = parse([{"name": "gpu-0"}, {"name": "gpu-0.edge.example.com"}])
    found, _why = expected.find("gpu-0")
    assert faults == []
    assert found is not None
    assert found.name == "gpu-0"


@pytest.mark.parametrize(
    ("entry", "where"),
    [
        ({"name": ""}, "expected_nodes[0].name"),
        ({"name": "worker_0"}, "expected_nodes[0].name"),
        ({"name": "*.example.com"}, "expected_nodes[0].name"),
        ({"name": "localhost"}, "expected_nodes[0].name"),
        ({"name": "10.0.0.1"}, "expected_nodes[0].name"),
        ({"name": "a" * 64}, "expected_nodes[0].name"),
        ({"name": ".".join(["a" * 60] * 5)}, "expected_nodes[0].name"),
        ({"name": "w", "ip_addresses": ["10.0.0.0/24"]}, "expected_nodes[0].ip_addresses[0]"),
        ({"name": "w", "ip_addresses": ["10.0.0.1", "127.0.0.1"]}, "expected_nodes[0].ip_addresses[1]"),
        ({"name": "w", "ip_addresses": ["::"]}, "expected_nodes[0].ip_addresses[0]"),
        ({"name": "w", "ip_addresses": ["224.0.0.1"]}, "expected_nodes[0].ip_addresses[0]"),
        ({"name": "w", "ip_addresses": ["fe80::1%eth0"]}, "expected_nodes[0].ip_addresses[0]"),
        ({"name": "w", "ip_addresses": ["::ffff:10.0.0.1"]}, "expected_nodes[0].ip_addresses[0]"),
        ({"name": "w", "dns_names": ["*.apps.example.com"]}, "expected_nodes[0].dns_names[0]"),
        ({"name": "w", "dns_names": ["localhost"]}, "expected_nodes[0].dns_names[0]"),
    ],
)
def test_what_cannot_be_an_identity(entry: dict[str, t.Any], where: str) -> None:
    (fault,) = parse([entry])[1]
    assert fault.where == where
    assert fault.next_step


def test_all_problems_are_reported_together() -> None:
    entries = [
        {"name": "worker-0", "ip_addresses": ["10.0.0.1", "nonsense"]},
        {"name": "worker-1", "ip_addresses": ["10.0.0.1"], "dns_names": ["gpu.example.com"]},
        {"name": "Worker-1", "dns_names": ["GPU.example.com."]},
        {"name": "not valid"},
    ]
    texts = [str(fault) for fault in parse(entries)[1]]
    assert len(texts) == 5
    for text in (
        "'nonsense'",
        "'not valid'",
        "address 10.0.0.1 belongs to 2",
        "name worker-1 belongs to 2",
        "name gpu.example.com belongs to 2",
    ):
        assert any(text in line for line in texts), text
