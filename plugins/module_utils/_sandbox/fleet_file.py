# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads and validates a fleet file. Pure."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, ManyFaults

#: Faults with the options of each. The fleet agent has the same names.
FAULTS: dict[str, frozenset[str]] = {
    "driver_load_failure": frozenset(),
    "gpu_unsupported": frozenset(),
    "fabric_manager_down": frozenset(),
    "plugin_fewer_gpus": frozenset(),
    "gpu_off_bus": frozenset(),
    "gpu_ecc_error": frozenset({"xid"}),
    "image_pull_failure": frozenset({"image"}),
    "out_of_memory": frozenset({"container"}),
    "node_not_ready": frozenset(),
    "node_flapping": frozenset(),
    "kubelet_gone": frozenset(),
    "slow_node": frozenset({"factor"}),
}
#: Faults with which a node is not Ready, and those with which it is temporarily not Ready.
NOT_READY, FLAPPING = frozenset({"node_not_ready", "kubelet_gone"}), frozenset({"node_flapping"})
#: Xids of uncorrectable errors of a GPU's memory: double bit, contained, uncontained.
XIDS = ("48", "94", "95")
ARCHITECTURES = ("amd64", "arm64")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
LARGEST_FLEET = 20000

_DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_RUNTIME = re.compile(r"(containerd|cri-o|docker)://\S+")
_FACTOR = re.compile(r"[0-9]{1,4}(\.[0-9]+)?")
KERNEL = re.compile(r"[0-9][0-9A-Za-z.+~_-]*")

