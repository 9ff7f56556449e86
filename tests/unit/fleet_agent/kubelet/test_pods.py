# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods like the kubelet runs them."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import changed, container, log
from fleet_agent.clock import timestamp
from fleet_agent.kubelet import status


def spec(script="sleep 9999", **fields):
    return {"containers": [{"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", script], **fields}]}


@pytest.fixture
def node(world):
    return world.node()


def built(pod):
    return status.build(pod, timestamp())


def conditions(pod):
    return {c["type"]: c["status"] for c in built(pod)["conditions"]}


def waiting(container_status):
    return container_status.state.get("waiting", {})


def test_status_of_a_running_pod(world, node):
    pod = world.pod(node, spec())
    assert built(pod)["phase"] == "Pending"
    assert waiting(pod.main[0]) == {"reason": "ContainerCreating"}
    world.until(lambda: pod.main[0].ready)
    document = built(pod)
    assert document["phase"] == "Running"
    assert set(conditions(pod).values()) == {"True"}
    assert document["containerStatuses"][0]["started"] is True
    assert document["containerStatuses"][0]["containerID"].startswith("containerd://")
    assert document["containerStatuses"][0]["image"] == "docker.io/library/busybox:1.36"


def test_init_containers_run_in_order_before_the_others(world, node):
    inits = [
        container("one", "busybox:1.36", ["sh", "-c", "sleep 30"]),
        container("two", "busybox:1.36", ["sh", "-c", "exit 0"]),
    ]
    pod = world.pod(node, {**spec(), "initContainers": inits})
    world.until(lambda: "running" in pod.init[0].state)
    assert waiting(pod.init[1])["reason"] == waiting(pod.main[0])["reason"] == "PodInitializing"
    assert conditions(pod)["Initialized"] == "False"
    world.until(lambda: pod.main[0].ready)
    assert conditions(pod)["Initialized"] == "True"


def test_failing_container_backs_off_and_keeps_its_last_state(world, node):
    pod = world.pod(node, spec("echo broken; exit 3"))
    world.until(lambda: pod.main[0].restarts >= 1 and waiting(pod.main[0]))
    assert waiting(pod.main[0])["reason"] == "CrashLoopBackOff"
    assert pod.main[0].last_state["terminated"]["exitCode"] == 3
    assert built(pod)["phase"] == "Running"
    world.until(lambda: pod.main[0].previous_log)
    assert "broken" in pod.main[0].previous_log[-1]


@pytest.mark.parametrize(
    ("script", "policy", "phase"),
    [("exit 0", "Never", "Succeeded"), ("exit 1", "Never", "Failed"), ("exit 0", "OnFailure", "Succeeded")],
)
def test_pods_of_jobs_end_in_their_phase(world, node, script, policy, phase):
    pod = world.pod(node, {**spec(script), "restartPolicy": policy})
    world.until(lambda: pod.forced_phase)
    assert built(pod)["phase"] == phase
    assert conditions(pod)["Ready"] == "False"


def test_failed_init_of_a_pod_that_never_restarts_fails_it(world, node):
    pod = world.pod(
        node,
        {
            **spec(),
            "restartPolicy": "Never",
            "initContainers": [container("i", "busybox:1.36", ["sh", "-c", "exit 2"])],
        },
    )
    world.until(lambda: pod.forced_phase == "Failed")
    assert pod.main[0].container_id == ""


@pytest.mark.parametrize(
    ("image", "reason", "words"),
    [
        ("nvcr.io/nvidia/k8s-device-plugin:v9.9.9", "ImagePullBackOff", "k8s-device-plugin:v9.9.9: not found"),
        (
            "mirror.example.com:5000/a/driver:580.178.04-ubuntu99.04",
            "ImagePullBackOff",
            "rpc error: code = NotFound desc = failed to pull and unpack image",
        ),
        ("registry.k8s.io/nfd/node-feature-discovery:0.19.0", "ImagePullBackOff", "not found"),
        ("Bad_Image:", "InvalidImageName", "couldn't parse image name"),
    ],
)
def test_images_that_do_not_exist(world, node, image, reason, words):
    pod = world.pod(node, {"containers": [{"name": "c", "image": image}]})
    world.until(lambda: waiting(pod.main[0]).get("reason") == reason)
    assert words in waiting(pod.main[0])["message"]
    assert pod.main[0].container_id == ""


