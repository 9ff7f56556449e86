# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a cluster keeps an administrator without kubeadmin, from what was read of it. Pure.

Red Hat's documentation ("Removing the kubeadmin user") has the cluster installed again if nobody else is an administrator, and the removal cannot be undone. So
that somebody could be one is not enough: somebody has to have logged in, or be connected.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some

#: The user as which kubeadmin is known once logged in (pkg/server/bootstrap of library-go).
_KUBEADMIN = "kube:admin"
#: Of users and groups that Kubernetes itself has: clients with a certificate of the installation, and service accounts.
_SYSTEM, _MASTERS = "system:", "system:masters"


@dataclasses.dataclass(frozen=True)
class Person:
    """A user who is bound to cluster-admin. providers: names of the identity providers by which they have logged in. everything: whether the API server
    permits them to do everything.
    """

    name: str
    providers: tuple[str, ...] = ()
    everything: bool = False


@dataclasses.dataclass(frozen=True)
class Connected:
    """As whom a connection is known to the API server. everything: as in Person."""

    name: str
    groups: tuple[str, ...] = ()
    everything: bool = False


@dataclasses.dataclass(frozen=True)
class Administrators:
    """providers: names of identity providers in OAuth cluster. login: why nobody can log in at the moment, "" if they can. people: users who are bound to
    cluster-admin, also by their groups. connected: of a connection besides that of the installation, None without one.
    """

    providers: tuple[str, ...] = ()
    login: str = ""
    people: tuple[Person, ...] = ()
    connected: Connected | None = None


@dataclasses.dataclass(frozen=True)
class Proof:
    """name: of the administrator who remains, "" if none is known. why: the evidence, or what is missing. next_step: "" with an administrator."""

    name: str
    why: str
    next_step: str = ""


def proof(found: Administrators) -> Proof:
    own = found.connected
    if own is not None and own.everything and not _is_built_in(own):
        return Proof(own.name, f"hwaccel_connection is that of {own.name}, who may do everything")
    if not found.providers:
        why = "OAuth cluster has no identity provider"
        return Proof("", why, "add one, bind a user to cluster-admin, and let the user log in")
    if found.login:
        why = f"nobody can log in at the moment: {found.login}"
        return Proof("", why, "read the conditions of ClusterOperator authentication")
    if not found.people:
        why = "no user is bound to the ClusterRole cluster-admin, by name or by a Group"
        return Proof(
            "", why, "bind one (oc adm policy add-cluster-role-to-user cluster-admin NAME), and let the user log in"
        )
    return _logged_in(found.people, found.providers)


def _logged_in(people: c.Sequence[Person], providers: c.Collection[str]) -> Proof:
    strangers = [one.name for one in people if not set(one.providers) & set(providers)]
    for one in people:
        if one.everything and one.name not in strangers:
            by = next(name for name in one.providers if name in providers)
            return Proof(one.name, f"{one.name} has logged in by identity provider {by}, and may do everything")
    refused = [one.name for one in people if one.name not in strangers]
    if refused:
        return Proof(
            "",
            f"{some(refused)} may not do everything",
            "compare their ClusterRoleBindings (oc adm policy who-can '*' '*')",
        )
    why = f"{some(strangers)} may do everything, and have not logged in by an identity provider of OAuth cluster"
    return Proof("", why, "let one of them log in (oc login, or the console)")


def _is_built_in(own: Connected) -> bool:
    """A service account is none who could log in, and its token may expire."""
    return own.name == _KUBEADMIN or own.name.startswith(_SYSTEM) or _MASTERS in own.groups
