# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wishes that a machine is installed, each of which writes the machine once. Pure.

The service hwaccel-gpu-once (roles/dns_pxe/files/once.py) reads them on the boot server, and turns the entries of a machine to its disk as soon as the machine
has fetched what it is installed with. From then on the wish is used up, whether or not the installation succeeds.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Machine


@dataclasses.dataclass(frozen=True, order=True)
class Wish:
    """mac: of the machine, which identifies it. paths: of the URLs of which each is fetched for an installation only. at: identifies the wish, the time when
    it was first observed. bootstrap: whether the machine is installed as a bootstrap machine: what it becomes later is another wish.
    """

    mac: str
    cluster: str
    name: str
    address: str
    paths: tuple[str, ...]
    at: str
    bootstrap: bool = False


@dataclasses.dataclass(frozen=True)
class Wanted:
    """Which machines have to be installed. paths: by MAC address of machines that are to be installed now. renewed: those of them that are explicitly requested
    since this run. waiting: MAC addresses of machines whose used wish still counts: they are declared to be installed, and are no nodes.
    """

    paths: c.Mapping[str, tuple[str, ...]]
    renewed: c.Collection[str] = ()
    waiting: c.Collection[str] = ()


def read(wishes: str, written: str, folder: str) -> tuple[tuple[Wish, ...], frozenset[str], list[Fault]]:
    """Recorded wishes, MAC addresses of machines that have used theirs up, and the problem of a damaged file, without which a machine could be written again.

    wishes, written: texts of the files wishes.json and written.json in the folder, empty if there are none.
    """
    try:
        listed = json.loads(wishes)["wishes"] if wishes else []
        found = tuple(Wish(**{**one, "paths": tuple(one["paths"])}) for one in listed)
        used = json.loads(written)["written"] if written else {}
        return found, frozenset(one.mac for one in found if used.get(one.mac) == one.at), []
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        what = "the record of machines that have been written cannot be read, so no machine can be installed"
        next_step = "restore wishes.json and written.json; or remove both if no machine is being installed"
        return (), frozenset(), [Fault(what, folder, f"{type(error).__name__}: {error}", next_step)]


def turned(before: c.Iterable[Wish], found: c.Iterable[Machine]) -> frozenset[str]:
    """MAC addresses of machines that were to be bootstrap machines, and are others now. Installed as such, they have still to be installed as what they are."""
    others = {machine.mac for machine in found if machine.role != machines.BOOTSTRAP}
    return frozenset(one.mac for one in before if one.bootstrap and one.mac in others)


def following(
    before: c.Iterable[Wish], used: c.Collection[str], found: c.Sequence[Machine], wanted: Wanted, at: str
) -> tuple[Wish, ...]:
    """The wishes to be recorded. before, used: as recorded. found: all machines. at: identifies new wishes.

    A used wish is kept while its machine is missing in the inventory, or is not known to be a node: a cluster that does not answer for a while must not make
    the wish a new one. It ends when the machine is a node, or is not declared to be installed any more.
    """
    listed = {machine.mac for machine in found}
    kept = {one.mac: one for one in before if one.mac not in wanted.renewed}
    now = {
        machine.mac: Wish(
            machine.mac,
            machine.cluster,
            machine.name,
            str(machine.address),
            wanted.paths[machine.mac],
            kept[machine.mac].at if machine.mac in kept else at,
            machine.role == machines.BOOTSTRAP,
        )
        for machine in found
        if machine.mac in wanted.paths
    }
    remembered = [
        one
        for mac, one in kept.items()
        if mac not in now and mac in used and (mac in wanted.waiting or mac not in listed)
    ]
    return tuple(sorted([*now.values(), *remembered]))


def text(wishes: c.Iterable[Wish]) -> str:
    """Text of the file, empty if there is no wish."""
    listed = [_recorded(one) for one in wishes]
    return json.dumps({"wishes": listed}, indent=2, sort_keys=True) + "\n" if listed else ""


def _recorded(wish: Wish) -> dict[str, t.Any]:
    """Records of other machines are those of before."""
    kept = dataclasses.asdict(wish)
    return kept if wish.bootstrap else {key: value for key, value in kept.items() if key != "bootstrap"}
