# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gather bootstrap: messages of section 4.3 of behaviours.yml. Nobody logs in: a machine that answers as an SSH server has its name in the bundle."""

from __future__ import annotations

import collections.abc as c
import pathlib
import socket
import tarfile

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.faults import Ended, Files
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.log import Log
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.settings import Settings

PORT = 22
_CLIENT = "failed to create SSH client"


def gather(
    bootstrap: str, masters: c.Sequence[str], keys: c.Sequence[str], files: Files, log: Log, settings: Settings
) -> None:
    """keys: paths. Raises Ended."""
    if not bootstrap or not masters:
        raise Ended("boostrap host address and at least one control plane host address must be provided")
    log.info("Pulling debug logs from the bootstrap machine")
    for key in keys:
        if not pathlib.Path(key).is_file():
            raise Ended(f"{_CLIENT}: open {key}: no such file or directory")
    try:
        with socket.create_connection((bootstrap, PORT), timeout=5) as connection:
            banner = connection.recv(64)
    except OSError as error:
        raise Ended(f"{_CLIENT}: dial tcp {bootstrap}:{PORT}: {str(error.strerror or error).lower()}") from None
    if not banner.startswith(b"SSH-2.0-"):
        raise Ended(f"{_CLIENT}: ssh: handshake failed: EOF")
    path = files.folder / f"log-bundle-{settings.now():%Y%m%d%H%M%S}.tar.gz"
    with tarfile.open(path, "w:gz") as bundle:
        for name in (bootstrap, *masters):
            bundle.addfile(tarfile.TarInfo(f"log-bundle/{name}"))
    log.info(f'Bootstrap gather logs captured here "{path}"')
