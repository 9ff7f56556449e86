# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection between two nodes from NCCL's log, in the format of NVIDIA/nccl 5067397 (src/transport/net.cc, src/init.cc)."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import bandwidth
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import PoolInterconnect

IB = "a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n"
SOCKET = "a:1:2 [0] NCCL INFO Channel 01/0 : 8[0] -> 0[0] [receive] via NET/Socket/1\n"
WHOLE = "a:1:2 [0] NCCL INFO comm 0x5581 rank 0 nRanks 8 nNodes 2 localRanks 4 localRank 0 MNNVL {}\n"


@pytest.mark.parametrize(
    ("log", "names"),
    [
        ("", []),
        (IB + IB + WHOLE.format(0), ["IB"]),
        (IB + SOCKET, ["IB", "Socket"]),
        (WHOLE.format(1) + "a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 4[0] via P2P/CUMEM\n", ["MNNVL"]),
        ("a:1:2 [0] NCCL INFO MNNVL busId 0x1 fabric UUID 1.2 cliqueId 0x1 state 3 healthMask 0x0\n", []),
    ],
)
def test_used_networks_are_read_from_the_log(log: str, names: list[str]) -> None:
    assert bandwidth.networks(log) == names


@pytest.mark.parametrize(
    ("names", "transport", "expected"),
    [
        (["MNNVL"], "MNNVL", []),
        (["Socket"], "MNNVL", ["NCCL used NET/Socket, MNNVL is expected"]),
        (["MNNVL"], "IB", ["NCCL used MNNVL, NET/IB is expected"]),
        ([], "MNNVL", ["NCCL names no network between the nodes in its log, MNNVL is expected"]),
        (["IBext_v11"], "IB", []),
    ],
)
def test_another_network_than_declared_is_reported_with_its_nccl_name(
    names: list[str], transport: str, expected: list[str]
) -> None:
    assert bandwidth.deviations(names, 50.0, PoolInterconnect(transport, 40.0)) == expected
