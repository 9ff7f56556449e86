# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys with which the API server of this machine encrypts Secrets. Each may be repeated, and what it changes is printed.

encryption.py look           prints what was found, in JSON: order, names of keys in the order in which they are tried, and identity, which is none; digests
                             of keys by their names; replaces, the key that is being replaced, and replaced, one that was; other, whether others have written
                             the file; used, the file that the API server has as its argument; loaded, whether it was restarted since the file was written;
                             rotating, whether certificate authorities are being replaced; serves
encryption.py make first     makes a key with which Secrets are encrypted
encryption.py make later     makes one with which they are only decrypted for now: API servers that have no key yet must be able to read what is written
encryption.py add NAME       makes the key that is to replace this one, and with which Secrets are only decrypted for now
encryption.py promote NAME   lets them be encrypted with it
encryption.py drop NAME      removes the key that was replaced

The steps are those of https://kubernetes.io/docs/tasks/administer-cluster/encrypt-data/#rotating-a-decryption-key. Each reads and writes one file, which has
all that a run has to know to continue one that was killed.
Needs Python 3.6 or newer, and nothing else.
"""

import base64
import hashlib
import json
import os
import re
import sys
import time

#: For tests.
ROOT = ""
KUBERNETES = "/etc/kubernetes"
PATH = KUBERNETES + "/pki/secrets-encryption.yaml"
MANIFEST = KUBERNETES + "/manifests/kube-apiserver.yaml"
ROTATION = "/var/lib/hwaccel-gpu/cluster_kubeadm/rotation"
IDENTITY = "identity"
#: Bytes of a key of secretbox.
LENGTH = 32
HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources:\n  - secrets\n  providers:\n"
ENTRY = re.compile(r"^ +- name: (\S+)\n +secret: (\S+)$|^  - (identity): \{\}$", re.M)
MARK = re.compile(r"^# (replaces|replaced) (\S+)\n")


def read(path):
    try:
        with open(ROOT + path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def parsed(text):
    """Entries, each a name and its key, which identity has not; and the mark, a verb and a name, which are empty without one."""
    entries = [(one.group(1) or IDENTITY, one.group(2)) for one in ENTRY.finditer(text)]
    mark = MARK.match(text)
    return entries, mark.groups() if mark else ("", "")


def made(entries, mark):
    text, within = (f"# {' '.join(mark)}\n" if mark[0] else "") + HEAD, False
    for name, secret in entries:
        if secret is None:
            text += "  - identity: {}\n"
        else:
            text += (
                "" if within else "  - secretbox:\n      keys:\n"
            ) + f"      - name: {name}\n        secret: {secret}\n"
        within = secret is not None
    return text


def write(entries, mark):
    """Once Secrets are encrypted with a key, its loss would be theirs. So it is on the disk before an API server reads it."""
    text = made(entries, mark)
    if read(PATH) == text:
        return
    folder = ROOT + os.path.dirname(PATH)
    os.makedirs(folder, exist_ok=True)
    hidden = ROOT + PATH + ".hwaccel"
    if os.path.exists(hidden):
        os.remove(hidden)
    with open(os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(hidden, ROOT + PATH)
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
    print(f"write {PATH}")


def generated():
    """Names are in the datastore, in front of each Secret."""
    name = time.strftime("key-%Y%m%dT%H%M%SZ", time.gmtime())
    return name, base64.b64encode(os.urandom(LENGTH)).decode("ascii")


def changed(path):
    try:
        return os.stat(ROOT + path).st_ctime_ns
    except OSError:
        return 0


def look():
    text = read(PATH)
    entries, mark = parsed(text)
    used = re.search(r"^ +- --encryption-provider-config=(\S+)$", read(MANIFEST), re.M)
    found = {
        "order": [name for name, _secret in entries],
        "digests": {name: hashlib.sha256(secret.encode("ascii")).hexdigest() for name, secret in entries if secret},
        mark[0] or "replaced": mark[1],
        "other": bool(text) and text != made(entries, mark),
        "used": used.group(1) if used else "",
        "loaded": changed(MANIFEST) >= changed(PATH),
        "rotating": os.path.exists(ROOT + ROTATION),
        "serves": os.path.exists(ROOT + MANIFEST),
    }
    print(json.dumps({"replaces": "", "replaced": "", **found}))


def make(place):
    """One that is there stays: Secrets may be encrypted with it, as on a server whose files were brought back."""
    if read(PATH):
        return
    key, identity = generated(), (IDENTITY, None)
    if place == "first":
        write([key, identity], ("", ""))
    else:
        write([identity, key], ("replaces", IDENTITY))


def successor(entries, old):
    return [one for one in entries if one[0] not in (old, IDENTITY)]


def add(old):
    entries, _mark = parsed(read(PATH))
    if not successor(entries, old):
        write([entries[0], generated(), *entries[1:]], ("replaces", old))


def promote(old):
    entries, _mark = parsed(read(PATH))
    new = successor(entries, old)
    write(new + [one for one in entries if one not in new], ("replaces", old))


def drop(old):
    """Without a key they are read as they are stored, which snapshots of before need."""
    entries, _mark = parsed(read(PATH))
    write([one for one in entries if one[0] == IDENTITY or one[0] != old], ("replaced", old))


def main(what, *arguments):
    {one.__name__: one for one in (look, make, add, promote, drop)}[what](*arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
