# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""New certificate authorities for K3s that whoever trusts the old ones trusts, too. Pure, but for the keys, which are random.

Each gets a new root, which the old root signs as well, and signs itself (contrib/util/rotate-default-ca-certs.sh of K3s). K3s takes them if a chain leads to a
root of before (validateCA in pkg/server/handlers/cert.go).
"""

from __future__ import annotations

import collections.abc as c
import datetime
import hashlib
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority

#: Names of their files below the folder tls of servers, without .crt and .key. Servers without etcd have its authorities, too.
KINDS = ("client", "server", "request-header", "etcd/peer", "etcd/server")
#: What signs tokens of service accounts.
SERVICE_KEY = "service.key"
_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.+?-----END [A-Z ]*PRIVATE KEY-----\n?", re.DOTALL)
#: As K3s makes its own.
_DAYS, _BITS = 3650, 2048
#: Clocks of machines may be behind by so much.
_SKEW = datetime.timedelta(hours=1)


class _Authority(t.NamedTuple):
    certificate: str
    key: str


def paths(kind: str) -> tuple[str, str]:
    """Of certificate and key."""
    return f"{kind}-ca.crt", f"{kind}-ca.key"


def files() -> list[str]:
    """Those that servers have of them."""
    return [*(path for kind in KINDS for path in paths(kind)), SERVICE_KEY]


def successors(present: c.Mapping[str, str], now: float) -> dict[str, str]:
    """Texts of the new files by their names. present: those of now. now: in seconds since 1970. Raises HwaccelError if the key of a root is not among them."""
    made = {}
    for kind in KINDS:
        certificate, key = paths(kind)
        new = _succeeded(kind, present[certificate], present[key], now)
        made[certificate], made[key] = new.certificate, new.key
    # The first one signs, and the others still verify what they have signed (genServiceAccount in pkg/daemons/control/deps/deps.go).
    return {**made, SERVICE_KEY: _service_key() + present[SERVICE_KEY]}


def hash_of(bundle: str) -> str:
    """What tokens have of the authority: the digest of the file if it has one certificate, and otherwise that of the root of the first one (hashCA in
    pkg/clientaccess/token.go). Empty if there is none.
    """
    chain = authority.certificates(bundle)
    if len(chain) < 2:
        return hashlib.sha256(bundle.encode("utf-8")).hexdigest() if chain else ""
    return authority.fingerprint(_root(chain))


def rooted(bundle: str, keys: int) -> bool:
    """Whether the key of the root is there, too. keys: how many the file of the key has: that of the authority itself is the first one."""
    return keys >= min(2, len(authority.certificates(bundle)))


def _root(chain: c.Sequence[str]) -> str:
    """Who has issued the first one, and itself. The last one of a chain that has none."""
    found = chain[0]
    while not authority.issued(found, found):
        above = [one for one in chain if one != found and authority.issued(found, one)]
        if not above:
            return chain[-1]
        found = next((one for one in above if authority.issued(one, one)), above[0])
    return found


def _succeeded(kind: str, bundle: str, keys: str, now: float) -> _Authority:
    """The authority, followed by its root as the old root has signed it, and as it has signed itself, and by the old one. The order matters to clients with
    OpenSSL that trust only the old one: they follow the first root that fits.
    """
    old = _Authority(_root(authority.certificates(bundle)), _key_of_root(kind, bundle, keys))
    name, at = kind.replace("/", "-"), int(now)
    root = _issued(f"k3s-{name}-root@{at}", now, None)
    crossed = authority.cross_signed(root.certificate, old.certificate, old.key)
    issuing = _issued(f"k3s-{name}-ca@{at}", now, root)
    # Of the keys, servers use the first one. The other one is for the next time.
    return _Authority(issuing.certificate + crossed + root.certificate + old.certificate, issuing.key + root.key)


def _key_of_root(kind: str, bundle: str, keys: str) -> str:
    found = _KEY.findall(keys)
    if not found or not rooted(bundle, len(found)):
        next_step = "replace it as documented for authorities of one's own (k3s certificate rotate-ca)"
        raise HwaccelError(f"the key of the root of K3s' authority {kind} is not there", paths(kind)[1], "", next_step)
    return str(found[min(2, len(authority.certificates(bundle))) - 1])


def _issued(name: str, now: float, issuer: _Authority | None) -> _Authority:
    """An authority that another one has issued, or itself."""
    library = authority.libraries()
    x509, formats = library.x509, library.serialization
    key = library.ec.generate_private_key(library.ec.SECP256R1())
    signer = formats.load_pem_private_key(issuer.key.encode("ascii"), None) if issuer else key
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    above = x509.load_pem_x509_certificate(issuer.certificate.encode("ascii")).subject if issuer else subject
    begin = datetime.datetime.fromtimestamp(now, datetime.UTC) - _SKEW
    usages = dict.fromkeys(_USAGES, False) | {
        "digital_signature": True,
        "key_encipherment": True,
        "key_cert_sign": True,
    }
    signed = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(above)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**usages), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, library.hashes.SHA256())
    )
    return _Authority(signed.public_bytes(formats.Encoding.PEM).decode("ascii"), _text(key))


_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


def _service_key() -> str:
    rsa = authority.libraries().rsa
    return _text(rsa.generate_private_key(public_exponent=65537, key_size=_BITS))


def _text(key: t.Any) -> str:
    formats = authority.libraries().serialization
    pem = key.private_bytes(formats.Encoding.PEM, formats.PrivateFormat.TraditionalOpenSSL, formats.NoEncryption())
    return str(pem.decode("ascii"))
