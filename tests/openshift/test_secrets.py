# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planted secrets, by ansible-playbook at -vvv with --diff: they are in the folder of the installation, and nowhere else.

Everything else is what is printed, the log, cached facts, the process list while the tool runs, and all other files that a run leaves.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import os
import pathlib
import threading
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.hashing import file_digest
from ansible_collections.hwaccel.gpu.tests.openshift import support
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import launcher
from ansible_collections.hwaccel.gpu.tests.unit.repository.test_playbooks import run
from ansible_collections.hwaccel.gpu.tests.unit.roles.openshift_play import played

PULL_SECRET = '{"auths":{"quay.io":{"auth":"cGw0bnRlZDpwdWxsLXNlY3JldA=="},"mirror.example.com":{"auth":"cGw0bnRlZC0yOm1pcnJvcg=="}}}'
#: Of each kind one, and the pull secrets in the clear. "pl4nted" is part of all that are no base64.
SECRETS = ("cGw0bnRlZDpwdWxsLXNlY3JldA", "cGw0bnRlZC0yOm1pcnJvcg", "pl4nted")
#: Private keys, plain, and as the tool's files and kubeconfigs have them.
KEYS = ("PRIVATE KEY", "LS0tLS1CRUdJTi")
_PROXY = "http://user:pl4nted-proxy@proxy.example.com:3128"
_FENCING = [
    {"hostname": name, "address": f"https://bmc-{name}/redfish", "username": "root", "password": f"pl4nted-bmc-{name}"}
    for name in "ab"
]
_MANIFEST = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "registry", "namespace": "openshift-config"},
    "stringData": {"token": "pl4nted-token", "note": "pl4nted-note"},
}
_CONFIG = {
    "pullSecret": PULL_SECRET,
    "proxy": {"httpProxy": _PROXY},
    "controlPlane": {"name": "master", "replicas": 2, "fencing": {"credentials": _FENCING}},
}
_USER = {"token": "pl4nted-bearer", "client-key-data": "cGw0bnRlZC0yOm1pcnJvcg=="}
_KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "x",
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": _USER}],
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
}


