# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Users of container processes, and operations that other users than root must not do."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import (
    DRIVER,
    TOOLKIT,
    VALIDATOR,
    changed,
    container,
    host,
    log,
    mount,
)

BUSYBOX = "busybox:1.36"
NFD = "registry.k8s.io/nfd/node-feature-discovery:v0.19.0"


def spec(image, script, **security):
    main = container(
        "c", image, ["sh", "-c", script], mount("val", "/run/nvidia/validations"), mount("scratch", "/scratch")
    )
    main["securityContext"] |= security
    return {
        "restartPolicy": "Never",
        "volumes": [host("val", "/run/nvidia/validations"), {"name": "scratch", "emptyDir": {}}],
        "containers": [main],
    }


@pytest.mark.parametrize(
    ("image", "pod_user", "own_user", "uid"),
    [
        (BUSYBOX, None, None, 0),
        ("nvcr.io/nvidia/gpu-operator:v26.7.0", 7, None, 7),
        ("nvcr.io/nvidia/gpu-operator:v26.7.0", 7, 0, 0),
        ("nvcr.io/nvidia/k8s-device-plugin:v0.20.0", None, None, 0),
    ],
)
def test_the_user_comes_from_the_container_the_pod_or_the_image(world, image, pod_user, own_user, uid):
    pod_spec = spec(image, "id -u; sleep 9999")
    pod_spec["containers"][0]["securityContext"] = {} if own_user is None else {"runAsUser": own_user}
    pod = world.pod(world.node(), {**pod_spec, "securityContext": {} if pod_user is None else {"runAsUser": pod_user}})
    world.until(lambda: pod.main[0].ready)
    assert f" {uid}" in log(pod.main[0])
    assert pod.main[0].view.uid == uid


@pytest.mark.parametrize(("image", "uid"), [(VALIDATOR, 1000), (NFD, 65534)])
def test_images_with_another_user_than_root(world, image, uid):
    pod = world.pod(
        world.node(),
        {
            "containers": [
                {"name": "c", "image": image, "command": ["nvidia-validator" if uid == 1000 else "nfd-worker"]}
            ]
        },
    )
    world.until(lambda: pod.main[0].view is not None)
    assert pod.main[0].view.uid == uid


def test_files_of_root_cannot_be_written_by_other_users(world):
    node = world.node()
    node.host.write("/run/nvidia/validations/existing", "x")
    script = (
        "echo no > /run/nvidia/validations/new; rm -f /run/nvidia/validations/absent && echo absent; rm -f /run/nvidia/validations/existing; "
        "echo no > /etc/new; echo mine > /scratch/file && cat /scratch/file; cat /run/nvidia/validations/existing"
    )
    pod = world.pod(node, spec(BUSYBOX, script, runAsUser=1000))
    world.until(lambda: pod.forced_phase)
    text = log(pod.main[0])
    for path in ("/run/nvidia/validations/new", "/run/nvidia/validations/existing", "/etc/new"):
        assert f"{path}: Permission denied" in text
    assert "mine" in text
    assert "absent" in text
    assert node.host.read("/run/nvidia/validations/existing") == "x"
    assert node.host.read("/run/nvidia/validations/new") is None


def test_a_privileged_container_of_another_user_cannot_load_modules(world):
    pod = world.pod(
        world.node(), changed(DRIVER, lambda s: s["containers"][0]["securityContext"].update(runAsUser=1000))
    )
    world.until(lambda: pod.main[0].restarts >= 1)
    assert "could not insert 'nvidia': Operation not permitted" in log(pod.main[0])


def test_the_validator_with_the_user_of_its_image_fails(world):
    node = world.node()
    driver = world.pod(node, DRIVER)
    world.until(lambda: driver.main[0].ready)
    pod = world.pod(node, changed(TOOLKIT, lambda s: s["initContainers"][0]["securityContext"].pop("runAsUser")))
    world.until(lambda: pod.init[0].restarts >= 1)
    assert "operation not permitted" in log(pod.init[0])
    assert node.host.read("/run/nvidia/validations/driver-ready") is None
