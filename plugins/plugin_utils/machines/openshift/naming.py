# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of names in install-config. Pure.

Source: pkg/validate/validate.go of openshift/installer, which asks k8s.io/apimachinery/pkg/util/validation.
"""

from __future__ import annotations

import collections.abc as c
import re

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.conversion import API_VERSION
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import (
    Finding,
    Site,
    one_of,
    shown,
)

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_SUBDOMAIN = 253
#: Of a cluster's name: names of what is made for it are longer.
LONGEST_NAME = 54
#: Of host names, and so of nodes (HOST_NAME_MAX is 64 in Linux; the label kubernetes.io/hostname has 63).
_LONGEST_NODE = 63
_FEATURE_SETS = ("", "CustomNoUpgrade", "DevPreviewNoUpgrade", "TechPreviewNoUpgrade")
_CUSTOM = "CustomNoUpgrade"


def is_subdomain(text: str) -> bool:
    return len(text) <= _LONGEST_SUBDOMAIN and bool(_SUBDOMAIN.fullmatch(text))


def is_domain(text: str) -> bool:
    """With a trailing dot, too."""
    return is_subdomain(text.removesuffix("."))


def api_version(site: Site) -> c.Iterator[Finding]:
    given = site.at("apiVersion")
    if not given:
        yield Finding("apiVersion", "no version is given", "the installer reads nothing else then", "set it to v1")
    elif given != API_VERSION:
        yield from one_of("apiVersion", given, (API_VERSION,))


def cluster_name(site: Site) -> c.Iterator[Finding]:
    key, name = "metadata.name", site.at("metadata.name") or ""
    if len(name) > LONGEST_NAME:
        yield Finding(key, f"{shown(key, name)} has {len(name)} characters", f"at most {LONGEST_NAME} are possible")
    elif not is_subdomain(name):
        why = "it must be lower-case letters, digits, hyphens and dots, with a letter or digit at both ends (RFC 1123)"
        yield Finding(key, f"{shown(key, name)} is not the name of a cluster" if name else "it is not set", why)
    elif "." in name and "baremetal" in (site.at("platform") or {}):
        yield Finding(key, f"{shown(key, name)} has a dot", "on this platform it must be one label")


def base_domain(site: Site) -> c.Iterator[Finding]:
    key, domain, name = "baseDomain", site.at("baseDomain") or "", site.at("metadata.name") or ""
    if not is_domain(domain):
        yield Finding(
            key, f"{shown(key, domain)} is not a domain" if domain else "it is not set", "it must be a DNS name"
        )
    elif len(name) <= LONGEST_NAME and is_subdomain(name) and not is_domain(f"{name}.{domain}"):
        yield Finding(key, f"the domain of the cluster, {name}.{domain}, is too long", "a DNS name has 253 characters")


def feature_set(site: Site) -> c.Iterator[Finding]:
    given = site.at("featureSet") or ""
    yield from one_of("featureSet", given, _FEATURE_SETS)
    gates = site.at("featureGates") or []
    if gates and given != _CUSTOM:
        yield Finding("featureGates", "featureGates are set", f"only the featureSet {_CUSTOM} has them", "remove them")
    for number, gate in enumerate(gates):
        if not re.fullmatch(r"[^=]+=(1|t|T|TRUE|true|True|0|f|F|FALSE|false|False)", gate):
            key = f"featureGates[{number}]"
            yield Finding(key, f"{shown(key, gate)} is not a feature gate", "", "write it as NAME=true or NAME=false")


def node_names(site: Site) -> c.Iterator[Finding]:
    """A machine takes its name from the reverse record, with the domain of the cluster, or from DHCP."""
    domain = f"{site.at('metadata.name')}.{site.at('baseDomain')}".removesuffix(".")
    for machine in site.machines:
        name = f"{machine.name}.{domain}"
        if len(name) > _LONGEST_NODE:
            what = f"the name {name} has {len(name)} characters"
            why = f"a node has at most {_LONGEST_NODE}, and a longer host name is cut"
            yield Finding(f"hwaccel_node_name of {machine.name}", what, why, "give the machine a shorter one", "")
