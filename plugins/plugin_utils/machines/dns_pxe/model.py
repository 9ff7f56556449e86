# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the role dns_pxe as plain data. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import ipaddress
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import answers, latch
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.reading import Reader, listed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.wishes import Wanted, Wish
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Address, Machine, Network

Settings = c.Mapping[str, t.Any]
#: Lease times of dnsmasq (its manual, --dhcp-range).
_LEASE = re.compile(r"\d+[smhdw]?|infinite")
#: Folders in URLs: of files for everybody, and of those that hold keys.
IMAGES, SECRET = "images", "secret"
_SHA256 = re.compile(r"sha256:[0-9a-f]{64}")


@dataclasses.dataclass(frozen=True)
class Cluster:
    """api, api_int, ingress: addresses of these names, several for round-robin DNS. rejoins: nodes that may join again under their name, None if all may."""

    name: str
    domain: str
    api: tuple[Address, ...]
    api_int: tuple[Address, ...]
    ingress: tuple[Address, ...]
    machine_networks: tuple[Network, ...] = ()
    cluster_networks: tuple[Network, ...] = ()
    service_networks: tuple[Network, ...] = ()
    srv: bool = False
    rejoins: tuple[str, ...] | None = None


@dataclasses.dataclass(frozen=True)
class Subnet:
    """A network for DHCP. pool: first and last address for unknown machines, empty if these get no address."""

    network: Network
    router: Address | None = None
    dns: tuple[Address, ...] = ()
    ntp: tuple[Address, ...] = ()
    mtu: int = 0
    lease: str = "12h"
    pool: tuple[Address, ...] = ()


@dataclasses.dataclass(frozen=True)
class Artifact:
    """A file that machines download. path: below images/. source, signature: an address, or a path on the controller. keyring: a path on the controller.

    assumed: whether this run finds out only later where it is, so that source and checksum are empty. secret: whether it holds keys: like an ignition file, it
    is below secret/, comes from the controller, and is served only to machines that need it now, and not by TFTP, whose server knows no addresses.
    """

    path: str
    source: str
    checksum: str
    signature: str = ""
    keyring: str = ""
    assumed: bool = False
    secret: bool = False

    @property
    def remote(self) -> bool:
        return is_address(self.source)


@dataclasses.dataclass(frozen=True)
class Ignition:
    """An ignition file of machines. path: below ignition/. source: a path on the controller, or content, the file itself, where source is empty.

    assumed: whether this run makes it only later.
    """

    path: str
    source: str
    content: str = ""
    assumed: bool = False


@dataclasses.dataclass(frozen=True)
class Profile:
    """What machines of a role boot for their installation. cluster, architecture: empty for all. answer: for installers without ignition.

    live: whether they boot a live system that finds the disk itself: the ignition file is that of this system, or in its initramfs.
    """

    role: str
    kernel: str
    initramfs: str
    cluster: str = ""
    architecture: str = ""
    rootfs: str = ""
    ignition: str = ""
    install_device: str = ""
    arguments: tuple[str, ...] = ()
    answer: answers.Answer | None = None
    live: bool = False

    @property
    def artifacts(self) -> tuple[str, ...]:
        """Paths of the files that a boot loader loads, and of the root file system, which the system fetches itself."""
        return tuple(filter(None, (self.kernel, self.initramfs, self.rootfs)))

    def device(self, machine: Machine) -> str:
        """The disk that is overwritten, empty if neither of them has it."""
        return str(machine.more.get("install_device") or self.install_device)

    def fits(self, machine: Machine) -> bool:
        return (
            self.role == machine.role
            and self.cluster in ("", machine.cluster)
            and self.architecture in ("", machine.architecture)
        )


