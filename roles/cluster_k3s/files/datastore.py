# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets K3s move the data of a server from SQLite to etcd, on its machine.

datastore.py begin UID   stops K3s, with its pods left running, and copies its data, for a start with cluster-init, which moves them. UID, of the cluster,
                         is kept until `end`. Prints why it does not begin, and ends with status 1, if there is something in the way
datastore.py end UID     ends it if all data were moved, and the cluster is the same. Otherwise prints why not, and ends with status 1
datastore.py back        after a start that has failed: removes what etcd has of data that are still in SQLite, and prints that it did

K3s moves data only at the start that makes its member of etcd, and renames the file of SQLite when it has moved all of them (newCluster and migrateFromSQLite
in pkg/etcd/etcd.go): another start would serve what was moved until then. So systemd must not repeat that start. Needs Python 3.6 or newer, and nothing else.
"""

import contextlib
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys

try:
    import sqlite3
except ImportError:
    # Debian has a package of Python without it.
    sqlite3 = None

#: Tests have another one.
ROOT = ""
FOLDER = "/var/lib/hwaccel-gpu/cluster_k3s"
NOTE, COPY = FOLDER + "/migration.json", FOLDER + "/datastore"
DATABASE, ETCD = "/var/lib/rancher/k3s/server/db/state.db", "/var/lib/rancher/k3s/server/db/etcd"
#: The name to which K3s renames what it has moved.
MOVED = DATABASE + ".migrated"
#: Gone after a reboot.
ONCE = "/run/systemd/system/k3s.service.d/90-hwaccel-gpu-datastore.conf"
#: For the copy, for etcd, and for its log.
TIMES = 3
#: Seconds for systemctl.
PATIENCE = 180


class InTheWay(Exception):
    """Why nothing was begun or ended."""


def systemctl(*arguments):
    subprocess.check_call(["systemctl", *arguments], timeout=PATIENCE)


def parts():
    """Files of SQLite: the database, and what it has not written to it yet."""
    return [path for path in sorted(glob.glob(ROOT + DATABASE + "*")) if ".migrated" not in os.path.basename(path)]


def size(path):
    files = [os.path.join(folder, name) for folder, _folders, names in os.walk(path) for name in names]
    return sum(map(os.path.getsize, files or [path]))


def checksum(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
        return digest.hexdigest()


def checksums(folder):
    """By the path in the folder, of the files of SQLite."""
    found = {}
    for path in glob.glob(folder + "/" + os.path.basename(DATABASE) + "*"):
        below = [os.path.join(place, name) for place, _folders, names in os.walk(path) for name in names] or [path]
        found.update({os.path.relpath(one, folder): checksum(one) for one in below})
    return {name: value for name, value in found.items() if ".migrated" not in name}


def verify(path):
    """SQLite says whether a database is whole, with what was not written to it yet."""
    with open(path, "rb") as file:
        if sqlite3 is None or not file.read(16).startswith(b"SQLite format 3"):
            return
    try:
        with contextlib.closing(sqlite3.connect("file:" + path + "?mode=ro", uri=True)) as database:
            said = [row[0] for row in database.execute("PRAGMA integrity_check(3)")]
    except sqlite3.Error as error:
        said = [str(error)]
    if said != ["ok"]:
        raise InTheWay("the database of K3s is damaged: {}".format("; ".join(said)))


def copy():
    """A whole copy takes the place of an older one."""
    new = ROOT + COPY + ".new"
    shutil.rmtree(new, ignore_errors=True)
    os.makedirs(new, 0o700)
    for path in parts():
        target = os.path.join(new, os.path.basename(path))
        if os.path.isdir(path):
            shutil.copytree(path, target)
        else:
            shutil.copyfile(path, target)
            os.chmod(target, 0o600)
    if checksums(new) != checksums(os.path.dirname(ROOT + DATABASE)):
        raise InTheWay("the copy differs from the database of K3s")
    os.sync()
    verify(os.path.join(new, os.path.basename(DATABASE)))
    shutil.rmtree(ROOT + COPY, ignore_errors=True)
    os.rename(new, ROOT + COPY)


def noted():
    try:
        with open(ROOT + NOTE, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def note(uid):
    descriptor = os.open(ROOT + NOTE + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"uid": uid}, file)
    os.rename(ROOT + NOTE + ".new", ROOT + NOTE)


def forget():
    """Lets systemd start K3s again whenever it ends."""
    if os.path.exists(ROOT + ONCE):
        os.unlink(ROOT + ONCE)
        systemctl("daemon-reload")


def begin(uid):
    begun = noted()
    if not os.path.exists(ROOT + DATABASE):
        if begun and os.path.exists(ROOT + MOVED):
            # Only the end is missing.
            return
        raise InTheWay("the server has no SQLite")
    if os.path.exists(ROOT + ETCD + "/member") and not begun:
        raise InTheWay("etcd has data already, and so has SQLite")
    needed, free = TIMES * sum(map(size, parts())), shutil.disk_usage(ROOT + FOLDER).free
    if free < needed:
        raise InTheWay(f"{free >> 20} MiB are free in {FOLDER}, and {-(-needed >> 20)} are needed")
    systemctl("stop", "k3s")
    if begun is None:
        try:
            copy()
            note(uid)
        except (InTheWay, OSError) as error:
            shutil.rmtree(ROOT + COPY + ".new", ignore_errors=True)
            systemctl("start", "--no-block", "k3s")
            raise InTheWay(str(error)) from None
    else:
        # It may lack what was not moved yet.
        shutil.rmtree(ROOT + ETCD, ignore_errors=True)
    os.makedirs(os.path.dirname(ROOT + ONCE), exist_ok=True)
    with open(ROOT + ONCE, "w", encoding="utf-8") as file:
        file.write("[Service]\nRestart=no\n")
    systemctl("daemon-reload")
    print("stop k3s")


def end(uid):
    begun = noted() or {}
    if os.path.exists(ROOT + DATABASE) or not os.path.exists(ROOT + MOVED):
        raise InTheWay("K3s has not moved all of its data")
    if begun.get("uid") != uid:
        raise InTheWay("the cluster is {}, and was {} before".format(uid or "unknown", begun.get("uid") or "unknown"))
    forget()
    os.unlink(ROOT + NOTE)
    print("remove " + NOTE)


def back():
    if noted() is None or not os.path.exists(ROOT + DATABASE):
        # etcd has all data.
        forget()
        return
    systemctl("stop", "k3s")
    shutil.rmtree(ROOT + ETCD, ignore_errors=True)
    forget()
    os.unlink(ROOT + NOTE)
    print("remove " + ETCD)


def main(what, *arguments):
    try:
        {"begin": begin, "end": end, "back": back}[what](*arguments)
    except InTheWay as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
