# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of the pull secret, SSH keys, FIPS and the trust bundle in install-config. Pure.

Sources: SSHPublicKey, CABundle and ImagePullSecret in pkg/validate/validate.go, and validateFIPSconfig in pkg/types/validation/installconfig.go, of
openshift/installer. No message has a part of a secret: the installer's own has the whole pull secret.
"""

from __future__ import annotations

import base64
import binascii
import collections.abc as c
import json
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import (
    Finding,
    Site,
    one_of,
)

_PULL, _SSH, _BUNDLE = "pullSecret", "sshKey", "additionalTrustBundle"
PROXY_ONLY, ALWAYS = "Proxyonly", "Always"
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----\s*\n(.*?)-----END \1-----[ \t]*\r?(?:\n|\Z)", re.DOTALL)
#: Of public keys, as the first field of their data repeats it (RFC 4253, 6.6).
_KEY = re.compile(r"(?:^|\s)((?:sk-)?(?:ssh|ecdsa)-[a-z0-9@.-]+)\s+([A-Za-z0-9+/]+={0,2})(?=\s|$)")
#: Keys of a cluster in FIPS mode.
_FIPS_KEYS = re.compile(r"ecdsa-sha2-nistp\d{3}|ssh-rsa")
_SEQUENCE, _BIT_STRING = 0x30, 0x03


def pull_secret(site: Site) -> c.Iterator[Finding]:
    text = site.at(_PULL) or ""
    auths, why = _auths(text)
    if why:
        next_step = "copy the pull secret as it is, in single quotes (cluster_openshift_pull_secret)"
        yield Finding(
            _PULL,
            f"the pull secret ({site.hashed(text)}) cannot be read" if text else "there is no pull secret",
            why,
            next_step,
        )
    for registry, entry in auths.items():
        if not isinstance(entry, c.Mapping) or not {"auth", "credsStore"} & set(entry):
            yield Finding(_PULL, f"the entry of {registry} has neither auth nor credsStore", "", "correct or remove it")


def _auths(text: str) -> tuple[dict[str, t.Any], str]:
    """Entries by registry, or why there are none."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return {}, "it is not JSON"
    auths = read.get("auths") if isinstance(read, dict) else None
    if not isinstance(auths, dict) or not auths:
        return {}, "it has no auths"
    return auths, ""


def registries(site: Site) -> dict[str, str]:
    """Registries of the pull secret, each with why its credentials cannot be read, empty where they can."""
    found = {}
    for registry, entry in _auths(site.at(_PULL) or "")[0].items():
        given = entry.get("auth") if isinstance(entry, c.Mapping) else None
        why = "" if given is None or ":" in _decoded(given) else "its auth is not base64 of user:password"
        found[registry] = why
    return found


def _decoded(text: t.Any) -> str:
    try:
        return base64.b64decode(str(text), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


def ssh_key(site: Site) -> c.Iterator[Finding]:
    """Without one nobody gets into a machine. The installer takes the first line that has a key."""
    text = site.at(_SSH) or ""
    kinds = [kind for line in text.splitlines() if (kind := _kind(line))]
    if text.strip() and not kinds:
        yield Finding(_SSH, "no public key is found", "", "give the line of a file such as id_ed25519.pub")
    elif kinds and site.at("fips") and not _FIPS_KEYS.fullmatch(kinds[0]):
        yield Finding(_SSH, f"{kinds[0]} is not available in FIPS mode", "", "use a key of RSA or ECDSA")


def ssh_keys(site: Site) -> c.Iterator[Finding]:
    lines = (site.at(_SSH) or "").splitlines()
    if not any(map(_kind, lines)):
        return
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith("#") and not _kind(line):
            yield Finding(_SSH, f"line {number} is not a public key", "the installer would drop it", "correct it")


def _kind(line: str) -> str:
    """Type of a key, empty if the line has none. Options may come before it."""
    for found in [] if line.lstrip().startswith("#") else _KEY.finditer(line):
        try:
            data = base64.b64decode(found[2], validate=True)
        except (binascii.Error, ValueError):
            continue
        length = int.from_bytes(data[:4], "big")
        if len(data) > 4 + length and data[4 : 4 + length] == found[1].encode():
            return found[1]
    return ""


def fips(site: Site) -> c.Iterator[Finding]:
    if site.at("fips") and site.fips_host is False:
        why = "the installer of a cluster in FIPS mode runs on RHEL 9 in FIPS mode only"
        next_step = "run it on such a host (the cluster's ansible_host), with the FIPS-capable installer"
        yield Finding("fips", "this host is not in FIPS mode", why, next_step)


def trust_bundle(site: Site) -> c.Iterator[Finding]:
    text = site.at(_BUNDLE) or ""
    if text:
        blocks = list(_BLOCK.finditer(text))
        rest = _BLOCK.sub("", text)
        # What comes before a block is a comment.
        after = text[blocks[-1].end() :] if blocks else text
        for number, block in enumerate(blocks, start=1):
            if not (block[1] == "CERTIFICATE" and is_certificate(block[2])):
                what = f"block {number} ({block[1]}) is not a certificate"
                yield Finding(_BUNDLE, what, "", "give certificates of authorities in PEM only")
        if not blocks or after or "-----BEGIN" in rest:
            why = "the installer reads certificates in PEM, and nothing after the last one"
            yield Finding(_BUNDLE, f"the text ({site.hashed(text)}) is not a bundle of certificates", why)
    policy = site.at("additionalTrustBundlePolicy")
    if policy:
        yield from one_of("additionalTrustBundlePolicy", policy, (PROXY_ONLY, ALWAYS))


def is_certificate(encoded: str) -> bool:
    """Whether base64 holds a sequence of a sequence, a sequence and a bit string (RFC 5280, 4.1), which no key does."""
    try:
        data = base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError):
        return False
    outer = _parts(data)
    if len(outer) != 1 or outer[0][0] != _SEQUENCE:
        return False
    return [tag for tag, _contents in _parts(outer[0][1])] == [_SEQUENCE, _SEQUENCE, _BIT_STRING]


def _parts(data: bytes) -> list[tuple[int, bytes]]:
    """Tag and contents of each element of DER, none if one is cut off."""
    found, at = [], 0
    while at + 2 <= len(data):
        tag, length, at = data[at], data[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            length, at = int.from_bytes(data[at : at + size], "big"), at + size
        if at + length > len(data):
            return []
        found.append((tag, data[at : at + length]))
        at += length
    return found if at == len(data) else []
