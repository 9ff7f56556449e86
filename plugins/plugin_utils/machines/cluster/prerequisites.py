# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine needs to become a node, with any distribution. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import ipaddress
import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import surroundings
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host, Version

CHECKS = (
    "cgroup",
    "clock",
    "disk",
    "endpoint",
    "identity",
    "memory",
    "networks",
    "ports",
    "proxy",
    "route",
    "runtime",
    "swap",
)
#: Facts that the checks need, for the request of a role.
FACTS: dict[str, tuple[str, ...]] = {
    "cgroup": ("output", "stat", "-f", "-c", "%T", "/sys/fs/cgroup"),
    "clock": ("output", "timedatectl", "show", "-p", "NTPSynchronized", "--value"),
    "free_bytes": ("free", "/var/lib"),
    "host_name": ("output", "hostname"),
    "inotify": ("lines", "/proc/sys/fs/inotify/max_user_instances", "."),
    "ip_forward": ("lines", "/proc/sys/net/ipv4/ip_forward", "."),
    "links": ("output", "ip", "-o", "link", "show"),
    "ipv6_forward": ("lines", "/proc/sys/net/ipv6/conf/default/forwarding", "."),
    "machine_id": ("lines", "/etc/machine-id", "."),
    "memory": ("lines", "/proc/meminfo", "^MemTotal:"),
    "product_uuid": ("lines", "/sys/class/dmi/id/product_uuid", "."),
    "routes": ("output", "ip", "-o", "route", "show", "default"),
    "routes6": ("output", "ip", "-o", "-6", "route", "show", "default"),
    "swap": ("lines", "/proc/swaps", "^(?!Filename).+"),
}
#: Instances of inotify with which kubelet and kube-proxy end with "too many open files" as soon as there are some containers: the default of 128.
_INOTIFY = 512
#: kubelet refuses cgroup version 1 since this version unless failCgroupV1 is false (KEP-5573).
_NO_CGROUP_1: Version = (1, 35)
#: A kubelet asks its runtime for the cgroup driver (RuntimeConfig of the CRI), without a fallback since this version (KEP-4033); containerd has it since 2.0.
_ASKS_RUNTIME: Version = (1, 37)
_ANSWERS: Version = (2,)
#: kubeadm's own minimum of a server in MiB (constants.ControlPlaneMem, 1.36), and the part of it that a kernel keeps for itself.
_MEMORY, _KERNELS_SHARE = 1700, 100
_DISK_GIB = 5.0


@dataclasses.dataclass(frozen=True)
class Needs:
    """ports: TCP ports by what uses them, as long as the machine is no member. networks: of pods and Services. serves: whether it becomes a server.

    endpoint: of the cluster, with its port. direct: networks for which no proxy must be asked. containerd: its version, where the machine has it and the
    kubelet uses it. version: of Kubernetes. without_cgroup_1: whether its kubelet refuses cgroup version 1. swap: whether its kubelet accepts swap.
    """

    ports: c.Mapping[int, str]
    networks: c.Mapping[str, str]
    version: Version
    serves: bool = False
    member: bool = False
    without_cgroup_1: bool = True
    swap: bool = False
    endpoint: str = ""
    direct: c.Collection[str] = ()
    containerd: Version = ()


def faults(host: Host, needs: Needs, skipped: c.Collection[str] = ()) -> list[Fault]:
    """All problems. skipped: tolerated ones of CHECKS."""
    found = {
        "cgroup": _cgroup(host, needs),
        "clock": _clock(host),
        "disk": _disk(host),
        "endpoint": surroundings.endpoint(host, needs.endpoint),
        "memory": _memory(host) if needs.serves else [],
        "networks": _networks(host, needs.networks),
        "ports": [] if needs.member else _ports(host, needs.ports),
        "proxy": surroundings.proxy(host, needs.endpoint, needs.direct),
        "route": _route(host),
        "runtime": _runtime(needs),
        "swap": [] if needs.swap else _swap(host),
    }
    return [fault for name, one in found.items() if name not in skipped for fault in one]


def few_instances(host: Host) -> bool:
    """Whether the limit of inotify instances is too low for a node. It is no fault: a role can raise it."""
    return int(host.fact("inotify") or _INOTIFY) < _INOTIFY


def identity(host: Host, node: str, skipped: c.Collection[str] = ()) -> dict[str, str]:
    """What must differ between machines, as model.Machine documents it."""
    if "identity" in skipped:
        return {"node name": node}
    return {
        "node name": node,
        "host name": host.fact("host_name"),
        "machine-id": host.fact("machine_id"),
        "product UUID": host.fact("product_uuid"),
        "MAC address": _mac(host),
    }


def _mac(host: Host) -> str:
    """Of the interface by which the machine is reached first, empty if that is not known."""
    device = re.search(r"\bdev (\S+)", host.fact("routes") or host.fact("routes6"))
    link = device and re.search(
        rf"^\d+: {re.escape(device[1])}[@:].*\blink/ether (\S+)", host.fact("links"), re.MULTILINE
    )
    return link[1] if link else ""


