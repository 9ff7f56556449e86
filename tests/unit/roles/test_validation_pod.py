# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pod of the role gpu_validation: it has the rights of a user's pod, and its output can be evaluated."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter.stage_objects import stage_objects
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import allocations, bandwidth, proofs
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import allocation
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads import rendezvous
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack
from ansible_collections.hwaccel.gpu.tests.unit.roles.test_manifests import rights_of

ROLE = "gpu_validation"
MODES = "ecc.mode.current,mig.mode.current,ecc.errors.uncorrected.volatile.total"


def pod(**settings: t.Any) -> dict[str, t.Any]:
    return stack.validation_pod(**settings)


def test_the_pod_passes_the_restricted_profile_and_has_no_api_access() -> None:
    spec = pod()["spec"]
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65534,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert spec["automountServiceAccountToken"] is False
    assert not spec.get("volumes") and not spec.get("hostPID") and not spec.get("hostNetwork")
    (container,) = spec["containers"]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def test_rights_of_the_pod_match_the_table() -> None:
    (row,) = stack.load(stack.TOP / "roles" / ROLE / "vars" / "rights.yml")[f"__{ROLE}_rights"]
    result = pod()
    (container,) = result["spec"]["containers"]
    assert rights_of("gpu-validation", result["spec"], container) == {
        key: value for key, value in row.items() if key != "why"
    }


def test_the_image_comes_from_the_configured_registry() -> None:
    result = pod(image_registry="mirror.example.com/x", image_pull_secrets=["regcred"])
    assert result["spec"]["containers"][0]["image"] == "mirror.example.com/x/nvidia/gpu-operator:v26.7.0"
    assert result["spec"]["imagePullSecrets"] == [{"name": "regcred"}]
    assert result["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "hwaccel.gpu"
    assert pod()["spec"]["containers"][0]["image"] == "nvcr.io/nvidia/gpu-operator:v26.7.0"


def test_another_script_runs_in_a_pod_without_additional_rights() -> None:
    result, usual = (
        pod(image="nvcr.io/a/b:1", script="deviceQuery", image_registry="mirror.example.com"),
        pod(),
    )
    (container,), (plain,) = result["spec"].pop("containers"), usual["spec"].pop("containers")
    assert (container["image"], container["args"]) == ("mirror.example.com/a/b:1", ["deviceQuery"])
    assert result["spec"] == usual["spec"] and container["securityContext"] == plain["securityContext"]


def test_each_pod_has_its_name_and_what_differs_from_the_manifest() -> None:
    pods: dict[str, t.Any] = {"gpu-validation": None, "other": {"script": "deviceQuery"}}
    found = stage_objects(stack.texts(ROLE), ROLE, {"pods": pods})["pods"]
    assert [one["metadata"]["name"] for one in found.values()] == list(pods)
    assert found["gpu-validation"] == pod()
    assert found["other"]["spec"] == pod(script="deviceQuery")["spec"]


def test_the_queried_columns_are_those_that_are_read() -> None:
    script = pod()["spec"]["containers"][0]["args"][0]
    assert f"--query-gpu=name,memory.total,driver_version,{MODES} --format=csv,noheader\n" in script
    output = "NVIDIA A100-SXM4-40GB, 40960 MiB, 580.178.04, [N/A], Disabled"
    for more, errors in ((", 0", 0), (", 3", 3), (", [N/A]", 0), ("", 0)):
        (gpu,) = proofs.gpus_in(f"{output}{more}\n")
        assert gpu == proofs.Gpu("NVIDIA A100-SXM4-40GB", 40960, "580.178.04", "[N/A]", "Disabled", errors)


def test_the_output_of_the_pod_with_all_gpus_can_be_evaluated() -> None:
    script = stack.load(stack.TOP / "roles" / ROLE / "vars" / "main.yml")["__gpu_validation_all_gpus_script"]
    assert f'echo "{allocations.ALL_QUERIED}"' in script and f"{allocation.HOLD}:-0" in script
    assert 'echo "device $device"\n' in script
    log = "GPU 0: NVIDIA L4 (UUID: GPU-4f)\ndevice GPU-4f\n[Vector addition of 50000 elements]\nTest PASSED\nDone\n"
    assert (allocations.listed(log), allocations.computed(log)) == (["GPU-4f"], {"GPU-4f"})


def test_the_pod_of_integrated_gpus_fails_if_one_of_its_programs_fails() -> None:
    values = stack.load(stack.TOP / "roles" / ROLE / "vars" / "main.yml")
    script = values["__gpu_validation_integrated_script"]
    assert script.splitlines()[1] == "deviceQuery && vectorAdd || exit 1"
    assert f'echo "{allocations.ALL_QUERIED}"' in script and f"{allocation.HOLD}:-0" in script
    assert stack.defaults(ROLE)["gpu_validation_integrated_image"].startswith("docker.io/"), (
        "the configured registry replaces this host"
    )


def test_the_bandwidth_program_runs_in_a_pod_without_additional_rights() -> None:
    program = (stack.TOP / "roles" / ROLE / "files" / "bandwidth.py").read_text(encoding="utf-8")
    result, usual = pod(image="nvcr.io/nvidia/pytorch:26.08-py3", command=["python3", "-c"], script=program), pod()
    (container,), (plain,) = result["spec"].pop("containers"), usual["spec"].pop("containers")
    assert (container["command"], container["args"]) == (["python3", "-c"], [program])
    assert result["spec"] == usual["spec"] and container["securityContext"] == plain["securityContext"]
    assert f'print(f"{bandwidth.LISTENING}{{address}}"' in program and f'"{rendezvous.PEER}"' in program
    assert "{{" not in program and "{%" not in program, "Ansible would evaluate it as a template"


def test_a_missing_pod_is_reported() -> None:
    with pytest.raises(AnsibleFilterError, match="stage_objects cannot read its input"):
        stage_objects(["kind: Service\nmetadata: {name: x}\n"], ROLE, {"pods": {"gpu-validation": {}}})
