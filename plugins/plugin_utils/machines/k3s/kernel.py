# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the kernel without which K3s or its pods do not work, as those of older boards. Pure.

Source: contrib/util/check-config.sh of K3s (`k3s check-config`), but for NETFILTER_XT_MATCH_IPVS: K3s' kube-proxy uses iptables (kubeProxyArgs in
pkg/daemons/agent/agent_linux.go). A kernel without the tables of before does with nftables, which K3s' own iptables uses as well.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host

Settings = c.Mapping[str, t.Any]
_When = c.Callable[[Host, Settings], bool]


@dataclasses.dataclass(frozen=True)
class Need:
    """options: by their names without CONFIG_, separated by |; one of them does. why: what needs it. when: on which machines. instead: another next step."""

    options: str
    why: str
    when: _When = lambda _host, _settings: True
    instead: str = ""


def _backend(name: str) -> _When:
    return lambda _host, settings: bool(settings["flannel_backend"] == name)


def _legacy(host: Host, _settings: Settings) -> bool:
    return host.fact("cgroup") != "cgroup2fs"


def _overlay(_host: Host, settings: Settings) -> bool:
    return settings["engine"] == "containerd" and "snapshotter" not in settings["configuration"]


def _policies(_host: Host, settings: Settings) -> bool:
    return settings["hardening"] == "cis"


_CONTAINERS, _GROUPS, _NETWORK = "containers need it", "limits of pods need it", "the network of pods needs it"
_SERVICES, _NAT = "Services need it", "packets of pods need it to leave the machine"
NEEDS = (
    *(
        Need(name, _CONTAINERS)
        for name in ("NAMESPACES", "NET_NS", "PID_NS", "IPC_NS", "UTS_NS", "SECCOMP", "KEYS", "POSIX_MQUEUE")
    ),
    *(
        Need(name, _GROUPS)
        for name in ("CGROUPS", "CGROUP_PIDS", "CGROUP_SCHED", "CPUSETS", "MEMCG", "CGROUP_DEVICE|CGROUP_BPF")
    ),
    *(Need(name, _GROUPS, _legacy) for name in ("CGROUP_CPUACCT", "CGROUP_FREEZER")),
    *(Need(name, _NETWORK) for name in ("VETH", "BRIDGE", "BRIDGE_NETFILTER")),
    *(Need(name, _SERVICES) for name in ("IP_NF_FILTER|NFT_COMPAT", "IP_NF_TARGET_REJECT|NFT_REJECT")),
    *(
        Need(f"NETFILTER_XT_MATCH_{name}", _SERVICES)
        for name in ("ADDRTYPE", "COMMENT", "CONNTRACK", "MULTIPORT", "STATISTIC")
    ),
    *(
        Need(name, _NAT)
        for name in ("NF_NAT", "IP_NF_NAT|NFT_NAT", "IP_NF_TARGET_MASQUERADE|NETFILTER_XT_TARGET_MASQUERADE|NFT_MASQ")
    ),
    Need(
        "OVERLAY_FS",
        "images of containers need it",
        _overlay,
        "or set snapshotter: native in cluster_k3s_configuration",
    ),
    Need(
        "VXLAN",
        "flannel needs it",
        _backend("vxlan"),
        "or set cluster_k3s_flannel_backend: host-gw if all machines are in one network",
    ),
    Need("WIREGUARD", "flannel needs it", _backend("wireguard-native"), "or set cluster_k3s_flannel_backend: vxlan"),
    # Without it K3s leaves NetworkPolicies alone, and says so in its log only (Run in pkg/agent/netpol/netpol.go).
    *(
        Need(name, "NetworkPolicies need it", _policies, "or unset cluster_k3s_hardening")
        for name in ("IP_SET", "NETFILTER_XT_SET")
    ),
)
OPTIONS = tuple(name for need in NEEDS for name in need.options.split("|"))


def faults(host: Host, settings: Settings) -> list[Fault]:
    """One for each that the kernel lacks. A kernel that does not tell its options has none."""
    where, *rows = host.fact("kernel_options").splitlines() or [""]
    if not where:
        return []
    found = {row.partition("=")[0] for row in rows}
    return [
        Fault(
            f"the kernel {host.fact('kernel')} lacks CONFIG_{need.options.split('|', maxsplit=1)[0]}",
            where,
            need.why,
            ", ".join(filter(None, ("boot a kernel that has it", need.instead))),
        )
        for need in NEEDS
        if need.when(host, settings) and not found & set(need.options.split("|"))
    ]
