# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role cluster_openshift as a playbook runs it, on the inventory of an example."""

from __future__ import annotations

import collections.abc as c
import copy
import pathlib
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.tests.unit.repository.test_playbooks import TOP, run

EXAMPLE = yaml.safe_load((TOP / "examples" / "inventories" / "sno-edge" / "hosts.yml").read_text(encoding="utf-8"))
#: Of its pull secret.
SECRET = "dXNlcjpwYXNzd29yZA=="
#: As playbooks of the collection set them.
_VARIABLES = {
    "ansible_python_interpreter": "{{ ansible_playbook_python }}",
    "cluster_openshift_inventory": "{{ groups | hwaccel.gpu.machine_inventory('cluster_openshift', hostvars, inventory_hostname) }}",
}


def played(
    folder: pathlib.Path,
    entry: str,
    *arguments: str,
    environment: c.Mapping[str, str] | None = None,
    groups: c.Mapping[str, c.Mapping[str, t.Any]] | None = None,
    **cluster: t.Any,
) -> tuple[int, str]:
    """environment: of ansible-playbook, in addition; groups: further ones, with variables by host; cluster: variables of the cluster's host.

    Returns the exit code and the output.
    """
    inventory = copy.deepcopy(EXAMPLE) | {name: {"hosts": dict(hosts)} for name, hosts in (groups or {}).items()}
    inventory["gpu_clusters"]["hosts"]["edge"] |= cluster
    role = {"name": "hwaccel.gpu.cluster_openshift", "tasks_from": entry}
    # As playbooks set it, so that it counts more than what the inventory has for the host of a delegated task.
    own = {"ansible_connection": "local"}
    tasks = [{"vars": own, "block": [{"name": "Run the role", "ansible.builtin.include_role": role}]}]
    play = {"name": "OpenShift", "hosts": "gpu_clusters", "gather_facts": False, "vars": _VARIABLES, "tasks": tasks}
    (folder / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    return run(folder, f"{folder}/play.yml", inventory, "--diff", "-vvv", *arguments, **(environment or {}))