class Commands:
    """Command lines of all processes, as `ps` shows them to everybody, as long as it watches."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._ended = threading.Event()

    @contextlib.contextmanager
    def watched(self) -> c.Iterator[None]:
        self._ended.clear()
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            for name in filter(str.isdigit, os.listdir("/proc")):
                # It may have ended.
                with contextlib.suppress(OSError):
                    line = pathlib.Path("/proc", name, "cmdline").read_bytes()
                    self.seen.add(line.replace(b"\0", b" ").decode(errors="replace"))


class Leaks(t.NamedTuple):
    """place: what a run has there is searched, without the folders of installations in `folders` and the files of `given`."""

    place: pathlib.Path
    folders: tuple[pathlib.Path, ...]
    given: tuple[str, ...]
    commands: Commands

    @property
    def environment(self) -> dict[str, str]:
        """Newer releases of ansible-core omit options in results by default."""
        return {
            "ANSIBLE_LOG_PATH": str(self.place / "ansible.log"),
            "ANSIBLE_INJECT_INVOCATION": "1",
            "ANSIBLE_CACHE_PLUGIN": "jsonfile",
            "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(self.place / "facts"),
        }

    def searched(self, output: str) -> None:
        texts = {"output": output, "process list": "\n".join(self.commands.seen)}
        for path in self.place.rglob("*"):
            kept = any(path.is_relative_to(folder) for folder in self.folders) or path.name in self.given
            if path.is_file() and not kept:
                texts[str(path.relative_to(self.place))] = path.read_text(encoding="utf-8", errors="replace")
        assert texts["ansible.log"]
        assert "ignition-config" in texts["process list"], "the tool was not seen"
        passwords = [(folder / "auth" / "kubeadmin-password").read_text(encoding="utf-8") for folder in self.folders]
        for name, text in texts.items():
            found = [one for one in (*SECRETS, *KEYS, *passwords) if one in text]
            assert found == [], f"{name}: {[text[max(text.index(one) - 300, 0) :][:400] for one in found]}"


def module(name: str, **options: t.Any) -> list[dict[str, t.Any]]:
    """A task, and one that prints its whole result. Some fail, since errors quote what is wrong."""
    task = {"name": f"Run {name}", f"hwaccel.gpu.{name}": options, "register": "result", "ignore_errors": True}
    return [task, {"name": "Show it", "ansible.builtin.debug": {"var": "result"}}]


def installs(place: pathlib.Path, program: pathlib.Path) -> list[dict[str, t.Any]]:
    inputs = "{{ {'install-config.yaml': config, 'openshift/99-registry.yaml': secret} }}"
    common = {
        "path": str(place / "dgxpod"),
        "program": str(program),
        "files": inputs,
        "cluster": {"name": "x.example.com"},
    }
    changed = "{{ config | combine({'pullSecret': other, 'proxy': {'httpProxy': proxy}}) }}"
    new = {**common, "path": str(place / "new")}
    return [
        *module("openshift_install", **common),
        *module("openshift_install", **common),
        *module("openshift_install", **common | {"files": {"install-config.yaml": changed}}),
        *module("openshift_install", **common | {"method": "ipi"}),
        *module("openshift_install", **common | {"margin": "{{ config }}"}),
        *module("openshift_install", **new | {"files": {"install-config.yaml": "{{ broken }}"}}),
        *module("openshift_install", **new | {"files": {"install-config.yaml": "{{ torn }}"}}),
        *module("openshift_install", **new | {"files": "{{ torn }}"}),
        *module("openshift_install", **new | {"files": ["{{ torn }}"]}),
    ]


def reads(place: pathlib.Path) -> list[dict[str, t.Any]]:
    bootstrap = str(place / "dgxpod" / "bootstrap.ign")
    cut = {"name": "Cut a file", "ansible.builtin.shell": f"head -c 200000 {bootstrap} > {place}/dgxpod/cut.ign"}
    approve = {"kubeconfig": "{{ kubeconfig }}", "profile": "openshift", "expected_nodes": [], "retry_timeout": 0}
    return [
        *module("ignition_info", path=[bootstrap]),
        cut,
        *module("ignition_info", path=[str(place / "dgxpod" / "cut.ign")]),
        *module("ignition_info", path=[bootstrap, str(place / "dgxpod" / ".openshift_install_state.json")]),
        *module("node_csr_approve", **approve),
        *module("node_csr_approve", **approve | {"profile": "rke"}),
        *module(
            "node_csr_approve", **approve | {"kubeconfig": "{{ kubeconfig | combine({'users': [{'a': other}]}) }}"}
        ),
    ]


def given() -> dict[str, t.Any]:
    """Variables of the tasks."""
    config = support.changed(support.cases()["base"], _CONFIG)
    return {
        "config": config,
        "secret": _MANIFEST,
        "other": PULL_SECRET.replace("quay.io", "registry.example.com"),
        "proxy": _PROXY.replace("proxy@", "3@"),
        "broken": {**config, "pullSecret": PULL_SECRET[:-1]},
        "torn": yaml.safe_dump(config) + "\n  pullSecret: '" + PULL_SECRET,
        "kubeconfig": _KUBECONFIG,
    }


def test_secrets_of_modules_are_nowhere(tmp_path: pathlib.Path, keys: str) -> None:
    program = launcher.write(tmp_path, keys=keys)
    (tmp_path / "given.yml").write_text(yaml.safe_dump(given()), encoding="utf-8")
    play = {
        "name": "Modules",
        "hosts": "all",
        "gather_facts": False,
        "vars_files": [str(tmp_path / "given.yml")],
        "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}"},
        "tasks": [
            {"name": "Cache a fact", "ansible.builtin.set_fact": {"cached": 1, "cacheable": True}},
            *installs(tmp_path, program),
            *reads(tmp_path),
        ],
    }
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    leaks = Leaks(tmp_path, (tmp_path / "dgxpod",), ("given.yml",), Commands())
    inventory = {"all": {"hosts": {"edge": {"ansible_connection": "local"}}}}
    with leaks.commands.watched():
        code, output = run(tmp_path, f"{tmp_path}/play.yml", inventory, "-vvv", "--diff", **leaks.environment)
    assert code == 0, output[-3000:]
    assert any((tmp_path / "facts").iterdir())
    leaks.searched(output)
    # Each task did what it is there for.
    for says in (
        '"row": 1,',
        '"row": 2,',
        "pullSecret (hash ",
        "value of method must be one of",
        "pullSecret: Invalid value",
        "it is not valid YAML (files: install-config.yaml, line",
        '"private_keys": [',
        "the ignition file cannot be read",
        "value of profile must be one of",
        "127.0.0.1:1",
    ):
        assert says in output, says
    # What is no secret is not hidden beside it, although words and numbers of the inputs occur in it.
    digests = {name: file_digest(tmp_path / "dgxpod" / name) for name in ("bootstrap.ign", "master.ign", "worker.ign")}
    assert all(f'"{name}": "{digest}"' in output for name, digest in digests.items())
    assert "_ansible_" not in output and "Traceback" not in output


def test_secrets_of_the_role_are_nowhere(tmp_path: pathlib.Path, keys: str) -> None:
    program = launcher.write(tmp_path, keys=keys)
    folder = tmp_path / "installations" / "edge"
    cluster = {
        "cluster_openshift_method": "in_place",
        "cluster_openshift_folder": str(folder),
        "cluster_openshift_installer": str(program),
        "cluster_openshift_pull_secret": PULL_SECRET,
        "cluster_openshift_proxy": {"http": _PROXY, "https": _PROXY},
        "cluster_openshift_manifests": [_MANIFEST, yaml.safe_dump({**_MANIFEST, "metadata": {"name": "text"}})],
    }
    leaks = Leaks(tmp_path, (folder,), ("inventory.yml",), Commands())
    with leaks.commands.watched():
        runs = [
            played(tmp_path, "files", environment=leaks.environment, **{**cluster, **changed})
            for changed in (
                {},
                {"cluster_openshift_pull_secret": PULL_SECRET.replace("mirror.", "registry.")},
                {"cluster_openshift_pull_secret": PULL_SECRET[:-1], "cluster_openshift_proxy": _PROXY},
            )
        ]
    assert [code for code, _output in runs] == [0, 2, 2], runs[0][1][-3000:]
    assert "pullSecret (hash " in runs[1][1] and "cluster_openshift_proxy" in runs[2][1]
    leaks.searched("\n".join(output for _code, output in runs))
