# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A K3s that its own script has installed becomes one of the role: what it runs with is compared with what the role sets. Pure.

Its data and its tokens stay as they are. What a cluster keeps for its life must be set as it is, and what else differs is shown.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.contents import has
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import AGENT, MEMBER, SERVER
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.files import Content
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import configuration, external, options, places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.options import Options

Settings = c.Mapping[str, t.Any]
#: What servers must have in common (CriticalControlArgs in pkg/daemons/config/types.go), what data and containers depend on, and the values without the option.
_KEPT = {
    "cluster-cidr": "10.42.0.0/16",
    "cluster-dns": "",
    "cluster-domain": "cluster.local",
    "container-runtime-endpoint": "",
    "data-dir": places.DATA,
    "disable-agent": "false",
    "disable-apiserver": "false",
    "disable-cloud-controller": "false",
    "disable-controller-manager": "false",
    "disable-etcd": "false",
    "disable-helm-controller": "false",
    "disable-kube-proxy": "false",
    "disable-network-policy": "false",
    "disable-scheduler": "false",
    "docker": "false",
    "egress-selector-mode": "agent",
    "embedded-registry": "false",
    "flannel-backend": "vxlan",
    "flannel-external-ip": "false",
    "flannel-ipv6-masq": "false",
    "https-listen-port": "6443",
    "rootless": "false",
    "secrets-encryption": "false",
    "secrets-encryption-provider": "aescbc",
    "service-cidr": "10.43.0.0/16",
    "service-node-port-range": "30000-32767",
    "snapshotter": "overlayfs",
    "supervisor-metrics": "false",
    "vpn-auth": "",
    "vpn-auth-file": "",
    "with-node-id": "false",
}
#: Of others, where it is no other value than none.
_DEFAULTS = {
    "etcd-snapshot-retention": "5",
    "etcd-snapshot-schedule-cron": "0 */12 * * *",
    "write-kubeconfig-mode": "0600",
}
#: How the machine has come to its cluster, which its data say by now; and what is in files of the role.
_ENTRY = options.names(
    """
    agent-token agent-token-file cluster-init cluster-reset cluster-reset-restore-path config node-name server token token-file
    """
)
#: Variables of roles beside those that configuration.RESERVED names.
_ROLES_OWN = {"cluster-dns": "", "docker": "cluster_k3s_engine"}
_PROXIES = re.compile(r"(?:NO|HTTPS?)_PROXY", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Adopted:
    """lines: what is shown. faults: why it cannot be. contents: tokens, and how it has come to its cluster. absent: what is removed. server: its URL."""

    lines: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    contents: tuple[Content, ...] = ()
    absent: tuple[str, ...] = ()
    server: str = ""

    def __bool__(self) -> bool:
        return bool(self.lines)


#: A machine on which nothing is adopted.
NONE = Adopted()


def environments(role: str) -> tuple[str, ...]:
    """Files with the environment of the unit that the script has written. The last one is its own."""
    unit = places.UNITS[role]
    return (f"/etc/default/{unit}", f"/etc/sysconfig/{unit}", f"{places.unit(role)}.env")


def files(settings: Settings) -> tuple[str, ...]:
    """What is read only of a K3s that may be adopted, because it may have secrets."""
    if not settings["adopt"]:
        return ()
    own = (places.OWN_AGENT_TOKEN, places.OWN_TOKEN) if settings["role"] == SERVER else (places.TOKEN,)
    return (*environments(settings["role"]), places.FOREIGN_CONFIGURATION, *own)


def adopted(host: Host, settings: Settings, state: str) -> Adopted:
    """state: of the machine, as found.found says it. Empty if it is the role's own."""
    role = settings["role"]
    own = environments(role)[-1]
    if state != MEMBER or (places.ENTRY in host.files and not has(host, own)):
        return NONE
    if not settings["adopt"]:
        next_step = "set cluster_k3s_adopt: true, and run again"
        return Adopted(("adopt K3s",), (Fault("its K3s was not adopted completely", own, "", next_step),))
    was, refused = _runs(host, role)
    token = _token(host, was)
    lines: list[str] = []
    # Afterwards the unit has none of its arguments any more.
    if places.CONFIGURATION not in host.files:
        becomes = _becomes(host, settings)
        lines = _lines(settings, was, becomes)
        refused += [*_node(host, settings, was), *_kept(settings, was, becomes)]
        refused += [_without_token(role)] if role == AGENT and not token else []
    return Adopted(
        ("adopt K3s, as it runs", *lines),
        tuple(refused),
        (*_tokens(host, settings, token), Content(places.ENTRY, _entry(settings), "0600", sensitive=True)),
        _absent(host, own),
        next(iter(was.get("server", [])), ""),
    )


def datastore(host: Host) -> str:
    """The endpoint of the datastore of a server that may be adopted, empty if it is its own."""
    return _of(_runs(host, SERVER)[0], external.OPTION, "")


def _runs(host: Host, role: str) -> tuple[Options, list[Fault]]:
    """With which options, and why it cannot be adopted as it is."""
    program, *arguments = options.command(host.text(places.unit(role))) or [""]
    environment: dict[str, str] = {}
    for path in environments(role):
        environment |= options.variables(host.text(path))
    texts = [host.text(path) for path in (places.FOREIGN_CONFIGURATION, *host.fact("drop_ins").split())]
    was = options.merged(arguments[1:], environment, texts)
    return was, [*_unknown(program, arguments, role, was.get("config", [])), *_environment(environment)]


def _without_token(role: str) -> Fault:
    next_step = f"copy its token to {places.TOKEN}, for root only"
    return Fault("the token of the agent is in none of its files", places.unit(role), "", next_step)


def _becomes(host: Host, settings: Settings) -> Options:
    """What the role sets, and files of others, which stay."""
    goes = deciding(host)
    paths = (places.FOREIGN_CONFIGURATION, *host.fact("drop_ins").split())
    others = [host.text(path) for path in paths if path not in (*places.OURS, *goes)]
    ours = configuration.settings_of(settings)
    labels = [f"{name}={value}" for name, value in settings["labels"].items()]
    return {
        **options.merged([], {}, others),
        **{name: options.listed(name, value) for name, value in ours.items()},
        **({"node-label": labels} if labels else {}),
    }


def _unknown(program: str, arguments: c.Sequence[str], role: str, config: c.Sequence[str]) -> list[Fault]:
    unit = places.unit(role)
    if config and config[-1] != places.FOREIGN_CONFIGURATION:
        next_step = f"move it to {places.FOREIGN_CONFIGURATION}"
        return [Fault(f"the configuration of K3s is {config[-1]}", unit, "the role has it elsewhere", next_step)]
    if program != places.PROGRAM:
        next_step = f"install it as {places.PROGRAM}, with a unit that says so"
        return [
            Fault(f"K3s is {program or 'nothing that the unit starts'}", unit, "the role has it elsewhere", next_step)
        ]
    if arguments[:1] != [role]:
        next_step = "move it to the group that fits"
        return [Fault(f"K3s does not run as {role}", unit, "", next_step)]
    return []


def _node(host: Host, settings: Settings, was: Options) -> list[Fault]:
    """The certificate of its kubelet says which Node it is."""
    name = authority.common_name(host.text(places.NODE_CERTIFICATE)).removeprefix("system:node:")
    name = name or "".join(was.get("node-name", [])) or host.fact("host_name").lower()
    if name == settings["node"]:
        return []
    what = f"its node is {name}, and {settings['node']} is set"
    return [Fault(what, "hwaccel_node_name", "it would become another node", f"set {name}")]


def _environment(environment: c.Mapping[str, str]) -> list[Fault]:
    names = sorted(name for name in environment if _PROXIES.fullmatch(name) or name.startswith("CONTAINERD_"))
    if not names:
        return []
    next_step = "set them in a drop-in of the unit, such as k3s.service.d/proxy.conf, and remove them from the file with its environment"
    return [Fault(f"K3s has {', '.join(names)} in its environment", "", "the role sets none", next_step)]


def _kept(settings: Settings, was: Options, becomes: Options) -> list[Fault]:
    serves = settings["role"] == SERVER
    found = [
        _fault(name, before, after)
        for name, default in _KEPT.items()
        if (name not in configuration.OF_SERVERS or serves)
        if (before := _of(was, name, default)) != (after := _of(becomes, name, default))
        # K3s takes it from the network of Services, as the role does.
        if name != "cluster-dns" or before
    ]
    lb = [_of(one, "disable", "").split(",").count("servicelb") for one in (was, becomes)]
    if lb[0] != lb[1]:
        found.append(_fault("disable", _of(was, "disable", "") or "none", _of(becomes, "disable", "") or "none"))
    return [*found, *external.adopted(*(_of(one, external.OPTION, "") for one in (was, becomes)))]


def _fault(name: str, before: str, after: str) -> Fault:
    group = "server_configuration" if name in configuration.OF_SERVERS else "configuration"
    variable = {**configuration.RESERVED, **_ROLES_OWN}.get(name, f"cluster_k3s_{group}")
    what = f"{name} of the K3s that is adopted is {_shown(name, before)}, and would become {_shown(name, after)}"
    if not variable:
        return Fault(what, name, "the role decides it", "keep this cluster as it is, or change it there before")
    own = f"{name}: {before}" if variable.endswith("configuration") else before
    return Fault(what, variable, "the cluster keeps it", f"set {own}")


def _lines(settings: Settings, was: Options, becomes: Options) -> list[str]:
    names = sorted({*was, *becomes} - _KEPT.keys() - _ENTRY)
    lines = [
        f"{name}: {_shown(name, before)} → {_shown(name, after)}"
        for name in names
        if (before := _of(was, name, _DEFAULTS.get(name, ""))) != (after := _of(becomes, name, _DEFAULTS.get(name, "")))
    ]
    now, then = next(iter(was.get("server", [])), ""), f"https://{settings['endpoint']}"
    if now and now.rstrip("/") != then and (settings["role"] == AGENT or _several(settings)):
        lines.append(f"server: {now} → {then}")
    return lines


def _shown(name: str, value: str) -> str:
    return ("(not shown)" if value else "not set") if name in options.SECRET else value or "not set"


def _of(found: Options, name: str, default: str) -> str:
    """The value for a comparison, in which the order of several does not count."""
    values = found.get(name, [default] if default else [])
    return ",".join(sorted(values) if name in ("disable", "tls-san", "node-label", "node-taint") else values)


def _several(settings: Settings) -> bool:
    return sum(one["serves"] for one in settings["machines"]) > 1


def _entry(settings: Settings) -> str:
    """A server has its token from K3s' own file, and joins the others if it ever has to."""
    if settings["role"] == AGENT:
        return configuration.entry(settings, "join", token=True)
    return configuration.entry(settings, "rejoin" if _several(settings) else "stay", token=_several(settings))


def _token(host: Host, was: Options) -> str:
    """A file that is named comes before a token (pkg/cli/agent/agent.go); of files only that of the role is read."""
    given = "" if "token-file" in was else next(iter(was.get("token", [])), "")
    return given or host.text(places.TOKEN).strip()


def _tokens(host: Host, settings: Settings, token: str) -> list[Content]:
    """Of an agent, or on a server that of agents, which is that of servers where K3s was given none. With a datastore of others that of servers, too."""
    if settings["role"] == AGENT:
        return [Content(places.TOKEN, f"{token}\n", "0600", sensitive=True)] if token else []
    secrets = {places.AGENT_TOKEN: host.text(places.OWN_AGENT_TOKEN).strip().rpartition(":")[2]}
    if external.is_set(settings):
        secrets[places.TOKEN] = host.text(places.OWN_TOKEN).strip()
    return [Content(path, f"{secret}\n", "0600", sensitive=True) for path, secret in secrets.items()]


def deciding(host: Host) -> list[str]:
    """Files of others with options that the role decides, for which they go as a whole: all of their options are compared."""
    return [path for path in host.fact("foreign_options").split() if path not in places.OURS]


def _absent(host: Host, own: str) -> tuple[str, ...]:
    """Scripts would remove all data, or end what the role starts. The file of the environment goes last: it says that this is not complete."""
    scripts = [path for path in places.SCRIPTS if has(host, path)]
    return (*scripts, *deciding(host), *([own] if has(host, own) else []))
