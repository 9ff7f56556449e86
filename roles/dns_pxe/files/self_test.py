# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests from a boot server everything that its machines will request: names, and files by TFTP and HTTP. Also
connects to load balancers.

Reads what is expected as JSON from standard input. Prints as JSON what differs ("wrong"), and what may differ for now
("notes").
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
import sys
import urllib.error
import urllib.request

TYPES = {"A": 1, "PTR": 12, "AAAA": 28}
PATIENCE = 3.0
BLOCK = 1428
#: The server may be busy with the machines that it boots.
TRIES = 3


class Wrong(Exception):
    pass


def encoded(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def read_name(message, at):
    labels = []
    after = None
    while message[at]:
        if message[at] & 0xC0:
            after = after or at + 2
            at = struct.unpack("!H", message[at : at + 2])[0] & 0x3FFF
        else:
            labels.append(message[at + 1 : at + 1 + message[at]].decode())
            at += 1 + message[at]
    return ".".join(labels), after or at + 1


def family(server):
    return socket.AF_INET6 if ":" in server else socket.AF_INET


def ask(server, name, kind):
    """Status, and answers of one type."""
    number = struct.unpack("!H", os.urandom(2))[0]
    query = struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 0) + encoded(name) + struct.pack("!HH", TYPES[kind], 1)
    failed = None
    for _attempt in range(TRIES):
        with socket.socket(family(server), socket.SOCK_DGRAM) as asking:
            asking.settimeout(PATIENCE)
            asking.connect((server, 53))
            try:
                asking.send(query)
                message = asking.recv(4096)
            except OSError as error:
                failed = error
                continue
        return answers(message, kind)
    raise Wrong(f"no answer ({failed})")


def answers(message, kind):
    _number, flags, questions, count = struct.unpack("!HHHH", message[:8])
    at = 12
    for _question in range(questions):
        at = read_name(message, at)[1] + 4
    found = []
    for _answer in range(count):
        at = read_name(message, at)[1]
        record, _class, _seconds, length = struct.unpack("!HHIH", message[at : at + 10])
        at += 10
        if record == TYPES[kind]:
            if kind == "PTR":
                found.append(read_name(message, at)[0])
            else:
                found.append(
                    socket.inet_ntop(socket.AF_INET if kind == "A" else socket.AF_INET6, message[at : at + length])
                )
        at += length
    return flags & 15, found


def by_tftp(server, path):
    """Checksum of a file, and its size."""
    request = b"\0\1" + path.encode() + b"\0octet\0blksize\0" + str(BLOCK).encode() + b"\0"
    with socket.socket(family(server), socket.SOCK_DGRAM) as asking:
        asking.settimeout(PATIENCE)
        asking.sendto(request, (server, 69))
        checksum, expected, last, peer, size = hashlib.sha256(), 1, request, (server, 69), 512
        tries = 0
        while True:
            try:
                message, peer = asking.recvfrom(65536)
            except OSError as error:
                tries += 1
                if tries >= TRIES:
                    raise Wrong("no answer") from error
                asking.sendto(last, peer)
                continue
            code, block = struct.unpack("!HH", message[:4])
            if code == 5:
                raise Wrong(message[4:-1].decode("utf-8", "replace"))
            if code == 6:
                size, last = BLOCK, b"\0\4\0\0"
                asking.sendto(last, peer)
                continue
            if code == 3 and block == expected & 0xFFFF:
                checksum.update(message[4:])
                expected, tries = expected + 1, 0
                last = b"\0\4" + message[2:4]
                asking.sendto(last, peer)
                if len(message) - 4 < size:
                    return checksum.hexdigest()


def by_http(url):
    checksum = hashlib.sha256()
    with opener().open(url, timeout=30) as answer:
        for piece in iter(lambda: answer.read(1 << 20), b""):
            checksum.update(piece)
    return checksum.hexdigest()


def opener():
    """Without a proxy, because machines that boot use none."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


def tried(what, fetch, expected):
    try:
        got = fetch()
    except (Wrong, OSError, ValueError, IndexError, struct.error) as error:
        return [f"{what}: {error}"]
    return [] if got == expected else [f"{what}: {told(got)} instead of {told(expected)}"]


def told(value):
    return (", ".join(value) or "no address") if isinstance(value, list) else value


def named(server, name, kind):
    status, found = ask(server, name, kind)
    if status:
        raise Wrong("the name does not exist" if status == 3 else f"the answer has status {status}")
    return sorted(found)


def refused(url):
    try:
        opener().open(url, timeout=30).close()
    except urllib.error.HTTPError as error:
        return [] if error.code in (403, 404) else [f"{url}: {error}"]
    except OSError as error:
        return [f"{url}: {error}"]
    return [f"{url} is served to a host that must not get it"]


def connected(address, port):
    """Why the connection failed, empty if it succeeded."""
    try:
        socket.create_connection((address, port), PATIENCE).close()
    except OSError as error:
        return str(error)
    return ""


def main():
    expected = json.load(sys.stdin)
    server = expected["server"]
    wrong, notes = [], []
    for name, kind, values in expected["names"]:
        if kind == "PTR":
            # A machine takes the first answer as its name.
            wrong += tried(f"{kind} {name}", lambda n=name, k=kind: ask(server, n, k)[1][:1], values[:1])
        else:
            wrong += tried(f"{kind} {name}", lambda n=name, k=kind: named(server, n, k), sorted(values))
    for path, checksum in expected["tftp"]:
        wrong += tried(f"tftp {path}", lambda p=path: by_tftp(server, p), checksum)
    for url, checksum in expected["http"]:
        wrong += tried(url, lambda u=url: by_http(u), checksum)
    for url in expected["refused"]:
        wrong += refused(url)
    for api in expected["apis"]:
        why = connected(api["address"], api["port"])
        if why:
            where = f"{api['name']} cannot be reached at {api['address']}:{api['port']}, its load balancer"
            (wrong if api["there"] else notes).append(f"{where}: {why}")
    print(json.dumps({"wrong": wrong, "notes": notes}))


if __name__ == "__main__":
    main()
