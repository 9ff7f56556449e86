# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""wait-for: statuses and messages of section 4.2 of behaviours.yml. No cluster is asked: STAND_IN_CLUSTER says what one would have answered, and at once."""

from __future__ import annotations

import pathlib

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import assets, install_config, kubeconfig, pki
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.certificates import Key, Subject, issue
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.faults import Ended, Files
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.log import Log
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.release import RELEASES
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.settings import Settings
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.store import Store, Value

BOOTSTRAP_FAILED, INSTALL_FAILED, UNSTABLE = 5, 6, 7
PHASES = ("bootstrap-complete", "install-complete")
#: Minutes that a cluster may take, which on some platforms are more.
_MINUTES, _MINUTES_OF = 40, {"baremetal": 60}
_ROUTER = Subject("ingress-operator@1764482400")


def wait(phase: str, store: Store, files: Files, log: Log, settings: Settings, agent: bool = False) -> None:
    """Raises Ended with the tool's status. agent: the agent's command, which waits for the bootstrap in install-complete too."""
    config = store.kept(assets.INSTALL_CONFIG) if phase == "install-complete" else None
    if phase == "install-complete" and config is None:
        raise Ended("failed to installconfig: received nil")
    if phase == "bootstrap-complete" or agent:
        _bootstrap(log, settings)
    if config is not None:
        _install(config, files, log, settings)


def _bootstrap(log: Log, settings: Settings) -> None:
    log.info("Waiting up to 20m0s for the Kubernetes API...")
    if settings.cluster == "no-api":
        log.error("Attempted to gather ClusterOperator status after wait failure: connection refused")
        raise Ended(
            "Bootstrap failed to complete: failed waiting for Kubernetes API: context deadline exceeded",
            BOOTSTRAP_FAILED,
        )
    log.info("API v1.33.5 up")
    log.info("Waiting up to 45m0s for bootstrapping to complete...")
    if settings.cluster == "bootstrap-failed":
        raise Ended("Bootstrap failed to complete: timed out waiting for the condition", BOOTSTRAP_FAILED)
    if RELEASES[settings.release].several:
        log.info("Waiting for the bootstrap etcd member to be removed...")
    log.info("It is now safe to remove the bootstrap resources")


def _install(config: Value, files: Files, log: Log, settings: Settings) -> None:
    found = assets.config_of(config[install_config.FILE], settings.fips)
    domain, minutes = found.domain, _MINUTES_OF.get(found.platform, _MINUTES)
    log.info(f"Waiting up to {minutes}m0s for the cluster at https://api.{domain}:6443 to initialize...")
    if settings.cluster in ("no-api", "bootstrap-failed", "failed"):
        text = "failed to initialize the cluster: Cluster operators authentication, console, ingress are not available"
        raise Ended(text, INSTALL_FAILED)
    _add_router(files, settings)
    log.info("Waiting up to 30m0s to ensure each cluster operator has finished progressing...")
    if settings.cluster == "unstable":
        raise Ended(
            "Error while waiting for cluster operators to be stable: 1 cluster operator is still progressing", UNSTABLE
        )
    folder = files.folder.resolve()
    password = (folder / assets.PASSWORD_FILE).read_text(encoding="utf-8")
    log.info("Install complete!")
    log.info(
        f"To access the cluster as the system:admin user when using 'oc', run\n    export KUBECONFIG={folder}/{assets.KUBECONFIG}"
    )
    log.info(f"Access the OpenShift web-console here: https://console-openshift-console.apps.{domain}")
    log.info(f'Login to the console with user: "kubeadmin", and password: "{password}"')


def _add_router(files: Files, settings: Settings) -> None:
    """The router's authority comes before those of the API in auth/kubeconfig."""
    path: pathlib.Path = files.folder / assets.KUBECONFIG
    now = settings.now()
    authority = issue(_ROUTER, Key.generate(), now, now + 2 * pki.LIVES[pki.YEAR])
    files.write(assets.KUBECONFIG, kubeconfig.with_authority(path.read_bytes(), authority))
