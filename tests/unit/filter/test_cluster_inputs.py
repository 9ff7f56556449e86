# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that the installer of a cluster gets, as tasks ask for them."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter.cluster_inputs import cluster_inputs
from ansible_collections.hwaccel.gpu.tests.unit.machines.openshift.sites import SETTINGS

PATHS = ["install-config.yaml", "manifests/cluster-scheduler-02-config.yml"]


def test_a_check_shows_the_files_without_secrets_and_files_have_them() -> None:
    checked = cluster_inputs(SETTINGS, "cluster_openshift")
    assert checked["faults"] == [] and [one["path"] for one in checked["files"]] == PATHS
    assert SETTINGS["pull_secret"] not in str(checked)
    files = cluster_inputs(SETTINGS, "cluster_openshift", "files")
    assert [one["path"] for one in files] == PATHS
    assert SETTINGS["pull_secret"] in files[0]["content"] and files[0]["secret"]


def test_files_with_problems_are_an_error_that_has_all_of_them() -> None:
    wrong = {**SETTINGS, "network_type": "OpenShiftSDN", "service_network": ["10.33.3.0/24"]}
    with pytest.raises(AnsibleFilterError, match=r"(?s)10\.33\.3\.0/24 overlaps.*OpenShiftSDN is not supported"):
        cluster_inputs(wrong, "cluster_openshift", "files")


def test_an_unsupported_role_is_reported() -> None:
    with pytest.raises(AnsibleFilterError, match="does not support role 'cluster_k3s'"):
        cluster_inputs(SETTINGS, "cluster_k3s")
