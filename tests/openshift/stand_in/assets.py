# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The assets of an installation: names, parents, and how each is made."""

from __future__ import annotations

import collections.abc as c
import functools
import json
import random
import re
import typing as t
import uuid

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import (
    bootstrap,
    ignition,
    install_config,
    kubeconfig,
    manifests,
    pki,
)
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.certificates import Keys
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.install_config import InstallConfig
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.log import Log
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.reading import Refused
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.release import RELEASES
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.settings import Settings
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.store import Asset, Value

INSTALL_CONFIG = "installconfig.InstallConfig"
CLUSTER_ID = "installconfig.ClusterID"
PASSWORD = "password.KubeadminPassword"
ADMIN = "kubeconfig.AdminClient"
MASTER, WORKER = "machine.Master", "machine.Worker"
BOOTSTRAP, IN_PLACE = "bootstrap.Bootstrap", "bootstrap.SingleNodeBootstrapInPlace"
METADATA = "cluster.Metadata"
COMMON, OPENSHIFT = "manifests.Manifests", "manifests.Openshift"
KUBECONFIG = "auth/kubeconfig"
PASSWORD_FILE = "auth/kubeadmin-password"
BOOTSTRAP_FILE, IN_PLACE_FILE = "bootstrap.ign", "bootstrap-in-place-for-live-iso.ign"

#: What each command makes, in the order in which it writes, and its last line (with the folder).
TARGETS = {
    "install-config": ((INSTALL_CONFIG,), "Install-Config created in: {0}"),
    "manifests": ((COMMON, OPENSHIFT), "Manifests created in: {0}/manifests and {0}/openshift"),
    "ignition-configs": (
        (ADMIN, PASSWORD, MASTER, WORKER, BOOTSTRAP, METADATA),
        "Ignition-Configs created in: {0} and {0}/auth",
    ),
    "single-node-ignition-config": (
        (ADMIN, PASSWORD, WORKER, IN_PLACE, METADATA),
        "Single-Node-Ignition-Config created in: {0} and {0}/auth",
    ),
}
_KEY_PAIRS = {
    "tls.BoundSASigningKey": "tls/bound-service-account-signing-key",
    "tls.ServiceAccountKeyPair": "tls/service-account",
}
_SSH = "tls.BootstrapSSHKeyPair"
#: Letters and digits of names that machines get, and of passwords.
_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_PASSWORD_LETTERS = "abcdefghijkmnopqrstuvwxyzABCDEFGHIJKLMNPQRSTUVWXYZ23456789"
_LONGEST_BASE = 21
_RANDOM = random.SystemRandom()


def infra_id(name: str) -> str:
    base = re.sub(r"[^a-z0-9]+", "-", name)[:_LONGEST_BASE].strip("-")
    return f"{base}-{''.join(_RANDOM.choices(_NAME_LETTERS, k=5))}"


def password() -> bytes:
    groups = ["".join(_RANDOM.choices(_PASSWORD_LETTERS, k=5)) for _group in range(4)]
    return "-".join(groups).encode()


def certificate_type(file: str) -> str:
    return f"tls.{pki.CERTIFICATES[file].type}"


