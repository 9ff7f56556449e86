# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planted secrets of a cluster that is installed, and of its machines: they are in the folder of the installation and in the kubeconfig that was
asked for, with mode 0600, and nowhere else.

Everything else is what is printed at -vvv with --diff, results of tasks, the log, facts, the summary, the process list, and all files that the runs leave on
the controller. The API server and its signers are real; the install tool, the machines and the operators are stand-ins (test_openshift_install.py).

Runtime: one sandbox, an installation, and a check mode of site.
"""

from __future__ import annotations

import base64
import collections.abc as c
import concurrent.futures
import copy
import json
import pathlib
import stat
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.live.conftest import MakeSandbox
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.installing import Installing
from ansible_collections.hwaccel.gpu.tests.live.test_openshift_install import MACHINES, Site
from ansible_collections.hwaccel.gpu.tests.openshift.test_secrets import KEYS, PULL_SECRET, SECRETS, Commands

PROXY = "http://user:pl4nted-proxy@proxy.example.com:3128"
MANIFEST = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "registry", "namespace": "openshift-config"},
    "stringData": {"token": "pl4nted-token"},
}
PLANTED: dict[str, t.Any] = {
    "cluster_openshift_pull_secret": PULL_SECRET,
    "cluster_openshift_proxy": {"http": PROXY, "https": PROXY},
    "cluster_openshift_manifests": [MANIFEST, yaml.safe_dump({**MANIFEST, "metadata": {"name": "text"}})],
    "cluster_openshift_skipped_checks": ["registry"],
}
#: Of each machine. Nothing listens there.
BMC = {"hwaccel_bmc_address": "127.0.0.9", "hwaccel_bmc_username": "ops", "hwaccel_bmc_password": "pl4nted-bmc"}
#: They are observed on this host in check mode, which has no sudo.
LOCAL = {"ansible_connection": "local", "ansible_become": False}


def encoded(word: str) -> tuple[str, ...]:
    """How base64 of any text has this word in it, as slurp returns files: by its place there, without the digits that its neighbours decide, too."""
    forms = []
    for before in range(3):
        data = b"\0" * before + word.encode()
        whole = base64.b64encode(data[: len(data) // 3 * 3]).decode()
        forms.append(whole[4 if before else 0 :])
    # Shorter ones occur in any key.
    return tuple(form for form in forms if len(form) >= 8)


class Searched:
    """Runs whose traces are searched. Whatever they leave is in `place`, beside the folder of the installation."""

    def __init__(self, ocp: Site) -> None:
        self.ocp, self.place, self.texts = ocp, ocp.place / "traces", dict[str, str]()
        self.place.mkdir(exist_ok=True)
        self._commands = Commands()

    def run(self, name: str, machines: dict[str, site.Clusters], *arguments: str, **variables: t.Any) -> site.Run:
        machines = copy.deepcopy(machines)
        for group in ("bootstrap", "control_plane", "workers"):
            for number, one in enumerate(machines[group].values()):
                one |= {**BMC, "hwaccel_mac": f"52:54:00:33:0{len(group) % 10}:1{number}"}
        environment = {
            "ANSIBLE_LOG_PATH": str(self.place / "ansible.log"),
            # Newer releases of ansible-core omit options in results by default.
            "ANSIBLE_INJECT_INVOCATION": "1",
            "ANSIBLE_CACHE_PLUGIN": "jsonfile",
            "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(self.place / "facts"),
            "ANSIBLE_LOCAL_TEMP": str(self.place / "local"),
            "ANSIBLE_REMOTE_TEMP": str(self.place / "remote"),
        }
        summary = f"hwaccel_summary_file={self.place}/summary-{name}.json"
        given = {**self.ocp.host(), **PLANTED, **variables}
        options = (*arguments, "-vvv", "--diff", "-e", summary)
        with self._commands.watched():
            run = site.playbook(
                name, {"ocp": given}, *options, machines=machines, environment=environment, warnings=[".*"]
            )
        self.texts[f"output of {name}"] = run.stdout
        self.texts[f"results of {name}"] = json.dumps([run.tasks, run.summary])
        return run

    def files(self) -> c.Iterator[pathlib.Path]:
        """All that a run has written, without what the tests have made."""
        above = self.ocp.folder.parent
        yield from (path for path in (*self.place.rglob("*"), *above.rglob("*")) if path.is_file())

    def found(self) -> list[str]:
        """Where secrets are that should not be there."""
        folder = self.ocp.folder
        password = (folder / "auth" / "kubeadmin-password").read_text(encoding="utf-8")
        token = yaml.safe_load((folder / "auth" / "kubeconfig").read_text(encoding="utf-8"))["users"][0]["user"][
            "token"
        ]
        words = (*SECRETS, *KEYS, password, token)
        words += tuple(form for word in words for form in encoded(word))
        texts = {**self.texts, "process list": "\n".join(self._commands.seen)}
        for path in self.files():
            if not path.is_relative_to(folder):
                texts[str(path)] = path.read_text(encoding="utf-8", errors="replace")
        return [
            f"{name}: {text[max(text.index(one) - 200, 0) :][:300]}"
            for name, text in texts.items()
            for one in words
            if one in text
        ]


@pytest.fixture(scope="module")
def searched(make_sandbox: MakeSandbox, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Searched]:
    place = tmp_path_factory.mktemp("ocp")
    with Installing(make_sandbox({"pools": []}), place) as world:
        yield Searched(Site(place, world, MACHINES))


def test_secrets_of_an_installation_are_in_its_folder_only(searched: Searched) -> None:
    ocp = searched.ocp
    with concurrent.futures.ThreadPoolExecutor() as pool:
        machines = pool.submit(ocp.world.install, ocp.folder, MACHINES)
        run = searched.run("cluster_openshift", MACHINES)
        machines.result(timeout=10)
    assert run.rc == 0, run.stdout[-8000:]
    assert searched.found() == []
    assert "ignition-config" in "\n".join(searched._commands.seen), "the tool was not seen"
    assert run.results("openshift_wait", "ocp") and run.results("openshift_install", "ocp")
    for path in searched.files():
        if path.is_relative_to(ocp.folder) or path.name.startswith(ocp.folder.name):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert stat.S_IMODE(ocp.placed.stat().st_mode) == 0o600


def test_secrets_are_not_shown_by_check_mode_of_site(searched: Searched) -> None:
    """Load balancer and boot server are this host, which check mode leaves as it is."""
    balanced = {"hwaccel_load_balancer_address": "127.0.0.1"}
    server = {
        **LOCAL,
        "dns_pxe_interfaces": ["lo"],
        "dns_pxe_networks": [{"network": "10.33.3.0/24", "router": "10.33.3.1"}],
    }
    machines = {
        **MACHINES,
        "load_balancers": {"lb": {**LOCAL, "load_balancer_stats_password": "pl4nted-stats"}},
        "boot_servers": {"pxe": server},
    }
    before = {path: path.stat().st_mtime_ns for path in searched.ocp.folder.rglob("*")}
    run = searched.run("site", machines, "--check", **balanced)
    assert searched.found() == []
    assert {path: path.stat().st_mtime_ns for path in searched.ocp.folder.rglob("*")} == before
    # Each of them was observed and planned for.
    assert {task["host"] for task in run.tasks if task["outcome"] != "skipped"} >= {"ocp", "lb", "pxe"}
    assert run.results("openshift_wait", "ocp"), "the cluster was not looked at"
