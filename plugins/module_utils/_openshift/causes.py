# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why an install does not go on: rules over what was observed last, of which the first one that applies names the most likely cause. Pure.

The order is that of the evidence: what a machine or the API server itself has said, then what was refused or cannot be right, then what is only missing. Among
what is missing, the earlier step comes first, because whatever comes after it waits for it.
"""

from __future__ import annotations

import collections.abc as c
import datetime
import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import progress
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import snapshot as s
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.lifetimes import moment, span
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.snapshot import Snapshot

#: Seconds without a request after which a machine that has its ignition file should have been back: its disk is written in minutes.
QUIET = 900.0
#: Starts from the network after which a machine is in a loop: CoreOS restarts when it is written, and at its first boot once or twice.
LOOP = 5
_LONGEST = 300
#: Of Go (crypto/x509: "certificate has expired or is not yet valid: current time X is after Y") and of OpenSSL ("certificate is not yet valid").
_NOT_YET = re.compile(r"not yet valid: current time \S+ is before|certificate is not yet valid", re.IGNORECASE)
_EXPIRED = re.compile(
    r"has expired or is not yet valid: current time \S+ is after|certificate has expired(?! or)", re.IGNORECASE
)
#: The end of a certificate's life, as Go tells it.
_ENDED = re.compile(r"current time \S+ is after (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")
_SET_CLOCK = "set the clock of this machine and its hardware clock to UTC (in its firmware, or by chronyd)"
#: Of Go (crypto/x509) and of OpenSSL.
_AUTHORITY = re.compile(
    r"signed by unknown authority|unable to get (?:local )?issuer certificate|self[- ]signed certificate", re.IGNORECASE
)
#: What registries answer, in the words of containers/image and of the registry API ("unauthorized", "authentication required").
_PULL = re.compile(
    r"(?:pull|manifest|image|registry|release)[^\n]*(?:unauthorized|authentication required|invalid username/password|\b401\b)"
    r"|ImagePullBackOff[^\n]*(?:unauthorized|401)",
    re.IGNORECASE,
)
#: coreos-installer, which opens the disk that it was given.
_DISK = re.compile(
    r"coreos-installer[^\n]*(?:/dev/|block device|destination)|(?:opening|open|stat|checking for exclusive access to) /dev/\S+[^\n]*"
    r"(?:No such file|No such device|busy|not a block device)|/dev/\S+: (?:No such file|No such device)|no space left",
    re.IGNORECASE,
)
_CONFIG_PORT = re.compile(
    r":22623\b[^\n]*(?:refused|timed? ?out|timeout|no route|unreachable|reset by peer|deadline exceeded)", re.IGNORECASE
)
_APPS = re.compile(r"no such host[^\n]*|lookup \S*\.apps\.\S*[^\n]*", re.IGNORECASE)
#: Their routes are names under *.apps.
_ROUTED = ("authentication", "console", "ingress")
_LOCALHOST = re.compile(r"localhost(?:\.localdomain)?|localhost\d*")


def likely(found: Snapshot) -> Fault:
    """The most likely cause: what is wrong, where, the evidence, and what to do."""
    return next(fault for rule in _RULES if (fault := rule(found)) is not None)


def _said(found: Snapshot, pattern: re.Pattern[str]) -> tuple[str, str] | None:
    """Who has said it, and the line: machines, those first that are awaited, then the API's answer."""
    told = [(machine.name, machine.said) for machine in (*progress.awaited(found), *found.machines)]
    for who, text in [*told, (found.api.where, found.api.why)]:
        for line in text.splitlines():
            if shown := _shown(line.strip(), pattern):
                return who, shown
    return None


def _shown(text: str, pattern: re.Pattern[str]) -> str:
    """A text with the part that matches, "" if none does. Programs write what they have tried first, and why it failed last."""
    if not (match := pattern.search(text)):
        return ""
    start = max(0, min(match.start(), len(text) - _LONGEST))
    return f"{'…' if start else ''}{text[start : start + _LONGEST]}"


def _clock_behind(found: Snapshot) -> Fault | None:
    if not (said := _said(found, _NOT_YET)):
        return None
    what = "a clock is behind, so that certificates are not valid yet"
    step = f"{_SET_CLOCK}, and start it again"
    if said[0] == found.api.where:
        step = "compare the clock of this host with a time server (chronyc tracking), and correct it"
    return Fault(what, said[0], said[1], step)


