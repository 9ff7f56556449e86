# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a server has that its cluster may replace, the token of servers and the key of Secrets, on the machine.

rotate.py tokens                prints in JSON the tokens of this server, and whether K3s runs with the one that it is given
rotate.py keys                  prints in JSON the configuration with which the API server encrypts, and what K3s says of it
rotate.py replace KEY SECONDS   lets K3s encrypt all Secrets with another key than this one, and waits until it has done so. A rotation that goes on, or
                                that was interrupted, is completed
rotate.py record KEY            records which key is being replaced

K3s goes on with a rotation whose caller has gone (EncryptionConfig in pkg/server/handlers/secrets-encrypt.go).
Needs Python 3.6 or newer, and nothing else.
"""

import hashlib
import json
import os
import subprocess
import sys
import time

#: Tests have another one.
ROOT = ""
PROGRAM = "/usr/local/bin/k3s"
SERVER = "/var/lib/rancher/k3s/server"
GIVEN = "/etc/rancher/k3s/token"
ENTRY = "/etc/rancher/k3s/config.yaml.d/55-hwaccel-gpu-cluster.yaml"
ENCRYPTION, STATE = SERVER + "/cred/encryption-config.json", SERVER + "/cred/encryption-state.json"
RECORD = "/var/lib/hwaccel-gpu/cluster_k3s/replaced-key"
#: While K3s encrypts Secrets again (pkg/secretsencrypt/config.go).
ACTIVE = "reencrypt_active"
#: Seconds between two looks, and for K3s to answer.
PAUSE, PATIENCE = 2, 150


def read(path):
    try:
        with open(ROOT + path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def started():
    """When the K3s that runs was started, in seconds since 1970. 0 if none runs."""
    show = ["systemctl", "show", "--property=ExecMainStartTimestampMonotonic,MainPID", "k3s"]
    printed = subprocess.check_output(show, timeout=PATIENCE).decode("utf-8", "replace")
    found = dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)
    if int(found.get("MainPID") or 0) == 0:
        return 0.0
    return time.time() - time.monotonic() + int(found.get("ExecMainStartTimestampMonotonic") or 0) / 1e6


def loaded(path):
    """Whether K3s was started after the file was changed."""
    return not os.path.exists(ROOT + path) or started() > os.stat(ROOT + path).st_mtime


def tokens():
    found = {
        "own": read(SERVER + "/token").strip(),
        # What the server is set to read.
        "given": read(GIVEN).strip() if GIVEN in read(ENTRY) else "",
        "loaded": loaded(GIVEN),
    }
    print(json.dumps(found))
    return 0


def asked(*arguments):
    """What K3s prints. The command reads the token of servers from its file, and has none in its arguments."""
    argv = [PROGRAM, "secrets-encrypt", *arguments]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            printed, told = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    if process.returncode:
        raise OSError((told or printed).decode("utf-8", "replace").strip().rsplit("\n", 1)[-1][-500:])
    return printed.decode("utf-8", "replace")


def status():
    found = json.loads(asked("status", "--output=json"))
    # With the kind of the key before it.
    names = [key.split(" ")[-1] for key in [found.get("activekey", ""), *(found.get("inactivekeys") or [])]]
    return {
        "enabled": bool(found.get("enable")),
        "stage": found.get("stage", ""),
        "key": names[0],
        "inactive": names[1:],
        "equal": bool(found.get("hashmatch")),
        "why": found.get("hasherror", ""),
    }


def keys():
    found = {"status": {}, "why": "", "replaced": read(RECORD).strip(), "loaded": loaded(ENCRYPTION)}
    found["digest"] = hashlib.sha256((read(ENCRYPTION) + read(STATE)).encode("utf-8")).hexdigest()
    try:
        found["status"] = status()
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        found["why"] = str(error)
    print(json.dumps(found))
    return 0


def left(found, key):
    return found["key"] == key or bool(found["inactive"])


def replace(key, seconds):
    until, why = time.monotonic() + float(seconds), ""
    while time.monotonic() < until:
        try:
            found = status()
            if found["stage"] != ACTIVE and not left(found, key):
                return 0
            if found["stage"] != ACTIVE:
                asked("rotate-keys")
                print(f"replace the key {key}")
                continue
            why = f"Secrets are still being encrypted again ({found['stage']})"
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            # It may go on in spite of it.
            why = str(error)
        time.sleep(PAUSE)
    print(f"K3s has not replaced the key {key}: {why}", file=sys.stderr)
    return 1


def record(key):
    if read(RECORD).strip() != key:
        with open(os.open(ROOT + RECORD, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(key + "\n")
        print(f"write {RECORD}")
    return 0


def main(what, *arguments):
    does = {one.__name__: one for one in (tokens, keys, replace, record)}
    return does[what](*arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
