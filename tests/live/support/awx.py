# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs as AWX runs them: ansible-runner with a folder in the layout of AWX.

    job = launch(tmp_path, "site", {"one": {"ansible_connection": "local"}}, answers("site"), bearer_token(tmp_path, host, token, ca))
    assert job.rc == 0, job.stdout

Sources: awx/main/tasks/jobs.py, awx/main/models/mixins.py and awx/main/utils/safe_yaml.py of ansible/awx at e21dd0a, and kubernetes_bearer_token of
src/awx_plugins/credentials/injectors.py of ansible/awx-plugins at c7fc0a1.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import os
import pathlib
import shutil
import sys
import typing as t
from unittest import mock

import ansible_runner
import yaml

from ansible_collections.hwaccel.gpu.tests.live.support.site import COLLECTIONS, cheaper

PROJECT = pathlib.Path(__file__).parents[3] / "examples" / "awx-project"
_FOREIGN = ("ANSIBLE_", "K8S_AUTH_", "KUBECONFIG")
#: AWX's levels: 0 normal to 5; 3 is -vvv.
DEBUG = 3


class _Untrusted(yaml.SafeDumper):
    """Texts that Ansible must not evaluate as templates. AWX tags all answers this way."""

    def represent_data(self, data: t.Any) -> yaml.Node:
        return self.represent_scalar("!unsafe", data) if isinstance(data, str) else super().represent_data(data)


@dataclasses.dataclass(frozen=True)
class Job:
    """events: of ansible-runner, in order. artifacts: the data of set_stats. folder: the job's files of ansible-runner."""

    rc: int
    stdout: str
    events: list[dict[str, t.Any]]
    folder: pathlib.Path

    @property
    def stats(self) -> dict[str, t.Any]:
        """changed, failures, ok … by host."""
        return t.cast("dict[str, t.Any]", self.events[-1]["event_data"])

    @property
    def artifacts(self) -> dict[str, t.Any]:
        return t.cast("dict[str, t.Any]", self.stats["artifact_data"])

    def kept(self) -> dict[str, str]:
        """Text by path of every file that ansible-runner has written, except its record of the command and its environment.

        The collection cannot prevent that this record contains the variables of a credential: it has the mode 0600, and AWX removes it with the
        job's folder.
        """
        files = [path for path in self.folder.rglob("*") if path.is_file() and path.name != "command"]
        return {
            path.relative_to(self.folder).as_posix(): path.read_text(encoding="utf-8", errors="replace")
            for path in files
        }


def survey(name: str) -> list[dict[str, t.Any]]:
    """The questions of a survey of the project."""
    return t.cast(
        "list[dict[str, t.Any]]", json.loads((PROJECT / "surveys" / f"{name}.json").read_text(encoding="utf-8"))["spec"]
    )


def answers(name: str, unanswered: str | None = "", **given: t.Any) -> dict[str, t.Any]:
    """Extra variables of a survey. Empty answers of text questions are "", and null in AWX 24.6.1; other unanswered questions are missing."""
    texts = [question["variable"] for question in survey(name) if question["type"] in ("text", "textarea")]
    return dict.fromkeys(texts, unanswered) | given


def extra_variables(values: c.Mapping[str, t.Any]) -> str:
    """The file env/extravars."""
    return "".join(
        yaml.dump_all([{name: value}], Dumper=_Untrusted, default_flow_style=False) for name, value in values.items()
    )


def bearer_token(folder: pathlib.Path, host: str, token: str, ca: bytes | None) -> dict[str, str]:
    """Environment variables of the credential "OpenShift or Kubernetes API Bearer Token". Without ca, the certificate is not verified."""
    if ca is None:
        return {"K8S_AUTH_HOST": host, "K8S_AUTH_API_KEY": token, "K8S_AUTH_VERIFY_SSL": "False"}
    (folder / "credential-ca").write_bytes(ca)
    return {
        "K8S_AUTH_HOST": host,
        "K8S_AUTH_API_KEY": token,
        "K8S_AUTH_VERIFY_SSL": "True",
        "K8S_AUTH_SSL_CA_CERT": str(folder / "credential-ca"),
    }


def launch(
    folder: pathlib.Path,
    playbook: str,
    clusters: c.Mapping[str, c.Mapping[str, t.Any]],
    variables: c.Mapping[str, t.Any],
    credential: c.Mapping[str, str],
    *,
    limit: str = "",
    verbosity: int = 0,
) -> Job:
    """One job of a job template with this playbook, in a new folder below `folder`."""
    place = folder / f"job-{len(list(folder.glob('job-*')))}"
    shutil.copytree(PROJECT, place / "project")
    for name in ("env", "inventory"):
        (place / name).mkdir()
    (place / "env" / "extravars").write_text(
        extra_variables({**variables, "awx_job_id": 1, "awx_user_name": "admin"}), encoding="utf-8"
    )
    script = json.dumps({"gpu_clusters": {"hosts": list(clusters)}, "_meta": {"hostvars": dict(clusters)}})
    (place / "inventory" / "hosts").write_text(f"#! {sys.executable}\nprint({script!r})\n", encoding="utf-8")
    (place / "inventory" / "hosts").chmod(0o700)
    words = ["-u", "root", *(["-l", limit] if limit else []), *([f"-{'v' * verbosity}"] if verbosity else [])]
    # ansible-runner extends the present environment, which in an execution environment contains no variables of clusters.
    with mock.patch.dict(
        os.environ, {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}, clear=True
    ):
        run = ansible_runner.run(
            private_data_dir=str(place),
            ident="1",
            playbook=f"{playbook}.yml",
            cmdline=" ".join(words),
            quiet=True,
            suppress_env_files=True,
            envvars=_environment(place) | dict(credential),
            settings={"job_timeout": 900},
        )
    kept = place / "artifacts" / "1"
    return Job(run.rc, (kept / "stdout").read_text(encoding="utf-8"), list(run.events), kept)


def _environment(place: pathlib.Path) -> dict[str, str]:
    path = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {
        "PATH": path,
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_HOME": str(place / "home"),
        "ANSIBLE_NOCOLOR": "1",
        "JOB_ID": "1",
    }
    return cheaper() | own