def _files_expired(found: Snapshot) -> Fault | None:
    """Once bootstrap is complete, nobody needs the files. Of files whose clock is unknown, whoever refuses a certificate knows more."""
    expires, said = found.installation.expires, _said(found, _EXPIRED)
    if found.installation.installed or found.answers.bootstrapped:
        return None
    if (said is None and expires is None) or (expires is not None and expires > found.now):
        return None
    what = "the files of the installation have expired"
    why = said[1] if said else f"the first certificate of the bootstrap file expired at {moment(expires or found.now)}"
    step = "set regenerate: true for one run, and name the machines that were written with them in regenerate_named; all of them are installed again"
    return Fault(what, said[0] if said else found.installation.path, why, step)


def _expired_otherwise(found: Snapshot) -> Fault | None:
    """With files that are valid or not needed any more, to create them again would only lose machines."""
    if not (said := _said(found, _EXPIRED)):
        return None
    who, why = said
    if (end := _ENDED.search(why)) and datetime.datetime.fromisoformat(end[1]) > found.now:
        what = "a clock is ahead, so that certificates have expired for it"
        return Fault(what, who, why, f"{_SET_CLOCK}, and start it again")
    what = "a certificate has expired, and it is none of the files of the installation"
    step = (
        "if the machine was written with files of an earlier installation, have it installed again; "
        "a cluster that was off needs its requests for certificates approved"
    )
    return Fault(what, who, why, step)


def _wrong_authority(found: Snapshot) -> Fault | None:
    said = _said(found, _AUTHORITY)
    if said is None and found.api.answer != s.UNTRUSTED:
        return None
    who, why = said or (found.api.where, found.api.why)
    what = "a certificate is of another authority than that of the files"
    step = (
        "compare the authority in the machine's ignition file with that of the cluster, correct the records of api and api-int in DNS, "
        "and publish the files of this installation only"
    )
    return Fault(what, who, why, step)


def _pull_secret(found: Snapshot) -> Fault | None:
    said = _said(found, _PULL)
    broken = next((one for one in progress.lagging(found.answers.operators) if _PULL.search(one.reason)), None)
    version = found.answers.version
    if said is None and broken is not None:
        said = f"operator {broken.name}", _shown(broken.reason, _PULL)
    if said is None and version is not None and _PULL.search(version.text):
        said = "ClusterVersion", _shown(version.text, _PULL)
    if said is None:
        return None
    what = "a registry refuses the pull secret"
    step = "try it with podman pull --authfile; before the bootstrap, correct it and set regenerate: true, afterwards in Secret openshift-config/pull-secret"
    return Fault(what, said[0], said[1], step)


def _wrong_disk(found: Snapshot) -> Fault | None:
    if not (said := _said(found, _DISK)):
        return None
    step = (
        "correct hwaccel_install_device: look for the disk on its console (lsblk, /dev/disk/by-id), and start it again"
    )
    return Fault("the disk to install on cannot be used", said[0], said[1], step)


def _config_said(found: Snapshot) -> Fault | None:
    if said := _said(found, _CONFIG_PORT):
        return _blocked(*said)
    return _blocked("22623", found.surroundings.config_refused) if found.surroundings.config_refused else None


def _blocked(where: str, why: str) -> Fault:
    step = (
        "open port 22623 of the load balancer to the machines' addresses, and compare api-int in DNS with its address "
        "(curl --insecure https://api-int…:22623/healthz)"
    )
    return Fault("machines cannot reach 22623, from which they get their configuration", where, why, step)


def _loop(found: Snapshot) -> Fault | None:
    looping = [one for one in progress.awaited(found) if one.fetches > 1 and found.node_of(one) is None]
    if not looping:
        return None
    most = max(looping, key=lambda machine: machine.fetches)
    what = f"{most.name} is installed again and again"
    others = [one.name for one in looping if one is not most]
    why = f"it has downloaded its ignition file {most.fetches} times, and starts from the network each time"
    if others:
        why += f"; so have {some(others)}"
    step = "set its firmware to start from its disk first, or let dns_pxe write its boot entry (hwaccel_mac has to be that of its boot port)"
    return Fault(what, "boot order", why, step)


def _restarting(found: Snapshot) -> Fault | None:
    """Boot servers have it start its disk, so that nothing is written again."""
    looping = [one for one in progress.awaited(found) if one.restarts >= LOOP and found.node_of(one) is None]
    if not looping:
        return None
    most = max(looping, key=lambda machine: machine.restarts)
    why = f"it has started from the network {most.restarts} times since it downloaded its ignition file"
    step = (
        "inspect its console: its firmware may not start the disk in hwaccel_install_device, "
        "or its system restarts because Ignition fails"
    )
    return Fault(f"{most.name} restarts again and again", "boot order", why, step)


