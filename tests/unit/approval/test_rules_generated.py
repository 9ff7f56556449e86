# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests that are generated from a seed: each legitimate one is approved, and each changed one is not, for one of the reasons of its changes."""

from __future__ import annotations

import base64
import collections
import collections.abc as c
import random
import typing as t

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import AttributeOID, ExtendedKeyUsageOID, NameOID

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval import identities
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.profiles import PROFILES
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.requests import of_object
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.rules import (
    ApprovalPolicy,
    ObservedCluster,
    judged,
)
from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s
from ansible_collections.hwaccel.gpu.tests.unit.approval.signing import Filed, dns, ips

DOMAIN = "gpu.example.com"
SIZE = 40
NAMES = [f"worker-{number}.{DOMAIN}" for number in range(SIZE)]
EXPECTED, FAULTS = identities.parse(
    [
        {
            "name": name,
            "ip_addresses": [f"10.33.3.{number}", f"fd00::{number:x}"],
            "dns_names": [f"gpu-{number}.storage"],
        }
        for number, name in enumerate(NAMES, 1)
    ]
)
#: Every second machine is a Node.
JOINED, ABSENT = NAMES[::2], NAMES[1::2]
OBSERVED = ObservedCluster(s.NOW, {name: frozenset() for name in JOINED})

#: A field of the request, the reasons that fit, and the change. Two changes of one request are of two fields, so that none takes another back.
Mutation = tuple[str, set[str], c.Callable[[Filed, random.Random], Filed]]


def legitimate(rng: random.Random, profile: str) -> Filed:
    """A request of a kubelet, in all forms that they have."""
    if profile != "k3s" and rng.random() < 0.5:
        filed = s.client(rng.choice(ABSENT), profile)
    else:
        name = rng.choice(JOINED)
        number = NAMES.index(name) + 1
        known = [*dns(name, name.partition(".")[0], f"gpu-{number}.storage", name.upper())]
        known += [*ips(f"10.33.3.{number}", f"fd00::{number:x}")]
        names = rng.sample(known, rng.randint(1, len(known)))
        groups = (*s.NODE_GROUPS, *(["operators"] if rng.random() < 0.2 else []))
        filed = s.serving(name, *names, groups=groups)
    if rng.random() < 0.3:
        filed = s.with_rsa(filed, rng.randrange(4))
    elif rng.random() < 0.3:
        filed = filed.but(key=s.ec_key(rng.choice([ec.SECP384R1(), ec.SECP521R1()])))
    if rng.random() < 0.3:
        filed = filed.but(digest=rng.choice([hashes.SHA384(), hashes.SHA512()]))
    if rng.random() < 0.5:
        filed = filed.but(extra={"authentication.kubernetes.io/credential-id": [f"JTI={rng.random()}"]})
    order = {
        name: tuple(rng.sample(getattr(filed, name), len(getattr(filed, name))))
        for name in ("usages", "groups", "subject")
    }
    return filed.but(age=rng.uniform(0, 7000), expiration=rng.choice([None, 600, 86400]), **order)


ODD = ("\0", "\n", " ", "*", "\u0430", "/", ":", "=", ",", "\u202e", "\ufeff")


def _of(field: str, codes: str, **forms: t.Any) -> list[Mutation]:
    """forms: new values of the field, or functions of the request and the generator."""
    return [
        (field, set(codes.split()), lambda filed, rng, change=change: filed.but(**{field: change(filed, rng)}))
        for change in forms.values()
    ]


def _common(change: c.Callable[[str], str]) -> c.Callable[[Filed, random.Random], t.Any]:
    return lambda filed, _rng: tuple(
        (kind, change(value)) if kind == NameOID.COMMON_NAME else (kind, value) for kind, value in filed.subject
    )


def _odd(text: str, rng: random.Random) -> str:
    """The text with one character more, less, or another."""
    place = rng.randrange(len(text))
    odd = rng.choice([one for one in ODD if one != text[place]])
    return rng.choice([text[:place] + odd + text[place:], text[:place] + odd + text[place + 1 :]])


def _another_node(filed: Filed, rng: random.Random) -> str:
    return rng.choice([f"system:node:{name}" for name in NAMES if name not in filed.name])


