# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of tasks that observe sources of files and other DHCP servers. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import typing as t

Results = c.Sequence[c.Mapping[str, t.Any]]


@dataclasses.dataclass(frozen=True)
class Source:
    """Source of a file. error: why it is not available, empty if it is. checksum: empty if it is unknown before the download."""

    error: str = ""
    checksum: str = ""


@dataclasses.dataclass(frozen=True)
class Findings:
    """images: checksums of present artifacts by path. sources: by name. dhcp_servers: offers of other servers. unasked: why the probe failed."""

    images: c.Mapping[str, str] = dataclasses.field(default_factory=dict)
    sources: c.Mapping[str, Source] = dataclasses.field(default_factory=dict)
    dhcp_servers: c.Sequence[c.Mapping[str, str]] = ()
    unasked: str = ""


def read(found: c.Mapping[str, t.Any]) -> Findings:
    """Reads results of loops. images: of stat on the server. local: of stat on the controller. remote: of uri. probe: of the script."""
    images = {one["item"]["path"]: _stat(one).get("checksum", "") for one in found["images"]}
    sources = {one["source"]: _local(one) for one in _done(found["local"])} | {
        one["source"]: _remote(one) for one in _done(found["remote"])
    }
    probe = found["probe"]
    if probe.get("rc"):
        # Standard error may contain lines of SSH.
        said = str(probe.get("stdout") or probe.get("stderr") or "").strip()
        return Findings(images, sources, unasked=said.splitlines()[-1] if said else f"exit status {probe['rc']}")
    return Findings(images, sources, json.loads(probe.get("stdout") or "[]"))


def _done(results: Results) -> c.Iterator[c.Mapping[str, t.Any]]:
    for one in results:
        if not one.get("skipped"):
            item = one["item"]
            # The item of an artifact is a result itself: that of the loop on the server.
            yield {**one, "source": item.get("source") or item["item"]["source"]}


def _stat(result: c.Mapping[str, t.Any]) -> c.Mapping[str, t.Any]:
    return t.cast("c.Mapping[str, t.Any]", result.get("stat") or {})


def _local(result: c.Mapping[str, t.Any]) -> Source:
    found = _stat(result)
    return (
        Source(checksum=found["checksum"])
        if found.get("checksum")
        else Source(result.get("msg") or "the file does not exist on the controller")
    )


def _remote(result: c.Mapping[str, t.Any]) -> Source:
    return (
        Source() if result.get("status") == 200 else Source(str(result.get("msg") or f"status {result.get('status')}"))
    )
