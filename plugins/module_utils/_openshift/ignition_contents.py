# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Contents that an ignition file has inside, or names by a URL. Pure.

A file can have other configs inside, which Ignition merges. What they have is what the file has.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import hashlib
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import (
    certificates,
    data_urls,
    ignition_schema,
    lifetimes,
    remote_urls,
    secret_contents,
    strict_json,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.certificates import Certificate

#: Bytes of all contents of a file after decompression.
LARGEST = 64 << 20
#: A bootstrap file has 48, and the bundle of an operating system 150.
MOST_CERTIFICATES = 2000
#: Configs inside configs. Programs that create files use one level at most.
_DEEPEST = 3
_CERTIFICATE_FILES = (".crt", ".pem")
_NEXT = "create the file again"


@dataclasses.dataclass(frozen=True)
class Config:
    """A config with nothing but known fields of the right types. place: its field in the config around it, "" for the file itself."""

    place: str
    value: c.Mapping[str, t.Any]
    minor: int
    warnings: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Resource:
    """place: its field in the ignition file; path: of the file on the machine, "" for other resources; config: whether it is another config."""

    place: str
    path: str
    value: c.Mapping[str, t.Any]
    config: bool = False

    @property
    def source(self) -> str:
        return str(self.value.get("source", ""))

    @property
    def remote(self) -> bool:
        return bool(self.source) and remote_urls.scheme(self.source) != "data"

    @property
    def holder(self) -> str:
        return self.path or self.place


@dataclasses.dataclass
class Contents:
    """What the contents of a file have.

    configs: the file itself, and those inside it; sizes: bytes by path; holders: paths or fields by the kind of secret that they hold, in their order; left:
    bytes that further contents may have.
    """

    configs: list[Config] = dataclasses.field(default_factory=list)
    certificates: list[Certificate] = dataclasses.field(default_factory=list)
    sizes: dict[str, int] = dataclasses.field(default_factory=dict)
    holders: dict[str, dict[str, None]] = dataclasses.field(default_factory=dict)
    faults: list[Fault] = dataclasses.field(default_factory=list)
    left: int = LARGEST

    def hold(self, holder: str, data: bytes) -> None:
        for kind in secret_contents.found(data):
            self.holders.setdefault(kind, {})[holder] = None


def config_of(data: bytes, place: str) -> Config:
    """Raises HwaccelError with the places of all faults. place: as in Config."""
    value = strict_json.parse(data, "the ignition file cannot be read", place, _NEXT)
    minor = ignition_schema.minor_version(value, place)
    findings = ignition_schema.Findings()
    known = ignition_schema.known_part(value, minor, findings)
    if findings.faults:
        raise ManyFaults([placed(fault, place) for fault in findings.faults])
    return Config(place, known, minor, tuple(strict_json.within(place, warning) for warning in findings.warnings))


def placed(fault: Fault, where: str) -> Fault:
    """A fault within a file, or within a config."""
    return dataclasses.replace(fault, where=strict_json.within(where, fault.where))


def resources(config: c.Mapping[str, t.Any]) -> c.Iterator[Resource]:
    """All of a config. config: as `ignition_schema.known_part` returns it."""
    ignition, storage = config.get("ignition", {}), config.get("storage", {})
    configs = ignition.get("config", {})
    yield from _listed(configs.get("merge", ()), "ignition.config.merge", config=True)
    if "replace" in configs:
        yield Resource("ignition.config.replace", "", configs["replace"], True)
    authorities = ignition.get("security", {}).get("tls", {}).get("certificateAuthorities", ())
    yield from _listed(authorities, "ignition.security.tls.certificateAuthorities")
    for position, file in enumerate(storage.get("files", ())):
        place, path = f"storage.files[{position}]", file.get("path", "")
        if "contents" in file:
            yield Resource(f"{place}.contents", path, file["contents"])
        yield from _listed(file.get("append", ()), f"{place}.append", path)
    for position, device in enumerate(storage.get("luks", ())):
        if "keyFile" in device:
            yield Resource(f"storage.luks[{position}].keyFile", "", device["keyFile"])


def read(config: Config) -> Contents:
    """What is inside, at any depth. Contents that cannot be read are its faults."""
    made = Contents()
    _read(config, made, 0)
    return made


def undecodable(config: Config) -> c.Iterator[Fault]:
    """Contents in the file that cannot be decoded."""
    for resource in resources(config.value):
        if resource.source and not resource.remote:
            try:
                data_urls.decoded(resource.source, str(resource.value.get("compression", "")))
            except data_urls.Undecodable as error:
                yield _unread(resource, error)


def _unread(resource: Resource, error: Exception) -> Fault:
    where = f"{resource.place}.source" + (f" ({resource.path})" if resource.path else "")
    return Fault("the contents cannot be read", where, str(error), _NEXT)


def _read(config: Config, made: Contents, depth: int) -> None:
    made.configs.append(config)
    for resource in resources(config.value):
        if resource.source and not resource.remote:
            within = dataclasses.replace(resource, place=strict_json.within(config.place, resource.place))
            _inline(within, made, depth)
        if len(made.certificates) > MOST_CERTIFICATES:
            return
    for place, text in _texts(config.value):
        made.hold(strict_json.within(config.place, place), text.encode("utf-8", "replace"))


def _listed(
    values: c.Iterable[c.Mapping[str, t.Any]], place: str, path: str = "", config: bool = False
) -> c.Iterator[Resource]:
    for position, value in enumerate(values):
        yield Resource(f"{place}[{position}]", path, value, config)


def _inline(resource: Resource, made: Contents, depth: int) -> None:
    where = f"{resource.place}.source" + (f" ({resource.path})" if resource.path else "")
    try:
        most = min(made.left, data_urls.LARGEST)
        data = data_urls.decoded(resource.source, str(resource.value.get("compression", "")), most)
    except data_urls.Undecodable as error:
        made.faults.append(_unread(resource, error))
        return
    made.left -= len(data)
    if resource.config:
        _nested(data, resource.place, made, depth + 1)
        return
    made.sizes[resource.path] = made.sizes.get(resource.path, 0) + len(data)
    made.hold(resource.holder, data)
    if "luks" in resource.place:
        # Whatever it is, it opens the disk.
        made.holders.setdefault(secret_contents.PRIVATE_KEY, {})[resource.holder] = None
    try:
        _certificates(data, resource.holder, made)
    except certificates.Unreadable as error:
        made.faults.append(Fault("a certificate cannot be read", where, str(error), _NEXT))
    _verify(resource, data, made)


def _nested(data: bytes, place: str, made: Contents, depth: int) -> None:
    if depth > _DEEPEST:
        why = f"there are more than {_DEEPEST} configs inside each other"
        made.faults.append(Fault("the config cannot be read", place, why, _NEXT))
        return
    try:
        _read(config_of(data, place), made, depth)
    except HwaccelError as error:
        made.faults += error.faults


def _certificates(data: bytes, holder: str, made: Contents) -> None:
    before = len(made.certificates)
    for certificate in certificates.certificates(data, holder):
        made.certificates.append(certificate)
        if len(made.certificates) > MOST_CERTIFICATES:
            raise certificates.Unreadable(f"there are more than {MOST_CERTIFICATES} in the file")
    if holder.endswith(_CERTIFICATE_FILES) and certificates.damaged(data):
        raise certificates.Unreadable("the block of a certificate is not complete")
    if lifetimes.judged(holder) and len(made.certificates) == before:
        raise certificates.Unreadable("there is none in the file")


def _verify(resource: Resource, data: bytes, made: Contents) -> None:
    """The hash is that of the contents after decompression. Another form than this is a fault of the specification (ignition_rules)."""
    function, _dash, expected = str(resource.value.get("verification", {}).get("hash", "")).partition("-")
    if function in ("sha256", "sha512") and expected and hashlib.new(function, data).hexdigest() != expected.lower():
        why = "the contents have another hash"
        made.faults.append(Fault("the contents are not verified", f"{resource.place}.verification.hash", why, _NEXT))


def _texts(config: c.Mapping[str, t.Any]) -> c.Iterator[tuple[str, str]]:
    """Contents that are no resources, which can also hold secrets."""
    for unit in config.get("systemd", {}).get("units", ()):
        yield unit.get("name", ""), unit.get("contents", "")
        for dropin in unit.get("dropins", ()):
            yield f"{unit.get('name', '')}.d/{dropin.get('name', '')}", dropin.get("contents", "")
