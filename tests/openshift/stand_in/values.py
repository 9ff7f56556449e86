# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of single values of install-config.yaml: pull secret, keys, proxies, mirrors, capabilities (section 2.1 of behaviours.yml)."""

from __future__ import annotations

import base64
import binascii
import collections.abc as c
import ipaddress
import itertools
import json
import re
import typing as t
import urllib.parse

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.networks import Networks
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.reading import invalid, required, unsupported

Config = c.Mapping[str, t.Any]
LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
NO_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    f"alphanumeric character (e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"
)
LONGEST_NAME = 54
#: Platforms whose clusters may have no dot in their name.
_WITHOUT_DOTS = ("baremetal", "nutanix", "openstack", "vsphere")
_PEM = re.compile(r"-----BEGIN ([A-Z ]+)-----\n(.*?)\n?-----END \1-----\n?", re.DOTALL)
#: With Ingress and OperatorLifecycleManager, what others need.
_INGRESS, _LIFECYCLE = "Ingress", "OperatorLifecycleManager"
_SETS = re.compile(r"None|vCurrent|v4\.\d+")


def names(config: Config, platforms: c.Collection[str]) -> list[str]:
    errors = []
    name = config.get("metadata", {}).get("name", "")
    path = "metadata.name"
    if not name:
        errors.append(required(path, "cluster name required"))
    elif not re.fullmatch(SUBDOMAIN, name):
        errors.append(invalid(path, name, NO_SUBDOMAIN))
    elif len(name) > LONGEST_NAME:
        errors.append(invalid(path, name, f"must be no more than {LONGEST_NAME} characters"))
    elif "." in name and set(platforms) & set(_WITHOUT_DOTS):
        errors.append(invalid(path, name, "cluster name must not contain '.'"))
    domain = config.get("baseDomain", "")
    if not re.fullmatch(SUBDOMAIN, domain.removesuffix(".")):
        errors.append(invalid("baseDomain", domain, NO_SUBDOMAIN))
    return errors


def pull_secret(config: Config) -> list[str]:
    """The error has the whole secret, as the tool's has."""
    text = config.get("pullSecret", "")

    def refused(reason: str) -> list[str]:
        return [invalid("pullSecret", text, reason)]

    if not text:
        return refused("unexpected end of JSON input")
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text):
            return refused("unexpected end of JSON input")
        return refused(f"invalid character {text[error.pos]!r} looking for beginning of value")
    auths = content.get("auths") if isinstance(content, dict) else None
    if not auths:
        return refused("auths required")
    if not isinstance(auths, dict):
        return refused("json: cannot unmarshal into Go struct field imagePullSecret.auths")
    without = [
        name
        for name, entry in auths.items()
        if not isinstance(entry, dict) or not entry.keys() & {"auth", "credsStore"}
    ]
    return [error for name in without for error in refused(f'"{name}" requires either auth or credsStore')]


def ssh_type(text: str) -> str:
    """Type of the first key of a text in the form of authorized_keys, "" if there is none."""
    for line in text.splitlines():
        words = line.split()
        for kind, encoded in itertools.pairwise(words):
            try:
                blob = base64.b64decode(encoded, validate=True)
            except (binascii.Error, ValueError):
                continue
            if blob[4 : 4 + int.from_bytes(blob[:4], "big")].decode(errors="replace") == kind:
                return kind
    return ""


def ssh_key(config: Config, host_fips: bool) -> list[str]:
    errors = []
    text = config.get("sshKey", "")
    kind = ssh_type(text)
    if text and not kind:
        errors.append(invalid("sshKey", text, "ssh: no key found"))
    if config.get("fips"):
        if kind == "ssh-ed25519":
            reason = f"SSH key type {kind} unavailable when FIPS is enabled. Please use rsa or ecdsa."
            errors.append(invalid("sshKey", text, reason))
        if not host_fips:
            reason = "target cluster is in FIPS mode, use the FIPS-capable installer binary for RHEL 9 on a host with FIPS enabled."
            errors.append(f"fips: Forbidden: {reason}")
    return errors


def trust_bundle(config: Config) -> list[str]:
    errors = []
    if text := config.get("additionalTrustBundle", ""):
        path = "additionalTrustBundle"
        blocks = _PEM.findall(text)
        if not blocks or _PEM.sub("", text).strip():
            errors.append(invalid(path, text, "invalid block"))
        for kind, _content in blocks:
            if kind != "CERTIFICATE":
                errors.append(invalid(path, text, f"invalid PEM block type {kind}"))
    policy = config["additionalTrustBundlePolicy"]
    if policy not in ("Proxyonly", "Always"):
        errors.append(invalid("additionalTrustBundlePolicy", policy, 'supported values "Proxyonly", "Always"'))
    return errors


