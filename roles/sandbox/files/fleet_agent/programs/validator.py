# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-validator of the GPU Operator's image (NVIDIA/gpu-operator v26.7.0, cmd/nvidia-validator/main.go): order, files, messages."""

from __future__ import annotations

import copy
from typing import Any

from fleet_agent.cluster.api import ApiError, Unreachable
from fleet_agent.loop import Park, Poll, Process, Sleep
from fleet_agent.machine import smi

HOST_SMI = (
    "/usr/bin/nvidia-smi",
    "/usr/sbin/nvidia-smi",
    "/bin/nvidia-smi",
    "/sbin/nvidia-smi",
    "/usr/lib/wsl/lib/nvidia-smi",
    "/opt/bin/nvidia-smi",
)
LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib64/libnvidia-ml.so.1",
    "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
)


class Failed(Exception):
    """The validator's own error message."""


def _fault(settings: Any) -> str:
    """validateFlags."""
    component, node, namespace = settings["component"], settings["node-name"], settings["namespace"]
    if not component:
        return "invalid -c <component-name> flag: must not be empty string"
    if refusal := settings.refusal("component", component):
        return str(refusal)
    missing = "must not be empty string for"
    if component == "plugin" and not node:
        return f"invalid -n <node-name> flag: {missing} plugin validation"
    if component in ("plugin", "cuda") and not namespace:
        return f"invalid -ns <namespace> flag: {missing} {component} validation"
    if component == "metrics" and not settings["metrics-port"]:
        return "invalid -p <port> flag: must not be empty or 0 for the metrics component"
    if component == "metrics" and not node:
        return f"invalid -n <node-name> flag: {missing} metrics exporter"
    if component in ("vfio-pci", "vgpu-manager", "vgpu-devices") and not node:
        return f"invalid -n <node-name> flag: {missing} {component} validation"
    return ""


def validator(proc: Any) -> Process:
    settings = proc.settings
    component, output = settings["component"], settings["output-dir"]
    if fault := _fault(settings):
        proc.say(settings.table.error.format(message=fault))
        return 1
    checks = {"driver": _driver, "toolkit": _toolkit, "cuda": _cuda, "plugin": _plugin}
    if component == "metrics":
        proc.container.serve(settings["metrics-port"], "/metrics")
        yield Park()
        return 0
    if component not in checks:
        proc.say(f'level=info msg="simulated nodes have nothing to validate for {component}"')
        return 0
    try:
        if settings["cleanup-all"]:
            proc.view.remove(output)
        if not proc.view.is_folder(output):
            proc.view.make_folder(output, False)
        yield from checks[component](proc, output)
        return 0
    except OSError as error:
        fault = f"error validating {_WHAT[component]}: open {error.filename}: {str(error.strerror).lower()}"
    except (Failed, ApiError, Unreachable) as error:
        fault = f"error validating {_WHAT[component]}: {error}"
    proc.say(settings.table.error.format(message=fault))
    return 1


#: validateComponent, in its errors.
_WHAT = {
    "driver": "driver installation",
    "toolkit": "toolkit installation",
    "cuda": "cuda workload",
    "plugin": "plugin installation",
}


def _waits(proc: Any) -> bool:
    return bool(proc.settings["with-wait"])


def _interval(proc: Any) -> float:
    return float(proc.settings["sleep-interval-seconds"])


def _driver(proc: Any, output: str) -> Process:
    proc.view.remove(f"{output}/driver-ready")
    proc.say('level=info msg="Attempting to validate a pre-installed driver on the host"')
    on_host = next((p for p in HOST_SMI if proc.view.is_file("/host" + p)), "")
    if on_host and "nvidia" in proc.host.modules:
        smi.output(proc)
        proc.say('level=info msg="Detected a pre-installed driver on the host"')
        root, ctr, is_host = "/", "/host", True
    else:
        proc.say(
            "level=info msg=\"No pre-installed driver detected on the host: failed to find an executable 'nvidia-smi' on the host\""
        )
        proc.say('level=info msg="Validating containerized driver installation"')
        yield from _container_driver(proc)
        root, ctr, is_host = (
            proc.settings["driver-install-dir"],
            "/driver-root",
            False,
        )
    if not proc.settings["disable-dev-char-symlink-creation"]:
        proc.say('level=info msg="creating symlinks under /dev/char that correspond to NVIDIA character devices"')
        if not proc.view.is_folder("/host-dev-char"):
            raise Failed(
                "error creating symlinks: could not create symlink: symlink /dev/nvidiactl /host-dev-char/195:255: no such file or directory\n\n"
                "Failed to create symlinks under /dev/char that point to all possible NVIDIA character devices."
            )
        if not proc.privileged:
            raise Failed(
                "error creating symlink creator: failed to create NVIDIA device nodes: operation not permitted"
            )
    proc.view.write(
        f"{output}/driver-ready",
        f"IS_HOST_DRIVER={str(is_host).lower()}\nNVIDIA_DRIVER_ROOT={root}\nDRIVER_ROOT_CTR_PATH={ctr}\n"
        f"NVIDIA_DEV_ROOT={root}\nDEV_ROOT_CTR_PATH={ctr}\n",
    )