FOREIGN = [
    *dns(
        f"*.{DOMAIN}",
        f"api-int.{DOMAIN}",
        "localhost",
        "kubernetes",
        DOMAIN,
        "worker-99",
        "",
        f"worker-0.{DOMAIN}.",
        "10.33.3.1",
    ),
    *ips("127.0.0.1", "::1", "0.0.0.0", "10.33.3.200", "::ffff:10.33.3.1", "fd00::ffff", "172.30.0.1"),
    x509.RFC822Name("root@localhost"),
    x509.UniformResourceIdentifier("https://10.33.3.1"),
    x509.RegisteredID(x509.ObjectIdentifier("1.2.3")),
]
MUTATIONS: list[Mutation] = [
    *_of(
        "signer",
        "UNKNOWN_SIGNER",
        api=lambda _f, _r: "kubernetes.io/kube-apiserver-client",
        legacy=lambda _f, _r: "kubernetes.io/legacy-unknown",
        own=lambda _f, rng: f"example.com/signer-{rng.randrange(9)}",
        odd=lambda filed, rng: _odd(filed.signer, rng),
    ),
    *_of(
        "username",
        "BAD_REQUESTOR BAD_SUBJECT",
        odd=lambda filed, rng: _odd(filed.username, rng),
        admin=lambda _f, rng: rng.choice(["admin", "", "system:admin", "kubelet", "system:node:", "system:node"]),
        node=_another_node,
    ),
    *_of(
        "groups",
        "BAD_REQUESTOR",
        less=lambda filed, _r: tuple(group for group in filed.groups if group in ("operators", "system:authenticated")),
        none=lambda _f, _r: (),
        unauthenticated=lambda filed, _r: tuple(group for group in filed.groups if group != "system:authenticated"),
    ),
    *_of("extra", "BAD_REQUESTOR", more=lambda filed, _r: {**filed.extra, "scopes": ["all"]}),
    *_of(
        "usages",
        "BAD_USAGE",
        less=lambda filed, _r: filed.usages[:-2] or (),
        more=lambda filed, rng: (
            *filed.usages,
            rng.choice(["signing", "cert sign", "any", "code signing", "crl sign"]),
        ),
        both=lambda filed, _r: (*filed.usages, *({"client auth", "server auth"} - set(filed.usages))),
        twice=lambda filed, _r: (*filed.usages, "digital signature"),
        other=lambda filed, _r: tuple(
            {"client auth": "server auth", "server auth": "client auth"}.get(u, u) for u in filed.usages
        ),
    ),
    *_of(
        "subject",
        "BAD_SUBJECT NOT_IN_INVENTORY",
        odd=lambda filed, rng: _common(lambda name: _odd(name, rng))(filed, rng),
        upper=_common(str.upper),
        unknown=_common(lambda name: name.replace("worker", "rogue")),
        prefix=_common(lambda name: name.removeprefix("system:node:")),
        longer=_common(lambda name: f"{name}.attacker.example"),
        long=_common(lambda _name: f"system:node:{'a' * 300}"),
        masters=lambda filed, rng: (
            *filed.subject,
            (NameOID.ORGANIZATION_NAME, rng.choice(["system:masters", "system:nodes"])),
        ),
        admins=lambda filed, _r: ((NameOID.ORGANIZATION_NAME, "system:cluster-admins"), *filed.subject[1:]),
        unit=lambda filed, _r: (*filed.subject, (NameOID.ORGANIZATIONAL_UNIT_NAME, "system:masters")),
        second=lambda filed, _r: (*filed.subject, (NameOID.COMMON_NAME, "system:admin")),
        joined=lambda filed, _r: (tuple(filed.subject),),
        less=lambda filed, rng: (rng.choice(filed.subject),),
        empty=lambda _f, _r: (),
    ),
    *_of(
        "names",
        "SAN_NOT_ALLOWED NO_SAN",
        foreign=lambda filed, rng: (*filed.names, rng.choice(FOREIGN)),
        wrong=lambda _f, rng: (rng.choice(FOREIGN),),
        none=lambda filed, rng: () if filed.names else (rng.choice(FOREIGN),),
    ),
    *_of(
        "extensions",
        "BAD_EXTENSION",
        authority=lambda _f, _r: (x509.BasicConstraints(ca=True, path_length=0),),
        uses=lambda _f, _r: (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),),
    ),
    *_of("attributes", "BAD_EXTENSION", password=lambda _f, _r: ((AttributeOID.CHALLENGE_PASSWORD, b"secret"),)),
    *_of(
        "key",
        "BAD_KEY",
        weak=lambda _f, _r: s.rsa_key(1024),
        curve=lambda _f, _r: s.odd_key("secp256k1"),
        edwards=lambda _f, _r: s.odd_key("ed25519"),
    ),
    *_of("age", "TOO_OLD", old=lambda _f, rng: rng.uniform(7201, 1e9)),
    *_of("expiration", "BAD_EXPIRATION", long=lambda _f, rng: rng.randrange(367 * 86400, 2**31)),
    *_of("conditions", "DENIED FAILED", decided=lambda _f, rng: (rng.choice(["Denied", "Failed"]),)),
    *_of(
        "written",
        "BAD_PEM BAD_SIGNATURE BAD_KEY BAD_SUBJECT BAD_EXTENSION NOT_IN_INVENTORY SAN_NOT_ALLOWED NO_SAN NODE_MISSING NODE_EXISTS",
        bit=lambda _f, rng: _bit(rng.random(), rng.randrange(8)),
        cut=lambda _f, rng: _cut(rng.random()),
        after=lambda _f, _r: lambda pem: pem + b"x",
        twice=lambda _f, _r: lambda pem: pem + pem,
        returns=lambda _f, _r: lambda pem: pem.replace(b"\n", b"\r\n"),
        label=lambda _f, _r: lambda pem: pem.replace(b" REQUEST", b""),
    ),
]