_POOL_DEFAULTS: dict[str, t.Any] = {
    "architecture": "amd64",
    "os_image": "Ubuntu 24.04.1 LTS",
    "kernel": "6.8.0-45-generic",
    "container_runtime": "containerd://2.0.0",
    "host_driver": "",
}
_POOL_FIELDS = frozenset(
    {
        "name",
        "count",
        "gpu",
        "labels",
        "taints",
        "nodes",
        "faults",
        "os_id",
        "os_version",
        "interconnect",
        "host_toolkit",
        *_POOL_DEFAULTS,
    }
)
_GPU_FIELDS = frozenset({"product", "count", "memory_mib", "ecc", "mig_capable", "mig"})
_NODE_FIELDS = frozenset({"kernel", "os_image", "os_id", "os_version", "interconnect", "faults"})
#: Of an image with its tag.
_IMAGE = re.compile(r"([A-Za-z0-9.-]+(:\d+)?/)?[a-z0-9._-]+(/[a-z0-9._-]+)*:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_INTERCONNECT_DEFAULTS: dict[str, t.Any] = {"transport": "Socket", "bandwidth": 1.0}
#: Operating systems (ID in /etc/os-release) by the prefix of the image's name.
_SYSTEMS = (
    ("Ubuntu", "ubuntu"),
    ("Red Hat Enterprise Linux CoreOS", "rhcos"),
    ("Red Hat Enterprise Linux", "rhel"),
    ("Rocky Linux", "rocky"),
    ("AlmaLinux", "almalinux"),
    ("CentOS Stream", "centos"),
    ("Debian GNU/Linux", "debian"),
    ("SUSE Linux Enterprise Server", "sles"),
    ("openSUSE Leap", "opensuse-leap"),
    ("NVIDIA DGX OS", "ubuntu"),
    ("Flatcar Container Linux", "flatcar"),
    ("Amazon Linux", "amzn"),
)

Nodes = dict[str, dict[str, t.Any]]


def system(os_image: str) -> tuple[str, str]:
    """(os_id, os_version) of an image's name, ("", "") if unknown."""
    for beginning, os_id in _SYSTEMS:
        if os_image.startswith(beginning):
            found = re.search(r"\d+(\.\d+)?(\.\d+)?", os_image[len(beginning) :])
            version = found.group(0) if found else ""
            if os_id in ("ubuntu", "rhel", "rocky", "almalinux", "rhcos", "sles"):
                version = ".".join(version.split(".")[:2])
            return os_id, version
    return "", ""


def parse(data: t.Any) -> dict[str, t.Any]:
    """The normalized fleet of a fleet file's content. Raises ManyFaults with all errors in it."""
    return Parser().fleet(data)


class Parser:
    """Collects every error, so that one run reports all of them."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def wrong(self, where: str, what: str, next_step: str = "") -> None:
        self._faults.append(Fault(what, where, next_step=next_step))

    def finish(self) -> None:
        if self._faults:
            raise ManyFaults(self._faults)

    def fleet(self, data: t.Any) -> dict[str, t.Any]:
        if not isinstance(data, dict):
            self.wrong("fleet", "is not a mapping with pools", "add a list `pools`")
            self.finish()
        self._unknown(data, frozenset({"time_scale", "seed", "images", "pools"}), "fleet")
        scale = data.get("time_scale", 0.1)
        if isinstance(scale, bool) or not isinstance(scale, (int, float)) or not 0 < scale <= 100:
            self.wrong("fleet.time_scale", f"{scale!r} is not a number above 0 and up to 100")
        seed = data.get("seed", 1)
        if isinstance(seed, bool) or not isinstance(seed, int):
            self.wrong("fleet.seed", f"{seed!r} is not a whole number")
        images = self._list(data.get("images"), "fleet.images") if data.get("images") is not None else []
        for index, image in enumerate(images):
            if not isinstance(image, str) or not _IMAGE.fullmatch(image):
                self.wrong(
                    f"fleet.images[{index}]", f"{image!r} is not the name of an image", "write registry/name:tag"
                )
        nodes: Nodes = {}
        seen: set[str] = set()
        for index, pool in enumerate(self._list(data.get("pools"), "fleet.pools")):
            for name, node in self._pool(pool, index, seen).items():
                if name in nodes:
                    self.wrong(
                        f"pool {node['pool']}",
                        f"its node {name} is also in pool {nodes[name]['pool']}",
                        "rename one of the pools",
                    )
                nodes[name] = node
        if len(nodes) > LARGEST_FLEET:
            self.wrong("fleet.pools", f"{len(nodes)} nodes exceed the limit of {LARGEST_FLEET}")
        self.finish()
        return {"time_scale": scale, "seed": seed, "images": sorted(images), "nodes": nodes}

    def faults(self, data: t.Any, where: str) -> list[dict[str, t.Any]]:
        found = []
        for index, entry in enumerate(self._list(data, f"{where}.faults")):
            fault = {"name": entry} if isinstance(entry, str) else entry
            place = f"{where}.faults[{index}]"
            name = fault.get("name") if isinstance(fault, dict) else None
            if not isinstance(name, str) or name not in FAULTS:
                self.wrong(place, f"{entry!r} is an unknown fault", "choose one of " + ", ".join(sorted(FAULTS)))
                continue
            self._unknown(fault, FAULTS[name] | {"name"}, place)
            bad = [key for key, value in fault.items() if not isinstance(value, str)]
            for key in bad:
                self.wrong(f"{place}.{key}", "is not a string")
            self._values({key: value for key, value in fault.items() if key not in bad}, place)
            found.append(dict(fault))
        return found

    def _values(self, fault: dict[str, str], place: str) -> None:
        if fault["name"] == "out_of_memory" and not fault.get("container"):
            self.wrong(place, "has no container", "set one, such as container: nfd-worker")
        if fault.get("xid", XIDS[0]) not in XIDS:
            self.wrong(
                f"{place}.xid", f"{fault['xid']!r} is not an Xid of a memory error", "choose one of " + ", ".join(XIDS)
            )
        if not _FACTOR.fullmatch(fault.get("factor", "1")):
            self.wrong(f"{place}.factor", f"{fault['factor']!r} is not a factor", "set one such as '10'")

    def _pool(self, pool: t.Any, index: int, seen: set[str]) -> Nodes:
        if not isinstance(pool, dict):
            self.wrong(f"pools[{index}]", "is not a mapping")
            return {}
        name = pool.get("name")
        where = f"pool {name}" if isinstance(name, str) and name else f"pools[{index}]"
        self._unknown(pool, _POOL_FIELDS, where)
        if not isinstance(name, str) or not _DNS_NAME.fullmatch(name) or len(name) > 50:
            self.wrong(
                f"{where}.name",
                f"{name!r} is not a valid prefix of node names",
                "use lower case letters, digits and '-', at most 50",
            )
            name = f"pool{index}"
        if name in seen:
            self.wrong(f"{where}.name", "there are two pools with this name")
        seen.add(name)
        count = self._whole(pool, "count", where, 1, 0, LARGEST_FLEET)
        base = self._node_base(pool, where) | {"pool": name}
        names = [f"{name}-{number}" for number in range(count)]
        overrides = self._mapping(pool.get("nodes"), f"{where}.nodes")
        for unknown in sorted(str(key) for key in overrides if key not in names):
            span = f"{names[0]} … {names[-1]}" if names else "none"
            self.wrong(f"{where}.nodes", f"{unknown} is not a node of this pool", f"its nodes are {span}")
        nodes = {}
        for node in names:
            given = self._mapping(overrides.get(node), f"{where}.nodes.{node}")
            nodes[node] = (
                self._override(base, given, f"{where}.nodes.{node}")
                if given
                else dict(base, faults=list(base["faults"]))
            )
        return nodes

    def _node_base(self, pool: dict[str, t.Any], where: str) -> dict[str, t.Any]:
        base: dict[str, t.Any] = {
            field: self._text(pool, field, where, default) for field, default in _POOL_DEFAULTS.items()
        }
        if base["architecture"] not in ARCHITECTURES:
            self.wrong(f"{where}.architecture", f"{base['architecture']!r} is not one of " + ", ".join(ARCHITECTURES))
        if not _RUNTIME.fullmatch(base["container_runtime"]):
            self.wrong(
                f"{where}.container_runtime",
                f"{base['container_runtime']!r} is not a runtime with its version",
                "write it as containerd://2.0.0",
            )
        self._kernel(base["kernel"], where)
        base |= self._system(pool, base["os_image"], where)
        base["gpu"] = self._gpu(pool.get("gpu"), f"{where}.gpu")
        base["interconnect"] = self._interconnect(
            pool.get("interconnect"), f"{where}.interconnect", _INTERCONNECT_DEFAULTS
        )
        base["host_toolkit"] = pool.get("host_toolkit", False)
        if not isinstance(base["host_toolkit"], bool):
            self.wrong(f"{where}.host_toolkit", f"{base['host_toolkit']!r} is not true or false")
        base["labels"] = self._labels(pool.get("labels"), f"{where}.labels")
        base["taints"] = self._taints(pool.get("taints"), f"{where}.taints")
        base["faults"] = self.faults(pool.get("faults"), where)
        base["boot"] = 1
        return base

    def _override(self, base: dict[str, t.Any], given: dict[str, t.Any], where: str) -> dict[str, t.Any]:
        self._unknown(given, _NODE_FIELDS, where)
        node = dict(base)
        node["kernel"] = self._text(given, "kernel", where, base["kernel"])
        self._kernel(node["kernel"], where)
        if "os_image" in given:
            node["os_image"] = self._text(given, "os_image", where, "")
            node |= self._system(given, node["os_image"], where)
        node["interconnect"] = self._interconnect(
            given.get("interconnect"), f"{where}.interconnect", base["interconnect"]
        )
        node["faults"] = [*base["faults"], *self.faults(given.get("faults"), where)]
        return node

    def _system(self, data: dict[str, t.Any], os_image: str, where: str) -> dict[str, str]:
        derived = system(os_image)
        os_id, os_version = (
            self._text(data, "os_id", where, derived[0]),
            self._text(data, "os_version", where, derived[1]),
        )
        if not os_id or not os_version:
            self.wrong(
                f"{where}.os_image",
                f"{os_image!r} does not contain operating system and version",
                "add os_id and os_version, as in /etc/os-release",
            )
        return {"os_id": os_id, "os_version": os_version}

    def _kernel(self, kernel: str, where: str) -> None:
        if not KERNEL.fullmatch(kernel):
            self.wrong(f"{where}.kernel", f"{kernel!r} is not a kernel version", "set one such as 6.8.0-45-generic")

    def _gpu(self, data: t.Any, where: str) -> dict[str, t.Any] | None:
        if data is None:
            return None
        gpu = self._mapping(data, where)
        self._unknown(gpu, _GPU_FIELDS, where)
        product = self._text(gpu, "product", where, "")
        # It becomes a label value, so it must be valid as one.
        if not product or len(product) > 63 or not _LABEL_NAME.fullmatch(product):
            self.wrong(
                f"{where}.product",
                f"{product!r} is not valid as a label value",
                "set one such as NVIDIA-H100-80GB-HBM3",
            )
        ecc, capable, mig = (self._truth(gpu, key, where) for key in ("ecc", "mig_capable", "mig"))
        if mig and not capable:
            self.wrong(
                f"{where}.mig", "is true for a GPU that does not support MIG", "set mig_capable: true, or remove it"
            )
        count = self._whole(gpu, "count", where, 1, 1, 64)
        memory = self._whole(gpu, "memory_mib", where, 0, 1, 10**7)
        return {
            "product": product,
            "count": count,
            "memory_mib": memory,
            "ecc": ecc,
            "mig_capable": bool(capable),
            "mig": bool(mig),
        }

    def _interconnect(self, data: t.Any, where: str, default: dict[str, t.Any]) -> dict[str, t.Any]:
        given = self._mapping(data, where)
        self._unknown(given, frozenset(default), where)
        bandwidth = given.get("bandwidth", default["bandwidth"])
        if isinstance(bandwidth, bool) or not isinstance(bandwidth, (int, float)) or not 0 < bandwidth <= 10**5:
            self.wrong(f"{where}.bandwidth", f"{bandwidth!r} is not a bandwidth in GB/s", "set one such as 46.5")
        return {"transport": self._text(given, "transport", where, default["transport"]), "bandwidth": bandwidth}

    def _truth(self, data: dict[str, t.Any], key: str, where: str) -> bool | None:
        value = data.get(key)
        if value is None or isinstance(value, bool):
            return value
        self.wrong(f"{where}.{key}", f"{value!r} is neither true nor false")
        return None

    def _labels(self, data: t.Any, where: str) -> dict[str, str]:
        labels = {}
        for key, value in self._mapping(data, where).items():
            if not _qualified(key):
                self.wrong(where, f"{key!r} is not a label name")
            if not isinstance(value, str) or len(value) > 63 or (value and not _LABEL_NAME.fullmatch(value)):
                self.wrong(
                    f"{where}.{key}",
                    f"{value!r} is not a label value",
                    "quote it if YAML reads it as a number or a Boolean",
                )
            labels[str(key)] = str(value)
        return labels

    def _taints(self, data: t.Any, where: str) -> list[dict[str, str]]:
        taints = []
        for index, entry in enumerate(self._list(data, where)):
            place = f"{where}[{index}]"
            taint = self._mapping(entry, place)
            self._unknown(taint, frozenset({"key", "value", "effect"}), place)
            key, value, effect = (self._text(taint, field, place, "") for field in ("key", "value", "effect"))
            if not _qualified(key):
                self.wrong(f"{place}.key", f"{key!r} is not a taint key")
            if effect not in EFFECTS:
                self.wrong(f"{place}.effect", f"{effect!r} is not one of " + ", ".join(EFFECTS))
            if value and (len(value) > 63 or not _LABEL_NAME.fullmatch(value)):
                self.wrong(f"{place}.value", f"{value!r} is not a taint value")
            taints.append({"key": key, "value": value, "effect": effect})
        return taints

    def _whole(self, data: dict[str, t.Any], field: str, where: str, default: int, least: int, most: int) -> int:
        value = data.get(field, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.wrong(f"{where}.{field}", f"{value!r} is not a whole number from {least} to {most}")
            return least
        return value

    def _text(self, data: dict[str, t.Any], field: str, where: str, default: str) -> str:
        value = data.get(field, default)
        if not isinstance(value, str):
            self.wrong(f"{where}.{field}", f"{value!r} is not a string", "quote it")
            return default
        return value

    def _list(self, data: t.Any, where: str) -> list[t.Any]:
        if data is None:
            return []
        if not isinstance(data, list):
            self.wrong(where, "is not a list")
            return []
        return data

    def _mapping(self, data: t.Any, where: str) -> dict[str, t.Any]:
        if data is None:
            return {}
        if not isinstance(data, dict):
            self.wrong(where, "is not a mapping")
            return {}
        return data

    def _unknown(self, data: dict[str, t.Any], fields: frozenset[str], where: str) -> None:
        for field in sorted(str(key) for key in data if key not in fields):
            self.wrong(where, f"{field!r} is an unknown field", "fields are " + ", ".join(sorted(fields)))


def _qualified(name: t.Any) -> bool:
    if not isinstance(name, str):
        return False
    prefix, _slash, rest = name.rpartition("/")
    if prefix and (len(prefix) > 253 or not _DNS_SUBDOMAIN.fullmatch(prefix)):
        return False
    return len(rest) <= 63 and bool(_LABEL_NAME.fullmatch(rest)) and not name.startswith("/")
