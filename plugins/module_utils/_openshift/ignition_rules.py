# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ignition refuses beyond wrong types, as it does since its specification 3.0 (coreos/ignition, config/v3_*/types). Pure.

Nothing is refused that Ignition takes, except what cannot work: objects without the name, source, target or host that they need, contents with another
hash, configs inside that cannot be read, and paths that are too long. Versions that are still experimental are refused as well.
"""

from __future__ import annotations

import collections.abc as c
import posixpath
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import (
    ignition_contents,
    ignition_disks,
    paths,
    remote_urls,
    unit_files,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.ignition_contents import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.ignition_schema import Findings

_HASH_DIGITS = {"sha512": 128, "sha256": 64}
_HEXADECIMAL = re.compile(r"[0-9A-Fa-f]*", re.ASCII)
_MOST_MODE, _SPECIAL_BITS, _SPECIAL_BITS_SINCE = 0o7777, 0o7000, 6
_UNITS_FOLDER = "/etc/systemd/system"

Config = c.Mapping[str, t.Any]


def check(config: Config, minor: int, findings: Findings) -> None:
    """config: as `ignition_schema.known_part` returns it."""
    _ignition(config.get("ignition", {}), findings)
    for resource in ignition_contents.resources(config):
        _resource(resource, minor, findings)
    storage = config.get("storage", {})
    _nodes(storage, minor, findings)
    _links(storage, findings)
    _overridden(config, findings)
    ignition_disks.check(storage, minor, findings)
    unit_files.check(config.get("systemd", {}).get("units", ()), findings)
    _twice(config, findings)


def _ignition(section: Config, findings: Findings) -> None:
    proxy = section.get("proxy", {})
    for name in ("httpProxy", "httpsProxy"):
        if name in proxy and remote_urls.scheme(proxy[name]) not in ("http", "https"):
            findings.add("the proxy is not valid", f"ignition.proxy.{name}", "its scheme is neither http nor https")


def _resource(resource: Resource, minor: int, findings: Findings) -> None:
    value, place = resource.value, resource.place
    if value.get("compression", "") not in ("", "gzip"):
        findings.add("the compression is unknown", f"{place}.compression", "", "use gzip, or none")
    if resource.remote and (why := remote_urls.fault(resource.source, minor)):
        findings.add("the URL is not valid", f"{place}.source", why)
    # A file of this specification can replace, and create an empty file, without a source.
    if not resource.source and not place.startswith("storage.") and not place.endswith(".replace"):
        findings.add("a field is missing", f"{place}.source", "", "set it")
    expected = value.get("verification", {}).get("hash")
    if expected is not None:
        _hash(expected, "source" in value, minor, f"{place}.verification.hash", findings)
    headers = value.get("httpHeaders", ())
    if headers and remote_urls.scheme(resource.source) not in ("http", "https"):
        findings.add("headers are not possible", f"{place}.httpHeaders", "the URL is not one of HTTP")
    for position, header in enumerate(headers):
        if header.get("value") == "":
            findings.add("a header has no value", f"{place}.httpHeaders[{position}].value")


def _hash(expected: str, source: bool, minor: int, place: str, findings: Findings) -> None:
    function, _dash, digits = expected.partition("-")
    what = "the hash is not valid"
    if not source:
        findings.add(what, place, "there is no source to be verified")
    elif function not in _HASH_DIGITS or (function == "sha256" and minor == 0):
        findings.add(what, place, "it begins neither with sha512- nor, since version 3.1.0, with sha256-")
    elif len(digits) != _HASH_DIGITS[function] or not _HEXADECIMAL.fullmatch(digits):
        findings.add(what, place, f"{function} has {_HASH_DIGITS[function]} hexadecimal digits")


def _nodes(storage: Config, minor: int, findings: Findings) -> None:
    for kind in ("directories", "files", "links"):
        for position, node in enumerate(storage.get(kind, ())):
            place = f"storage.{kind}[{position}]"
            if "path" in node and node["path"] and (why := paths.fault(node["path"])):
                findings.add("the path is not valid", f"{place}.path", why)
            for owner in ("user", "group"):
                if "id" in node.get(owner, {}) and node[owner].get("name"):
                    findings.add("the owner is not valid", f"{place}.{owner}", "it has both an id and a name")
            _mode(node.get("mode", 0), minor, f"{place}.mode", findings)
    for position, file in enumerate(storage.get("files", ())):
        if file.get("overwrite") and "source" not in file.get("contents", {}):
            why = "a file that is overwritten needs a source"
            findings.add("the file is not valid", f"storage.files[{position}].overwrite", why)


def _mode(mode: int, minor: int, place: str, findings: Findings) -> None:
    if not 0 <= mode <= _MOST_MODE:
        why = "it is more than 0o7777, which is 4095: JSON has numbers in base 10"
        findings.add("the mode is not valid", place, why if mode > 0 else "it is negative")
    elif mode & _SPECIAL_BITS and minor < _SPECIAL_BITS_SINCE:
        version = f"3.{_SPECIAL_BITS_SINCE}.0"
        findings.warnings.append(
            f"{place} has setuid, setgid or the sticky bit, which are not set before version {version}"
        )


def _links(storage: Config, findings: Findings) -> None:
    """Nothing is written through a link of the same file, as the order of writes is not defined."""
    links = {link["path"] for link in storage.get("links", ()) if link.get("path")}
    for kind in ("directories", "files", "links"):
        for position, node in enumerate(storage.get(kind, ())):
            if not links.isdisjoint(paths.folders(node.get("path", ""))):
                place = f"storage.{kind}[{position}].path"
                findings.add("the path is not valid", place, "it leads through a link of the same file")
    folders = {folder.get("path") for folder in storage.get("directories", ())}
    for position, link in enumerate(storage.get("links", ())):
        target = link.get("target", "")
        if link.get("hard") and posixpath.normpath(posixpath.join(link.get("path", ""), target)) in folders:
            findings.add("the hard link is not valid", f"storage.links[{position}].target", "it is a directory")


def _overridden(config: Config, findings: Findings) -> None:
    """Files in the place of units that the file has as well."""
    written = set()
    for unit in config.get("systemd", {}).get("units", ()):
        own = f"{_UNITS_FOLDER}/{unit.get('name', '')}"
        written |= {own} if unit.get("contents") else set()
        written |= {f"{own}.d/{one.get('name', '')}" for one in unit.get("dropins", ()) if one.get("contents")}
    storage = config.get("storage", {})
    for kind in ("directories", "files", "links"):
        for position, node in enumerate(storage.get(kind, ())):
            if node.get("path") in written:
                place = f"storage.{kind}[{position}].path"
                findings.add("the path is not valid", place, "a unit or drop-in in systemd.units has it")


def _twice(config: Config, findings: Findings) -> None:
    storage, passwd, ignition = config.get("storage", {}), config.get("passwd", {}), config.get("ignition", {})
    nodes: set[t.Any] = set()
    for kind in ("directories", "files", "links"):
        findings.unique(storage.get(kind, ()), f"storage.{kind}", "path", nodes)
    for kind in ("users", "groups"):
        findings.unique(passwd.get(kind, ()), f"passwd.{kind}", "name")
    for position, user in enumerate(passwd.get("users", ())):
        for name in ("groups", "sshAuthorizedKeys"):
            findings.unique(user.get(name, ()), f"passwd.users[{position}].{name}", "")
    units = config.get("systemd", {}).get("units", ())
    findings.unique(units, "systemd.units", "name")
    for position, unit in enumerate(units):
        findings.unique(unit.get("dropins", ()), f"systemd.units[{position}].dropins", "name")
    arguments: set[t.Any] = set()
    for name in ("shouldExist", "shouldNotExist"):
        kernel = config.get("kernelArguments", {}).get(name, ())
        findings.unique(kernel, f"kernelArguments.{name}", "", arguments)
    findings.unique(ignition.get("config", {}).get("merge", ()), "ignition.config.merge", "source")
    authorities = ignition.get("security", {}).get("tls", {}).get("certificateAuthorities", ())
    findings.unique(authorities, "ignition.security.tls.certificateAuthorities", "source")
    findings.unique(ignition.get("proxy", {}).get("noProxy", ()), "ignition.proxy.noProxy", "")
    for resource in ignition_contents.resources(config):
        findings.unique(resource.value.get("httpHeaders", ()), f"{resource.place}.httpHeaders", "name")
