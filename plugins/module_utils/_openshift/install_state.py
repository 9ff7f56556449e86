# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far the install of a cluster is: one state, from what is observed of it. Pure.

Nothing is remembered by a marker: a run that was killed, and one on another day, come to the same state. If evidence is missing, the state is the one in which
less is done. In particular, a cluster of which anything says that it was installed is never taken for one that is not there, however little is left of it.
"""

from __future__ import annotations

import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import snapshot as s
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.lifetimes import moment
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.snapshot import Snapshot

(
    NOTHING,
    PREPARED,
    BOOTING,
    BOOTSTRAPPING,
    BOOTSTRAPPED,
    INSTALLING,
    INSTALLED,
    DEGRADED,
    UNREACHABLE,
    FOREIGN,
) = STATES = (
    # There are neither files nor machines that have any.
    "nothing",
    # There are files, and no machine has asked for them yet.
    "prepared",
    # Machines start from the network, and no API answers yet.
    "booting",
    # The API answers, and needs the bootstrap machine.
    "bootstrapping",
    # The load balancer does not need the bootstrap machine any more, but etcd does.
    "bootstrapped",
    # The bootstrap machine can go, and the first version is not complete.
    "installing",
    "installed",
    # It was installed, and something of it does not work now.
    "degraded",
    # It was installed, or may have been, and does not answer.
    "unreachable",
    # What answers is another cluster.
    "foreign",
)

_START = "start its machines, and correct the load balancer and the records of api in DNS"
_ANEW = (
    "start these machines if they are installed; to install them again, with the loss of all data, set regenerate: true and name them in regenerate_named "
    "for one run"
)
_RESTORE = "restore the folder from a backup, or set hwaccel_connection of the cluster"


@dataclasses.dataclass(frozen=True)
class InstallState:
    """name: one of STATES. why: the evidence. next_step: what to do, "" where the install goes on by itself or by the next stage."""

    name: str
    why: str
    next_step: str = ""


def state(found: Snapshot) -> InstallState:
    if found.api.answer == s.UNTRUSTED:
        why = f"what answers at {found.api.where} has a certificate of another authority: {found.api.why}"
        return InstallState(FOREIGN, why, _OTHER)
    return _answering(found) if found.api.answer == s.ANSWERS else _silent(found)


_OTHER = "correct the records of api and api-int in DNS and the load balancer, or set another name or folder"


def _answering(found: Snapshot) -> InstallState:
    installation, answers = found.installation, found.answers
    own, theirs = installation.infrastructure, answers.infrastructure
    if own and theirs and own != theirs:
        return InstallState(FOREIGN, f"its infrastructureName is {theirs}, and infraID of the files is {own}", _OTHER)
    if not (own or installation.files or answers.bootstrapped or answers.installed):
        why = f"an API server answers as {found.name} and is not complete, and there are no files of it"
        return InstallState(FOREIGN, why, f"{_RESTORE}; or {_OTHER}")
    if answers.installed or installation.installed:
        return _installed(found)
    if not answers.bootstrapped:
        return InstallState(BOOTSTRAPPING, answers.evidence or "bootstrap is not complete")
    if not answers.removable:
        return InstallState(BOOTSTRAPPED, answers.evidence or "etcd still has the member of the bootstrap machine")
    version = answers.version
    return InstallState(INSTALLING, (version and version.text) or "ClusterVersion has no completed installation")


def _installed(found: Snapshot) -> InstallState:
    version = found.answers.version
    if version is None or not version.completed:
        why = "it was installed before, and its ClusterVersion has no completed installation now"
        return InstallState(DEGRADED, why, "read the ClusterVersion (oc describe clusterversion)")
    problems = []
    if not version.available or version.failing:
        is_not = "is not available" if not version.available else "fails"
        problems.append(f"ClusterVersion {is_not}: {version.text or 'it has no message'}")
    masters = [node.name for node in found.answers.nodes if node.control_plane and node.waiting]
    if masters:
        problems.append(f"masters are not Ready: {some(masters)}")
    # Progressing alone is an update.
    broken = [one for one in found.answers.operators if one.degraded or not one.available]
    if broken:
        problems.append(f"operators are degraded or not available: {some(one.name for one in broken)}")
    if problems:
        return InstallState(DEGRADED, "; ".join(problems), "read their conditions (oc get clusteroperators)")
    return InstallState(INSTALLED, "ClusterVersion has a completed installation and is available")


def _silent(found: Snapshot) -> InstallState:
    """Without an API: what the folder, the record and the boot servers know."""
    installation, why = found.installation, found.api.why or "its API does not answer"
    if installation.installed or found.answers.installed:
        return InstallState(UNREACHABLE, f"it was installed, and does not answer now: {why}", _step(found, _START))
    if found.answers.evidence:
        # It has answered a moment ago, as to the run that waits for it.
        before = _answering(found)
        return dataclasses.replace(before, why=f"{before.why}; the API does not answer at the moment: {why}")
    joined = [machine.name for machine in found.machines if machine.joined]
    if joined:
        return _silent_with_nodes(found, joined, why)
    having = [machine.name for machine in found.machines if machine.written or machine.at_least(s.IGNITION)]
    if having and (gone := _unusable(found)):
        text = f"{some(having)} may be installed with files that {gone}, and the API does not answer: {why}"
        return InstallState(UNREACHABLE, text, _step(found, _ANEW))
    if found.api.answer == s.LOCKED:
        text = f"an API server answers as {found.name} and does not accept the credentials: {why}"
        return InstallState(FOREIGN, text, f"{_RESTORE}; or {_OTHER}")
    if not installation.files:
        return InstallState(NOTHING, "there are no files, no machine is known to have any, and no API answers")
    started = [machine.name for machine in found.machines if machine.written or machine.at_least(s.LOADER)]
    if started:
        return InstallState(BOOTING, f"{some(started)} have started from the network, and no API answers yet")
    return InstallState(PREPARED, "there are files, and no machine has started with them")


def _silent_with_nodes(found: Snapshot, joined: list[str], why: str) -> InstallState:
    """Machines have been nodes, so there was an API: while it cannot be installed yet, it may be away for a moment, as when masters take it over."""
    installation = found.installation
    if installation.files and installation.expires is not None and found.now < installation.expires:
        text = f"{some(joined)} have joined, and the API does not answer at the moment: {why}"
        return InstallState(BOOTSTRAPPING, text)
    text = f"{some(joined)} have been nodes, and the API does not answer: {why}"
    return InstallState(UNREACHABLE, text, _step(found, _START))


def _unusable(found: Snapshot) -> str:
    """Why nobody can be installing with the files any more, "" if somebody can. Without a clock they are those of an agent, which last."""
    installation = found.installation
    if not installation.files:
        return "are gone"
    if installation.expires is not None and installation.expires <= found.now:
        return f"have expired at {moment(installation.expires)}"
    return ""


def _step(found: Snapshot, step: str) -> str:
    """Without files, nobody here has credentials of the cluster."""
    return step if found.installation.files else f"{step}; {_RESTORE}"
