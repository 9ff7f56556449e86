# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of rules: what the installer checks, with the same verdict and key, and what it does not check and we do. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import (
    agent_rules,
    inventory_rules,
    keys,
    naming,
    networks,
    pools,
    schema,
    sources,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import (
    AGENT_CONFIG,
    Check,
    Finding,
    Site,
)


@dataclasses.dataclass(frozen=True)
class Rule:
    """name: of a rule of ours that of the check that users can skip. ours: whether the installer has no such rule. note: whether it only says something."""

    name: str
    check: Check
    ours: bool = False
    note: bool = False


@dataclasses.dataclass(frozen=True)
class Told:
    """A finding with its rule."""

    rule: str
    ours: bool
    note: bool
    finding: Finding

    def as_dict(self) -> dict[str, t.Any]:
        more = {"rule": self.rule, "ours": self.ours, "key": self.finding.key, "document": self.finding.document}
        return {**self.finding.fault().as_dict(), **more}


def _unknown(site: Site) -> c.Iterator[Finding]:
    yield from schema.unknown(site.config, schema.INSTALL)


def _unknown_of_agent(site: Site) -> c.Iterator[Finding]:
    yield from schema.unknown(site.agent, schema.AGENT, AGENT_CONFIG)


_INSTALLER = (
    Rule("apiVersion", naming.api_version),
    Rule("name", naming.cluster_name),
    Rule("baseDomain", naming.base_domain),
    Rule("featureSet", naming.feature_set),
    Rule("networks", networks.addresses),
    Rule("overlaps", networks.apart),
    Rule("service network", networks.service_size),
    Rule("families", networks.families),
    Rule("hostPrefix", networks.host_prefix),
    Rule("networkType", networks.plugin),
    Rule("clusterNetworkMTU", networks.mtu),
    Rule("defaults of OVN-Kubernetes", networks.ovn_defaults),
    Rule("internalJoinSubnet", networks.join),
    Rule("controlPlane", pools.control_plane),
    Rule("compute", pools.compute),
    Rule("platform", pools.platform),
    Rule("publish", pools.publish),
    Rule("capabilities", pools.capabilities),
    Rule("bootstrapInPlace", pools.in_place),
    Rule("pullSecret", keys.pull_secret),
    Rule("sshKey", keys.ssh_key),
    Rule("fips", keys.fips),
    Rule("additionalTrustBundle", keys.trust_bundle),
    Rule("proxy", sources.proxy),
    Rule("mirrors", sources.mirrors),
)
_AGENT_INSTALLER = (
    Rule("agent", pools.agent),
    Rule("agent-config", agent_rules.document),
    Rule("rendezvousIP", agent_rules.rendezvous),
    Rule("interfaces", agent_rules.interfaces),
    Rule("rootDeviceHints", agent_rules.hints),
    Rule("role", agent_rules.roles),
    Rule("hosts", agent_rules.counts),
    Rule("additionalNTPSources", agent_rules.time_servers),
    Rule("bootArtifactsBaseURL", agent_rules.artifacts),
)
#: reference: what the installer accepts, and what fails later or does something else than was meant.
_OURS = (
    Rule("unknown_keys", _unknown, ours=True),
    Rule("unknown_keys", _unknown_of_agent, ours=True),
    Rule("host_prefix", networks.node_prefix, ours=True),
    Rule("ip_families", networks.one_family, ours=True),
    Rule("node_networks", networks.node_networks, ours=True),
    Rule("platform", pools.one_platform, ours=True),
    Rule("network_type", networks.known_plugin, ours=True),
    Rule("internal_networks", networks.internal, ours=True),
    Rule("capabilities", pools.needed_capabilities, ours=True),
    Rule("ssh_keys", keys.ssh_keys, ours=True),
    Rule("registry", sources.pulled, ours=True),
    Rule("mirror_trust", sources.mirror_trust, ours=True),
    Rule("no_proxy", sources.no_proxy, ours=True),
    Rule("node_names", naming.node_names, ours=True),
    Rule("node_names", agent_rules.names, ours=True),
    Rule("machine_addresses", inventory_rules.machine_addresses, ours=True),
    Rule("load_balancer", inventory_rules.balancer, ours=True),
    Rule("masters", inventory_rules.masters, ours=True),
    Rule("compute_replicas", inventory_rules.replicas, ours=True),
    Rule("bootstrap", inventory_rules.bootstrap, ours=True),
    Rule("roles", inventory_rules.roles, ours=True),
    Rule("architectures", inventory_rules.architectures, ours=True),
    Rule("rendezvous", inventory_rules.rendezvous, ours=True),
    Rule("static_networks", agent_rules.static, ours=True),
    Rule("install_disks", inventory_rules.install_disks, ours=True),
    Rule("install_disks", inventory_rules.install_disks_unknown, ours=True, note=True),
    Rule("network_mtu", inventory_rules.mtu, ours=True),
    Rule("clocks", inventory_rules.clocks, ours=True),
    Rule("docker_bridge", networks.docker_bridge, ours=True, note=True),
    Rule("registry_storage", inventory_rules.registry_storage, ours=True, note=True),
)
RULES = (*_INSTALLER, *_AGENT_INSTALLER, *_OURS)
#: Checks that users can skip.
SKIPPABLE = tuple(sorted({rule.name for rule in _OURS}))


def checked(site: Site, typing: c.Sequence[Finding] = (), skipped: c.Collection[str] = ()) -> list[Told]:
    """All findings at once. typing: those of the types of values. skipped: names of our rules.

    Without an apiVersion that is supported the installer reads nothing else.
    """
    first = [Told("apiVersion", False, False, one) for one in naming.api_version(site)]
    if first:
        return first
    found = [Told("type", False, False, one) for one in typing]
    for rule in RULES:
        if not (rule.ours and rule.name in skipped):
            found += [Told(rule.name, rule.ours, rule.note, one) for one in rule.check(site)]
    return found
