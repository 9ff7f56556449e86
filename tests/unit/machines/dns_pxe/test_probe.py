# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probe for other DHCP servers: packets that count as an answer, and errors."""

from __future__ import annotations

import pathlib
import socket
import struct
import subprocess
import sys

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.machines.scripts import loaded

SCRIPT = pathlib.Path(__file__).parents[4] / "roles" / "dns_pxe" / "files" / "probe.py"
UDP, TCP = 17, 6


def packet(port: int, protocol: int = UDP, options: bytes = b"") -> bytes:
    """An IPv4 packet from 10.77.0.1. `options` of its header have words of four bytes."""
    begin = bytes([0x45 + len(options) // 4]) + bytes(8) + bytes([protocol]) + bytes(2)
    return (
        begin + socket.inet_aton("10.77.0.1") + bytes(4) + options + struct.pack("!HHHH", 67, port, 0, 0) + b"message"
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (packet(68), (b"message", "10.77.0.1")),
        (packet(68, options=bytes(8)), (b"message", "10.77.0.1")),
        (packet(67), (b"", "")),
        (packet(68, TCP), (b"", "")),
    ],
)
def test_only_udp_packets_to_a_client_are_answers(given: bytes, expected: tuple[bytes, str]) -> None:
    probe = loaded(SCRIPT)
    assert probe.received(given) == expected


def test_an_interface_that_cannot_be_probed_is_named() -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "10.77.0.2", "", "no-such0"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.startswith("no-such0: "), done.stderr) == (1, True, "")
