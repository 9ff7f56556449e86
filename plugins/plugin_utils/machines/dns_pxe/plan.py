# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of the role dns_pxe for one boot server, from its observed state."""

from __future__ import annotations

import base64
import collections.abc as c
import dataclasses
import difflib
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import (
    firewall,
    oneline,
    record,
    restoring,
    templating,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import (
    access,
    answers,
    dnsmasq,
    entries,
    expected,
    faults,
    latch,
    model,
    place,
    services,
    systems,
    units,
    web,
    wishes,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.findings import Findings
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.model import Settings, Site
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.place import (
    ANSWERS,
    CONFIG,
    FILES,
    IGNITION,
    MEMORY,
    PROGRAM,
    ROLE,
    SECRET,
    STAGING,
    STATE,
    WISHES,
    WRITTEN,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host, digest
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.services import Action

#: Folders with files of this role only.
_ENTRIES = (entries.PXELINUX, entries.GRUB, entries.IPXE)
_DROP_INS = {unit: units.path(unit) for unit in units.DROPPED_IN}
_CONFIGURATIONS = {unit: f"{CONFIG}/{unit}.conf" for unit in _DROP_INS}


def plan(observed: Host, settings: Settings, found: Findings) -> dict[str, t.Any]:
    """The plan, in plain data. found: sources of files, and other DHCP servers.

    changes: paths of files that differ; diff: their differences; lines: these files in the form of write.sh; sealed: those that only the web server may read;
    early: those that are written before packages are installed. record: text for teardown, empty if the machine has it already. staged: texts by path for the
    services' checkers; checks: their commands, each with name and argv. absent: paths that are removed. packages: missing ones; apt: whether apt installs
    them. loaders: programs to copy, each with source and path. artifacts: files to download, each with path, source, checksum, signature, keyring and remote.
    protected: files with keys to copy, each with source, and path below the role's folder. actions: for services that do not run with the files on disk, as
    services.Action. released: services that the role does not need any more, each with unit, active, enabled and drop_in. stops: units of the role, in the
    same case. web_user: of nginx. selinux: whether files need labels. firewall: of running ones, as firewall.changes. expected: for the self-test. installs:
    machines that have to be installed, as CLUSTER/NAME, also while they are. writes: those that the network installs now.
    """
    site, system, wrong = _read(observed, settings)
    wrong += place.faults(observed, settings, found) + access.faults(observed, settings) + record.faults(observed, ROLE)
    if site is None or system is None:
        return {**_nothing(), "faults": [fault.as_dict() for fault in wrong]}
    lacking = _lacking(observed, system, site, settings)
    loaders, missing = _loaders(observed, site, settings, system)
    # Files of packages are not missing before these are installed.
    brought = set(system.packages) - set(settings["loaders"]) if lacking else set()
    wrong += [fault for name, fault in missing.items() if name not in brought]
    fetched, copied = _fetched(observed, site, settings, found, wrong), _copied(observed, site, settings, found, wrong)
    if wrong:
        return {**_nothing(), "faults": [fault.as_dict() for fault in wrong]}
    contents = rendered(site, settings, system) | _remembered(observed, site, settings) | _given(site, settings)
    changes = sorted(path for path, text in contents.items() if not _same(observed, path, text))
    actions = [action for one in services.of(contents) if (action := services.due(observed, one, changes))]
    openings = access.openings(site, settings)
    before = record.read(observed, ROLE) or _before(observed, lacking)
    made = {
        "messages": _messages(observed, site, settings, actions, lacking)
        + firewall.messages(observed.firewalls, openings),
        "changes": changes,
        "absent": _absent(observed, site, contents, found),
        **_written(observed, {path: contents[path] for path in changes}, bool(lacking)),
        "packages": lacking,
        "apt": system.apt,
        "actions": [action.as_dict() for action in actions],
        "loaders": loaders,
        "web_user": system.web_user,
        "record": record.changed(observed, ROLE, access.recorded(observed, openings, before)),
        "firewall": firewall.changes(observed.firewalls, openings, before.openings),
        "artifacts": fetched,
        "protected": copied,
        "released": _released(observed, contents, before),
        "expected": expected.expected(observed, site, settings, contents),
    }
    return {**_nothing(), **made, **_observed(observed, site, settings), **_staged(observed, site, settings, system)}


def _observed(observed: Host, site: Site, settings: Settings) -> dict[str, t.Any]:
    return {
        "selinux": observed.selinux,
        "stops": [] if settings["pxe"] else _own(observed),
        "installs": sorted(f"{cluster}/{name}" for cluster, name in site.decision.installs),
        "writes": [[one.cluster, one.name] for one in site.machines if site.installed_now(one)],
    }


def _lacking(observed: Host, system: systems.Family, site: Site, settings: Settings) -> list[str]:
    installed = observed.fact("packages").split()
    return [name for name in systems.packages(system, site, settings, observed.selinux) if name not in installed]


def _read(observed: Host, settings: Settings) -> tuple[Site | None, systems.Family | None, list[Fault]]:
    """The site and the system of the boot server, None if either is unknown, with problems of the variables."""
    memory, unreadable = latch.read(observed.text(MEMORY), MEMORY)
    site, faulty = model.read(settings, memory)
    before, used, damaged = wishes.read(observed.text(WISHES), observed.text(WRITTEN), STATE)
    wrong = damaged + oneline.faults("dns_pxe", settings, ("dnsmasq_extra", "nginx_extra")) + faulty + unreadable
    if site:
        wanted = site.wanted()
        wanted = dataclasses.replace(wanted, renewed={*wanted.renewed, *wishes.turned(before, site.machines)})
        asked = wishes.following(before, used, site.machines, wanted, f"{observed.now:.3f}")
        site = dataclasses.replace(site, wishes=asked, written=used - set(wanted.renewed))
        wrong += faults.found(site, settings)
    system = systems.family(observed.os_release)
    if system is None:
        name = observed.os_release.get("PRETTY_NAME", "it has no name")
        step = "use a boot server of the Debian or RedHat family"
        wrong.append(Fault("this system is not supported", "/etc/os-release", name, step))
    return site, system, wrong


def rendered(site: Site, settings: Settings, system: systems.Family) -> dict[str, str]:
    """Every text file of the role, by path."""
    made = {
        f"{CONFIG}/dnsmasq.conf": dnsmasq.config(site, settings, CONFIG, FILES),
        f"{CONFIG}/{dnsmasq.HOSTS}": dnsmasq.hosts(site),
        f"{CONFIG}/{dnsmasq.EXTRA_HOSTS}": dnsmasq.extra_hosts(site),
        f"{CONFIG}/clients.nft": web.clients(site, settings),
        units.path(units.DNSMASQ): units.dnsmasq(CONFIG),
    }
    if settings["pxe"]:
        made[f"{CONFIG}/nginx.conf"] = web.nginx(site, settings, system.web_user, STATE)
        made[units.path(units.NGINX)] = units.nginx(CONFIG)
        made[units.path(units.ONCE)] = units.once(settings["python"], PROGRAM, STATE)
        made[PROGRAM] = templating.program(ROLE, "once.py")
        made |= {f"{STATE}{path}": text for path, text in entries.answer_files(site, settings["http_port"]).items()}
        made |= {
            f"{FILES}/{path}": text
            for path, text in entries.files(site, settings["http_port"], system.linuxefi).items()
        }
    return made


def _remembered(observed: Host, site: Site, settings: Settings) -> dict[str, str]:
    """Records by path, written together with the entries that depend on them. A record without contents is empty if it exists, and not written otherwise."""
    texts = {MEMORY: site.decision.memory.text, WISHES: wishes.text(site.wishes)} if settings["pxe"] else {}
    return {path: text for path, text in texts.items() if text or path in observed.files}


def _given(site: Site, settings: Settings) -> dict[str, str]:
    """Ignition files that are given themselves, by path, as long as a machine needs them."""
    needed = [one for one in site.ignitions if one.content and settings["pxe"] and site.readers(one)]
    return {f"{IGNITION}/{one.path}": one.content for one in needed}


def _written(observed: Host, texts: c.Mapping[str, str], early: bool) -> dict[str, t.Any]:
    """Changed files in the forms in which they are written and shown. early: whether packages are installed."""
    shown = {path: text for path, text in texts.items() if not _sealed(path)}
    return {
        "lines": _lines(shown),
        "sealed": _lines({path: text for path, text in texts.items() if path not in shown}),
        "diff": _diff(observed, shown),
        "early": _lines({path: text for path, text in texts.items() if path.startswith("/etc/systemd/") and early}),
    }


def _sealed(path: str) -> bool:
    """Whether the file may contain the hash of a password."""
    return path.startswith((f"{ANSWERS}/", f"{IGNITION}/"))


def _staged(observed: Host, site: Site, settings: Settings, system: systems.Family) -> dict[str, t.Any]:
    """Texts for the services' own checkers, and their commands."""
    texts = {f"{STAGING}/dnsmasq.conf": dnsmasq.config(site, settings, STAGING, FILES)}
    checks = {"dnsmasq": ["dnsmasq", "--test", f"--conf-file={STAGING}/dnsmasq.conf"]}
    if settings["pxe"]:
        texts[f"{STAGING}/nginx.conf"] = web.nginx(site, settings, system.web_user, STATE)
        checks["nginx"] = ["nginx", "-t", "-q", "-c", f"{STAGING}/nginx.conf"]
    texts[f"{STAGING}/clients.nft"] = web.clients(site, settings)
    checks["nft"] = ["nft", "--check", "--file", f"{STAGING}/clients.nft"]
    if settings["pxe"]:
        for path, name, argv, text in _answers(observed, site, settings):
            texts[path], checks[name] = text, argv
    return {
        "staged": texts,
        "checks": [{"name": name, "argv": argv, "stdin": "", "environment": {}} for name, argv in checks.items()],
    }


def _answers(observed: Host, site: Site, settings: Settings) -> c.Iterator[tuple[str, str, list[str], str]]:
    """Copies of answer files for their validators, if the boot server has these: path, name of the check, its command, and text.

    One for each answer of a profile: those of other machines differ in names and addresses only.
    """
    made = entries.answer_files(site, settings["http_port"])
    for machine, _profile, answer in {answer: one for one in site.answered() for answer in one[2:]}.values():
        kind = answers.KINDS[answer.kind]
        if observed.fact(kind.checker[0]):
            path = f"{STAGING}/{answer.kind}-{machine.name}"
            yield path, f"{kind.checker[0]} ({machine.name})", [*kind.checker, path], made[answer.fetched(machine)]


def _same(observed: Host, path: str, text: str) -> bool:
    if path in observed.files:
        return observed.files[path].text == text
    return observed.checksums.get(path) == digest(text)


def _absent(observed: Host, site: Site, contents: c.Mapping[str, str], found: Findings) -> list[str]:
    """Files of earlier inventories: entries of removed machines, and files with keys that no machine needs any more, or that everybody could get."""
    folders = (*(f"{FILES}/{name}/" for name in _ENTRIES), f"{ANSWERS}/")
    old = [path for path in observed.checksums if path.startswith(folders) and path not in contents]
    needed = {f"{STATE}/{path}" for path, _file, readers in site.protected() if readers}
    unneeded = [path for path in observed.checksums if path.startswith((f"{IGNITION}/", f"{SECRET}/"))]
    shown = [f"{FILES}/{model.IMAGES}/{path}" for path in site.secrets if found.images.get(path)]
    ours = [
        path
        for path in (f"{CONFIG}/nginx.conf", units.path(units.NGINX), units.path(units.ONCE), PROGRAM)
        if path in observed.files and path not in contents
    ]
    return sorted([*old, *ours, *shown, *(path for path in unneeded if path not in needed)])


def _loaders(
    observed: Host, site: Site, settings: Settings, system: systems.Family
) -> tuple[list[dict[str, str]], dict[str, Fault]]:
    """Boot programs to copy to the served folder, and problems of missing ones."""
    copies, missing = [], {}
    for name, source in systems.sources(system, site, settings).items():
        if source not in observed.checksums:
            why = f"it does not exist at {source}" if source else "no package of this system has it"
            next_step = f"install it there, or set its path: dns_pxe_loaders: {{{name}: /path}}"
            missing[name] = Fault(f"{name}, which machines boot, is missing", "dns_pxe_loaders", why, next_step)
        elif observed.checksums.get(f"{FILES}/{name}") != observed.checksums[source]:
            copies.append({"source": source, "path": f"{FILES}/{name}"})
    return copies, missing


def _fetched(
    observed: Host, site: Site, settings: Settings, found: Findings, wrong: list[Fault]
) -> list[dict[str, t.Any]]:
    """Artifacts that are missing or have another checksum, and problems of their sources."""
    if not settings["pxe"]:
        return []
    public = [one for one in site.artifacts if not one.secret]
    lacking = [one for one in public if f"sha256:{found.images.get(one.path)}" != one.checksum]
    known = (one for one in lacking if not one.assumed)
    wrong += filter(None, (place.unusable(one.path, one.source, one.checksum, found) for one in known))
    for one in (one for one in lacking if one.signature):
        keys = [
            (f"the keyring of {one.path}", one.keyring),
            *([] if model.is_address(one.signature) else [(f"the signature of {one.path}", one.signature)]),
        ]
        wrong += filter(None, (place.unusable(what, source, "", found) for what, source in keys))
        if not observed.fact("gpgv"):
            wrong.append(
                Fault(
                    f"the signature of {one.path} cannot be verified",
                    "gpgv",
                    "gpgv is not installed on the boot server",
                    "install gpgv or gnupg2 there",
                )
            )
    return [{**dataclasses.asdict(one), "remote": one.remote} for one in lacking]


def _copied(
    observed: Host, site: Site, settings: Settings, found: Findings, wrong: list[Fault]
) -> list[dict[str, t.Any]]:
    """Missing files with keys that a machine needs now, and problems of their sources."""
    copied = []
    # Those that are given themselves are written with the other texts.
    sourced = [one for one in site.protected() if isinstance(one[1], model.Artifact) or not one[1].content]
    needed = [(path, one) for path, one, readers in sourced if readers and settings["pxe"]]
    for path, one in needed:
        there = observed.checksums.get(f"{STATE}/{path}")
        if isinstance(one, model.Artifact):
            lacks, expected = f"sha256:{there}" != one.checksum, one.checksum
        else:
            lacks, expected = there != _checksum(found, one.source), ""
        # An ignition file has no checksum but that of its source.
        fault = (
            None if one.assumed or (expected and not lacks) else place.unusable(one.path, one.source, expected, found)
        )
        wrong += [fault] if fault else []
        if one.assumed or lacks:
            copied.append({"path": path, "source": one.source, "assumed": one.assumed})
    return copied


def _checksum(found: Findings, source: str) -> str:
    return found.sources[source].checksum if source in found.sources else ""


def _before(observed: Host, packages: list[str]) -> record.Record:
    """The original state, for teardown."""
    installed = tuple(name for name in packages if name not in systems.STAYING)
    return record.Record(installed, record.services(observed, _DROP_INS))


def _released(observed: Host, contents: c.Mapping[str, str], before: record.Record) -> list[dict[str, t.Any]]:
    """Services of the role that it does not need any more."""
    return [
        {"unit": name, "drop_in": _DROP_INS[name], **dataclasses.asdict(before.service(name))}
        for name in restoring.pointed(observed, _DROP_INS, _CONFIGURATIONS)
        if _DROP_INS[name] not in contents
    ]


def _messages(
    observed: Host, site: Site, settings: Settings, actions: c.Iterable[Action], lacking: list[str]
) -> list[str]:
    messages = []
    if settings["pxe"]:
        installed = [machine.name for machine in site.machines if site.installed_now(machine)]
        messages.append(
            f"{len(site.machines)} machines boot from here; installed at their next boot: {some(installed, 12) or 'none'}; all others boot their disks"
        )
        messages += _once(site) + list(site.decision.messages)
        needed = {answers.KINDS[answer.kind].checker[0] for _machine, _profile, answer in site.answered()}
        messages += [
            f"answer files are not validated by {name}, which is not installed on this server"
            for name in sorted(needed)
            if not observed.fact(name)
        ]
    messages += [f"packages are installed: {', '.join(lacking)}"] if lacking else []
    return messages + [f"{one.unit} is {one.state}: {one.why}" for one in actions]


def _once(site: Site) -> list[str]:
    """Who has used up its wish."""
    names = [one.name for one in site.machines if site.to_be_installed(one) and not site.installed_now(one)]
    next_step = (
        "Next: wait until they have joined; to write one again, boot it from the network by name with machine_boot"
    )
    return [f"written once, so they boot their disks: {some(names, 12)}. {next_step}"] if names else []


def _lines(texts: c.Mapping[str, str]) -> str:
    """Files in the form of write.sh, one line each."""
    return "".join(f"={base64.b64encode(text.encode()).decode()} {path}\n" for path, text in sorted(texts.items()))


def _diff(observed: Host, texts: c.Mapping[str, str]) -> list[str]:
    lines: list[str] = []
    for path, text in texts.items():
        lines += difflib.unified_diff(
            observed.text(path).splitlines(),
            text.splitlines(),
            f"before: {path}",
            f"after: {path}",
            lineterm="",
            n=1,
        )
    return lines


def _nothing() -> dict[str, t.Any]:
    texts = dict.fromkeys(("lines", "sealed", "early", "record", "web_user"), "")
    names = (
        "faults",
        "messages",
        "changes",
        "absent",
        "diff",
        "packages",
        "actions",
        "released",
        "loaders",
        "checks",
        "artifacts",
        "protected",
        "stops",
        "installs",
        "writes",
    )
    lists: dict[str, t.Any] = {key: [] for key in (*names, "firewall")}
    return {**texts, **lists, "expected": {}, "staged": {}, "apt": False, "selinux": False}


def restored(observed: Host) -> dict[str, t.Any]:
    """What teardown does, as restoring.restored documents it."""
    own = _own(observed)
    made = restoring.restored(
        observed,
        ROLE,
        _DROP_INS,
        configurations=_CONFIGURATIONS,
        removed=[CONFIG, web.FETCHED],
        absent=list(map(units.path, own)),
        stops=True,
    )
    return {**made, "stops": [*made["stops"], *own]}


def _own(observed: Host) -> list[str]:
    """The role's own service, if it is there."""
    return [units.ONCE] if units.path(units.ONCE) in observed.files else []