@dataclasses.dataclass(frozen=True)
class Site:
    """Everything that one boot server serves. address: at which machines reach it. decision: which machines have to be installed. wishes: for this, as recorded
    by this run. written: MAC addresses of machines that have used up their wish.
    """

    address: Address
    clusters: tuple[Cluster, ...] = ()
    machines: tuple[Machine, ...] = ()
    subnets: tuple[Subnet, ...] = ()
    clients: tuple[Network, ...] = ()
    forwarders: tuple[Address, ...] = ()
    extra_hosts: tuple[tuple[Address, tuple[str, ...]], ...] = ()
    profiles: tuple[Profile, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    ignitions: tuple[Ignition, ...] = ()
    decision: latch.Decision = latch.NOBODY
    wishes: tuple[Wish, ...] = ()
    written: frozenset[str] = frozenset()

    def cluster(self, name: str) -> Cluster | None:
        return next((one for one in self.clusters if one.name == name), None)

    def domain(self, machine: Machine) -> str:
        cluster = self.cluster(machine.cluster)
        return cluster.domain if cluster else ""

    def fqdn(self, machine: Machine) -> str:
        domain = self.domain(machine)
        return f"{machine.name}.{domain}" if domain else machine.name

    def to_be_installed(self, machine: Machine) -> bool:
        """Whether the machine has to be installed, also while it is being installed."""
        return (machine.cluster, machine.name) in self.decision.installs

    def installed_now(self, machine: Machine) -> bool:
        """Whether the machine is installed when it boots from the network."""
        return self.to_be_installed(machine) and machine.mac not in self.written

    def wanted(self) -> Wanted:
        """Machines whose installation can be observed: they fetch a file for it that nothing else fetches."""
        paths = {
            one.mac: fetched
            for one in self.machines
            if self.to_be_installed(one) and (found := self.profile(one)) and (fetched := self._fetched(one, found))
        }
        macs = {(one.cluster, one.name): one.mac for one in self.machines}
        return Wanted(
            paths,
            frozenset(macs[key] for key in self.decision.renewed),
            frozenset(macs[key] for key in self.decision.waiting),
        )

    def _fetched(self, machine: Machine, profile: Profile) -> tuple[str, ...]:
        """Paths of URLs that the machine fetches for its installation only."""
        if profile.answer:
            return (profile.answer.fetched(machine),)
        if profile.ignition:
            return (f"/ignition/{profile.ignition}",)
        # The root file system comes last, and before anything is on the disk.
        return (f"/{self.place(profile.artifacts[-1])}",) if self.boots_keys(machine) else ()

    @property
    def secrets(self) -> frozenset[str]:
        """Paths of artifacts that hold keys."""
        return frozenset(one.path for one in self.artifacts if one.secret)

    def place(self, path: str) -> str:
        """Path in URLs of an artifact."""
        return f"{SECRET if path in self.secrets else IMAGES}/{path}"

    def boots_keys(self, machine: Machine) -> bool:
        """Whether the machine boots a file now that holds keys."""
        profile = self.profile(machine) if self.to_be_installed(machine) else None
        return profile is not None and not self.secrets.isdisjoint(profile.artifacts)

    def profile(self, machine: Machine) -> Profile | None:
        """The most specific profile for the machine."""
        fitting = [one for one in self.profiles if one.fits(machine)]
        return max(fitting, key=lambda one: bool(one.cluster) + bool(one.architecture), default=None)

    def answered(self) -> list[tuple[Machine, Profile, answers.Answer]]:
        """Machines that need an answer file now, with their profiles."""
        profiles = [(one, found) for one in self.machines if self.to_be_installed(one) and (found := self.profile(one))]
        return [(one, found, found.answer) for one, found in profiles if found.answer]

    def readers(self, file: Ignition | Artifact) -> list[Machine]:
        """Machines that need this file now. An installer may fetch it more than once."""
        profiles = [(one, found) for one in self.machines if self.to_be_installed(one) and (found := self.profile(one))]
        return [
            one
            for one, found in profiles
            if file.path in (found.artifacts if isinstance(file, Artifact) else (found.ignition,))
        ]

    def protected(self) -> list[tuple[str, Ignition | Artifact, list[Machine]]]:
        """Files that hold keys, each with its path in URLs, and the machines that need it now, which may be none."""
        return [
            *((f"ignition/{one.path}", one, self.readers(one)) for one in self.ignitions),
            *((self.place(one.path), one, self.readers(one)) for one in self.artifacts if one.secret),
        ]


def is_address(source: str) -> bool:
    """Whether a source is an address. Otherwise it is a path on the controller."""
    return source.startswith(("http://", "https://"))


def overlap(one: Network, other: Network) -> bool:
    return one.version == other.version and int(one[0]) <= int(other[-1]) and int(other[0]) <= int(one[-1])


def read(settings: Settings, memory: latch.Memory = latch.NOTHING) -> tuple[Site | None, list[Fault]]:
    """The site, None without an address of the server, and problems of single values. memory: of machines that have been nodes."""
    reader = Reader(settings)
    address = reader.address(settings["address"], "address")
    if address is None and not reader.faults:
        reader.fault(
            "the boot server has no address", "address", "", "set it to the address by which machines reach this server"
        )
    found, wrong = machines.read(
        settings["machines"], "dns_pxe_machines", needs=("mac",) if settings["dhcp"] or settings["pxe"] else ()
    )
    clusters = reader.entries(
        "clusters", lambda entry, where: _cluster(reader, entry, where), ("name", "domain", "api")
    )
    subnets = reader.entries("networks", lambda entry, where: _subnet(reader, entry, where), ("network",))
    given = Site(
        address or ipaddress.ip_address("0.0.0.0"),
        clusters,
        tuple(found),
        subnets,
        reader.networks(settings["clients"], "clients") or _inside(clusters, subnets),
        reader.addresses(settings["forwarders"], "forwarders"),
        reader.entries("extra_hosts", lambda entry, where: _extra(reader, entry, where), ("address", "names")),
        reader.entries(
            "profiles", lambda entry, where: _profile(reader, entry, where), ("role", "kernel", "initramfs")
        ),
        reader.entries(
            "artifacts", lambda entry, where: _artifact(reader, entry, where), ("path", "source", "checksum")
        ),
        reader.entries("ignitions", lambda entry, where: _ignition(reader, entry, where), ("path",)),
        latch.decided(memory, found, settings["joined"], listed(settings["install_again"])),
    )
    return (given if address else None), wrong + reader.faults


def _cluster(reader: Reader, entry: Settings, where: str) -> Cluster:
    api = reader.addresses(entry["api"], where)
    return Cluster(
        str(entry["name"]),
        reader.name(entry["domain"], where),
        api,
        reader.addresses(entry.get("api_int"), where) or api,
        reader.addresses(entry.get("ingress"), where) or api,
        reader.networks(entry.get("machine_networks"), where),
        reader.networks(entry.get("cluster_networks"), where),
        reader.networks(entry.get("service_networks"), where),
        reader.truth(entry.get("srv"), where),
        None if entry.get("rejoins") is None else tuple(map(str, listed(entry["rejoins"]))),
    )


def _subnet(reader: Reader, entry: Settings, where: str) -> Subnet | None:
    network = reader.networks(entry["network"], where)
    pool = reader.addresses(entry.get("pool"), where)
    if len(pool) not in (0, 2):
        reader.fault(
            "the pool cannot be read",
            where,
            f"it has {len(pool)} addresses",
            "write its first and its last address: [10.0.0.200, 10.0.0.250]",
        )
    try:
        mtu = int(entry.get("mtu") or 0)
    except ValueError:
        mtu = -1
    if mtu and not 576 <= mtu <= 65535:
        reader.fault(f"{entry.get('mtu')} is not an MTU", where, "", "write it as 1500 or 9000")
    router = reader.address(entry.get("router"), where)
    dns, ntp = reader.addresses(entry.get("dns"), where), reader.addresses(entry.get("ntp"), where)
    lease = str(entry.get("lease") or "12h")
    if not _LEASE.fullmatch(lease):
        reader.fault(f"{lease} is not a lease time", where, "", "write it as 45m, 12h, 7d or infinite")
    return Subnet(network[0], router, dns, ntp, mtu, lease, pool) if network else None


def _extra(reader: Reader, entry: Settings, where: str) -> tuple[Address, tuple[str, ...]] | None:
    address = reader.address(entry["address"], where)
    names = tuple(reader.name(one, where) for one in listed(entry["names"]))
    return (address, names) if address else None


def _profile(reader: Reader, entry: Settings, where: str) -> Profile:
    paths = {
        key: reader.path(entry[key], where) if entry.get(key) else ""
        for key in ("kernel", "initramfs", "rootfs", "ignition")
    }
    texts = {key: str(entry.get(key) or "") for key in ("role", "cluster", "architecture", "install_device")}
    answer = None
    if given := entry.get("answer"):
        answer, wrong = answers.read(given)
        if paths["ignition"]:
            wrong.append(
                ("the profile has ignition and an answer", "an installer reads one of them", "remove the other")
            )
        for what, why, next_step in wrong:
            reader.fault(what, where, why, next_step)
    live = reader.truth(entry.get("live"), where)
    if live and (answer or texts["install_device"]):
        what = f"the profile has {'an answer' if answer else 'install_device'}, and a live system does not read it"
        reader.fault(what, where, "the live system knows its disk", "remove it, or live")
    arguments = tuple(str(one) for one in listed(entry.get("arguments")))
    return Profile(**paths, **texts, arguments=arguments, answer=answer, live=live)


def _artifact(reader: Reader, entry: Settings, where: str) -> Artifact:
    secret = reader.truth(entry.get("secret"), where)
    if entry.get("assumed"):
        return Artifact(reader.path(entry["path"], where), "", "", assumed=True, secret=secret)
    checksum = str(entry["checksum"]).lower()
    if not _SHA256.fullmatch(checksum):
        reader.fault(
            f"{entry['path']} has no valid checksum",
            where,
            checksum,
            "write sha256: and the 64 digits of its publisher",
        )
    signature, keyring = str(entry.get("signature") or ""), str(entry.get("keyring") or "")
    if bool(signature) != bool(keyring):
        lacks = "keyring" if signature else "signature"
        reader.fault(
            f"{entry['path']} has no {lacks}",
            where,
            "a signature is verified with a keyring",
            f"set its {lacks}, or remove both",
        )
    found = Artifact(
        reader.path(entry["path"], where), str(entry["source"]), checksum, signature, keyring, secret=secret
    )
    if secret and (found.remote or signature):
        why = "it holds keys, and an address gives it to everybody" if found.remote else "only downloads are verified"
        next_step = "give an absolute path on the controller as its source, without signature and keyring"
        reader.fault(f"{entry['path']} cannot be downloaded", where, why, next_step)
    return found


def _ignition(reader: Reader, entry: Settings, where: str) -> Ignition:
    source, content = str(entry.get("source") or ""), str(entry.get("content") or "")
    if not source and not content:
        reader.fault("source is missing", where, "", "set its source, or its content")
    if source and content:
        reader.fault(f"{entry['path']} has source and content", where, "one of them would be ignored", "remove one")
    return Ignition(reader.path(entry["path"], where), source, content, bool(entry.get("assumed")))


def _inside(clusters: c.Iterable[Cluster], subnets: c.Iterable[Subnet]) -> tuple[Network, ...]:
    """Clients that are answered by default: the networks of machines."""
    return tuple(
        dict.fromkeys(
            [*(one.network for one in subnets), *(network for one in clusters for network in one.machine_networks)]
        )
    )
