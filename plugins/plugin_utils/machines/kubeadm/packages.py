# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of Kubernetes from the repositories of a machine, in the version that is set, and held so that nothing else replaces them. Pure.

Source: https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/install-kubeadm/ and .../kubeadm-upgrade/ (apt-mark hold; exclude= of the
repository with dnf).
"""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import MEMBER, Found
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host, version_of

Settings = c.Mapping[str, t.Any]


def facts(names: c.Sequence[str]) -> dict[str, tuple[str, ...]]:
    """What is observed of them, none if there are none."""
    if not names:
        return {}
    return {
        "dpkg": ("output", "dpkg-query", "--show", "--showformat=${db:Status-Abbrev} ${Package} ${Version}\\n", *names),
        "rpm": ("output", "rpm", "--query", "--queryformat=ii %{NAME} %{VERSION}\\n", *names),
    }


def with_apt(host: Host) -> bool:
    return "apt-get" in host.fact("managers").split()


def missing(host: Host, settings: Settings, now: Found) -> list[str]:
    """Names of those that are not installed in the version that is set. A member's kubelet waits for its turn."""
    installed = {name: version_of(version) for name, (_status, version) in _rows(host).items()}
    wanted = version_of(settings["version"])
    waits = {"kubelet"} if now.state == MEMBER else set()
    return [name for name in settings["packages"] if installed.get(name) != wanted and name not in waits]


def added(host: Host, names: c.Iterable[str]) -> list[str]:
    """Those of which no version is installed."""
    return [name for name in names if name not in _rows(host)]


def pinned(host: Host, settings: Settings, names: c.Iterable[str]) -> list[str]:
    """As the package manager takes them. Packages have a revision of their own after the version."""
    form = "{}={}-*" if with_apt(host) else "{}-{}"
    return [form.format(name, settings["version"]) for name in names]


def held(host: Host, settings: Settings, installing: c.Collection[str]) -> list[str]:
    """Names of those that are to be held, and are not. installing: those that this run installs, which ends a hold."""
    holds = {name for name, (status, _version) in _rows(host).items() if status.startswith("h")} - set(installing)
    there = {*_rows(host), *installing}
    return [name for name in settings["packages"] if with_apt(host) and name in there and name not in holds]


def _rows(host: Host) -> dict[str, tuple[str, str]]:
    """Status and version of installed packages, by name. The second letter of a status is i for one that is installed."""
    lines = f"{host.fact('dpkg')}\n{host.fact('rpm')}".splitlines()
    rows = [line.split() for line in lines]
    return {row[1]: (row[0], row[2]) for row in rows if len(row) == 3 and row[0][1:2] == "i"}