def _refused_file(found: Snapshot) -> Fault | None:
    """coreos-installer and the initramfs repeat a download for ever, so that only the boot server's log shows it."""
    blocked = next((one for one in progress.awaited(found) if one.refused and found.node_of(one) is None), None)
    if blocked is None:
        return None
    if "rootfs" in blocked.refused:
        what = "rootfs cannot be downloaded"
        step = "run hwaccel.gpu.site, which downloads it; kernel, initramfs and rootfs have to be of one build"
    elif blocked.stage in (s.NOTHING, s.REQUESTED):
        what = "its DHCP request is not answered"
        step = "set hwaccel_mac to the machine's MAC address, and run hwaccel.gpu.site"
    else:
        what = "a file for its boot cannot be downloaded"
        step = "set hwaccel_install of this machine to true if it has to be installed, and run hwaccel.gpu.site"
    return Fault(what, blocked.name, blocked.refused, step)


def _without_bootstrap(found: Snapshot) -> Fault | None:
    """The load balancer has to send to the bootstrap machine until bootstrap is complete."""
    bootstrap = found.of_role(s.BOOTSTRAP)
    if not bootstrap or found.answers.bootstrapped:
        return None
    around = found.surroundings
    lacking = [
        port
        for port, members in (("6443", around.api_members), ("22623", around.config_members))
        if members is not None and not bootstrap[0].node_names & set(members)
    ]
    if not lacking:
        return None
    why = f"{bootstrap[0].name} is no member of {' and '.join(lacking)}, and bootstrap is not complete"
    step = (
        "run hwaccel.gpu.load_balancer with -e hwaccel_new_cluster=true, by which the machine is a member although the API does not answer, and verify that "
        "the load balancer reaches it at these ports"
    )
    return Fault("the load balancer does not send to the bootstrap machine", "load balancer", why, step)


def _localhost(found: Snapshot) -> Fault | None:
    names = [request.node for request in found.answers.requests] + [node.name for node in found.answers.nodes]
    name = next((name for name in names if _LOCALHOST.fullmatch(name)), None)
    if name is None:
        return None
    silent = (progress.IGNITION, progress.CONFIG)
    at = [machine.name for machine in progress.awaited(found) if progress.step(machine, found) in silent]
    why = f"a machine asks to join as {name}: its address has no reverse record, or it came too late"
    step = "compare the reverse records (dig -x ADDRESS) with the inventory, run hwaccel.gpu.site, and start the machine again"
    where = f"one of {some(at)}" if len(at) > 1 else next(iter(at), "reverse records")
    return Fault("a machine does not know its name", where, why, step)


def _request_refused(found: Snapshot) -> Fault | None:
    """Of a machine that is awaited first; SUPERSEDED ones are left behind by newer ones."""
    names = {name for machine in progress.awaited(found) for name in machine.node_names}
    refused = [one for one in found.answers.requests if one.code not in ("", "SUPERSEDED")]
    named = next((one for one in refused if one.node in names), refused[0] if refused else None)
    if named is None:
        return None
    what = f"the certificate request of {named.node or 'a machine'} is not approved"
    message, _mark, step = named.text.partition(" Next: ")
    return Fault(what, named.code, message[:_LONGEST], step or "compare the request with the inventory")


def _no_dhcp(found: Snapshot) -> Fault | None:
    return _missing(
        found,
        (progress.UNSEEN,),
        "no DHCP request was seen",
        "verify that the machine is on, that its firmware starts from the network, that hwaccel_mac is that of its boot port, "
        "and that this port is in the boot server's segment",
    )


def _before_ignition(found: Snapshot) -> Fault | None:
    return _missing(
        found,
        (progress.DHCP, progress.KERNEL),
        "it has not downloaded its ignition file",
        "inspect its console: Secure Boot, too little memory, or an address of rootfs or ignition that it cannot reach",
    )


def _quiet_after_ignition(found: Snapshot) -> Fault | None:
    quiet = [
        machine
        for machine in progress.awaited(found)
        if progress.step(machine, found) == progress.IGNITION and (machine.quiet or 0) >= QUIET
    ]
    if not quiet:
        return None
    first = quiet[0]
    ago = span(datetime.timedelta(seconds=first.quiet or 0.0))
    why = f"{some(one.name for one in quiet)} downloaded the ignition file {ago} ago and did not come back"
    step = (
        "inspect the console: the disk in hwaccel_install_device may not be there or not be the one that the firmware starts, "
        "or Ignition cannot reach a source"
    )
    return Fault("the system was not installed, or its disk does not start", first.name, why, step)


