# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replaces the certificate authorities of this machine's cluster, on the machine. Each step may be repeated, and what it changes is printed.

rotate_ca.py look          prints what was found, in JSON: server and agent, certificates that servers and nodes trust, in PEM; lacking, what a server lacks
                           of its authorities, also the key of a root; begun, fingerprint of the one that is replaced; new, its successor in PEM; saved,
                           whether K3s has it; prepared, whether the machine is, to take it; replaced, by an earlier rotation
rotate_ca.py begin OLD     records that the authority with this fingerprint is being replaced
rotate_ca.py keep          keeps the new authorities, which are complete now
rotate_ca.py save          lets K3s save them in its datastore, from which servers take them at their next start
rotate_ca.py prepare HASH  lets K3s take them at its next start: with their hash in the token that it reads, and another certificate of its port
rotate_ca.py end           removes what is kept of the rotation, but which authority was replaced

Source: https://docs.k3s.io/cli/certificate#rotating-self-signed-ca-certificates.
Needs Python 3.6 or newer, and nothing else.
"""

import json
import os
import re
import shutil
import subprocess
import sys

#: Tests have another one.
ROOT = ""
PROGRAM = "/usr/local/bin/k3s"
DATA = "/var/lib/rancher/k3s"
TLS = DATA + "/server/tls"
ENTRY = "/etc/rancher/k3s/config.yaml.d/55-hwaccel-gpu-cluster.yaml"
FOLDER = "/var/lib/hwaccel-gpu/cluster_k3s"
ROTATION, REPLACED = FOLDER + "/rotation", FOLDER + "/replaced-authority"
BEGUN, MADE, NEW, SAVED, PREPARED = (ROTATION + "/" + name for name in ("begun", "made", "new", "saved", "prepared"))
#: K3s does not look at the authority of this certificate, and makes another one if there is this file (newListener in pkg/cluster/https.go).
REGENERATE = TLS + "/dynamic-cert-regenerate"
KINDS = ("client", "server", "request-header", "etcd/peer", "etcd/server")
#: Seconds for K3s to answer.
PATIENCE = 150
TOKEN = re.compile(r"\AK10[0-9a-f]{64}(?=::)")


def read(path):
    try:
        with open(ROOT + path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def write(path, text):
    """Replaces a file at once, for root only, unless it has the text already."""
    if read(path) == text:
        return
    hidden = ROOT + path + ".hwaccel"
    if os.path.exists(hidden):
        os.remove(hidden)
    with open(os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(hidden, ROOT + path)
    print("write " + path)


def exists(path):
    return os.path.exists(ROOT + path)


def token_file():
    """The one that K3s is set to read, if there is one."""
    found = re.search(r"^token-file: *[\"']?([^\s\"']+)", read(ENTRY), re.M)
    return found.group(1) if found else ""


def rooted(kind):
    """Whether the file of the key has that of the root, too."""
    certificates = read(TLS + "/" + kind + "-ca.crt").count("-----BEGIN CERTIFICATE-----")
    keys = len(re.findall(r"-----BEGIN [A-Z ]*PRIVATE KEY-----", read(TLS + "/" + kind + "-ca.key")))
    return 0 < min(2, certificates) <= keys


def look():
    lacking = [kind + "-ca.key" for kind in KINDS if not rooted(kind)]
    if not exists(TLS + "/service.key"):
        lacking.append("service.key")
    found = {
        "server": read(TLS + "/server-ca.crt"),
        "agent": read(DATA + "/agent/server-ca.crt"),
        "lacking": lacking if exists(TLS) else [],
        "begun": read(BEGUN).strip(),
        "new": read(NEW + "/tls/server-ca.crt"),
        "saved": exists(SAVED),
        "prepared": exists(PREPARED),
        "replaced": read(REPLACED).strip(),
    }
    print(json.dumps(found))
    return 0


def begin(old):
    os.makedirs(ROOT + ROTATION, mode=0o700, exist_ok=True)
    # Of a run that was killed before they were complete.
    if exists(MADE):
        shutil.rmtree(ROOT + MADE)
    write(BEGUN, old + "\n")
    return 0


def keep():
    os.rename(ROOT + MADE, ROOT + NEW)
    print("write " + NEW)
    return 0


def save():
    """The command reads the token of servers from its file, and has none in its arguments."""
    argv = [PROGRAM, "certificate", "rotate-ca", "--path=" + NEW]
    try:
        subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=True)
    except subprocess.CalledProcessError as error:
        print(error.output.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1][-500:])
        return 1
    except (OSError, subprocess.TimeoutExpired) as error:
        print(error)
        return 1
    print("save the new certificate authorities")
    write(SAVED, "yes\n")
    return 0


def prepare(new):
    """With the hash of before a server would take the old authorities from another one that has not restarted yet, and an agent could not start."""
    path = token_file()
    if path:
        write(path, TOKEN.sub("K10" + new, read(path)))
    if exists(TLS):
        write(REGENERATE, "\n")
    write(PREPARED, "yes\n")
    return 0


def end():
    old = read(BEGUN)
    if old:
        write(REPLACED, old)
    if exists(ROTATION):
        shutil.rmtree(ROOT + ROTATION)
        print("remove " + ROTATION)
    return 0


def main(what, *arguments):
    does = {one.__name__: one for one in (look, begin, keep, save, prepare, end)}
    return does[what](*arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
