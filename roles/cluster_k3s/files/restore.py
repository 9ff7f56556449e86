# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restores etcd of this server from a snapshot by K3s, on the machine. Nothing is deleted.

restore.py look            prints in JSON what the machine holds of its cluster, with tokens, and the snapshots that it has
restore.py verify PATH     prints in JSON what a snapshot is, if it is complete: sha256, the digest that etcd has put at its end; file, that of the file; keys,
                           the names of bootstrap data in it
restore.py newest PREFIX   the same of the newest snapshot on this server with such a name
restore.py keep FOLDER     moves the datastore of this server into this folder
restore.py reset PATH      lets K3s make this server the only member of its cluster, with the data of the snapshot. What it logs is printed

Bootstrap data are named by the token that they are encrypted with (storageKey in pkg/cluster/encrypt.go of K3s), and etcd has its keys in clear. Pages that
etcd uses no more may have names of before.
Needs Python 3.6 or newer, and nothing else.
"""

import contextlib
import glob
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import zipfile

#: Tests have another one.
ROOT = ""
PROGRAM = "/usr/local/bin/k3s"
SETTINGS, FOLDER = "/etc/rancher/k3s", "/var/lib/hwaccel-gpu/cluster_k3s"
DATA = "/var/lib/rancher/k3s"
SERVER = DATA + "/server"
SNAPSHOTS = (SERVER + "/db/snapshots/*", DATA + "-before-*/db/snapshots/*")
#: bbolt marks its first two pages with it, at this offset of a page (https://github.com/etcd-io/bbolt/blob/main/internal/common/types.go).
MAGIC, PLACE = b"\xed\xda\x0c\xed", 16
KEY = re.compile(rb"/bootstrap/([0-9a-f]{12})")
PIECE = 1 << 20
PORT = 6443
#: Seconds between two looks, and for K3s, which copies the data.
PATIENCE, LONG = 2, 1800


def read(path):
    try:
        with open(ROOT + path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def look():
    paths = sorted(path for pattern in SNAPSHOTS for path in glob.glob(ROOT + pattern) if os.path.isfile(path))
    etcd = os.path.exists(ROOT + SERVER + "/db/etcd")
    found = {
        "authority": read(SERVER + "/tls/server-ca.crt"),
        "sqlite": os.path.exists(ROOT + SERVER + "/db/state.db") and not etcd,
        "token": read(SERVER + "/token").strip() or read(SETTINGS + "/token").strip(),
        "agent_token": read(SETTINGS + "/agent-token").strip(),
        "snapshots": {path[len(ROOT) :]: os.path.getsize(path) for path in paths},
        "record": json.loads(read(FOLDER + "/restore.json") or "{}"),
    }
    print(json.dumps(found))
    return 0


@contextlib.contextmanager
def opened(path):
    """A snapshot and its size, also if it is compressed."""
    if not zipfile.is_zipfile(path):
        with open(path, "rb") as file:
            yield file, os.path.getsize(path)
        return
    with zipfile.ZipFile(path) as archive:
        names = archive.infolist()
        if not names:
            raise ValueError("the archive has no snapshot")
        with archive.open(names[0]) as file:
            yield file, names[0].file_size


def pieces(file, size):
    while size > 0:
        piece = file.read(min(PIECE, size))
        if not piece:
            raise ValueError("it is not complete")
        size -= len(piece)
        yield piece


def examined(path):
    """The digest at the end of a snapshot, and names of bootstrap data. Raises ValueError if it is none, or not complete."""
    digest, keys, before = hashlib.sha256(), set(), b""
    with opened(path) as (file, size):
        for piece in pieces(file, size - digest.digest_size):
            if not before and piece[PLACE : PLACE + len(MAGIC)] != MAGIC:
                raise ValueError("it is no database of etcd")
            digest.update(piece)
            # A name may be at the end of one piece and at the beginning of the next.
            keys.update(KEY.findall(before[-32:] + piece))
            before = piece
        if not before or file.read() != digest.digest():
            raise ValueError("its checksum is wrong")
    return digest.hexdigest(), sorted(name.decode("ascii") for name in keys)


def whole(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for piece in pieces(file, os.path.getsize(path)):
            digest.update(piece)
    return digest.hexdigest()


def verify(path):
    try:
        digest, keys = examined(path)
        found = {"sha256": digest, "file": whole(path), "keys": keys}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(found))
    return 0


def newest(prefix):
    paths = glob.glob(f"{ROOT}{SERVER}/db/snapshots/{prefix}*")
    if not paths:
        print(f"there is no snapshot {prefix}*", file=sys.stderr)
        return 1
    return verify(max(paths, key=os.path.getmtime))


def free(path):
    """A path that does not exist yet."""
    names = [path] + [f"{path}-{number}" for number in range(2, 1000)]
    return next(one for one in names if not os.path.lexists(one))


def keep(folder):
    source = ROOT + SERVER + "/db"
    if not os.path.isdir(source):
        return 0
    os.makedirs(ROOT + folder, mode=0o700, exist_ok=True)
    target = free(ROOT + folder + "/db")
    # Also to another file system, where it is there as a whole or not at all.
    part = target + ".part"
    if os.path.isdir(part):
        shutil.rmtree(part)
    shutil.move(source, part)
    os.rename(part, target)
    print(f"move {source} to {target}")
    return 0


def serves():
    """Whether a K3s has its port on this machine."""
    try:
        socket.create_connection(("127.0.0.1", PORT), PATIENCE).close()
    except OSError:
        return False
    return True


def reset(path):
    until = time.monotonic() + LONG
    # A reset whose caller was killed goes on, and its port is what K3s needs first.
    while serves() and time.monotonic() < until:
        time.sleep(PATIENCE)
    # A configuration that has S3 would look for the snapshot there.
    argv = [PROGRAM, "server", "--cluster-reset", "--cluster-reset-restore-path=" + path, "--etcd-s3=false"]
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LONG, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"K3s has not restored it: {error}")
        return 1
    print(done.stdout.decode("utf-8", "replace")[-20000:])
    return done.returncode


def main(what, *arguments):
    does = {one.__name__: one for one in (look, verify, newest, keep, reset)}
    return does[what](*arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
