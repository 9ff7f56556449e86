# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of proxies and mirrors in install-config, and of the registries that a cluster pulls from. Pure.

Source: validateProxy, validateImageDigestSources and validateNamedRepository in pkg/types/validation/installconfig.go of openshift/installer.
"""

from __future__ import annotations

import collections.abc as c
import ipaddress
import re
import urllib.parse

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import keys
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import (
    AGENT,
    Finding,
    Site,
    one_of,
    shown,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.naming import is_domain
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.networks import (
    all_of,
    machine_networks,
    network,
)

_DIGEST, _CONTENT = "imageDigestSources", "imageContentSources"
_POLICIES = ("", "AllowContactingSource", "NeverContactSource")
#: Other characters have to be encoded by %.
_USER = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_SCHEMES = {"httpProxy": ("http",), "httpsProxy": ("http", "https")}
#: distribution/reference: components of a path.
_PATH = re.compile(r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*")
_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?")
#: Registry of a release whose image the installer did not name.
_RELEASES = "quay.io"


def proxy(site: Site) -> c.Iterator[Finding]:
    given = site.at("proxy")
    if given is None:
        return
    if not given.get("httpProxy") and not given.get("httpsProxy"):
        yield Finding("proxy", "it has neither httpProxy nor httpsProxy", "", "set one, or remove proxy")
    for name, schemes in _SCHEMES.items():
        if given.get(name):
            yield from _proxy(site, f"proxy.{name}", given[name], schemes)
    yield from _no_proxy(given.get("noProxy") or "")


def _proxy(site: Site, key: str, text: str, schemes: tuple[str, ...]) -> c.Iterator[Finding]:
    read = _read(text)
    if read is None:
        what = f"{shown(key, text)} is not an address"
        yield Finding(key, what, "", "give one such as http://proxy.example.com:3128")
        return
    host = read.hostname or ""
    if read.scheme not in schemes:
        why = "a proxy of HTTP is reached by HTTP" if schemes == ("http",) else ""
        yield Finding(key, f"the scheme {shown(key, read.scheme)} is not supported", why, f"use {' or '.join(schemes)}")
    for what, path in (("cluster", "networking.clusterNetwork"), ("service", "networking.serviceNetwork")):
        if any(_inside(host, str(one)) for one in all_of(site, path)):
            yield Finding(key, f"{host} is in the {what} network", "machines do not reach it", "give another address")


def _read(text: str) -> urllib.parse.SplitResult | None:
    """As net/url of Go reads it, or None if it does not."""
    try:
        read = urllib.parse.urlsplit(text)
        _port = read.port
    except ValueError:
        return None
    user, _at, _rest = read.netloc.rpartition("@")
    if not read.scheme or not (read.hostname or text.startswith("/")) or not _USER.fullmatch(user):
        return None
    return read


def _inside(host: str, text: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(text)
    except ValueError:
        return False


def _no_proxy(text: str) -> c.Iterator[Finding]:
    key = "proxy.noProxy"
    if not text or text == "*":
        return
    if " " in text:
        yield Finding(key, f"{shown(key, text)} has spaces", "", "separate names and networks by commas only")
    for number, part in enumerate(one.strip() for one in text.split(",")):
        if not (is_domain(part.removeprefix(".")) or network(part) or _is_address(part)):
            what = f"entry {number} {shown(key, part)} is no address, network or domain"
            yield Finding(key, what, "wildcards are not supported", "write .example.com for all names below a domain")


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def no_proxy(site: Site) -> c.Iterator[Finding]:
    """In a cluster the installer adds the machine networks, but not for the agents, which ask the rendezvous host by its address."""
    given = site.at("proxy")
    text = (given or {}).get("noProxy") or ""
    if given is None or site.method != AGENT or text == "*":
        return
    known = [one for part in text.split(",") if (one := network(_as_network(part.strip())))]
    for one in machine_networks(site):
        if not any(one.version == other.version and one.subnet_of(other) for other in known):  # type: ignore[arg-type]
            why = "hosts would ask the rendezvous host by the proxy"
            yield Finding("proxy.noProxy", f"noProxy lacks the machine network {one}", why, f"add {one}")


def _as_network(text: str) -> str:
    return text if "/" in text or not _is_address(text) else f"{text}/{ipaddress.ip_address(text).max_prefixlen}"


def mirrors(site: Site) -> c.Iterator[Finding]:
    for name in (_CONTENT, _DIGEST):
        for number, one in enumerate(site.at(name) or []):
            key = f"{name}[{number}]"
            yield from _repository(f"{key}.source", one.get("source") or "")
            for position, mirror in enumerate(one.get("mirrors") or []):
                yield from _repository(f"{key}.mirrors[{position}]", mirror)
            if name == _DIGEST:
                yield from one_of(f"{key}.sourcePolicy", one.get("sourcePolicy") or "", _POLICIES)
    if site.at(_CONTENT) and site.at(_DIGEST):
        yield Finding(_CONTENT, f"it is set beside {_DIGEST}", "they are the same, by two names", "remove it")


def _repository(key: str, text: str) -> c.Iterator[Finding]:
    host, slash, path = text.partition("/")
    if "@" in path or ":" in path:
        what = f"{shown(key, text)} is an image with a tag or digest"
        yield Finding(key, what, "it must be a repository", "remove what follows its name")
    elif not _HOST.fullmatch(host) or (slash and not (_is_registry(host) and _PATH.fullmatch(path))):
        yield Finding(
            key, f"{shown(key, text)} is not a repository", "", "give one such as mirror.example.com:5000/ocp"
        )


def _is_registry(host: str) -> bool:
    """As in the names of images, where a first part without dot and port is a path on docker.io."""
    return "." in host or ":" in host or host == "localhost" or host != host.lower()


def pulled(site: Site) -> c.Iterator[Finding]:
    """The pull secret has credentials of the release's registry, or of its mirrors."""
    found = keys.registries(site)
    if not found:
        return
    for registry, why in found.items():
        if why:
            yield Finding("pullSecret", f"credentials of {registry} cannot be read", why, "correct or remove them")
    hosts = [_registry(mirror) for one in _sources(site) for mirror in one.get("mirrors") or []]
    wanted = dict.fromkeys(hosts or [_registry(site.release.image) or _RELEASES])
    for host in wanted:
        if not any(_registry(one) == host for one in found):
            why = "images of the release are pulled from it"
            next_step = "add its credentials, or skip the check registry where it needs none"
            yield Finding("pullSecret", f"there are no credentials of {host}", why, next_step)


def _registry(name: str) -> str:
    return name.removeprefix("https://").partition("/")[0].partition("@")[0]


def _sources(site: Site) -> list[dict]:
    return [*(site.at(_DIGEST) or []), *(site.at(_CONTENT) or [])]


def mirror_trust(site: Site) -> c.Iterator[Finding]:
    """Without a proxy the bundle of Proxyonly is for nobody, and a mirror has rarely a certificate that all machines trust."""
    if not _sources(site) or site.at("proxy"):
        return
    if not site.at("additionalTrustBundle"):
        why = "machines trust a mirror by it, unless its certificate is of a public authority"
        next_step = "set cluster_openshift_trust_bundle, or skip the check mirror_trust"
        yield Finding("additionalTrustBundle", "there are mirrors, and no trust bundle", why, next_step)
    elif site.at("additionalTrustBundlePolicy") != keys.ALWAYS:
        key, why = (
            "additionalTrustBundlePolicy",
            "machines take the bundle only where there is a proxy, and there is none",
        )
        yield Finding(key, f"it is {site.at(key)}", why, f"set cluster_openshift_trust_bundle_policy: {keys.ALWAYS}")