def _bit(share: float, bit: int) -> c.Callable[[bytes], bytes]:
    """One bit of the DER is another."""

    def changed(pem: bytes) -> bytes:
        der = bytearray(base64.b64decode(b"".join(pem.splitlines()[1:-1])))
        der[int(share * len(der))] ^= 1 << bit
        return s.pem(bytes(der))

    return changed


def _cut(share: float) -> c.Callable[[bytes], bytes]:
    return lambda pem: pem[: int(share * (len(pem) - 2))]


def hostile(rng: random.Random, profile: str) -> tuple[Filed, set[str]]:
    """A legitimate request with up to three changes, and the reasons that fit."""
    filed, codes = legitimate(rng, profile), set[str]()
    fields = rng.sample(sorted({field for field, _codes, _change in MUTATIONS}), rng.choice([1, 1, 1, 2, 3]))
    for field in fields:
        _field, fits, change = rng.choice([one for one in MUTATIONS if one[0] == field])
        filed, codes = change(filed, rng), codes | fits
    if "TOO_OLD" in codes or "BAD_SUBJECT" in codes:
        # An old request of a changed node can also be of one that does not exist, or does.
        codes |= {"NODE_MISSING", "NODE_EXISTS"}
    return filed, codes


def run(count: int, seed: int) -> collections.Counter[str]:
    """Judges as many legitimate and as many hostile requests. Counts of reasons."""
    rng = random.Random(seed)
    reasons: collections.Counter[str] = collections.Counter()
    for _number in range(count // 2):
        profile = rng.choice(sorted(PROFILES))
        policy = ApprovalPolicy(PROFILES[profile], EXPECTED)
        good = legitimate(rng, profile)
        found = judged(of_object(good.object()), policy, OBSERVED)
        assert found.approved, f"legitimate, refused: {found.code}: {found.why}: {good}"
        bad, codes = hostile(rng, profile)
        found = judged(of_object(bad.object()), policy, OBSERVED)
        assert found.code in codes, f"hostile, {found.code or 'approved'}: {found.why}: {bad}"
        reasons.update((found.code,))
    return reasons


def test_generated_requests() -> None:
    assert FAULTS == []
    reasons = run(5_000, 1)
    expected = set().union(*(codes for _field, codes, _change in MUTATIONS)) - {"NODE_MISSING", "NODE_EXISTS"}
    assert expected <= set(reasons)


@pytest.mark.slow
def test_many_generated_requests() -> None:
    reasons = run(100_000, 2)
    print(
        f"100,000 generated requests, half of them hostile: 0 of these approved, 0 others refused; {dict(reasons.most_common())}"
    )