def _masters_without_api(found: Snapshot) -> Fault | None:
    """Masters got their configuration, so the bootstrap machine has served, whatever is known of its start."""
    up = [one.name for one in found.of_role(s.MASTER) if one.at_least(s.CONFIG) or one.joined or found.node_of(one)]
    if not up or found.api.answer == s.ANSWERS:
        return None
    why = f"{some(up)} have their configuration, and {found.api.where or 'the API'} does not answer: {found.api.why}"
    log = "the bootstrap machine's log (journalctl --unit bootkube)"
    if found.answers.bootstrapped:
        log = "the log of kube-apiserver on masters (crictl ps --all --name kube-apiserver)"
    step = f"read {log}, and compare members and health checks of 6443 at the load balancer"
    return Fault("masters are up, and the API is not", found.api.where, why, step)


def _bootstrap_without_api(found: Snapshot) -> Fault | None:
    if found.api.answer == s.ANSWERS or found.answers.bootstrapped:
        return None
    first = next(iter(found.of_role(s.BOOTSTRAP, s.MASTER)), None)
    where = first.name if first else found.api.where
    step = "read its log (journalctl --unit release-image --unit bootkube), and ask https://api…:6443/readyz from here and from it"
    return Fault("the API has not started", where, found.api.why or "it does not answer", step)


def _wildcard(found: Snapshot) -> Fault | None:
    step = "let *.apps in DNS lead to the load balancer of ports 443 and 80, and to nothing else"
    what = "the record *.apps in DNS is wrong"
    if found.surroundings.wildcard:
        return Fault(what, f"*.apps.{found.name}", found.surroundings.wildcard, step)
    for operator in progress.lagging(found.answers.operators):
        if operator.name in _ROUTED and (match := _APPS.search(operator.reason)):
            return Fault(what, f"operator {operator.name}", match[0][:_LONGEST], step)
    return None


def _operator(found: Snapshot) -> Fault | None:
    broken = [one for one in progress.lagging(found.answers.operators) if one.degraded or not one.available]
    if not broken or progress.awaited(found):
        return None
    first = broken[0]
    what = f"operator {first.name} is {'degraded' if first.available else 'not available'}"
    step = f"read its conditions and its pods (oc describe clusteroperator {first.name})"
    return Fault(what, f"{len(broken)} of {len(found.answers.operators)} operators", first.reason[:_LONGEST], step)


def _awaited(found: Snapshot) -> Fault | None:
    """Machines that have not joined."""
    for machine in progress.awaited(found):
        if progress.waits_as_usual(machine, found):
            continue
        at = progress.step(machine, found)
        node = found.node_of(machine)
        why = node.waiting if node and node.waiting else _LACKS.get(at, f"its last stage is {at}")
        return Fault(
            f"{machine.name} has not joined", at, why, "read the log of its kubelet (journalctl --unit kubelet)"
        )
    return None


_LACKS = {
    progress.IGNITION: "it has its ignition file, and has not asked 22623 yet",
    progress.CONFIG: "it has its configuration from 22623, and has filed no certificate request",
    progress.REQUEST: "its certificate request is pending",
    progress.READY: "it does not serve with a certificate of the cluster",
}


def _lagging(found: Snapshot) -> Fault | None:
    """Operators that are broken while machines are awaited, or only progress."""
    behind = progress.lagging(found.answers.operators)
    if not behind:
        return None
    where = f"{len(behind)} of {len(found.answers.operators)} operators"
    step = f"read its conditions (oc describe clusteroperator {behind[0].name})"
    return Fault(f"operator {behind[0].name} is not ready", where, progress.reason(behind[0]), step)


def _unknown(found: Snapshot) -> Fault:
    said = "; ".join(progress.lines(found)) or "nothing was observed"
    return Fault(
        "no known cause applies", found.name, said, "gather logs (openshift-install gather bootstrap), and read them"
    )


def _missing(found: Snapshot, steps: tuple[str, ...], what: str, next_step: str) -> Fault | None:
    late = [one for one in progress.awaited(found) if progress.step(one, found) in steps]
    if not late:
        return None
    first = late[0]
    why = f"{some(one.name for one in late)} at {progress.step(first, found)}"
    return Fault(f"{first.name}: {what}", "boot servers", f"{why} ({first.what})" if first.what else why, next_step)


_RULES: tuple[c.Callable[[Snapshot], Fault | None], ...] = (
    _clock_behind,
    _files_expired,
    _expired_otherwise,
    _wrong_authority,
    _pull_secret,
    _wrong_disk,
    _config_said,
    _without_bootstrap,
    _refused_file,
    _loop,
    _restarting,
    _localhost,
    _request_refused,
    _masters_without_api,
    _no_dhcp,
    _before_ignition,
    _quiet_after_ignition,
    _bootstrap_without_api,
    _wildcard,
    _operator,
    _awaited,
    _lagging,
    _unknown,
)