def test_missing_command_is_a_start_error(world, node):
    pod = world.pod(
        node, {"containers": [container("c", "nvcr.io/nvidia/k8s-device-plugin:v0.20.0", ["nvidia-device-plugins"])]}
    )
    world.until(lambda: pod.main[0].restarts >= 1 and pod.main[0].last_state)
    assert pod.main[0].last_state["terminated"]["reason"] == "StartError"
    assert (
        'exec: "nvidia-device-plugins": executable file not found in $PATH'
        in pod.main[0].last_state["terminated"]["message"]
    )


def test_image_without_a_shell_runs_no_script(world, node):
    pod = world.pod(
        node,
        {
            "containers": [
                container("c", "registry.k8s.io/nfd/node-feature-discovery:v0.19.0", ["sh", "-c", "nfd-worker"])
            ]
        },
    )
    world.until(lambda: pod.main[0].restarts >= 1 and pod.main[0].last_state)
    assert pod.main[0].last_state["terminated"]["exitCode"] == 128


def test_missing_config_map_keeps_volume_and_environment_waiting(world, node):
    volume = world.pod(node, {**spec(), "volumes": [{"name": "v", "configMap": {"name": "cm"}}]})
    variable = world.pod(node, spec(env=[{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "k"}}}]))
    world.until(lambda: waiting(variable.main[0]).get("reason") == "CreateContainerConfigError")
    world.until(
        lambda: ("FailedMount", 'MountVolume.SetUp failed for volume "v" : configmap "cm" not found') in world.warnings
    )
    assert waiting(variable.main[0])["message"] == 'configmap "cm" not found'
    assert waiting(volume.main[0])["reason"] == "ContainerCreating"
    world.store.data[("configmap", "ns", "cm")] = {"k": "1"}
    world.until(lambda: volume.main[0].ready and variable.main[0].ready)


def test_host_path_types_are_checked(world, node):
    pod = world.pod(node, {**spec(), "volumes": [{"name": "v", "hostPath": {"path": "/no/such", "type": "Directory"}}]})
    world.until(lambda: world.warnings)
    assert "hostPath type check failed: /no/such is not a directory" in world.warnings[0][1]
    assert not pod.sandbox_ready


@pytest.mark.parametrize("kind", ["", "DirectoryOrCreate"])
def test_nobody_makes_a_folder_in_sys(world, node, kind: str) -> None:
    """The kubelet makes it for a type, the container runtime where there is none."""
    volume = {"name": "v", "hostPath": {"path": "/sys/no/such", "type": kind}}
    mounted = spec(volumeMounts=[{"name": "v", "mountPath": "/v"}])
    pod = world.pod(node, {**mounted, "volumes": [volume]})
    world.until(lambda: world.warnings)
    failed = "mkdir /sys/no/such: operation not permitted"
    assert failed in world.warnings[0][1]
    assert waiting(pod.main[0]).get("reason") == ("ContainerCreating" if kind else "CreateContainerError")
    assert (failed in waiting(pod.main[0]).get("message", "")) is not bool(kind)
    assert not node.host.is_folder("/sys/no/such")


def test_readiness_depends_on_its_probe_and_liveness_restarts(world, node):
    probe = {"exec": {"command": ["sh", "-c", "[ -f /run/x/ok ]"]}, "periodSeconds": 2}
    volumes = {"volumes": [{"name": "x", "hostPath": {"path": "/run/x"}}]}
    mounts = {"volumeMounts": [{"name": "x", "mountPath": "/run/x"}]}
    ready = world.pod(node, {**spec(readinessProbe=probe, **mounts), **volumes})
    live = world.pod(
        node,
        {
            **spec(livenessProbe={**probe, "failureThreshold": 1}, **mounts),
            **volumes,
            "terminationGracePeriodSeconds": 3,
        },
    )
    world.until(lambda: live.main[0].restarts >= 1)
    assert not ready.main[0].ready
    assert "running" in ready.main[0].state
    node.host.write("/run/x/ok", "")
    world.until(lambda: ready.main[0].ready)
    node.host.remove("/run/x/ok")
    world.until(lambda: not ready.main[0].ready)
    assert any(reason == "Unhealthy" for reason, _message in world.warnings)