def _managed(proc: Any) -> Process:
    """A driver DaemonSet that a ClusterPolicy or NVIDIADriver owns: then the driver container's own ready file is checked too."""
    namespace = proc.settings["namespace"]
    path = f"/apis/apps/v1/namespaces/{namespace}/daemonsets" if namespace else "/apis/apps/v1/daemonsets"
    try:
        found = yield from proc.request(
            "GET", path, query={"labelSelector": "app.kubernetes.io/component=nvidia-driver"}
        )
    except (ApiError, Unreachable) as error:
        raise Failed(
            f"error checking if driver is managed by GPU Operator: error listing daemonsets: {error}"
        ) from error
    owners = [
        o for ds in found.get("items") or [] for o in ds["metadata"].get("ownerReferences") or [] if o.get("controller")
    ]
    return any(
        o["apiVersion"].startswith("nvidia.com/") and o["kind"] in ("ClusterPolicy", "NVIDIADriver") for o in owners
    )


def _container_driver(proc: Any) -> Process:
    ready = "/run/nvidia/validations/.driver-ctr-ready"
    if (yield from _managed(proc)):
        proc.say(
            'level=info msg="Driver is not pre-installed on the host and is managed by GPU Operator. Checking driver container status."'
        )
        while not proc.view.is_file(ready):
            proc.say(
                f"running command sh with args [-c stat {ready}]\nstat: cannot statx '{ready}': No such file or directory"
            )
            if not _waits(proc):
                raise Failed("error checking driver container status: exit status 1")
            proc.say(f"command failed, retrying after {int(_interval(proc))} seconds")
            yield Poll(_interval(proc), proc.host)
    root = proc.settings["driver-install-dir-ctr-path"]
    while True:
        proc.say('level=info msg="Attempting to validate a driver container installation"')
        fault = _try_driver(proc, root)
        if not fault:
            return
        if not _waits(proc):
            raise Failed(f"error validating driver: {fault}")
        proc.say(f'level=warning msg="failed to validate the driver, retrying after {int(_interval(proc))} seconds\\n"')
        yield Poll(_interval(proc), proc.host)


def _try_driver(proc: Any, root: str) -> str:
    if not any(proc.view.is_file(root + name) for name in LIBRARIES):
        return 'failed to locate driver libraries: error locating "libnvidia-ml.so.1"'
    if not proc.view.is_file(root + "/usr/bin/nvidia-smi"):
        return 'failed to locate nvidia-smi: error locating "nvidia-smi"'
    code = smi.output(proc)
    return f"exit status {code}" if code else ""


def _toolkit(proc: Any, output: str) -> Process:
    """The runtime must have injected nvidia-smi into this container."""
    proc.view.remove(f"{output}/toolkit-ready")
    while True:
        if proc.container.driver_injected:
            code = smi.output(proc)
            fault = f"exit status {code}" if code else ""
        else:
            fault = 'exec: "nvidia-smi": executable file not found in $PATH'
        if not fault:
            break
        proc.say("toolkit is not ready")
        if not _waits(proc):
            raise Failed(fault)
        proc.say(
            f'running command nvidia-smi with args []\nlevel=warning msg="error running command: {fault}"\n'
            f"command failed, retrying after {int(_interval(proc))} seconds"
        )
        yield Poll(_interval(proc), proc.host)
    proc.view.write(f"{output}/toolkit-ready", "")


