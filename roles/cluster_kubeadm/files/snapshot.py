# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes a snapshot of this machine's etcd, on the machine, and verifies it by reading it again.

snapshot.py take FOLDER KEEP   prints the path of the snapshot and its size in bytes. FOLDER: where snapshots are; KEEP: how many of them are kept
snapshot.py verify PATH        prints the SHA-256 of a snapshot, if it is complete, and the names of keys with which Secrets are encrypted in it

etcd sends its database and then the SHA-256 of it, so that a snapshot that is not complete is detected, as `etcdutl snapshot restore` does
(https://github.com/etcd-io/etcd/blob/main/etcdutl/snapshot/v3_snapshot.go). It is asked through its JSON gateway, which sends a response of several parts as a
line each (https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway).
Needs Python 3.6 or newer, and nothing else.
"""

import base64
import binascii
import hashlib
import json
import os
import re
import ssl
import sys
import time
import urllib.request

ETCD = "/etc/kubernetes/pki/etcd"
URL = "https://127.0.0.1:2379/v3/maintenance/snapshot"
#: Seconds without any data.
PATIENCE = 60
SUFFIX, PART = ".db", ".part"
#: bbolt marks its first two pages with it, at this offset of a page (https://github.com/etcd-io/bbolt/blob/main/internal/common/types.go).
MAGIC, PLACE = b"\xed\xda\x0c\xed", 16
#: In front of a value (secretbox in apiserver/pkg/server/options/encryptionconfig of Kubernetes), and how long it is at most.
KEY, OVERLAP = re.compile(rb"k8s:enc:secretbox:v1:([\w.-]{1,64}):"), 96


def parts():
    tls = ssl.create_default_context(cafile=ETCD + "/ca.crt")
    tls.load_cert_chain(ETCD + "/healthcheck-client.crt", ETCD + "/healthcheck-client.key")
    request = urllib.request.Request(URL, data=b"{}", method="POST")
    with urllib.request.urlopen(request, timeout=PATIENCE, context=tls) as response:
        for line in response:
            part = json.loads(line.decode("utf-8"))
            if "error" in part:
                raise ValueError(part["error"].get("message", "unknown error"))
            yield base64.b64decode(part["result"].get("blob", ""))


def fault(path):
    """Why a file is no complete snapshot, empty if it is."""
    size = os.path.getsize(path)
    digest, left = hashlib.sha256(), size - digest_size()
    with open(path, "rb") as file:
        head = file.read(PLACE + len(MAGIC))
        file.seek(0)
        while left > 0:
            piece = file.read(min(1 << 20, left))
            digest.update(piece)
            left -= len(piece)
        if head[PLACE:] != MAGIC:
            return "it is no database of etcd"
        return "" if file.read() == digest.digest() else "its checksum is wrong"


def keys(path):
    """Names of keys of Secrets. Some may be of Secrets that were written again since, as etcd does not erase what it deletes."""
    found, before = set(), b""
    with open(path, "rb") as file:
        while True:
            piece = file.read(1 << 20)
            # A name may be at the end of one piece and at the beginning of the next.
            found.update(KEY.findall(before[-OVERLAP:] + piece))
            before = piece
            if not piece:
                return sorted(name.decode("ascii") for name in found)


def digest_size():
    return hashlib.sha256().digest_size


def take(path):
    """Writes the snapshot, if it is complete. Returns why it is not, empty if it is."""
    part = path + PART
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for piece in parts():
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        why = fault(part)
        if not why:
            os.rename(part, path)
        return why
    finally:
        if os.path.exists(part):
            os.remove(part)


def verify(path):
    try:
        why = fault(path)
    except (OSError, ValueError) as error:
        why = str(error)
    if why:
        print(why, file=sys.stderr)
        return 1
    with open(path, "rb") as file:
        file.seek(-digest_size(), os.SEEK_END)
        digest = binascii.hexlify(file.read()).decode("ascii")
    print(*[digest, *keys(path)])
    return 0


def keep(folder, number):
    os.makedirs(folder, mode=0o700, exist_ok=True)
    for name in os.listdir(folder):
        # Of a run that was killed.
        if name.endswith(PART):
            os.remove(os.path.join(folder, name))
    path = os.path.join(folder, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) + SUFFIX)
    try:
        why = take(path)
    except (OSError, ValueError) as error:
        why = str(error)
    if why:
        print(
            f"no snapshot of etcd could be taken: {why}. Next: verify that etcd runs on this machine and that {folder} has space, and run again",
            file=sys.stderr,
        )
        return 1
    kept = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX))
    for name in kept[: -int(number)]:
        os.remove(os.path.join(folder, name))
    print(f"{path} {os.path.getsize(path)}")
    return 0


def main(what, *arguments):
    return {"take": keep, "verify": verify}[what](*arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
