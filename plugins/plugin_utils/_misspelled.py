# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables that look like those of this collection and have no effect, with the variable that was probably meant. Pure."""

from __future__ import annotations

import collections.abc as c
import difflib

#: No other project has variables with this prefix.
OURS = "hwaccel_"
#: Similarity (difflib) of two names that mean the same variable: after our own prefix, and of whole names. Names without one of
#: our prefixes may belong to another project: those of kubespray, DeepOps and k3s-ansible are less similar than the last one.
_OURS, _OF_A_ROLE, _OTHER = 0.6, 0.85, 0.9
_PREFIX = 0.75


def unknown(names: c.Iterable[str], known: c.Collection[str], roles: c.Iterable[str]) -> dict[str, str]:
    """Variables without effect, each with the known variable that was probably meant, or "" if none is similar.

    names: of variables that are set. known: of this collection's variables. roles: whose names are the prefixes of their variables.
    A name with the prefix of a role, or with none of ours, is only unknown if a known one is similar.
    """
    prefixes = tuple(f"{role}_" for role in roles)
    found = {}
    for name in sorted(set(names) - set(known)):
        if name.startswith(("ansible_", "__")):
            continue
        meant = _meant(name, known, prefixes)
        if meant or name.startswith(OURS):
            found[name] = meant
    return found


def _meant(name: str, known: c.Collection[str], prefixes: tuple[str, ...]) -> str:
    plain = name.lower().replace("-", "_")
    if plain in known:
        return plain
    if plain.startswith(OURS):
        # Words in another order, or without the prefix of the role that it belongs to.
        rest = sorted(plain.split("_"))
        for one in known:
            if sorted(one.split("_")) == rest or one == plain.removeprefix(OURS):
                return one
        rests = {one.removeprefix(OURS): one for one in known if one.startswith(OURS)}
        return rests.get(_similar(plain.removeprefix(OURS), rests, _OURS), "")
    if plain.startswith(prefixes):
        return _similar(plain, known, _OF_A_ROLE)
    if any(_begins_like(plain, prefix) for prefix in (OURS, *prefixes)):
        return _similar(plain, known, _OTHER)
    return ""


def _begins_like(name: str, prefix: str) -> bool:
    words = prefix.count("_")
    return bool(difflib.get_close_matches("_".join(name.split("_")[:words]), [prefix[:-1]], 1, _PREFIX))


def _similar(name: str, known: c.Collection[str], least: float) -> str:
    return next(iter(difflib.get_close_matches(name, known, 1, least)), "")
