# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Downloads a file, resumes an interrupted download, and moves the file to its path after its checksum and its
signature are verified. Keeps a partial file as PATH.part.

Reads url (empty if PATH.part is complete), path, checksum (sha256, in digits), signature (address or path, empty for none) and keyring as JSON from
standard input. Reports errors on standard error. Exit status: 1 if a retry may succeed, 2 if not.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

PATIENCE = 60
PIECE = 1 << 20


class Wrong(Exception):
    pass


def opened(url, begun):
    """The response, None if the partial file is already complete."""
    request = urllib.request.Request(url, headers={"Range": f"bytes={begun}-"} if begun else {})
    try:
        return urllib.request.urlopen(request, timeout=PATIENCE)
    except urllib.error.HTTPError as error:
        if error.code == 416 and begun:
            return None
        raise


def fetch(url, part):
    begun = os.path.getsize(part) if os.path.exists(part) else 0
    answer = opened(url, begun)
    if answer is None:
        return
    with answer, open(part, "ab" if answer.getcode() == 206 else "wb") as target:
        expected = int(answer.headers.get("Content-Length") or 0)
        came = 0
        for piece in iter(lambda: answer.read(PIECE), b""):
            target.write(piece)
            came += len(piece)
    if came < expected:
        raise Wrong(f"the download was interrupted after {came} of {expected} bytes")


def refused(part, signature, keyring):
    """Why a signature is not by a key of the keyring, empty if it is."""
    if "://" in signature:
        with urllib.request.urlopen(signature, timeout=PATIENCE) as answer, open(part + ".sig", "wb") as target:
            target.write(answer.read())
        signature = part + ".sig"
    done = subprocess.run(
        ["gpgv", "--keyring", keyring, signature, part], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    return " ".join(done.stderr.decode("utf-8", "replace").split()) if done.returncode else ""


def checksum_of(path):
    found = hashlib.sha256()
    with open(path, "rb") as source:
        for piece in iter(lambda: source.read(PIECE), b""):
            found.update(piece)
    return found.hexdigest()


def main():
    asked = json.load(sys.stdin)
    part = asked["path"] + ".part"
    try:
        if asked["url"]:
            fetch(asked["url"], part)
        found = checksum_of(part)
        if found != asked["checksum"]:
            # A retry starts from the beginning.
            os.remove(part)
            raise Wrong(f"the file has sha256:{found}")
        why = refused(part, asked["signature"], asked["keyring"]) if asked["signature"] else ""
        if why:
            os.remove(part)
            print(f"its signature is not by a trusted key: {why}", file=sys.stderr)
            return 2
        os.chmod(part, 0o644)
        os.replace(part, asked["path"])
    except (Wrong, OSError, ValueError, http.client.HTTPException) as error:
        print(error, file=sys.stderr)
        return 1 if asked["url"] else 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