def _runtime(needs: Needs) -> list[Fault]:
    if needs.version[:2] < _ASKS_RUNTIME or not needs.containerd or needs.containerd >= _ANSWERS:
        return []
    what = f"containerd {'.'.join(map(str, needs.containerd))} does not tell a kubelet its cgroup driver"
    why = f"Kubernetes {'.'.join(map(str, _ASKS_RUNTIME))} and later need it (RuntimeConfig)"
    return [Fault(what, "containerd --version", why, "upgrade containerd to 2.0 or later first")]


def _cgroup(host: Host, needs: Needs) -> list[Fault]:
    if host.fact("cgroup") == "cgroup2fs" or not needs.without_cgroup_1 or needs.version[:2] < _NO_CGROUP_1:
        return []
    next_step = "boot with systemd.unified_cgroup_hierarchy=1, or set failCgroupV1: false in its configuration"
    return [
        Fault(
            "the machine has cgroup version 1", "/sys/fs/cgroup", "kubelet does not start with it since 1.35", next_step
        )
    ]


def _clock(host: Host) -> list[Fault]:
    if host.fact("clock") != "no":
        return []
    why, next_step = "certificates are not valid yet on a slow clock", "start chronyd or systemd-timesyncd"
    return [Fault("the clock is not synchronized", "timedatectl", why, next_step)]


def _disk(host: Host) -> list[Fault]:
    free = float(host.fact("free_bytes") or "inf") / 1024**3
    if free >= _DISK_GIB:
        return []
    why = f"images and etcd need {_DISK_GIB:g} GiB"
    return [Fault(f"{free:.1f} GiB are free", "/var/lib", why, "free space, or mount a larger file system there")]


def _memory(host: Host) -> list[Fault]:
    words = host.fact("memory").split()
    mib = int(words[1]) // 1024 if len(words) > 1 else _MEMORY
    if mib >= _MEMORY - _KERNELS_SHARE:
        return []
    why = f"a server needs {_MEMORY} MiB"
    return [Fault(f"the machine has {mib} MiB of memory", "/proc/meminfo", why, "use a larger machine as a server")]


def _networks(host: Host, networks: c.Mapping[str, str]) -> list[Fault]:
    """Addresses of the machine within a network of pods or Services, which would hide one another, and networks of which its kernel knows nothing."""
    found = []
    if has_ipv6(networks.values()) and not host.fact("ipv6_forward"):
        what, why = "the machine has no IPv6", "networks of pods or Services have addresses of it"
        next_step = "remove ipv6.disable=1 from its kernel's command line, or set networks of IPv4"
        found.append(Fault(what, "/proc/sys/net/ipv6", why, next_step))
    for name, text in networks.items():
        for part in filter(None, text.split(",")):
            network = ipaddress.ip_network(part.strip())
            inside = [
                address
                for address, device in host.addresses.items()
                if not device.startswith(_OF_PODS) and _within(address, network)
            ]
            if inside:
                why = f"the machine has {some(inside)} on {host.addresses[inside[0]]}"
                next_step = "set a network that nothing else uses"
                found.append(Fault(f"the {name} {part} overlaps with a network of the machine", "", why, next_step))
    return found


def has_ipv6(networks: c.Iterable[str]) -> bool:
    """Whether one of them has addresses of IPv6. networks: with commas between those of several families."""
    return any(":" in text for text in networks)


#: Interfaces of network plugins, which have addresses of pods.
_OF_PODS = ("cni", "flannel", "cali", "cilium", "lxc", "weave", "veth", "kube-", "nodelocaldns")


def _within(address: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]) in network
    except ValueError:
        return False


def _ports(host: Host, ports: c.Mapping[int, str]) -> list[Fault]:
    users = {one.port: one for one in host.listeners if one.protocol == "tcp"}
    next_step = "stop it, or give it another port"
    return [
        Fault(
            f"TCP port {port} is taken by {_user(users[port].process, users[port].unit)}",
            "",
            f"{what} needs it",
            next_step,
        )
        for port, what in ports.items()
        if port in users
    ]


def _user(process: str, unit: str) -> str:
    return f"{process or 'an unknown process'}{f' ({unit})' if unit else ''}"


def _route(host: Host) -> list[Fault]:
    if host.fact("routes") or host.fact("routes6"):
        return []
    why, next_step = "Kubernetes finds its address by it, also without internet", "add one, which may lead nowhere"
    return [Fault("the machine has no default route", "ip route", why, next_step)]


def _swap(host: Host) -> list[Fault]:
    if not host.fact("swap"):
        return []
    next_step = "run swapoff --all and remove it from /etc/fstab, or set failSwapOn: false and memorySwap"
    return [Fault("swap is on", "/proc/swaps", "kubelet does not start with it (failSwapOn)", next_step)]
