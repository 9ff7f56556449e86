# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What boot servers give to machines of a cluster that the agent-based installer installs. Pure.

All of its machines boot one live system, whose ignition file is in the initramfs, with all keys of the cluster and the pull secret. It finds the disk by
agent-config.yaml. Kernel arguments are those of the iPXE script that openshift-install writes (pkg/asset/agent/image in openshift/installer).
"""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines

Rows = list[dict[str, t.Any]]
#: Ends of names of files that openshift-install agent create pxe-files writes into boot-artifacts.
_ENDS = {"kernel": "-vmlinuz", "initramfs": "-initrd.img", "rootfs": "-rootfs.img"}
_BEGIN = "boot-artifacts/agent."
_ARGUMENTS = ("rw",)


def read(cluster: str, made: c.Mapping[str, t.Any], names: c.Collection[str]) -> dict[str, Rows]:
    """artifacts and profiles, as dns_pxe takes them, {} if no such files are among the names.

    made: as module openshift_install returns it, {} if the files are only going to be made. names: of its files, with the folder.
    """
    found = {
        kind: name for kind, end in _ENDS.items() for name in names if name.startswith(_BEGIN) and name.endswith(end)
    }
    if len(found) < len(_ENDS):
        return {}
    boots = {kind: f"{cluster}/{kind}" for kind in found}
    return {
        "artifacts": [{"path": boots[kind], **_source(kind, name, made)} for kind, name in found.items()],
        "profiles": [
            {"role": role, "cluster": cluster, **boots, "live": True, "arguments": list(_ARGUMENTS)}
            for role in (machines.MASTER, machines.WORKER)
        ],
    }


def _source(kind: str, name: str, made: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    # Whatever is said of it: whoever gets an agent's initramfs owns the cluster.
    secret = {"secret": True} if kind == "initramfs" or name in made.get("secret", ()) else {}
    if name not in made.get("publishable", ()):
        return {"source": "openshift-install", "checksum": "unknown", "assumed": True, **secret}
    return {"source": f"{made['path']}/{name}", "checksum": f"sha256:{made['publishable'][name]}", **secret}
