# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rule reports, and what it reads. Pure.

Keys are those of the installer's own errors (k8s.io/apimachinery/pkg/util/validation/field), so that users can compare ours with what it says.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import inputs
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import MASTER, Address, Machine, Network

INSTALL_CONFIG, AGENT_CONFIG = "install-config.yaml", "agent-config.yaml"
#: How machines become a cluster: with a bootstrap machine, one machine that installs itself, or by the agent-based installer.
UPI, IN_PLACE, AGENT = "upi", "in_place", "agent"
METHODS = (UPI, IN_PLACE, AGENT)
Document = c.Mapping[str, t.Any]
#: Values that messages do not show, or by their hash, by the end of their key.
SECRET = ("pullSecret", "additionalTrustBundle", "password")
#: Variables from which values come, by the beginning of their key. The first one that fits counts.
_VARIABLES = {
    "metadata.name": "hwaccel_domain",
    "baseDomain": "hwaccel_domain",
    "networking.machineNetwork": "hwaccel_machine_network",
    "networking.clusterNetwork": "hwaccel_cluster_network or cluster_openshift_host_prefix",
    "networking.serviceNetwork": "hwaccel_service_network",
    "networking.networkType": "cluster_openshift_network_type",
    "networking.ovnKubernetesConfig": "cluster_openshift_internal_networks",
    "networking.clusterNetworkMTU": "cluster_openshift_network_mtu",
    "pullSecret": "cluster_openshift_pull_secret",
    "sshKey": "cluster_openshift_ssh_keys",
    "additionalTrustBundle": "cluster_openshift_trust_bundle",
    "proxy": "cluster_openshift_proxy",
    "imageDigestSources": "cluster_openshift_mirrors",
    "capabilities": "cluster_openshift_capabilities",
    "additionalEnabledCapabilities": "cluster_openshift_capabilities",
    "fips": "cluster_openshift_fips",
    "bootstrapInPlace": "hwaccel_install_device of the machine",
    "rendezvousIP": "cluster_openshift_rendezvous_address",
    "additionalNTPSources": "cluster_openshift_time_servers",
    "bootArtifactsBaseURL": "cluster_openshift_boot_artifacts_url",
}
_OVERRIDES = {INSTALL_CONFIG: "cluster_openshift_install_config", AGENT_CONFIG: "cluster_openshift_agent_config"}


@dataclasses.dataclass(frozen=True)
class Finding:
    """key: path of the value in its document, or the variable and host where there is no document. what, why, next_step: as errors.Fault documents them."""

    key: str
    what: str
    why: str = ""
    next_step: str = ""
    document: str = INSTALL_CONFIG

    def fault(self) -> Fault:
        where = f"{self.key} of {self.document}" if self.document else self.key
        return Fault(self.what, where, self.why, self.next_step or self._correct())

    def _correct(self) -> str:
        variable = next((name for prefix, name in _VARIABLES.items() if self.key.startswith(prefix)), "")
        overrides = _OVERRIDES.get(self.document, "")
        return f"correct {' or '.join(filter(None, (variable, overrides)))}" if overrides else "correct it"


@dataclasses.dataclass(frozen=True)
class Release:
    """What the installer says of itself, empty where it was not asked. architecture: amd64, arm64 …, or multi."""

    version: str = ""
    image: str = ""
    architecture: str = ""


@dataclasses.dataclass(frozen=True)
class Site:
    """config: install-config as schema.typed returns it, with defaults. agent: agent-config likewise, empty without one.

    machines: of the cluster, in the order of the inventory, with the bootstrap machine. balancers: addresses of the load balancer by their variables.
    internal: networks of OVN-Kubernetes that users set, by their names (join, transit, masquerade). several_disks: names of machines with more than one.
    on_hypervisor: names of virtual machines. mtu: of the cluster network, 0 for the default.
    salt: of the hashes of secrets, "" without a pull secret, from which it is made: who sees hashes does not have it, and later runs have the same.
    fips_host: whether the host that runs the installer is in FIPS mode, and clock_offset: seconds between its clock and the boot server's, None if unknown.
    """

    config: Document
    method: str = UPI
    machines: tuple[Machine, ...] = ()
    agent: Document = dataclasses.field(default_factory=dict)
    balancers: c.Mapping[str, Address] = dataclasses.field(default_factory=dict)
    internal: c.Mapping[str, Network] = dataclasses.field(default_factory=dict)
    release: Release = Release()
    several_disks: frozenset[str] = frozenset()
    on_hypervisor: frozenset[str] = frozenset()
    mtu: int = 0
    fips_host: bool | None = None
    clock_offset: float | None = None
    salt: str = ""

    def at(self, path: str) -> t.Any:
        """The value at a path such as controlPlane.replicas, None if there is none."""
        return at(self.config, path)

    def hashed(self, secret: str) -> str:
        """A secret for messages: enough to tell two of one site apart."""
        return inputs.shown_hash(secret, self.salt)

    @property
    def masters(self) -> list[Machine]:
        return [machine for machine in self.machines if machine.role == MASTER]


Check = t.Callable[[Site], c.Iterator[Finding]]


def at(document: t.Any, path: str) -> t.Any:
    for key in path.split("."):
        document = document.get(key) if isinstance(document, c.Mapping) else None
    return document


def shown(key: str, value: t.Any) -> str:
    """A value for messages. Of secrets it is not shown, also where it is a number."""
    return "the value" if key.endswith(SECRET) and values.scalar(value) else values.shown(value)


def one_of(key: str, value: t.Any, known: c.Collection[str], document: str = INSTALL_CONFIG) -> c.Iterator[Finding]:
    """A value that is not one of those which are supported."""
    if value not in known:
        listed = [one for one in known if one]
        next_step = f"set {listed[0]}" if len(listed) == 1 else f"choose one of {', '.join(listed)}"
        yield Finding(key, f"{shown(key, value)} is not supported", values.near(value, listed), next_step, document)
