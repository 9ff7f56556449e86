# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests and the verdict on each, in one small cluster: those of cluster-machine-approver's tables, and hostile ones.

`TABLE` has the cases of openshift/cluster-machine-approver, pkg/controller/csr_check_test.go, with the inventory in place of Machine objects. `HOSTILE` has
others. Unit tests judge them, and live tests file them at a real API server.
"""

from __future__ import annotations

import base64
import collections.abc as c
import dataclasses
import typing as t

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import AttributeOID, ExtendedKeyUsageOID, NameOID

from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s
from ansible_collections.hwaccel.gpu.tests.unit.approval.signing import Filed, dns, ips

DOMAIN = "gpu.example.com"
#: The Nodes: a worker that has joined, and one that the inventory does not have.
WORKER, STRANGER = f"worker-0.{DOMAIN}", "stranger"
#: Workers that have not joined yet.
NEW, UPPER, DOTTED = f"worker-1.{DOMAIN}", f"worker-2.{DOMAIN}", f"worker-3.{DOMAIN}"
ADDRESS, SECOND, NEW_ADDRESS, BALANCER = "10.33.3.20", "10.44.0.20", "10.33.3.21", "10.33.3.5"
STORAGE = f"worker-0-storage.{DOMAIN}"
EXPECTED: list[dict[str, t.Any]] = [
    {"name": WORKER, "ip_addresses": [ADDRESS, SECOND, "fd00::20"], "dns_names": [f"Worker-0-Storage.{DOMAIN}."]},
    {"name": NEW, "ip_addresses": [NEW_ADDRESS]},
    {"name": UPPER.upper(), "ip_addresses": ["10.33.3.22"]},
    {"name": f"{DOTTED}.", "ip_addresses": ["10.33.3.23"]},
]
NODES = {WORKER: frozenset((ADDRESS, WORKER)), STRANGER: frozenset(("10.66.6.6", STRANGER))}


@dataclasses.dataclass(frozen=True)
class Case:
    """One request. code: the expected reason, "" if it is approved. live: whether a real API server takes it from the client of tests."""

    name: str
    filed: Filed
    code: str = ""
    live: bool = True

    @property
    def decided_by_profile(self) -> bool:
        return self.filed.signer == s.CLIENT and self.code not in ("DENIED", "FAILED", "BAD_PEM")


def good_client(profile: str = "openshift", node: str = NEW) -> Filed:
    return s.client(node, profile)


def good_serving() -> Filed:
    return s.serving(WORKER, *dns(WORKER, "worker-0"), *ips(ADDRESS, SECOND))


def table(profile: str = "openshift") -> list[Case]:
    """Its cases in its order; those without an equivalent are listed in test_rules.py."""
    serving = good_serving()
    server = ("server auth",)
    return [
        Case("ok with RSA", s.with_rsa(serving)),
        Case("ok with ECDSA", serving),
        Case("bad CSR", serving.but(written=lambda _pem: b"-----BEGIN??\n"), "BAD_PEM", live=False),
        Case("no node prefix", serving.but(username="test"), "BAD_REQUESTOR"),
        Case("only node prefix", serving.but(username="system:node:"), "BAD_REQUESTOR"),
        Case("no machine", s.serving(STRANGER, *dns(STRANGER)), "NOT_IN_INVENTORY"),
        Case("missing groups 1", serving.but(groups=("system:nodes",)), "BAD_REQUESTOR", live=False),
        Case("missing groups 2", serving.but(groups=("system:authenticated",)), "BAD_REQUESTOR"),
        Case("extra group", serving.but(groups=(*s.NODE_GROUPS, "foo-group"))),
        Case("wrong group", serving.but(groups=("system:authenticated", "foo-group")), "BAD_REQUESTOR"),
        Case("usages empty", serving.but(usages=()), "BAD_USAGE", live=False),
        Case("client auth for server auth", serving.but(usages=("digital signature", "client auth")), "BAD_USAGE"),
        Case("no digital signature", serving.but(usages=("key encipherment", *server)), "BAD_USAGE"),
        Case("no server auth", serving.but(usages=("digital signature", "key encipherment")), "BAD_USAGE"),
        Case(
            "four usages", s.with_rsa(serving).but(usages=("signing", "key encipherment", *serving.usages)), "BAD_USAGE"
        ),
        Case("subject of another node", serving.but(subject=s.node_subject(NEW)), "BAD_SUBJECT"),
        Case("common name without prefix", serving.but(subject=_subject(common=WORKER)), "BAD_SUBJECT"),
        Case("no organization", serving.but(subject=_subject(groups=())), "BAD_SUBJECT"),
        Case("extra address", serving.but(names=(*serving.names, *ips("99.0.1.1"))), "SAN_NOT_ALLOWED"),
        Case("another address", serving.but(names=(*dns(WORKER), *ips("10.0.0.2"))), "SAN_NOT_ALLOWED"),
        Case("another DNS name", serving.but(names=(*dns("node2"), *ips(ADDRESS))), "SAN_NOT_ALLOWED"),
        Case("trailing dot in the inventory", serving.but(names=dns(STORAGE, WORKER.upper()))),
        *_clients(profile),
    ]


def _clients(profile: str) -> list[Case]:
    client = good_client(profile)
    return [
        Case("client", client),
        Case("client with RSA", s.with_rsa(client, 1)),
        Case("client, upper case in the inventory", good_client(profile, UPPER)),
        Case("client, trailing dot in the inventory", good_client(profile, DOTTED)),
        Case(
            "client, extra organization", client.but(subject=_subject(NEW, ("system:nodes", "bamboo"))), "BAD_SUBJECT"
        ),
        Case("client with a DNS name", client.but(names=dns(NEW)), "SAN_NOT_ALLOWED"),
        Case(
            "client, extra usage", client.but(usages=(*client.usages, "server auth", "key encipherment")), "BAD_USAGE"
        ),
        Case("client, wrong usage", client.but(usages=("digital signature", "server auth")), "BAD_USAGE"),
        Case("client, missing usage", client.but(usages=("client auth", "key encipherment")), "BAD_USAGE"),
        Case("client, wrong common name", client.but(subject=_subject(common=NEW)), "BAD_SUBJECT"),
        Case("client, wrong user", client.but(username=f"{client.username}-not"), "BAD_REQUESTOR"),
        Case("client, fourth group", client.but(groups=(*client.groups, "operators")), "BAD_REQUESTOR"),
        Case("client, empty name", client.but(subject=_subject(common="system:node:")), "BAD_SUBJECT"),
        Case("client, the node exists", good_client(profile, WORKER), "NODE_EXISTS"),
        Case("client, missing machine", good_client(profile, f"worker-9.{DOMAIN}"), "NOT_IN_INVENTORY"),
        Case("client, the machine has a node", good_client(profile, "worker-0"), "TWO_NAMES"),
        Case("client, proper timing", client.but(age=600)),
        Case("client, proper timing 2", client.but(age=-9)),
        Case("client, too late", client.but(age=25 * 3600), "TOO_OLD", live=False),
    ]


def hostile(profile: str = "openshift") -> list[Case]:
    return [*_signers(profile), *_subjects(profile), *_texts(), *_names(), *_requestors(profile), *_keys(profile)]


def _subject(
    node: str = WORKER, groups: c.Iterable[str] = ("system:nodes",), common: str | None = None
) -> tuple[t.Any, ...]:
    name = f"system:node:{node}" if common is None else common
    return (*((NameOID.ORGANIZATION_NAME, group) for group in groups), (NameOID.COMMON_NAME, name))


def _signers(profile: str) -> c.Iterator[Case]:
    other = "kubernetes.io/kube-apiserver-client"
    admin = _subject(groups=("system:cluster-admins",), common="admin")
    account = _subject(groups=(), common="system:serviceaccount:kube-system:generic-garbage-collector")
    client = good_client(profile)
    for name, filed in (
        ("cluster-admin", client.but(signer=other, subject=admin)),
        ("ServiceAccount", client.but(signer=other, subject=account)),
        ("a node of the inventory at another signer", client.but(signer=other)),
        ("legacy signer", client.but(signer="kubernetes.io/legacy-unknown", subject=admin)),
        ("signer of multus", client.but(signer="network.openshift.io/signer", subject=admin)),
    ):
        yield Case(name, filed, "UNKNOWN_SIGNER")
    yield Case("cluster-admin at the kubelets' signer", client.but(subject=admin), "BAD_SUBJECT")
    ten_years = 10 * 365 * 24 * 3600
    yield Case("ten years", client.but(expiration=ten_years), "BAD_EXPIRATION")
    yield Case("ten years, serving", good_serving().but(expiration=ten_years), "BAD_EXPIRATION")
    yield Case("denied", client.but(conditions=("Denied",)), "DENIED")
    yield Case("failed", client.but(conditions=("Failed",)), "FAILED", live=False)
    yield Case("denied, serving", good_serving().but(conditions=("Denied",)), "DENIED")


def _subjects(profile: str) -> c.Iterator[Case]:
    name, organization, unit = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME
    good, nodes = f"system:node:{NEW}", (NameOID.ORGANIZATION_NAME, "system:nodes")
    subjects: dict[str, tuple[t.Any, ...]] = {
        "NUL in the common name": (nodes, (name, f"{good}\0.attacker.example")),
        "newline in the common name": (nodes, (name, f"{good}\n")),
        "trailing space in the common name": (nodes, (name, f"{good} ")),
        "leading space in the common name": (nodes, (name, f" {good}")),
        "look-alike in the common name": (nodes, (name, good.replace("o", "\u043e"))),
        "300 characters": (nodes, (name, f"system:node:{'a' * 300}")),
        "upper case in the common name": (nodes, (name, good.upper())),
        "upper case node": (nodes, (name, f"system:node:{NEW.upper()}")),
        "trailing dot in the common name": (nodes, (name, f"{good}.")),
        "prefix twice": (nodes, (name, f"system:node:{good}")),
        "organization twice": (nodes, nodes, (name, good)),
        "masters too": (nodes, (organization, "system:masters"), (name, good)),
        "organization in one part twice": ((nodes, (organization, "system:masters")), (name, good)),
        "organization and unit swapped": ((unit, "system:nodes"), (name, good)),
        "unit too": (nodes, (unit, "system:masters"), (name, good)),
        "common name in a second part": (nodes, (name, good), (name, "system:admin")),
        "common name twice in one part": (nodes, ((name, good), (name, "system:admin"))),
        "several values in one part": ((nodes, (name, good)),),
        "country too": (nodes, (NameOID.COUNTRY_NAME, "DE"), (name, good)),
        "serial number too": (nodes, (name, good), (NameOID.SERIAL_NUMBER, "1")),
        "no common name": (nodes,),
        "empty subject": (),
        "organization with a trailing space": ((organization, "system:nodes "), (name, good)),
    }
    for title, subject in subjects.items():
        yield Case(title, good_client(profile).but(subject=subject), "BAD_SUBJECT")
    yield Case(
        "serving, masters too",
        good_serving().but(subject=_subject(WORKER, ("system:nodes", "system:masters"))),
        "BAD_SUBJECT",
    )


def _texts() -> c.Iterator[Case]:
    serving = good_serving()
    # live: what the API server takes. It reads the first block, with Go's rules.
    written: dict[str, tuple[c.Callable[[bytes], bytes], bool]] = {
        "two blocks": (lambda pem: pem + good_serving().pem(), True),
        "trailing data": (lambda pem: pem + b"and more\n", True),
        "leading text": (lambda pem: b"Certificate Request:\n" + pem, True),
        "carriage returns": (lambda pem: pem.replace(b"\n", b"\r\n"), True),
        "headers": (lambda pem: pem.replace(b"REQUEST-----\n", b"REQUEST-----\nProc-Type: 4\n\n", 1), True),
        "DER": (lambda pem: base64.b64decode(b"".join(pem.splitlines()[1:-1])), False),
        "another label": (lambda pem: pem.replace(b"CERTIFICATE REQUEST", b"NEW CERTIFICATE REQUEST"), False),
        "a certificate": (lambda pem: pem.replace(b"CERTIFICATE REQUEST", b"CERTIFICATE"), False),
        "damaged base64": (lambda pem: pem.replace(b"M", b"*", 1), False),
        "spaces between lines": (lambda pem: pem.replace(b"\n", b" \n", 3), True),
        "one line": (
            lambda pem: pem.replace(b"\n", b"").replace(b"T-----", b"T-----\n", 1).replace(b"-----E", b"\n-----E"),
            True,
        ),
        "cut": (lambda pem: pem[:-60], False),
        "nothing": (lambda _pem: b"", False),
    }
    for title, (change, live) in written.items():
        yield Case(title, serving.but(written=change), "BAD_PEM", live)
    yield Case("base64 is damaged", serving.but(encoded=lambda text: text[:-3]), "BAD_PEM", live=False)
    yield Case(
        "twice base64",
        serving.but(encoded=lambda text: base64.b64encode(text.encode()).decode()),
        "BAD_PEM",
        live=False,
    )
    many = dns(*(f"name-{number}.{DOMAIN}" for number in range(1000)))
    yield Case("a thousand names", serving.but(names=many), "BAD_PEM")


def _names() -> c.Iterator[Case]:
    serving = good_serving()
    foreign: dict[str, x509.GeneralName] = {
        "wildcard": dns(f"*.apps.{DOMAIN}")[0],
        "wildcard alone": dns("*")[0],
        "internal API": dns(f"api-int.{DOMAIN}")[0],
        "API": dns(f"api.{DOMAIN}")[0],
        "the service kubernetes": dns("kubernetes.default.svc")[0],
        "localhost": dns("localhost")[0],
        "loopback": ips("127.0.0.1")[0],
        "IPv6 loopback": ips("::1")[0],
        "IPv4-mapped": ips(f"::ffff:{ADDRESS}")[0],
        "IPv4-compatible": ips(f"::{ADDRESS}")[0],
        "any address": ips("0.0.0.0")[0],
        "load balancer": ips(BALANCER)[0],
        "address of another node": ips(NEW_ADDRESS)[0],
        "name of another node": dns(NEW)[0],
        "short name of another node": dns("worker-1")[0],
        "address as a name": dns(ADDRESS)[0],
        "trailing dot": dns(f"{WORKER}.")[0],
        "trailing space": dns(f"{WORKER} ")[0],
        "NUL": dns(f"{WORKER}\0.attacker.example")[0],
        "domain alone": dns(DOMAIN)[0],
        "part of the domain": dns(f"worker-0.{DOMAIN.partition('.')[0]}")[0],
        "service address": ips("172.30.0.1")[0],
        "e-mail": x509.RFC822Name(f"root@{WORKER}"),
        "URI": x509.UniformResourceIdentifier(f"spiffe://{DOMAIN}/ns/kube-system/sa/admin"),
        "registered ID": x509.RegisteredID(x509.ObjectIdentifier("1.2.3.4")),
        "directory name": x509.DirectoryName(s.subject(_subject())),
    }
    for title, name in foreign.items():
        yield Case(f"{title}, too", serving.but(names=(*serving.names, name)), "SAN_NOT_ALLOWED")
    yield Case("only e-mail", serving.but(names=(foreign["e-mail"],)), "SAN_NOT_ALLOWED")
    yield Case("no names", serving.but(names=()), "NO_SAN")
    constraints = x509.BasicConstraints(ca=True, path_length=None)
    uses = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    for title, extension in (("a CA", constraints), ("usages as an extension", uses)):
        yield Case(title, serving.but(extensions=(extension,)), "BAD_EXTENSION")
    password = ((AttributeOID.CHALLENGE_PASSWORD, b"secret"),)
    yield Case("a challenge password", serving.but(attributes=password), "BAD_EXTENSION")


def _requestors(profile: str) -> c.Iterator[Case]:
    client, serving = good_client(profile), good_serving()
    # live: kube-controller-manager approves it, as a renewal.
    itself = client.but(username=f"system:node:{NEW}", groups=s.NODE_GROUPS)
    yield Case("a node for itself", itself, "BAD_REQUESTOR", live=False)
    yield Case(
        "a node for another one", client.but(username=f"system:node:{WORKER}", groups=s.NODE_GROUPS), "BAD_REQUESTOR"
    )
    yield Case(
        "an administrator",
        client.but(username="admin", groups=("operators", "system:authenticated")),
        "BAD_REQUESTOR",
    )
    yield Case("the bootstrap identity in other groups", client.but(groups=("system:authenticated",)), "BAD_REQUESTOR")
    yield Case("another node of the inventory", serving.but(username=f"system:node:{NEW}"), "BAD_SUBJECT")
    yield Case(
        "the bootstrap identity, serving", serving.but(username=client.username, groups=client.groups), "BAD_REQUESTOR"
    )
    yield Case("an odd username", serving.but(username=f"system:node:{WORKER}\n"), "BAD_REQUESTOR", live=False)
    missing = f"worker-1.{DOMAIN}"
    yield Case("a node that has not joined", s.serving(missing, *dns(missing), *ips(NEW_ADDRESS)), "NODE_MISSING")
    extras = {"impersonator": ["admin"]}
    for title, filed in (("client", client), ("serving", serving)):
        yield Case(f"impersonated, {title}", filed.but(extra=extras), "BAD_REQUESTOR")
        harmless = {"authentication.kubernetes.io/credential-id": ["JTI=1"]}
        yield Case(f"credential id, {title}", filed.but(extra=harmless))


def _keys(profile: str) -> c.Iterator[Case]:
    client, serving = good_client(profile), good_serving()
    yield Case("RSA 1024", client.but(key=s.rsa_key(1024)), "BAD_KEY", live=False)
    yield Case("P-224", client.but(key=s.ec_key(ec.SECP224R1())), "BAD_KEY")
    yield Case("secp256k1", serving.but(key=s.odd_key("secp256k1")), "BAD_KEY", live=False)
    yield Case("ed25519", serving.but(key=s.odd_key("ed25519")), "BAD_KEY")
    yield Case("DSA", serving.but(key=s.odd_key("dsa")), "BAD_KEY", live=False)
    yield Case("P-384", client.but(key=s.ec_key(ec.SECP384R1())))
    yield Case("P-521", serving.but(key=s.ec_key(ec.SECP521R1())))
    yield Case("RSA 4096", s.with_rsa(client).but(key=s.rsa_key(4096)))
    yield Case("signed by SHA-224", client.but(digest=hashes.SHA224()), "BAD_SIGNATURE", live=False)
    for title, filed in (("client", client), ("serving", serving)):
        yield Case(f"signed by another key, {title}", filed.but(written=_unsigned), "BAD_SIGNATURE", live=False)


def _unsigned(text: bytes) -> bytes:
    """The request with one bit of its signature changed: whoever filed it does not have the key."""
    der = bytearray(base64.b64decode(b"".join(text.splitlines()[1:-1])))
    der[-1] ^= 1
    return s.pem(bytes(der))
