# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what a boot server, a load balancer or a hypervisor knows of an installation. Nothing is written.

Reads from standard input as JSON what is wanted, and prints as JSON:

machines   MAC and IP address of each; lines of the logs about it since the marks of machine_boot (logs.sh of that role), by its
           address, and whether there was no mark ("earlier"), so that they are those of the last day, or of the whole file
files      texts of small files by path, "" for one that is not there
sockets    what the first HAProxy that answers at one of these says of its members
tails      the ends of large files by path, "" for one that is not there
"""

import json
import os
import re
import socket
import subprocess
import sys
import time

DAY = 86400
#: Lines of a machine: the first ones, and the last ones. A download that fails is repeated for ever.
FIRST, LAST = 100, 400
TAIL = 1 << 16
PATIENCE = 10.0


def text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as source:
            return source.read()
    except FileNotFoundError:
        return ""


def tail(path):
    try:
        with open(path, "rb") as source:
            source.seek(max(0, os.fstat(source.fileno()).st_size - TAIL))
            return source.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def mark(wanted, mac, address, now):
    """Time and sizes of both logs when the machine was started, and whether they are known: they count only for the same logs."""
    lines = text(os.path.join(wanted["marks"], mac or address)).splitlines()
    if lines[1:] == [wanted["dhcp"], wanted["web"]]:
        since, dhcp, web = (int(number) for number in lines[0].split(":"))
        return {"since": since, "dhcp": dhcp, "web": web, "known": True}
    return {"since": int(now) - DAY, "dhcp": 0, "web": 0, "known": False}


def of_file(path, marks, key):
    """Lines, each with the place of its end. For a mark beyond its end, the file was rotated since, so that all of it is later."""
    try:
        with open(path, "rb") as source:
            size = os.fstat(source.fileno()).st_size
            for one in marks.values():
                one[key] = one[key] if one[key] <= size else 0
            source.seek(min(one[key] for one in marks.values()))
            for line in iter(source.readline, b""):
                yield source.tell(), line.decode("utf-8", "replace").rstrip("\n")
    except FileNotFoundError:
        return


def of_journal(unit, since):
    """Lines, each with its time."""
    command = ["journalctl", "--quiet", "--no-pager", "--output=short-unix", "--unit=" + unit, "--since=@" + str(since)]
    try:
        printed = subprocess.check_output(command, stderr=subprocess.STDOUT)
    except subprocess.CalledProcessError as error:
        raise OSError("journalctl: " + error.output.decode("utf-8", "replace").strip()) from error
    for line in printed.decode("utf-8", "replace").splitlines():
        moment = line.split(" ", 1)[0]
        yield float(moment) if moment.replace(".", "", 1).isdigit() else since, line


def logs(wanted, now):
    marks = {address: mark(wanted, mac, address, now) for mac, address in wanted["machines"]}
    owners = {word: address for mac, address in wanted["machines"] for word in (mac, address) if word}
    found = {address: [] for address in marks}

    def take(lines, key):
        for place, line in lines:
            for address in {owners[word] for word in re.split(r"[\s()]+", line.lower()) if word in owners}:
                if place > marks[address][key]:
                    found[address].append(line)

    if marks:
        if wanted["dhcp"].startswith("/"):
            take(of_file(wanted["dhcp"], marks, "dhcp"), "dhcp")
        else:
            take(of_journal(wanted["dhcp"], min(one["since"] for one in marks.values())), "since")
        take(of_file(wanted["web"], marks, "web"), "web")
    return {
        address: {
            "earlier": not marks[address]["known"],
            "lines": lines if len(lines) <= FIRST + LAST else lines[:FIRST] + lines[-LAST:],
        }
        for address, lines in found.items()
    }


def statistics(path):
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(PATIENCE)
        asking.connect(path)
        asking.sendall(b"show stat\n")
        return b"".join(iter(lambda: asking.recv(1 << 16), b"")).decode("utf-8", "replace")


def answered(sockets):
    """Raises OSError if none answers."""
    failed = []
    for path in sockets:
        try:
            return statistics(path)
        except OSError as error:
            failed.append(path + ": " + str(error.strerror or error))
    raise OSError("no HAProxy answers (" + "; ".join(failed) + ")")


def main():
    wanted, now = json.load(sys.stdin), time.time()
    found = {"now": now}
    try:
        if "machines" in wanted:
            found["logs"] = logs(wanted, now)
        if "files" in wanted:
            found["files"] = {path: text(path) for path in wanted["files"]}
        if "sockets" in wanted:
            found["statistics"] = answered(wanted["sockets"])
        if "tails" in wanted:
            found["tails"] = {path: tail(path) for path in wanted["tails"]}
    except OSError as error:
        sys.exit(str(error))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
