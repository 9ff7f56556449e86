# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All-reduces between the GPUs of two nodes: network and bandwidth from their logs. Pure."""

from __future__ import annotations

import collections.abc as c
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import PoolInterconnect

#: The text that the first pod prints before the address on which it listens (roles/gpu_validation/files/bandwidth.py).
LISTENING = "listening at "
#: How NCCL logs each link to another node (NVIDIA/nccl 5067397, src/transport/net.cc): "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA". The name is
#: that of one of its own networks (net_ib/common.cc: IB, net_socket.cc: Socket) or of a plugin: "IBext_v11", "AWS Libfabric".
_LINK = re.compile(r" via NET/([^/\n]+)/\d")
#: How NCCL logs that the GPUs of all nodes are connected by NVLink and need no network (src/init.cc).
_NVLINK = re.compile(r" nNodes \d+ localRanks \d+ localRank \d+ MNNVL 1\b")
NVLINK = "MNNVL"


def networks(log: str) -> list[str]:
    """Names of the networks over which NCCL sent or received, and NVLINK if that connects the nodes."""
    return sorted({*_LINK.findall(log), *([NVLINK] if _NVLINK.search(log) else [])})


def measured(values: c.Sequence[t.Any]) -> float | None:
    """GB/s; None if no object in the log has it. values: these objects."""
    found = [
        value["bus_bandwidth"]
        for value in values
        if isinstance(value, dict) and isinstance(value.get("bus_bandwidth"), (int, float))
    ]
    return float(found[-1]) if found else None


def deviations(names: c.Sequence[str], bandwidth: float | None, expected: PoolInterconnect) -> list[str]:
    """Differences from the pool's declaration. names: networks that were used."""
    found = []
    if bandwidth is None:
        found.append("its log has no line of JSON with bus_bandwidth")
    elif bandwidth < expected.min_bandwidth:
        found.append(f"{bandwidth:.3g} GB/s bus bandwidth, {expected.min_bandwidth:g} GB/s are expected")
    if other := [name for name in names if not name.startswith(expected.transport)]:
        found.append(f"NCCL used {', '.join(map(_transport, other))}, {_transport(expected.transport)} is expected")
    if not names:
        found.append(
            f"NCCL names no network between the nodes in its log, {_transport(expected.transport)} is expected"
        )
    return found


def _transport(name: str) -> str:
    """The transport's name as in NCCL's log."""
    return name if name == NVLINK else f"NET/{name}"