def test_readiness_depends_on_the_http_answer_of_a_program(world, node):
    """This holds also after the probe has settled, when it is repeated only after a change."""
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1}
    pod = world.pod(node, spec(image="example.com/app:2", readinessProbe=probe))
    main = pod.main[0]
    world.until(lambda: main.ready)
    world.pass_time(10)
    for healthy in (False, True, False):
        version = node.host.version
        main.healthy = healthy
        assert node.host.version > version, "programs that wait for a change on the node are woken"
        world.until(lambda healthy=healthy: main.ready == healthy)
        world.pass_time(10)


def test_deletion_runs_the_hook_and_deletes_as_the_node(world, node):
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "touch /run/x/stopped"]}}}
    pod = world.pod(
        node,
        {
            **spec(
                "trap 'exit 0' TERM; sleep 9999", lifecycle=hook, volumeMounts=[{"name": "x", "mountPath": "/run/x"}]
            ),
            "volumes": [{"name": "x", "hostPath": {"path": "/run/x"}}],
        },
    )
    world.until(lambda: pod.main[0].ready)
    world.delete(pod)
    path = f"/api/v1/namespaces/ns/pods/{pod.name}"
    world.until(lambda: not world.api.has(path))
    assert node.host.read("/run/x/stopped") is not None
    user, method, _path, body = world.api.requests[-1]
    assert (user, method, body["gracePeriodSeconds"]) == ("system:node:n0", "DELETE", 0)
    assert pod.main[0].state["terminated"]["exitCode"] == 0


def test_shell_as_first_process_ignores_sigterm_until_it_is_killed(world, node):
    pod = world.pod(node, {**spec(), "terminationGracePeriodSeconds": 5})
    world.until(lambda: pod.main[0].ready)
    world.delete(pod, 5)
    world.until(lambda: "terminated" in pod.main[0].state)
    assert pod.main[0].state["terminated"]["exitCode"] == 137


def test_driver_image_for_another_architecture_is_not_in_the_manifest(world):
    arm = world.node("arm", architecture="arm64", kernel="6.8.0-1058-nvidia")
    pod = world.pod(
        arm,
        {
            "containers": [
                container("c", "nvcr.io/nvidia/driver:580-6.8.0-1058-nvidia-ubuntu24.04", ["nvidia-driver", "init"])
            ]
        },
    )
    world.until(lambda: waiting(pod.main[0]).get("reason") == "ImagePullBackOff")
    assert "no match for platform in manifest" in waiting(pod.main[0])["message"]


def test_the_first_log_line_states_that_it_is_simulated(world, node):
    pod = world.pod(node, changed(spec(), lambda s: s["containers"][0].update(command=["sh", "-c", "echo hello"])))
    world.until(lambda: len(pod.main[0].log) >= 2 or pod.main[0].previous_log)
    assert "[sandbox] simulated" in log(pod.main[0])


def test_node_is_registered_as_itself_with_its_own_labels(world):
    node = world.node("n9", labels={"pool": "a", "node-role.kubernetes.io/gpu": ""})
    user, _method, path, body = next(r for r in world.api.requests if r[1] == "POST")
    assert (user, path) == ("system:node:n9", "/api/v1/nodes")
    assert body["metadata"]["labels"]["pool"] == "a"
    assert "node-role.kubernetes.io/gpu" not in body["metadata"]["labels"]
    assert ("", "PATCH", "/api/v1/nodes/n9") in {(r[0], r[1], r[2]) for r in world.api.requests}
    assert node.uid
