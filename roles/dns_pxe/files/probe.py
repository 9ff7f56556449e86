# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probes for DHCP servers: probe.py OWN_ADDRESSES MACS INTERFACE..., lists with commas. Prints a JSON list of offers,
or why the probe failed.

It sends DHCPDISCOVER only. No address is requested, and servers release an offered one after their usual timeout.
"""

from __future__ import annotations

import json
import os
import random
import select
import socket
import struct
import sys
import time

MAGIC = b"\x63\x82\x53\x63"
# Servers ping an address for up to three seconds before they offer it.
SECONDS = 4.0
BROADCAST = 0x8000
MESSAGE_TYPE, SERVER, DISCOVER, OFFER, END = 53, 54, 1, 2, 255
SERVER_PORT, CLIENT_PORT = 67, 68
IPV4, UDP = 0x0800, 17


def discover(mac, transaction):
    header = struct.pack("!BBBBIHH16x", 1, 1, 6, 0, transaction, 0, BROADCAST)
    return header + mac + bytes(10 + 64 + 128) + MAGIC + bytes([MESSAGE_TYPE, 1, DISCOVER, END])


def received(packet):
    """Payload of an IPv4 packet for a DHCP client, and its sender. The payload is empty if the packet is for another
    program."""
    begin = (packet[0] & 15) * 4
    if packet[9] != UDP or packet[begin + 2 : begin + 4] != struct.pack("!H", CLIENT_PORT):
        return b"", ""
    return packet[begin + 8 :], socket.inet_ntoa(packet[12:16])


def options(message):
    found, rest = {}, message[240:]
    while len(rest) > 1 and rest[0] != END:
        if rest[0] == 0:
            rest = rest[1:]
            continue
        length = rest[1]
        found[rest[0]] = rest[2 : 2 + length]
        rest = rest[2 + length :]
    return found


def probe(interface, macs, own):
    """The first offer of another server on one interface."""
    offers, transactions = {}, set()
    # A packet socket receives packets before a firewall of this server drops them.
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM) as hearing,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking,
    ):
        hearing.bind((interface, IPV4))
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\0")
        asking.bind(("", CLIENT_PORT))
        for mac in macs:
            transaction = random.getrandbits(32)
            transactions.add(transaction)
            asking.sendto(discover(mac, transaction), ("255.255.255.255", SERVER_PORT))
        end = time.monotonic() + SECONDS
        while (
            not offers
            and time.monotonic() < end
            and select.select([hearing], [], [], max(0.0, end - time.monotonic()))[0]
        ):
            message, sender = received(hearing.recv(2048))
            if (
                len(message) < 244
                or struct.unpack("!I", message[4:8])[0] not in transactions
                or message[236:240] != MAGIC
            ):
                continue
            told = options(message)
            server = socket.inet_ntoa(told[SERVER]) if len(told.get(SERVER, b"")) == 4 else sender
            if told.get(MESSAGE_TYPE) == bytes([OFFER]) and server not in own:
                offers[server] = {"interface": interface, "server": server, "offered": socket.inet_ntoa(message[16:20])}
    return list(offers.values())


def main():
    own = sys.argv[1].split(",")
    # A MAC address that no machine has, and one of a machine that other servers may know.
    macs = [b"\x02" + os.urandom(5)] + [bytes.fromhex(mac.replace(":", "")) for mac in sys.argv[2].split(",") if mac]
    offers = []
    for interface in sys.argv[3:]:
        try:
            offers += probe(interface, macs, own)
        except OSError as error:
            print(f"{interface}: {error}")
            return 1
    print(json.dumps(offers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
