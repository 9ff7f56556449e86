# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of node_csr_approve, and the problems of their values."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval import identities, profiles
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.renewal import Authorities
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.rules import ApprovalPolicy
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, ManyFaults


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options of the module, under its names."""

    expected_nodes: c.Sequence[c.Mapping[str, t.Any]]
    profile: str
    bootstrap_user: str = ""
    bootstrap_groups: c.Sequence[str] = ()
    signers: c.Sequence[str] = ("client", "serving")
    allow_rejoin: c.Sequence[str] = ()
    max_age: float = 7200.0
    max_pending: int | None = None
    strict_addresses: bool = False
    deny_refused: bool = False
    serving_ca: str = ""
    wait: bool = False
    wait_timeout: float = 1800.0
    require_serving: bool = True
    cluster_uid: str | None = None


def policy(settings: Settings) -> ApprovalPolicy:
    """Raises ManyFaults with all problems of the options."""
    expected, faults = identities.parse(settings.expected_nodes)
    if settings.wait and not settings.expected_nodes:
        step = "check the inventory group that they come from, or set wait: false"
        faults.append(Fault("there is nothing to wait for", "expected_nodes", "it is empty", step))
    known = {name for identity in expected.identities for name in identity.node_names}
    for name in sorted(set(map(identities.plain, settings.allow_rejoin)) - known):
        why = "it is no name of an expected node"
        faults.append(
            Fault(f"node {name} cannot rejoin", "allow_rejoin", why, "add it to expected_nodes, or correct it")
        )
    faults += [*_requestor(settings), *_numbers(settings), *_authority(settings)]
    if faults:
        raise ManyFaults(faults)
    profile = profiles.PROFILES.get(settings.profile) or profiles.custom(
        settings.bootstrap_user, settings.bootstrap_groups
    )
    return ApprovalPolicy(
        profile,
        expected,
        frozenset(settings.signers),
        settings.max_age,
        settings.max_pending,
        frozenset(map(identities.plain, settings.allow_rejoin)),
        settings.strict_addresses,
    )


def _requestor(settings: Settings) -> c.Iterator[Fault]:
    given = bool(settings.bootstrap_user or settings.bootstrap_groups)
    if given and settings.profile != "custom":
        why = f"profile {settings.profile} has its own bootstrap identity"
        step = "remove bootstrap_user and bootstrap_groups, or set profile: custom"
        yield Fault("the bootstrap identity is given twice", "bootstrap_user", why, step)
    if settings.profile == "custom" and "client" in settings.signers and not settings.bootstrap_user:
        why = "profile custom has none, so that no client request can be approved"
        yield Fault(
            "the bootstrap identity is missing", "bootstrap_user", why, "set bootstrap_user, or signers: [serving]"
        )
    if settings.bootstrap_user.startswith(profiles.NODE_PREFIX):
        why = "whoever has a node's certificate could file requests for other nodes"
        yield Fault(
            "a node is no bootstrap identity", "bootstrap_user", why, "set the identity of the bootstrap kubeconfig"
        )


def _numbers(settings: Settings) -> c.Iterator[Fault]:
    for name, value in (("max_age", settings.max_age), ("wait_timeout", settings.wait_timeout)):
        if not value > 0:
            yield Fault(f"{name} {value:g} cannot be used", name, "it is not above 0", "set a number of seconds")
    if settings.max_pending is not None and settings.max_pending < 1:
        why = "no request could be approved"
        yield Fault(
            f"max_pending {settings.max_pending} cannot be used", "max_pending", why, "set 1 or more, or remove it"
        )


def _authority(settings: Settings) -> c.Iterator[Fault]:
    if settings.serving_ca and not Authorities(settings.serving_ca):
        step = "set PEM text with the CA that signs serving certificates"
        yield Fault("serving_ca cannot be used", "serving_ca", "it has no certificate in PEM form", step)