def _cuda(proc: Any, output: str) -> Process:
    proc.view.remove(f"{output}/cuda-ready")
    if proc.settings["with-workload"]:
        yield from _workload(proc, "nvidia-cuda-validator", "")
    proc.view.write(f"{output}/cuda-ready", "")


def _plugin(proc: Any, output: str) -> Process:
    proc.view.remove(f"{output}/plugin-ready")
    node = proc.settings["node-name"]
    for attempt in range(1, 31):
        item = yield from proc.request("GET", f"/api/v1/nodes/{node}")
        capacity = item["status"].get("capacity") or {}
        if any(k.startswith(("nvidia.com/gpu", "nvidia.com/mig-")) and int(v) >= 1 for k, v in capacity.items()):
            break
        proc.say(f'level=info msg="GPU resources are not yet discovered by the node, retry: {attempt}"')
        yield Sleep(5)
    else:
        raise Failed("GPU resources are not discovered by the node")
    if proc.settings["with-workload"]:
        allocatable = item["status"].get("allocatable") or {}
        name = next(
            (
                k
                for k, v in sorted(allocatable.items())
                if k.startswith(("nvidia.com/mig-", "nvidia.com/gpu")) and int(v) >= 1
            ),
            "",
        )
        if not name:
            raise Failed("unable to find any allocatable GPU resource")
        yield from _workload(proc, "nvidia-device-plugin-validator", name)
    proc.view.write(f"{output}/plugin-ready", "")


def _workload_pod(proc: Any, name: str, resource: str, validator_set: dict[str, Any]) -> dict[str, Any]:
    """The pod from the manifest in the validator's image."""
    image = proc.settings.variable("VALIDATOR_IMAGE")
    container = {
        "image": image,
        "securityContext": {"privileged": not resource},
        "imagePullPolicy": proc.settings.variable("VALIDATOR_IMAGE_PULL_POLICY") or "IfNotPresent",
    }
    step = {
        **copy.deepcopy(container),
        "name": "plugin-validation" if resource else "cuda-validation",
        "command": ["sh", "-c"],
        "args": ["vectorAdd"],
    }
    if resource:
        step["resources"] = {"limits": {resource: "1"}, "requests": {resource: "1"}}
    else:
        step["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    template = validator_set["spec"]["template"]["spec"]
    spec = {
        "restartPolicy": "OnFailure",
        "serviceAccountName": "nvidia-operator-validator",
        "nodeName": proc.settings["node-name"],
        "tolerations": template.get("tolerations") or [],
        "initContainers": [step],
        "containers": [
            {**container, "name": name, "command": ["sh", "-c"], "args": ["echo workload validation is successful"]}
        ],
    }
    if proc.settings.variable("VALIDATOR_RUNTIME_CLASS"):
        spec["runtimeClassName"] = proc.settings.variable("VALIDATOR_RUNTIME_CLASS")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": spec,
        "metadata": {
            "generateName": name + "-",
            "labels": {"app": name},
            "ownerReferences": validator_set["metadata"].get("ownerReferences") or [],
        },
    }


def _workload(proc: Any, name: str, resource: str) -> Process:
    namespace = proc.settings["namespace"]
    base = f"/api/v1/namespaces/{namespace}/pods"
    try:
        owner = yield from proc.request(
            "GET", f"/apis/apps/v1/namespaces/{namespace}/daemonsets/nvidia-operator-validator"
        )
    except ApiError as error:
        raise Failed(f"unable to retrieve the operator validator daemonset: {error}") from error
    query = {"labelSelector": f"app={name}", "fieldSelector": f"spec.nodeName={proc.settings['node-name']}"}
    for old in (yield from proc.request("GET", base, query=query)).get("items") or []:
        yield from proc.request("DELETE", f"{base}/{old['metadata']['name']}", {"gracePeriodSeconds": 0})
    created = yield from proc.request("POST", base, _workload_pod(proc, name, resource, owner))
    pod = created["metadata"]["name"]
    for _attempt in range(60):
        phase = (yield from proc.request("GET", f"{base}/{pod}"))["status"].get("phase")
        if phase == "Succeeded":
            proc.say(f'level=info msg="pod {pod} have run successfully"')
            return
        proc.say(f'level=info msg="pod {pod} is curently in {phase} phase"')
        yield Sleep(5)
    raise Failed(f"gave up waiting for pod {pod} to be available")