def proxy(config: Config, networks: Networks) -> list[str]:
    if "proxy" not in config:
        return []
    given, errors = config["proxy"], []
    if not given.get("httpProxy") and not given.get("httpsProxy"):
        errors.append(required("proxy", "must include httpProxy or httpsProxy"))
    for name, schemes in (("httpProxy", ("http",)), ("httpsProxy", ("http", "https"))):
        if address := given.get(name):
            errors += _proxy_address(f"proxy.{name}", address, schemes, networks)
    if text := given.get("noProxy"):
        errors += _no_proxy(text)
    return errors


def _proxy_address(path: str, address: str, schemes: c.Collection[str], networks: Networks) -> list[str]:
    try:
        parsed = urllib.parse.urlsplit(address)
    except ValueError:
        return [invalid(path, address, "invalid URI")]
    if not parsed.scheme or not parsed.hostname:
        return [invalid(path, address, "invalid URI")]
    errors = [] if parsed.scheme in schemes else [unsupported(path, parsed.scheme, schemes)]
    try:
        host = ipaddress.ip_address(parsed.hostname)
    except ValueError:
        return errors
    for kind, found in (("service", networks.services), ("cluster", networks.clusters)):
        if any(one and host in one for one in found):
            errors.append(invalid(path, address, f"proxy value is part of the {kind} networks"))
    return errors


def _no_proxy(text: str) -> list[str]:
    path = "proxy.noProxy"
    if " " in text:
        return [invalid(path, text, "noProxy must not have spaces")]
    errors = []
    for number, one in enumerate(text.split(",")):
        if one != "*" and not _address(one) and not re.fullmatch(SUBDOMAIN, one.removeprefix(".").lower()):
            reason = "each element of noProxy must be a IP, CIDR or domain without wildcard characters, which is violated by element"
            errors.append(invalid(path, text, f'{reason} {number} "{one}"'))
    return errors


def _address(text: str) -> bool:
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return False
    return True


def mirrors(config: Config) -> list[str]:
    errors = []
    kinds = ("imageContentSources", "imageDigestSources")
    for kind in kinds:
        for number, entry in enumerate(config.get(kind, ())):
            places = {"source": entry.get("source", "")}
            places |= {f"mirrors[{place}]": one for place, one in enumerate(entry.get("mirrors", ()))}
            for name, text in places.items():
                if "@" in text or ":" in text.rpartition("/")[2]:
                    errors.append(invalid(f"{kind}[{number}].{name}", text, "must be repository--not reference"))
    if all(config.get(kind) for kind in kinds):
        reason = "cannot set imageContentSources and imageDigestSources at the same time"
        errors.append(invalid("imageContentSources", config["imageContentSources"], reason))
    return errors


def capabilities(config: Config) -> list[str]:
    if "capabilities" not in config:
        return []
    given, errors = config["capabilities"], []
    base = given.get("baselineCapabilitySet", "vCurrent")
    added = given.get("additionalEnabledCapabilities", [])
    if not _SETS.fullmatch(base):
        errors.append(unsupported("capabilities.baselineCapabilitySet", base, ("None", "v4.20", "vCurrent")))
    if base != "None":
        return errors
    path = "capabilities.additionalEnabledCapabilities"
    if _INGRESS not in added:
        errors.append(invalid(path, added, f"the {_INGRESS} capability is required"))
    if "marketplace" in added and _LIFECYCLE not in added:
        reason = f"the marketplace capability requires the {_LIFECYCLE} capability"
        # It is checked in two places of the installer, so it is there twice.
        errors += [invalid(path, added, reason), invalid("additionalEnabledCapabilities", added, reason)]
    return errors


def choices(config: Config, platforms: c.Collection[str]) -> list[str]:
    errors = []
    publish = config["publish"]
    if publish not in ("External", "Internal", "Mixed"):
        errors.append(unsupported("publish", publish, ("External", "Internal", "Mixed")))
    elif publish == "Internal":
        for platform in platforms:
            if platform in ("none", "baremetal", "vsphere", "nutanix", "openstack"):
                reason = f'Internal publish strategy is not supported on "{platform}" platform'
                errors.append(invalid("publish", publish, reason))
    mode = config.get("cpuPartitioningMode", "None")
    if mode not in ("None", "AllNodes"):
        errors.append(unsupported("cpuPartitioningMode", mode, ("None", "AllNodes")))
    return errors
