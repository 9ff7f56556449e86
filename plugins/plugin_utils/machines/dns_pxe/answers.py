# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answer files, by which installers of systems without ignition run unattended: kickstart, autoinstall and preseed. Pure.

An answer file is downloaded over HTTP without authentication, so it holds no secret: public keys, and at most the hash of a password.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re
import typing as t
import urllib.parse

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import templating
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Machine


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of answer files. templates: by the name of the file. fetched: the file that each installer downloads. url: what its kernel arguments name, in the
    machine's folder. checker: command of its validator, to which the path is added. checked: the file that this reads.
    """

    templates: c.Mapping[str, str]
    fetched: str
    url: str
    arguments: tuple[str, ...]
    checker: tuple[str, ...]


KINDS = {
    "kickstart": Kind({"ks.cfg": "kickstart.cfg"}, "ks.cfg", "ks.cfg", ("inst.ks={answer_url}",), ("ksvalidator",)),
    # The installer requests all three. The last one may be empty.
    "autoinstall": Kind(
        {"user-data": "autoinstall.user-data", "meta-data": "autoinstall.meta-data", "vendor-data": "empty"},
        "user-data",
        "",
        ("autoinstall", "ds=nocloud-net;s={answer_url}"),
        ("cloud-init", "schema", "--config-file"),
    ),
    "preseed": Kind(
        {"preseed.cfg": "preseed.cfg"},
        "preseed.cfg",
        "preseed.cfg",
        ("auto=true", "priority=critical", "url={answer_url}"),
        ("debconf-set-selections", "--checkonly"),
    ),
}
CHECKERS = tuple(kind.checker[0] for kind in KINDS.values())
#: Folder of answer files below the URL of the server.
FOLDER = "answers"
_USER = re.compile(r"(?!root$)[a-z_][a-z0-9_-]{0,31}")
#: Users and groups of the systems themselves: with one of these names Debian's installer asks for another (reserved-usernames of its package user-setup), and
#: that of Red Hat makes no account (uidgid of its package setup).
_TAKEN = re.compile(
    "adm|audio|backup|bin|cdrom|daemon|dialout|dip|disk|fax|floppy|ftp|games|gnats|halt|irc|kmem|list|lock|lp|mail|man|mem|news|nobody|nogroup|"
    "operator|plugdev|proxy|sasl|shadow|shutdown|src|sshd|staff|sudo|sync|sys|tape|tty|users|utmp|uucp|video|voice|wheel|www-data"
)
_PUBLIC_KEY = re.compile(r"(ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}( [A-Za-z0-9@._+ -]*)?")
#: Hashes of crypt(5) that installers accept.
_HASH = re.compile(r"\$(6|5|y|2[aby])\$[./A-Za-z0-9$=,]{20,}")
#: Path of a disk.
DEVICE = re.compile(r"/dev/[A-Za-z0-9][A-Za-z0-9/._:@+-]*")
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9@._/+-]*")
_PACKAGE = re.compile(r"[@A-Za-z0-9][A-Za-z0-9^._+-]*")


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answers for an installer. user: the account that may log in by SSH and use sudo. password: its hash, empty if it has none.

    source: URL of the system's packages.
    """

    kind: str
    user: str
    ssh_keys: tuple[str, ...]
    source: str = ""
    password: str = ""
    locale: str = "en_US.UTF-8"
    keyboard: str = "us"
    timezone: str = "Etc/UTC"
    packages: tuple[str, ...] = ()

    def path(self, machine: Machine, name: str = "") -> str:
        """Path of a file of the machine below the URL of the server, by default of its folder."""
        return f"/{FOLDER}/{machine.mac.replace(':', '-')}/{name}"

    def fetched(self, machine: Machine) -> str:
        return self.path(machine, KINDS[self.kind].fetched)


#: What is wrong, why, and the next step. None of the texts contains a password or a key.
Wrong = tuple[str, str, str]