class Installation:
    """Makes assets. needed_in_place: the command is the one for bootstrap in place."""

    def __init__(self, settings: Settings, log: Log, needed_in_place: bool = False) -> None:
        self._settings = settings
        self._log = log
        self._in_place = needed_in_place
        self._release = RELEASES[settings.release]
        self._keys: Keys | None = None

    def assets(self) -> dict[str, Asset]:
        """By type."""
        tls = self._tls()
        all_tls = (*(one.type for one in tls), *_KEY_PAIRS)
        infra = (INSTALL_CONFIG, CLUSTER_ID)
        server = tuple(map(certificate_type, ("root-ca", "machine-config-server")))
        machine = (INSTALL_CONFIG, certificate_type("root-ca"))
        whole = (*infra, PASSWORD, COMMON, OPENSHIFT, *all_tls, _SSH)
        found = [
            Asset("Install Config", INSTALL_CONFIG, (), self._no_config, (install_config.FILE,), self._load_config),
            Asset("Cluster ID", CLUSTER_ID, (INSTALL_CONFIG,), self._cluster_id),
            Asset("Kubeadmin Password", PASSWORD, (), self._password, (PASSWORD_FILE,)),
            *tls,
            *(
                Asset(f"Key Pair ({file})", type_, (INSTALL_CONFIG,), self._key_pair(file))
                for type_, file in _KEY_PAIRS.items()
            ),
            Asset("Bootstrap SSH Key Pair", _SSH, (INSTALL_CONFIG,), self._ssh),
            Asset("Common Manifests", COMMON, (*infra, *server), self._common, _yaml_in("manifests")),
            Asset(
                "Openshift Manifests",
                OPENSHIFT,
                (*infra, PASSWORD, MASTER, WORKER),
                self._openshift,
                _yaml_in("openshift"),
            ),
            Asset("Kubeconfig Admin Client", ADMIN, (INSTALL_CONFIG, *all_tls), self._admin, (KUBECONFIG,)),
            Asset("Master Ignition Config", MASTER, machine, self._pointer("master"), ("master.ign",)),
            Asset("Worker Ignition Config", WORKER, machine, self._pointer("worker"), ("worker.ign",)),
            Asset(
                "Bootstrap Ignition Config", BOOTSTRAP, whole, self._bootstrap(False), (BOOTSTRAP_FILE,), self._fresh
            ),
            Asset(
                "Single Node Bootstrap In Place Ignition Config",
                IN_PLACE,
                whole,
                self._bootstrap(True),
                (IN_PLACE_FILE,),
                self._fresh,
            ),
            Asset("Metadata", METADATA, infra, self._metadata),
        ]
        return {one.type: one for one in found}

    def _tls(self) -> list[Asset]:
        return [
            Asset(
                f"Certificate ({file})",
                certificate_type(file),
                (INSTALL_CONFIG, *((certificate_type(one.signer),) if one.signer else ())),
                self._certificate(file),
            )
            for file, one in pki.CERTIFICATES.items()
        ]

    def _load_config(self, found: Value) -> Value:
        loaded = install_config.load(
            found[install_config.FILE].decode(errors="replace"), self._settings.fips, self._in_place
        )
        for name in loaded.unknown[:1]:
            self._log.warning(install_config.warning_of(name))
        if manifests.schedulable(loaded):
            self._log.warning(
                "Making control-plane schedulable by setting MastersSchedulable to true for Scheduler cluster settings"
            )
        return {install_config.FILE: loaded.text()}

    def _no_config(self, _parents: Value) -> Value:
        # Without a file the tool asks, which it cannot without a terminal.
        raise Refused(
            'failed to fetch dependency of "Install Config": failed to generate asset "SSH Key Pair": failed UserInput: EOF'
        )

    def _config(self, parents: Value) -> InstallConfig:
        return config_of(parents[install_config.FILE], self._settings.fips)

    def _keys_of(self, parents: Value) -> Keys:
        if self._keys is None:
            kind = self._settings.pki if self._config(parents).gate("ConfigurablePKI") else ""
            self._keys = Keys(self._settings.keys, kind)
        return self._keys

    def _certificate(self, file: str) -> c.Callable[[Value], Value]:
        def make(parents: Value) -> Value:
            config = self._config(parents)
            signer = pki.CERTIFICATES[file].signer
            return pki.make(
                file,
                self._keys_of(parents),
                self._settings.now(),
                config.gate("ShortCertRotation"),
                pki.names_of(config.domain, manifests.service_address(config)),
                pki.pair(signer, parents) if signer else None,
            )

        return make

    def _key_pair(self, file: str) -> c.Callable[[Value], Value]:
        def make(parents: Value) -> Value:
            key = self._keys_of(parents).take()
            return {f"{file}.key": key.pem(), f"{file}.pub": key.public_pem()}

        return make

    def _ssh(self, parents: Value) -> Value:
        key = self._keys_of(parents).take()
        return {"ssh/bootstrap.key": key.pem(), "ssh/bootstrap.pub": key.ssh().encode()}

    def _cluster_id(self, parents: Value) -> Value:
        content = {"UUID": str(uuid.uuid4()), "InfraID": infra_id(self._config(parents).name)}
        return {"cluster-id.json": json.dumps(content).encode()}

    def _password(self, _parents: Value) -> Value:
        return {PASSWORD_FILE: password()}

    def _common(self, parents: Value) -> Value:
        known = _cluster(parents)
        return manifests.common(self._config(parents), known["InfraID"], known["UUID"], parents)

    def _openshift(self, parents: Value) -> Value:
        pointers = {pool: parents[f"{pool}.ign"] for pool in ("master", "worker")}
        return manifests.openshift(self._config(parents), parents[PASSWORD_FILE], pointers, self._release.version)

    def _admin(self, parents: Value) -> Value:
        config = self._config(parents)
        authorities = bootstrap.bundles(parents)["tls/kube-apiserver-complete-server-ca-bundle.crt"]
        client = pki.pair("admin-kubeconfig-client", parents)
        server = f"https://api.{config.domain}:6443"
        return {
            KUBECONFIG: kubeconfig.kubeconfig(
                config.name, server, "admin", authorities, client.certificate, client.key.pem()
            )
        }

    def _pointer(self, pool: str) -> c.Callable[[Value], Value]:
        def make(parents: Value) -> Value:
            root = parents["tls/root-ca.crt"]
            return {f"{pool}.ign": ignition.pointer(self._config(parents).domain, pool, root, self._release.pointers)}

        return make

    def _bootstrap(self, in_place: bool) -> c.Callable[[Value], Value]:
        def make(parents: Value) -> Value:
            made = {path: text for path, text in parents.items() if path.startswith(("manifests/", "openshift/"))}
            tls = {path: text for path, text in parents.items() if path.startswith("tls/")}
            key = parents["ssh/bootstrap.pub"].decode()
            parts = bootstrap.Parts(self._config(parents), tls, made, key, in_place)
            return {IN_PLACE_FILE if in_place else BOOTSTRAP_FILE: bootstrap.bootstrap_ignition(parts)}

        return make

    def _fresh(self, found: Value) -> Value:
        """Since the end of 2024 expired certificates of a file on disk end the tool."""
        for text in found.values():
            lines = ignition.expired(text, self._settings.now())
            for line in lines:
                self._log.warning(line)
            if lines:
                raise Refused(f"{len(lines)} certificates expired")
        return found

    def _metadata(self, parents: Value) -> Value:
        config, known = self._config(parents), _cluster(parents)
        content = {
            "clusterName": config.name,
            "clusterID": known["UUID"],
            "infraID": known["InfraID"],
            "featureSet": config.content.get("featureSet", ""),
        }
        return {"metadata.json": json.dumps(content, separators=(",", ":")).encode()}


@functools.lru_cache(maxsize=4)
def config_of(text: bytes, fips: bool) -> InstallConfig:
    """The configuration in a text that has been checked before."""
    return install_config.load(text.decode(), fips)


def _cluster(parents: Value) -> dict[str, t.Any]:
    content: dict[str, t.Any] = json.loads(parents["cluster-id.json"])
    return content


def _yaml_in(folder: str) -> tuple[str, ...]:
    return tuple(f"{folder}/*.{suffix}" for suffix in ("yaml", "yml", "json"))
