# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration with which an installer makes a machine a node, as tasks ask for it."""

from __future__ import annotations

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter.cluster_configuration import cluster_configuration
from ansible_collections.hwaccel.gpu.tests.unit.machines.kubeadm.test_documents import MACHINE, SECRETS, SETTINGS


def test_a_configuration_is_made_for_each_of_kubeadms_commands() -> None:
    for what, kind in (("init", "InitConfiguration"), ("join", "JoinConfiguration")):
        text = cluster_configuration(SETTINGS, "cluster_kubeadm", what, MACHINE, SECRETS)
        assert next(yaml.safe_load_all(text))["kind"] == kind
    with pytest.raises(AnsibleFilterError, match="cannot read its input"):
        cluster_configuration(SETTINGS, "cluster_kubeadm", "leave", MACHINE, SECRETS)
