# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns the boot entries of a machine to its disk as soon as the machine has fetched what it is installed with: once.py STATE LOG.

A machine whose firmware tries the network first would otherwise be installed at each restart until it is a node.

STATE/wishes.json   machines that are to be installed, written by the role; `at` identifies a wish
STATE/written.json  how much of LOG was read, and wishes that are used up, by MAC address; written by this program only
STATE/again/MAC     a request to install the machine once more; removed when its entries are turned back
LOG                 of nginx, a line for each complete download of such a file: address and path
"""

import json
import os
import re
import sys
import time

SECONDS = 0.5
#: The line of an entry that chooses between its two parts.
WORD = re.compile(r"^(DEFAULT |set boots[= ])(?:install|disk)$", re.MULTILINE)
FOLDERS = (("pxelinux.cfg", ""), ("grub", ""), ("ipxe", ".ipxe"))
#: A log that is rotated or replaced is read from its beginning.
UNREAD = [0, 0]


def text(path):
    """Empty if the file does not exist."""
    try:
        with open(path, encoding="utf-8") as source:
            return source.read()
    except FileNotFoundError:
        return ""


def replace(path, content):
    """A reader gets the old or the new text, also after a power failure. A new file in the folder gets the folder's label of SELinux."""
    folder, name = os.path.split(path)
    new = os.path.join(folder, "." + name + ".new")
    with open(new, "w", encoding="utf-8") as target:
        os.fchmod(target.fileno(), 0o644)
        target.write(content)
        target.flush()
        os.fsync(target.fileno())
    os.replace(new, path)


def added(log, place):
    """Complete lines that follow a place, which is inode and offset, and the place after them."""
    try:
        with open(log, "rb") as source:
            status = os.fstat(source.fileno())
            offset = place[1] if place[0] == status.st_ino and place[1] <= status.st_size else 0
            source.seek(offset)
            lines, end, _rest = source.read().rpartition(b"\n")
            return lines.decode("utf-8", "replace").splitlines(), [status.st_ino, offset + len(lines) + len(end)]
    except FileNotFoundError:
        return [], UNREAD


def requests(state):
    return [name for name in os.listdir(os.path.join(state, "again")) if not name.startswith(".")]


def fetched(wishes, lines):
    """Wishes whose machine has fetched one of its files, by MAC address."""
    seen = {tuple(line.split(" ", 1)) for line in lines}
    return {one["mac"]: one["at"] for one in wishes if any((one["address"], path) in seen for path in one["paths"])}


def turn(state, mac, word):
    """Only an entry that has both parts has the line."""
    for folder, end in FOLDERS:
        path = os.path.join(state, "files", folder, "01-" + mac.replace(":", "-") + end)
        before = text(path)
        after = WORD.sub(r"\g<1>" + word, before, count=1)
        if after != before:
            replace(path, after)
            print(path + ": " + word, flush=True)


def follow(state, log):
    """One look at everything. What is used up is recorded before entries are turned, so that a start after an interruption turns them."""
    again = requests(state)
    wishes = json.loads(text(os.path.join(state, "wishes.json")) or "{}").get("wishes", [])
    record = os.path.join(state, "written.json")
    kept = json.loads(text(record) or "{}")
    lines, place = added(log, kept.get("log", UNREAD))
    current = {one["mac"]: one["at"] for one in wishes}
    written = {mac: at for mac, at in kept.get("written", {}).items() if current.get(mac) == at}
    written.update(fetched(wishes, lines))
    written = {mac: at for mac, at in written.items() if mac not in again}
    if {"log": place, "written": written} != kept:
        replace(record, json.dumps({"log": place, "written": written}, indent=2) + "\n")
    for mac in sorted(current):
        turn(state, mac, "disk" if mac in written else "install")
    for mac in again:
        os.remove(os.path.join(state, "again", mac))


def signature(state, log):
    """Differs after each change of what is followed. Files are replaced, so the folders of entries tell of each."""
    folders = [os.path.join(state, "files", folder) for folder, _end in FOLDERS]
    found = []
    for path in [log, os.path.join(state, "wishes.json"), os.path.join(state, "again"), *folders]:
        try:
            status = os.stat(path)
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
        except FileNotFoundError:
            found.append(None)
    return found


def main(state, log):
    os.makedirs(os.path.join(state, "again"), 0o700, exist_ok=True)
    before, settled = None, False
    while True:
        now = signature(state, log)
        if now != before or not settled:
            follow(state, log)
        # Times of files are coarser than changes, so what has changed is looked at once more.
        before, settled = now, now == before
        time.sleep(SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
