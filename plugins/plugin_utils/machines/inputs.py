# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of each variable of the roles on machines before a machine is observed: types, ranges, addresses, and entries of lists.

The plans validate what depends on other variables or on the machine. Other variables have only the type of their argument specification. Pure.
"""

from __future__ import annotations

import collections.abc as c
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import connection
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import checks, machines, openshift_inputs

Options = c.Mapping[str, c.Mapping[str, t.Any]]

_PORT = values.number(1, 65535, whole=True, what="not a port", next_step="give a number from 1 to 65535")
_COUNT, _WHOLE = values.number(1, whole=True), values.number(0, whole=True)
#: IFNAMSIZ, and what dev_valid_name refuses (Linux, net/core/dev.c).
_INTERFACE = values.matching(re.compile(r"(?!\.{1,2}$)[^\s/:]{1,15}"), "not the name of a network interface", "eth0")
_ADDRESS_OF_FILE = values.matching(
    re.compile(r"(https?://[^\s/]+|/)\S*"),
    "neither an address nor an absolute path",
    "https://mirror.example.com/file",
    4096,
)
_MEDIA = values.matching(
    re.compile(r"(https?|nfs|cifs|smb|ftp|tftp|scp)://[^\s/]+/\S*"),
    "not the address of an image",
    "http://boot.example.com/agent.iso",
)
_RUNTIME = values.matching(
    re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]{0,62})"), "not the name of a runtime (letters, digits, - and _)", "nvidia"
)
_VERSION = values.matching(
    re.compile(r"[0-9]+(\.[0-9]+){1,2}([~+.-][A-Za-z0-9~+.-]+)?"), "not a package version", "1.20.1"
)
_TIME = values.matching(re.compile(r"\d+(us|ms|s|m|h|d)?"), "not a duration", "500ms, 5s or 4h")
_NAME = values.matching(re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*"), "not a name", "web")


def _entry(known: c.Mapping[str, values.Check], needed: c.Collection[str] = ()) -> values.Check:
    """A dictionary. Other keys are not validated here."""

    def check(value: t.Any, where: str) -> list[Fault]:
        if not isinstance(value, c.Mapping):
            return [Fault(f"{values.shown(value)} is not a dictionary", where, "", f"give {', '.join(known)}")]
        faults = [Fault(f"{key} is missing", where, "", "give it") for key in needed if values.unset(value.get(key))]
        return faults + [
            fault
            for key, one in known.items()
            if not values.unset(value.get(key))
            for fault in one(value[key], f"{where}.{key}")
        ]

    return check


_ADDRESSES, _NETWORKS, _TEXTS = (
    checks.or_one(checks.address, "addresses"),
    checks.or_one(checks.network, "networks"),
    checks.or_one(values.text, "texts"),
)
#: Machines and clusters are validated where they are read, so that problems contain their names. Here only their form is validated.
_MACHINE = _entry(
    {**dict.fromkeys((*machines.KEYS, "install_device"), values.text), "install": values.truth, "arguments": _TEXTS}
)
_MEMBER = values.fields({"name": _NAME, "address": checks.address, "port": _PORT}, "a member", ("name", "address"))
_CHECK = values.fields(
    {
        "type": values.choice("tcp", "http", "https"),
        "path": values.text,
        "port": _PORT,
        "status": values.text,
        "interval": _TIME,
        "rise": _COUNT,
        "fall": _COUNT,
    },
    "a check",
)
_SERVICE = values.fields(
    {
        "name": _NAME,
        "cluster": _NAME,
        "port": _PORT,
        "member_port": _PORT,
        "address": values.text,
        "mode": values.choice("tcp", "http"),
        "roles": _TEXTS,
        "balance": values.choice("roundrobin", "leastconn", "source", "static-rr", "first"),
        "members": checks.or_one(_MEMBER, "members"),
        "check": _CHECK,
        "sources": _NETWORKS,
        "state": values.choice("present", "absent"),
        "accept_proxy": values.truth,
        "send_proxy": values.truth,
    },
    "a service",
    ("name",),
)
_BALANCED = _entry(
    {**dict.fromkeys(("name", "profile", "address"), values.text), "machine_network": _NETWORKS}, ("name",)
)
_SERVED = _entry(
    {
        "name": values.text,
        "domain": checks.dns_name,
        **dict.fromkeys(("api", "api_int", "ingress"), _ADDRESSES),
        "srv": values.truth,
        **dict.fromkeys(("machine_networks", "cluster_networks", "service_networks"), _NETWORKS),
    }
)
_SUBNET = values.fields(
    {
        "network": checks.network,
        "router": checks.address,
        "dns": _ADDRESSES,
        "ntp": _ADDRESSES,
        "pool": _ADDRESSES,
        "mtu": values.number(576, 65535, whole=True),
        "lease": values.matching(re.compile(r"\d+[smhdw]?|infinite"), "not a lease time", "45m, 12h, 7d or infinite"),
    },
    "a network",
    ("network",),
)
_ANSWER = values.fields(
    {
        "kind": values.choice("kickstart", "autoinstall", "preseed"),
        **dict.fromkeys(("user", "source", "password", "locale", "keyboard", "timezone"), values.text),
        **dict.fromkeys(("ssh_keys", "packages"), _TEXTS),
    },
    "an answer",
    ("kind", "user", "ssh_keys"),
)
_PROFILE = values.fields(
    {
        **dict.fromkeys(
            ("role", "kernel", "initramfs", "cluster", "rootfs", "ignition", "install_device"), values.text
        ),
        "arguments": _TEXTS,
        "answer": _ANSWER,
        "architecture": values.choice(*machines.ARCHITECTURES),
        "live": values.truth,
    },
    "a profile",
    ("role", "kernel", "initramfs"),
)
_SOURCE = {"path": values.text, "source": _ADDRESS_OF_FILE}
_ARTIFACT = values.fields(
    {
        **_SOURCE,
        "checksum": checks.SHA256,
        "signature": _ADDRESS_OF_FILE,
        "keyring": checks.FILE,
        "secret": values.truth,
    },
    "a file",
    ("path", "source", "checksum"),
)


def _ignition(value: t.Any, where: str) -> list[Fault]:
    """Its source, or the file itself."""
    given = isinstance(value, dict) and not values.unset(value.get("content"))
    known = {**_SOURCE, "content": values.text}
    return values.fields(known, "a file", ("path",) if given else tuple(_SOURCE))(value, where)


def _or_assumed(check: values.Check) -> values.Check:
    """For files that playbooks add: where one is that only this run will make is not known yet."""
    return lambda value, where: [] if isinstance(value, dict) and value.get("assumed") is True else check(value, where)


def _power(value: t.Any, where: str) -> list[Fault]:
    # YAML reads on and off without quotes as true and false.
    return [] if str(value).lower() in ("true", "false") else values.choice("on", "off", "cycle")(value, where)


_NAMED_FILE = {
    "name": _NAME,
    "source": _ADDRESS_OF_FILE,
    "checksum": checks.SHA256,
    "architecture": values.choice(*machines.ARCHITECTURES),
}
_NETWORK_PAIR = values.matching(
    re.compile(r"[0-9a-fA-F.:]+/[0-9]{1,3}(,[0-9a-fA-F.:]+/[0-9]{1,3})?"), "not a network", "10.244.0.0/16"
)


def _manifests(value: t.Any, where: str) -> list[Fault]:
    """A manifest or several, as dictionaries, or as text or paths."""
    each = [value] if isinstance(value, (str, c.Mapping)) else value
    if isinstance(each, (list, tuple)) and all(
        isinstance(one, str) or (isinstance(one, c.Mapping) and "kind" in one) for one in each
    ):
        return []
    return [Fault(f"{values.shown(value)} is not a list of manifests", where, "", "give manifests, or their paths")]


def _configuration(value: t.Any, where: str) -> list[Fault]:
    return values.fields(
        dict.fromkeys(
            (
                "ClusterConfiguration",
                "InitConfiguration",
                "JoinConfiguration",
                "KubeletConfiguration",
                "KubeProxyConfiguration",
            ),
            values.mapping(lambda _value, _where: []),
        ),
        "the configuration of kubeadm",
    )(value, where)


_S3 = {
    **dict.fromkeys(("bucket", "endpoint", "endpoint_ca", "folder", "proxy", "region", "secret"), values.text),
    **dict.fromkeys(("insecure", "skip_ssl_verify"), values.truth),
    "bucket_lookup_type": values.choice("auto", "dns", "path"),
    "timeout": values.matching(re.compile(r"(\d+[hms])+"), "not a duration", "5m or 90s"),
}
#: Ansible runs all hosts at once for a number below 1 in `serial` (ansible-core 2.19, executor/playbook_executor.py, _get_serialized_batches).
_BATCH = re.compile(r"[1-9][0-9]{0,5}|([1-9][0-9]?|100)%")


def batch(value: t.Any, where: str) -> list[Fault]:
    """How many machines are changed at the same time."""
    if values.unset(value) or value in ([], {}) or (values.scalar(value) and _BATCH.fullmatch(str(value).strip())):
        return []
    what = f"{values.shown(value)} is neither a number of machines nor a percentage"
    return [Fault(what, where, "", "give a number above 0, or one such as 10%")]


_PROGRAMS = values.listed(values.fields(_NAMED_FILE, "a program", ("name", "source", "checksum")), "programs")
_ARCHIVES = values.listed(values.fields(_NAMED_FILE, "an archive", ("source", "checksum")), "archives")
#: By role, and by the name of a variable without the role. None: the playbook computes the variable.
_MORE: dict[str, dict[str, values.Check | None]] = {
    "cluster_k3s": {
        "version": values.matching(
            re.compile(r"v?1\.[0-9]{1,3}\.[0-9]{1,3}\+k3s[0-9]{1,3}"), "not a release of K3s", "v1.36.4+k3s1"
        ),
        "programs": values.listed(values.fields(_NAMED_FILE, "a program", ("source", "checksum")), "programs"),
        "images": _ARCHIVES,
        "image_list": checks.FILE,
        "pod_network": _NETWORK_PAIR,
        "service_network": _NETWORK_PAIR,
        "dns_domain": checks.dns_name,
        "names": _TEXTS,
        "network": _manifests,
        "timeout": values.number(30, whole=True, what="not a number of seconds above 29"),
        "snapshot_retention": values.number(1, whole=True, what="not a number above 0"),
        "snapshot_s3": values.fields(_S3, "S3"),
        "at_a_time": batch,
        "inventory": None,
    },
    "cluster_kubeadm": {
        "version": values.matching(re.compile(r"1\.[0-9]{1,3}\.[0-9]{1,3}"), "not a version of Kubernetes", "1.36.4"),
        "programs": _PROGRAMS,
        "images": _ARCHIVES,
        "cni_plugins": _ARCHIVES,
        "runtime_packages": values.listed(_NAME, "packages"),
        "runtime_socket": values.text,
        "pod_network": _NETWORK_PAIR,
        "service_network": _NETWORK_PAIR,
        "dns_domain": checks.dns_name,
        "names": _TEXTS,
        "configuration": _configuration,
        "network": _manifests,
        "timeout": values.number(30, whole=True, what="not a number of seconds above 29"),
        "at_a_time": batch,
        "inventory": None,
    },
    "cluster_openshift": {**openshift_inputs.CHECKS, **dict.fromkeys(("inventory", "known"))},
    "load_balancer": {
        "services": checks.or_one(_SERVICE, "services"),
        "clusters": values.listed(_BALANCED, "clusters"),
        "machines": values.listed(_MACHINE, "machines"),
        "maxconn": _COUNT,
        **dict.fromkeys(("tunnel_timeout", "hard_stop_after"), _TIME),
        "stats_address": checks.address,
        "stats_port": _PORT,
        "health_port": _PORT,
        "drain_timeout": values.number(0, whole=True, what="not a number of seconds"),
        "interface": _INTERFACE,
        "virtual_addresses": values.listed(checks.with_prefix, "addresses"),
        "router_id": values.number(1, 255, whole=True),
        "peers": values.listed(
            _entry({"name": values.text, "address": values.text}, ("name", "address")), "load balancers"
        ),
    },
    "dns_pxe": {
        "address": checks.address,
        "interfaces": values.listed(_INTERFACE, "interfaces"),
        "machines": values.listed(_MACHINE, "machines"),
        "clusters": values.listed(_SERVED, "clusters"),
        "networks": values.listed(_SUBNET, "networks"),
        "clients": values.listed(checks.network, "networks"),
        "forwarders": values.listed(checks.address, "addresses"),
        "joined": None,
        "profiles": values.listed(_PROFILE, "profiles"),
        "extra_hosts": values.listed(
            values.fields(
                {"address": checks.address, "names": checks.or_one(checks.dns_name, "names")},
                "a host",
                ("address", "names"),
            ),
            "hosts",
        ),
        "artifacts": values.listed(_or_assumed(_ARTIFACT), "files"),
        "ignitions": values.listed(_or_assumed(_ignition), "files"),
        "http_port": _PORT,
        "loaders": values.mapping(checks.FILE, "paths by the names of boot programs"),
    },
    "machine_boot": {
        "power": _power,
        "boot": values.choice("network", "disk", "media"),
        "provider": values.choice("redfish", "ipmi", "libvirt"),
        "named": _TEXTS,
        "vm_small": _TEXTS,
        **dict.fromkeys(("vm_memory", "vm_vcpus", "vm_disk"), _COUNT),
        "vm_disk_path": checks.FILE,
        "vm_bridge": _INTERFACE,
        "bmc_ca": checks.FILE,
        "web_log": checks.FILE,
        "marks": checks.FILE,
        "media_url": _MEDIA,
        "ipmi_cipher": values.number(0, 17, whole=True),
        "bmc_retries": _WHOLE,
        **dict.fromkeys(
            ("bmc_timeout", "power_timeout", "timeout", "interval"),
            values.number(1, whole=True, what="not a number of seconds above 0"),
        ),
        "shutdown_timeout": values.number(0, whole=True, what="not a number of seconds"),
        "nodes": None,
        "connection": connection.check,
    },
    "node_runtime": {
        "handler": _RUNTIME,
        "containerd_config": checks.FILE,
        "drain_timeout": values.seconds(),
        "min_disk_gib": values.number(0),
        "toolkit_version": _VERSION,
        "programs": _PROGRAMS,
        "repository_url": checks.WEB_ADDRESS,
        "archive": _ADDRESS_OF_FILE,
        "archive_checksum": checks.SHA256,
    },
}
ROLES = tuple(_MORE)
BATCHES = ("hwaccel_machines_at_a_time", "hwaccel_boots_at_a_time")
_KINDS: dict[str, values.Check] = {
    "bool": values.truth,
    "int": values.number(-(2**31), whole=True),
    "float": values.number(-(2.0**31)),
    "str": values.text,
    "path": values.text,
    "dict": values.mapping(lambda _value, _where: []),
    "raw": lambda _value, _where: [],
}
#: Types for which an empty text is not a value and has no default.
_NEEDED = ("bool", "int", "float")
#: Texts that may have several lines.
LINES = ("load_balancer_extra", "node_runtime_repository_key")


def judge(role: str, options: Options, given: c.Mapping[str, t.Any]) -> list[Fault]:
    """All problems of the variables of a role. options: of its argument specification, by the names of variables."""
    return [
        fault for name, option in options.items() if name in given for fault in _of_one(role, name, option, given[name])
    ]


def _of_one(role: str, name: str, option: c.Mapping[str, t.Any], value: t.Any) -> list[Fault]:
    kind = option.get("type", "str")
    if values.unset(value):
        empty = value is not None and kind in _NEEDED
        return (
            [Fault(f"{name} is empty", name, "it has no default", f"remove {name}, or give a value")] if empty else []
        )
    if kind == "list" and isinstance(value, str):
        try:
            value = values.list_of_text(value)
        except ValueError as error:
            return [Fault("the list cannot be read", name, str(error), "give a list in JSON or YAML")]
    more = _MORE[role].get(name.removeprefix(f"{role}_"), _by_kind(name, option))
    return more(value, name) if more and value not in ([], {}) else []


def _by_kind(name: str, option: c.Mapping[str, t.Any]) -> values.Check:
    kind, choices = option.get("type", "str"), option.get("choices")
    one = (
        values.choice(*map(str, choices))
        if choices
        else _KINDS[option.get("elements", "str") if kind == "list" else kind]
    )
    if name in LINES:
        return lambda value, where: [] if values.scalar(value) else values.text(value, where)
    return values.listed(one) if kind == "list" else one