def read(given: t.Any) -> tuple[Answer | None, list[Wrong]]:
    """The answers of a profile, None if they have problems."""
    if not isinstance(given, c.Mapping):
        return None, [("the answer cannot be read", f"it is {type(given).__name__}", "make it a dictionary with kind")]
    known = [field.name for field in dataclasses.fields(Answer)]
    wrong: list[Wrong] = [
        (f"{key} is no key of an answer", "", f"use {', '.join(known)}") for key in sorted(set(given) - set(known))
    ]
    lists = {key: _listed(given.get(key)) for key in ("ssh_keys", "packages")}
    texts = {key: str(given[key]) for key in known if key not in lists and given.get(key) not in (None, "")}
    wrong += _account(texts, lists["ssh_keys"])
    if (kind := texts.setdefault("kind", "")) not in KINDS:
        wrong.append((f"the kind of the answer is {kind or 'missing'}", "", f"set it to one of {', '.join(KINDS)}"))
    if not urllib.parse.urlsplit(source := texts.get("source", "")).hostname and (
        source or kind in ("kickstart", "preseed")
    ):
        wrong.append(
            (f"the source of the answer is {source or 'missing'}", "", "set it to the URL of the system's packages")
        )
    for key, pattern in (("locale", _WORD), ("keyboard", _WORD), ("timezone", _WORD), ("source", re.compile(r"\S+"))):
        if key in texts and not pattern.fullmatch(texts[key]):
            wrong.append((f"the {key} of the answer cannot be used", texts[key], "write it as a single word"))
    for name in lists["packages"]:
        if not _PACKAGE.fullmatch(name):
            wrong.append((f"{name} is not the name of a package", "", "correct it"))
    values: dict[str, t.Any] = {**texts, **lists}
    return (None if wrong else Answer(**values)), wrong


def _account(texts: c.Mapping[str, str], keys: c.Sequence[str]) -> c.Iterator[Wrong]:
    if not _USER.fullmatch(texts.get("user", "")):
        yield "the answer has no user", "", "set user to the name of an account, in lower case; root cannot log in"
    elif _TAKEN.fullmatch(texts["user"]):
        why = "the system has a user or a group of this name, and its installer makes no account"
        yield f"the user of the answer cannot be {texts['user']}", why, "set user to another name, such as gpuadmin"
    if not keys:
        yield "the answer has no ssh_keys", "nobody could log in", "add the public keys of those who may log in"
    for number, key in enumerate(keys):
        if "PRIVATE KEY" in key:
            yield (
                f"ssh_keys[{number}] is a private key",
                "everybody on its way can read an answer file",
                "replace it by the public key",
            )
        elif not _PUBLIC_KEY.fullmatch(key):
            yield f"ssh_keys[{number}] is not a public key", "", "write it as in the file with the ending .pub"
    if "password" in texts and not _HASH.fullmatch(texts["password"]):
        why = "everybody on its way can read an answer file"
        yield (
            "the password of the answer is not a hash",
            why,
            "write the output of openssl passwd -6, or remove it: keys are enough",
        )


def _listed(value: t.Any) -> tuple[str, ...]:
    return tuple(str(one).strip() for one in (value if isinstance(value, (list, tuple)) else [value] if value else []))


def files(answer: Answer, machine: Machine, device: str, base: str, domain: str) -> dict[str, str]:
    """Texts of the machine's files by name. device: path of the disk that is overwritten. base: URL of the server. domain: empty if the machine has none."""
    model = {
        "answer": answer,
        "machine": machine,
        "domain": domain,
        "fqdn": f"{machine.name}.{domain}" if domain else machine.name,
        "device": device,
        "drive": device.removeprefix("/dev/"),
        "source": urllib.parse.urlsplit(answer.source),
        "report": f"{base}/report/{machine.name}",
    }
    return {
        name: templating.render("dns_pxe", template, **model) for name, template in KINDS[answer.kind].templates.items()
    }
