# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One thing wrong in our manifests, and the stage, and with it site, fails with a message that names it.

The simulated nodes know no stages of ours: they run what the manifests say. So what is shown here is that they, and the gates, are no
mirror that shows what we want to see. Mutations are made with the roles' own patches, as a user could make them.

Runtime: three sandboxes at once; a mutation costs about one CPU second and, where a node has to be given up, 14 seconds of waiting.
Those of nothing but one pool's driver share a run.

`make test` has the stage's own playbook run without a mutation, and repeats with most of them what its role asks of the cluster (support/repeated.py);
`make soak` runs site on all. One is not caught:

"plugin does not use NVIDIA's runtime" survives. The plugin is privileged, and NVIDIA's looks for NVML below its driver root
first (tryResolveLibrary in its main.go), which we mount: so it sees the GPUs without that runtime, on real nodes too.

Rights that NFD's garbage collector lacks are no mutation: it logs an error each time, and its health says "ok" (Healthz in pkg/nfd-gc/nfd-gc.go). What it
has, and uses, test_least_privilege.py shows.
"""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.live.support.mutants import (
    INIT,
    MAIN,
    POOL_DRIVER,
    SPEC,
    STAGES,
    Benches,
    Mutation,
    add,
    change,
    named,
    pod,
    remove,
    replace,
    told,
    unnamed,
)

WORKER, MASTER, COLLECTOR = "nfd-worker", "nfd-master", "nfd-gc"
DRIVER, TOOLKIT, VALIDATOR = POOL_DRIVER, "nvidia-container-toolkit", "nvidia-validator"
PLUGIN, DISCOVERY = "nvidia-device-plugin", "gpu-feature-discovery"
#: As it is, but for the field that tells NVIDIA's devices from others.
CLASSES_ONLY = """
core: {ownerRefs: [node], featureSources: [cpu, kernel, pci, system], labelSources: [cpu, kernel, pci, system]}
sources: {pci: {deviceClassWhitelist: ["03", "0b40", "12"], deviceLabelFields: [class]}}
"""
#: Six minutes are what `make test` has for this file.
LENGTH = "for its time only"
#: Another stage's mutation of the same kind meets the same code.
TWIN = "its twin of another stage is tried"
#: What the docstring says of these. Should one fail one day, then this is no longer true.
SURVIVES = "the run is right to pass"
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}

FEATURES = (
    Mutation(
        "worker may not create NodeFeatures",
        "feature_discovery",
        (change("Role", WORKER, replace("/rules/0/verbs", ["get", "update"])),),
        (r'cannot create resource "nodefeatures"',),
        "workers find everything and publish nothing",
    ),
    Mutation(
        "master may not patch nodes",
        "feature_discovery",
        (change("ClusterRole", "hwaccel-gpu-nfd-master", replace("/rules/0/verbs", ["get", "list"])),),
        (r'cannot patch resource "nodes"',),
        "findings never become labels",
    ),
    Mutation(
        "worker's service account is missing",
        "feature_discovery",
        (pod("DaemonSet", WORKER, serviceAccountName="absent"),),
        (r'serviceaccount "absent" not found',),
        "the controller cannot make a pod",
        soak=TWIN,
    ),
    Mutation(
        "PCI labels without the vendor",
        "feature_discovery",
        (change("ConfigMap", "nfd-worker-conf", data={"nfd-worker.conf": CLASSES_ONLY}),),
        (r"NFD detects none", r"deviceLabelFields"),
        "no GPU is ever seen",
    ),
    Mutation(
        "NFD's kind is not served",
        "feature_discovery",
        (
            change(
                "CustomResourceDefinition", "nodefeatures.nfd.k8s-sigs.io", replace("/spec/versions/0/served", False)
            ),
        ),
        (
            r"could not find the requested resource \(post nodefeatures\.nfd\.k8s-sigs\.io\)",
            r"CustomResourceDefinition",
        ),
        "workers have nowhere to put what they find",
    ),
    Mutation(
        "worker's node selector has a typing error",
        "feature_discovery",
        (pod("DaemonSet", WORKER, nodeSelector={"kubernetes.io/os": "linus"}),),
        (
            r"no NFD worker",
            r"nodeSelector of DaemonSet hwaccel-gpu/nfd-worker excludes the node: it requires kubernetes\.io/os=linus",
        ),
        "no worker on any node",
    ),
    Mutation(
        "worker's ConfigMap is missing",
        "feature_discovery",
        (
            change(
                "DaemonSet",
                WORKER,
                named(f"{SPEC}/volumes/5", "nfd-worker-conf"),
                replace(f"{SPEC}/volumes/5/configMap/name", "absent"),
            ),
        ),
        (r'configmap "absent" not found',),
        "the kubelet waits for it for ever",
    ),
    Mutation(
        "namespace at Pod Security baseline",
        "feature_discovery",
        (change("Namespace", "hwaccel-gpu", metadata={"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}),),
        (r"violates PodSecurity",),
        "admission refuses every pod with a host path",
    ),
    Mutation(
        "NFD's tag has a typing error",
        "feature_discovery",
        (change("DaemonSet", WORKER, replace(f"{MAIN}/image", "registry.k8s.io/nfd/node-feature-discovery:v0.91.0")),),
        (r"cannot be pulled", r"v0\.91\.0: not found"),
        "the registry does not have it",
    ),
    Mutation(
        "worker tolerates no taint",
        "feature_discovery",
        (pod("DaemonSet", WORKER, tolerations=None),),
        (r"no NFD worker", r"tolerations"),
        "no worker on tainted nodes",
        taints=(TAINT,),
    ),
    Mutation(
        "master asks for more than any node has",
        "feature_discovery",
        (change("Deployment", MASTER, replace(f"{MAIN}/resources", {"requests": {"memory": "900Ti"}})),),
        (r"nfd-master", r"Insufficient memory"),
        "nobody makes labels of what workers find",
    ),
    Mutation(
        "worker cannot see the host's devices",
        "feature_discovery",
        (
            change(
                "DaemonSet",
                WORKER,
                named(f"{SPEC}/volumes/2", "host-sys"),
                replace(f"{SPEC}/volumes/2/hostPath/path", "/srv"),
            ),
        ),
        (r"NFD detects none", r"/host-sys/bus/pci/devices: no such file", r"mount the host's /sys"),
        "the PCI bus is looked for in another place",
    ),
    Mutation(
        "garbage collector's tag does not exist",
        "feature_discovery",
        (
            change(
                "Deployment", COLLECTOR, replace(f"{MAIN}/image", "registry.k8s.io/nfd/node-feature-discovery:v0.91.0")
            ),
        ),
        (r"nfd-gc \(Deployment hwaccel-gpu-system/nfd-gc\)", r"cannot be pulled", r"v0\.91\.0: not found"),
        "nobody deletes what vanished nodes left behind",
        soak=TWIN,
    ),
    Mutation(
        "garbage collector's service account is missing",
        "feature_discovery",
        (pod("Deployment", COLLECTOR, serviceAccountName="absent"),),
        (r"nfd-gc \(Deployment hwaccel-gpu-system/nfd-gc\)", r'serviceaccount "absent" not found'),
        "the controller cannot make a pod",
    ),
)

DRIVERS = (
    Mutation(
        "driver is not privileged",
        "driver",
        (change("DaemonSet", DRIVER, replace(f"{MAIN}/securityContext", {"privileged": False})),),
        (r"Bidirectional mount propagation is available only to privileged containers",),
        "no module can be loaded, and the server says so at once",
        refused=True,
    ),
    Mutation(
        "driver's /run/nvidia is not propagated",
        "driver",
        (
            change(
                "DaemonSet",
                DRIVER,
                named(f"{MAIN}/volumeMounts/0", "run-nvidia"),
                remove(f"{MAIN}/volumeMounts/0/mountPropagation"),
            ),
        ),
        (r"mount propagation of /run/nvidia",),
        "nobody sees the driver's files",
    ),
    Mutation(
        "driver mounts /run/nvidia elsewhere",
        "driver",
        (
            change(
                "DaemonSet",
                DRIVER,
                named(f"{MAIN}/volumeMounts/0", "run-nvidia"),
                replace(f"{MAIN}/volumeMounts/0/mountPath", "/run/nvidia-driver"),
            ),
        ),
        (r"/run/nvidia/nvidia-driver\.pid: No such file", r"mount the host's /run/nvidia at /run/nvidia"),
        "the installer finds no place for its files",
    ),
    Mutation(
        "driver's tag does not exist",
        "driver",
        (change("DaemonSet", DRIVER, replace(f"{MAIN}/image", "nvcr.io/nvidia/driver:595.91.70-ubuntu24.04")),),
        (r"cannot be pulled", r"595\.91\.70-ubuntu24\.04: not found"),
        "the registry does not have it",
    ),
    Mutation(
        "driver is for another kernel",
        "driver",
        (
            change(
                "DaemonSet", DRIVER, replace(f"{MAIN}/image", "nvcr.io/nvidia/driver:580-6.8.0-111-generic-ubuntu24.04")
            ),
        ),
        (
            r"its image is for kernel 6\.8\.0-111-generic, the node runs 6\.8\.0-45-generic",
            r"choose the image for the running kernel",
        ),
        "its modules do not load here",
    ),
    Mutation(
        "driver manager may not read its node",
        "driver",
        (change("ClusterRole", "hwaccel-gpu-driver", replace("/rules/0/verbs", ["patch"])),),
        (r'cannot get resource "nodes"',),
        "the init container never ends well",
    ),
    Mutation(
        "driver has no startup probe",
        "driver",
        (change("DaemonSet", DRIVER, remove(f"{MAIN}/startupProbe")),),
        (r"waiting for the driver container to be ready",),
        "nobody writes the first gate's file",
    ),
    Mutation(
        "driver's startup probe is missing its script",
        "driver",
        (change("ConfigMap", "nvidia-driver-startup-probe", metadata={"name": "nvidia-driver-probe"}),),
        (r'configmap "nvidia-driver-startup-probe" not found',),
        "the pod cannot start",
        soak=LENGTH,
    ),
    Mutation(
        "driver asks for more than any node has",
        "driver",
        (change("DaemonSet", DRIVER, add(f"{MAIN}/resources", {"requests": {"cpu": "4000"}})),),
        (r"Insufficient cpu",),
        "the pod cannot be scheduled",
        soak=LENGTH,
    ),
    Mutation(
        "driver's priority class does not exist",
        "driver",
        (pod("DaemonSet", DRIVER, priorityClassName="absent"),),
        (r"no PriorityClass with name absent was found",),
        "admission refuses the pods",
    ),
    Mutation(
        "a host path is of another type",
        "driver",
        (
            change(
                "DaemonSet",
                DRIVER,
                named(f"{SPEC}/volumes/0", "run-nvidia"),
                replace(f"{SPEC}/volumes/0/hostPath/type", "Socket"),
            ),
        ),
        (r"hostPath type check failed: /run/nvidia is not a socket",),
        "the kubelet refuses to mount it",
    ),
    Mutation(
        "driver's entry point has a typing error",
        "driver",
        (change("DaemonSet", DRIVER, replace(f"{MAIN}/command", ["nvidia-drivre"])),),
        (r'"nvidia-drivre": executable file not found',),
        "the container never starts",
    ),
    Mutation(
        "toolkit writes its configuration elsewhere",
        "driver",
        (
            change(
                "DaemonSet",
                TOOLKIT,
                named(f"{MAIN}/volumeMounts/7", "runtime-config"),
                replace(f"{MAIN}/volumeMounts/7/mountPath", "/runtime/config"),
                named(f"{MAIN}/volumeMounts/8", "runtime-drop-in"),
                replace(f"{MAIN}/volumeMounts/8/mountPath", "/runtime/drop-in"),
            ),
        ),
        (r'no runtime for "nvidia" is configured|/runtime/config-dir',),
        "the container runtime never hears of NVIDIA's",
        soak=LENGTH,
    ),
    Mutation(
        "toolkit cannot reach the host's systemd",
        "driver",
        (change("DaemonSet", TOOLKIT, named(f"{MAIN}/volumeMounts/5", "host-root"), remove(f"{MAIN}/volumeMounts/5")),),
        (r"systemctl restart containerd",),
        "the runtime is not told to read its configuration",
    ),
    Mutation(
        "RuntimeClass names another handler",
        "driver",
        (change("RuntimeClass", "nvidia", handler="nvidia-legacy2"),),
        (r"handler of RuntimeClass nvidia is immutable", r"field is immutable"),
        "no sandbox for GPU pods; here the server refuses it, as the class is there",
    ),
    Mutation(
        "RuntimeClass is named otherwise",
        "driver",
        (change("RuntimeClass", "nvidia", metadata={"name": "nvidia-gpu"}),),
        (r'RuntimeClass "nvidia" not found',),
        "admission refuses GPU pods",
    ),
    Mutation(
        "validator does not use NVIDIA's runtime",
        "driver",
        (pod("DaemonSet", VALIDATOR, runtimeClassName=None),),
        (r"toolkit-validation", r"nvidia-smi"),
        "no driver libraries in the container",
        soak=LENGTH,
    ),
    Mutation(
        "validator looks for validations elsewhere",
        "driver",
        (
            change(
                "DaemonSet",
                VALIDATOR,
                named(f"{INIT}/volumeMounts/2", "validations"),
                replace(f"{INIT}/volumeMounts/2/mountPath", "/run/validations"),
            ),
        ),
        (r"waiting for the driver container to be ready",),
        "it waits for a file that it cannot see",
        soak=LENGTH,
    ),
    Mutation(
        "validator's cuda step proves nothing",
        "driver",
        (change("ConfigMap", "nvidia-validator-scripts", data={"cuda.sh": "exit 0\n"}),),
        (r"nvidia-validator", r"validating again|not validated yet"),
        "no proof is written",
        soak=LENGTH,
    ),
    Mutation(
        "validator runs as its image's user",
        "driver",
        (
            change(
                "DaemonSet", VALIDATOR, named(INIT, "driver-validation"), remove(f"{INIT}/securityContext/runAsUser")
            ),
        ),
        (r"driver-validation", r"[Pp]ermission denied|operation not permitted"),
        "what the kubelet makes for a host path is root's",
    ),
    Mutation(
        "validator may not list DaemonSets",
        "driver",
        (change("Role", VALIDATOR, replace("/rules/0/verbs", ["get"])),),
        (r'cannot list resource "daemonsets"',),
        "NVIDIA's validator cannot tell whose driver it is",
        soak=LENGTH,
    ),
    Mutation(
        "admission policy is no valid CEL",
        "driver",
        (
            change(
                "ValidatingAdmissionPolicy",
                "hwaccel-gpu-driver-node-labels",
                replace("/spec/validations/1/expression", "object.spec == old.spec"),
            ),
        ),
        (r"hwaccel-gpu-driver-node-labels", r"undeclared reference"),
        "the server refuses it before anything is written",
    ),
    Mutation(
        "driver's node selector has a typing error",
        "driver",
        (pod("DaemonSet", DRIVER, nodeSelector={"gpu": "yes"}),),
        (r"no driver pod is on the node",),
        "no driver on any node",
        soak=TWIN,
    ),
)

PLUGINS = (
    Mutation(
        "plugin has no device-plugins mount",
        "device_plugin",
        (
            change(
                "DaemonSet", PLUGIN, named(f"{MAIN}/volumeMounts/2", "device-plugins"), remove(f"{MAIN}/volumeMounts/2")
            ),
        ),
        (r"/var/lib/kubelet/device-plugins",),
        "the kubelet's socket is out of reach",
    ),
    Mutation(
        "kubelet's folder is elsewhere",
        "device_plugin",
        (),
        (r"hostPath type check failed: /var/lib/kublet/device-plugins is not a directory",),
        "the kubelet refuses to mount it",
        variables={"device_plugin_kubelet_root": "/var/lib/kublet"},
        soak=LENGTH,
    ),
    Mutation(
        "plugin tolerates no taint",
        "device_plugin",
        (pod("DaemonSet", PLUGIN, tolerations=None),),
        (r"no device plugin pod is on the node", r"tolerations"),
        "no plugin on tainted nodes",
        taints=(TAINT,),
        soak=TWIN,
    ),
    Mutation(
        "plugin's node selector has a typing error",
        "device_plugin",
        (pod("DaemonSet", PLUGIN, nodeSelector={"nvidia.com/gpu.preset": "true"}),),
        (
            r"no device plugin pod is on the node",
            r"nodeSelector of DaemonSet .* it requires nvidia\.com/gpu\.preset=true",
        ),
        "no plugin on any node",
        soak=LENGTH,
    ),
    Mutation(
        "plugin's service account is missing",
        "device_plugin",
        (pod("DaemonSet", PLUGIN, serviceAccountName="absent"),),
        (r'serviceaccount "absent" not found',),
        "the controller cannot make a pod",
        soak=LENGTH,
    ),
    Mutation(
        "plugin's configuration is missing",
        "device_plugin",
        (
            change(
                "DaemonSet",
                PLUGIN,
                named(f"{SPEC}/volumes/1", "config"),
                replace(f"{SPEC}/volumes/1/configMap/name", "absent"),
            ),
        ),
        (r'configmap "absent" not found',),
        "the kubelet waits for it for ever",
        soak=LENGTH,
    ),
    Mutation(
        "plugin's configuration is of an unknown version",
        "device_plugin",
        (change("ConfigMap", "nvidia-device-plugin-config", data={"config.yaml": "version: v9\n"}),),
        (r"unknown version: v9",),
        "the plugin does not start",
        soak=LENGTH,
    ),
    Mutation(
        "plugin does not use NVIDIA's runtime",
        "device_plugin",
        (pod("DaemonSet", PLUGIN, runtimeClassName=None),),
        (r"NVML|NVIDIA Container Toolkit|invalid device discovery strategy",),
        "it sees no GPU",
        soak=SURVIVES,
    ),
    Mutation(
        "plugin's tag does not exist",
        "device_plugin",
        (change("DaemonSet", PLUGIN, replace(f"{MAIN}/image", "nvcr.io/nvidia/k8s-device-plugin:v0.30.0")),),
        (r"cannot be pulled", r"v0\.30\.0: not found"),
        "the registry does not have it",
        soak=LENGTH,
    ),
    Mutation(
        "plugin waits for the proof in another place",
        "device_plugin",
        (
            change(
                "DaemonSet",
                PLUGIN,
                named(f"{INIT}/volumeMounts/0", "validations"),
                replace(f"{INIT}/volumeMounts/0/mountPath", "/run/validations"),
            ),
        ),
        (r"cuda-proof", r"/run/nvidia/validations/cuda-ready|waiting for the cuda proof"),
        "it waits for ever",
    ),
    Mutation(
        "plugin does not wait for the proof",
        "device_plugin",
        (change("DaemonSet", PLUGIN, remove(f"{SPEC}/initContainers")),),
        (r"the device plugin is starting", r"/run/nvidia/validations/cuda-ready|waiting for the cuda proof"),
        "its startup probe asks for the proof as well",
        before=(
            Mutation(
                "cuda proof fails",
                "driver",
                (change("DaemonSet", VALIDATOR, replace(f"{SPEC}/initContainers/2/command", ["sh", "-c", "exit 1"])),),
                (),
                "",
            ),
        ),
    ),
    Mutation(
        "GPU feature discovery may not create NodeFeatures",
        "device_plugin",
        (change("Role", DISCOVERY, replace("/rules/0/verbs", ["get", "update"])),),
        (r'cannot create resource "nodefeatures"',),
        "no label says which GPU a node has",
    ),
    Mutation(
        "plugin's entry point sources another file",
        "device_plugin",
        (
            change(
                "ConfigMap",
                "nvidia-device-plugin-entrypoint",
                data={"entrypoint.sh": "#!/bin/sh\n. /run/nvidia/driver-ready\nexec nvidia-device-plugin\n"},
            ),
        ),
        (r"/run/nvidia/driver-ready",),
        "the plugin does not know where the driver is",
        soak=LENGTH,
    ),
)
MUTATIONS = (*FEATURES, *DRIVERS, *PLUGINS)


@pytest.fixture(scope="module")
def benches(request: pytest.FixtureRequest, make_sandbox: t.Any) -> t.Iterator[Benches]:
    """Starts on what this session has selected, every stage on a sandbox of its own."""
    given = [getattr(getattr(item, "callspec", None), "params", {}) for item in request.session.items]
    made = Benches(make_sandbox, [(params["playbook"], params["mutation"]) for params in given if "mutation" in params])
    yield made
    made.close()


def cases() -> t.Iterator[t.Any]:
    """A stage by itself stops where site would, in a tenth of the time. What another stage has to fail for first, site does not reach."""
    for one in MUTATIONS:
        name = one.name.replace(" ", "-")
        if not one.soak:
            yield pytest.param(one.stage, one, id=f"{one.stage}:-{name}")
        if not one.before:
            survives = [pytest.mark.xfail(reason=one.soak, strict=True)] if one.soak == SURVIVES else []
            yield pytest.param("site", one, id=f"site:-{name}", marks=[pytest.mark.slow, *survives])


@pytest.mark.parametrize(("playbook", "mutation"), list(cases()))
def test_it_fails_and_names_the_cause(benches: Benches, playbook: str, mutation: Mutation) -> None:
    sound = benches.sound[mutation.stage][0].result()
    assert sound.rc == 0, f"the stage fails without a mutation too:\n{sound.stdout[-6000:]}"
    run = benches.answer(playbook, mutation)
    assert run.rc != 0, f"survived, though {mutation.why}:\n{run.stdout[-3000:]}"
    missing = unnamed(run, mutation)
    assert not missing, f"the message does not say {missing}:\n{told(run)}"


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("when", [0, 1], ids=["before", "after"])
def test_what_is_not_mutated_passes(benches: Benches, stage: str, when: int) -> None:
    """So that none of the above failed for another reason, and what a mutation broke was mended by the role."""
    if stage not in benches.sound:
        pytest.skip("no mutation of this stage was selected")
    run = benches.sound[stage][when].result()
    assert run.rc == 0, run.stdout[-6000:]
