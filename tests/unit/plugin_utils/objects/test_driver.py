# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver's objects: which image, which nodes, which provider; never compared word for word. Odd fleets by hypothesis."""

from __future__ import annotations

import itertools
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hwaccel.gpu.plugins.filter.declared_pools import declared_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import placement
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import driver
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.objects.scheduling import (
    INFERENCE,
    TRAINING,
    daemon_sets,
    holds,
    node,
    run,
    takes,
)
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack


def test_one_driver_daemonset_a_class_and_one_for_other_kernels() -> None:
    plan = run("driver", stack.fleet(stack.node_class(), stack.node_class(kernel="6.8.0-57-generic")), pools=[TRAINING])
    found = daemon_sets(plan, "nvidia-driver")
    assert len(found) == 3
    for labels, count in (
        (node("training"), 1),
        (node("training", "6.8.0-57-generic"), 1),
        (node("training", "6.11.0-1-generic"), 1),
        (node("other"), 0),
    ):
        assert sum(takes(one, labels) for one in found) == count, labels
    assert all(
        one["spec"]["selector"]["matchLabels"].items() <= one["spec"]["template"]["metadata"]["labels"].items()
        for one in found
    )
    assert len({tuple(sorted(one["spec"]["selector"]["matchLabels"].items())) for one in found}) == 3


def test_precompiled_image_where_known_else_built_in_place() -> None:
    plan = run(
        "driver", stack.fleet(stack.node_class(kernel="6.8.0-134-generic"), stack.node_class(kernel="6.8.0-45-generic"))
    )
    images = {one["spec"]["template"]["spec"]["containers"][0]["image"] for one in daemon_sets(plan, "nvidia-driver")}
    assert images == {
        "nvcr.io/nvidia/driver:595-6.8.0-134-generic-ubuntu24.04",
        "nvcr.io/nvidia/driver:595.91.07-ubuntu24.04",
    }


def test_switches_keep_the_stack_away() -> None:
    plan = run("driver", stack.fleet(stack.node_class()))
    driver = next(one for one in daemon_sets(plan, "nvidia-driver") if takes(one, node()))
    for label, value in (
        ("nvidia.com/gpu.deploy.driver", "paused-for-driver-upgrade"),
        ("nvidia.com/gpu.deploy.driver", "pre-installed"),
        ("nvidia.com/gpu.deploy.operands", "false"),
    ):
        assert not takes(driver, node(**{label: value}))
    assert takes(driver, node(**{"nvidia.com/gpu.deploy.driver": ""}))
    validator = daemon_sets(plan, "nvidia-validator")[0]
    assert takes(validator, node())
    assert not takes(validator, node(**{"nvidia.com/gpu.deploy.operator-validator": "paused-for-mig-change"}))


def test_two_versions_live_side_by_side_told_apart_by_one_label() -> None:
    plan = run("driver", stack.fleet(stack.node_class()), pools=[TRAINING], extra_versions={"training": ["580.178.04"]})
    found = daemon_sets(plan, "nvidia-driver")
    versions = {}
    for wanted in ("", "580.178.04", "595.91.07"):
        labels = node("training") | ({"hwaccel.gpu/driver-version": wanted} if wanted else {})
        (one,) = [one for one in found if takes(one, labels)]
        versions[wanted] = one["metadata"]["labels"]["hwaccel.gpu/driver-version"]
    assert versions == {"": "595.91.07", "580.178.04": "580.178.04", "595.91.07": "595.91.07"}


def test_host_driver_pool_gets_toolkit_and_validator_only() -> None:
    plan = run("driver", stack.fleet(stack.node_class(host_driver="550.54.15")), pools=[TRAINING])
    assert plan["provider"] == "host"
    assert [one["metadata"]["name"] for one in daemon_sets(plan)] == ["nvidia-container-toolkit", "nvidia-validator"]
    assert not [one for one in plan["objects"] if one["metadata"]["name"].startswith("nvidia-driver")]
    told = run(
        "driver",
        stack.fleet(stack.node_class(host_driver="550.54.15")),
        pools=[TRAINING | {"driver": {"provider": "hwaccel"}}],
    )
    assert "may not replace the host's driver" in told["faults"][0]["text"]


def test_pools_are_served_by_their_provider() -> None:
    pools = [TRAINING, INFERENCE | {"driver": {"provider": "none"}}]
    plan = run("driver", stack.fleet(stack.node_class(), stack.node_class("inference")), pools=pools)
    assert plan["pools"] == {"training": "hwaccel", "inference": "none"}
    for one in daemon_sets(plan, "nvidia-validator") + daemon_sets(plan, "nvidia-container-toolkit"):
        assert takes(one, node("training"))
        assert not takes(one, node("inference"))


def test_foreign_cluster_policy_is_left_alone() -> None:
    foreign = {"cluster_policy": [{"kind": "ClusterPolicy", "name": "gpu"}]}
    assert run("driver", stack.fleet(stack.node_class(), existing=foreign))["objects"] == []
    assert run("device_plugin", stack.fleet(stack.node_class(), existing=foreign))["provider"] == "existing"
    assert run("driver", stack.fleet(stack.node_class(), existing=foreign), provider="hwaccel")["faults"]


def test_a_kernel_without_an_image_fails_its_gate_and_says_so() -> None:
    classes = [stack.node_class(), stack.node_class(kernel="6.12.0-arch1", os_id="arch", os_version="")]
    plan = run("driver", stack.fleet(*classes))
    assert not plan["faults"]
    refusing = [
        one
        for one in daemon_sets(plan, "nvidia-driver")
        if "args" in one["spec"]["template"]["spec"]["containers"][0]
        and "no driver image" in str(one["spec"]["template"]["spec"]["containers"][0]["args"])
    ]
    assert len(refusing) == 1
    assert any("arch" in note for note in plan["notes"])
    alone = run("driver", stack.fleet(classes[1]))
    assert "no GPU node can get a driver" in alone["faults"][0]["text"]


@pytest.mark.parametrize(
    ("provider", "refused"), [("", True), ("hwaccel", True), ("host", True), ("existing", False), ("none", False)]
)
def test_a_pool_of_talos_is_told_before_a_toolkit_would_fail_there(provider: str, refused: bool) -> None:
    talos = stack.node_class(kernel="6.12.0-talos", os_id="talos", os_version="1.9")
    training = TRAINING | ({"driver": {"provider": provider}} if provider else {})
    plan = run("driver", stack.fleet(talos, stack.node_class("inference")), pools=[training, INFERENCE])
    told = [fault for fault in plan["faults"] if fault["what"] == "Talos is not supported"]
    assert [fault["where"] for fault in told] == (["pools training"] if refused else [])
    if refused:
        assert "nvidia-open-gpu-kernel-modules" in told[0]["next_step"] and "provider none" in told[0]["next_step"]


def test_runtimes_get_a_toolkit_each() -> None:
    pools = [TRAINING, INFERENCE]
    plan = run("driver", stack.fleet(stack.node_class(), stack.node_class("inference", runtime="cri-o")), pools=pools)
    found = {one["metadata"]["name"]: one for one in daemon_sets(plan, "nvidia-container-toolkit")}
    assert set(found) == {"nvidia-container-toolkit-containerd", "nvidia-container-toolkit-cri-o"}
    env = {
        entry["name"]: entry.get("value")
        for entry in found["nvidia-container-toolkit-cri-o"]["spec"]["template"]["spec"]["containers"][0]["env"]
    }
    assert env["RUNTIME"] == "crio"
    assert "CONTAINERD_CONFIG" not in env
    assert takes(found["nvidia-container-toolkit-cri-o"], node("inference"))
    assert not takes(found["nvidia-container-toolkit-cri-o"], node("training"))


@pytest.mark.parametrize(
    ("distribution", "variables", "socket", "restart"),
    [
        ("kubernetes", {}, "/run/containerd", "systemd"),
        ("kubernetes", {"toolkit_env": {"RUNTIME_RESTART_MODE": "signal"}}, "/run/containerd", "signal"),
        # containerd is no unit of the host there.
        ("k3s", {}, "/run/k3s/containerd", None),
        ("kubernetes", {"runtime_socket": "/run/k0s/containerd.sock"}, "/run/k0s", None),
    ],
)
def test_distributions_are_data(
    distribution: str, variables: dict[str, t.Any], socket: str, restart: str | None
) -> None:
    plan = run(
        "driver",
        stack.fleet(stack.node_class(), platform={"distribution": distribution, "version": "v1.36.1"}),
        **variables,
    )
    spec = daemon_sets(plan, "nvidia-container-toolkit")[0]["spec"]["template"]["spec"]
    volumes = {one["name"]: one for one in spec["volumes"]}
    assert volumes["runtime-socket"]["hostPath"]["path"] == socket
    env = {one["name"]: one.get("value") for one in spec["containers"][0]["env"]}
    assert env.get("RUNTIME_RESTART_MODE") == restart


@pytest.mark.parametrize("distribution", ["kubernetes", "k3s", "rke2"])
@pytest.mark.parametrize(("foreign", "has_class"), [([], True), (["nvidia"], False), (["another"], True)])
def test_a_runtime_class_that_is_there_is_used(distribution: str, foreign: list[str], has_class: bool) -> None:
    """The cluster's word counts: whether K3s and RKE2 bring one depends on their version."""
    existing = {
        "runtime_class": [{"kind": "RuntimeClass", "namespace": "", "name": name, "image": ""} for name in foreign]
    }
    plan = run(
        "driver",
        stack.fleet(
            stack.node_class(), existing=existing, platform={"distribution": distribution, "version": "v1.36.1"}
        ),
    )
    assert any(one["kind"] == "RuntimeClass" for one in plan["objects"]) is has_class


def test_a_configuration_file_elsewhere_is_mounted_from_there() -> None:
    """For containerd alone: CRI-O reads drop-ins from where its package says."""
    fleet, pools = (
        stack.fleet(stack.node_class(), stack.node_class("inference", runtime="cri-o")),
        [TRAINING, INFERENCE],
    )
    folders = {}
    for one in daemon_sets(
        run("driver", fleet, pools=pools, runtime_config="/etc/k0s/containerd.d/nvidia.toml"),
        "nvidia-container-toolkit",
    ):
        spec = one["spec"]["template"]["spec"]
        main = spec["containers"][0]
        env = {entry["name"]: entry.get("value") for entry in main["env"]}
        folder = next(volume["hostPath"]["path"] for volume in spec["volumes"] if volume["name"] == "runtime-config")
        assert {mount["mountPath"] for mount in main["volumeMounts"] if mount["name"] == "runtime-config"} == {
            "/runtime/config-dir"
        }
        assert env.get("CONTAINERD_CONFIG", env["RUNTIME_CONFIG"]) == env["RUNTIME_CONFIG"]
        folders[env["RUNTIME"]] = folder, env["RUNTIME_CONFIG"]
    assert folders == {
        "containerd": ("/etc/k0s/containerd.d", "/runtime/config-dir/nvidia.toml"),
        "crio": ("/etc/crio", "/runtime/config-dir/config.toml"),
    }


def test_openshift_accounts_may_use_their_constraints() -> None:
    openshift = {"distribution": "openshift", "version": "v1.35.0"}
    used = {}
    for role in stack.ROLES:
        for one in run(role, stack.fleet(stack.node_class(), platform=openshift))["objects"]:
            if one["kind"] == "Role" and one["metadata"]["name"].endswith("-scc"):
                used[one["metadata"]["name"]] = one["rules"][0]["resourceNames"]
    assert used["nfd-master-scc"] == ["nonroot-v2"]
    assert used["nvidia-driver-scc"] == used["nvidia-device-plugin-scc"] == ["privileged"]


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({}, True),
        ({"source": "build"}, True),
        ({"provider": "host"}, False),
        ({"provider": "existing"}, False),
        ({"source": "precompiled", "precompiled_images": ["595-5.14.0-570.el9-rhcos4.20"]}, False),
    ],
)
def test_what_cannot_be_built_on_openshift_is_refused(settings: dict[str, t.Any], refused: bool) -> None:
    node_class = stack.node_class(kernel="5.14.0-570.el9", os_id="rhcos", os_version="4.20")
    openshift = {"distribution": "openshift", "version": "v1.33.0"}
    plan = run("driver", stack.fleet(node_class, platform=openshift), pools=[TRAINING], **settings)
    assert ("drivers cannot be built on openshift" in [fault["what"] for fault in plan["faults"]]) is refused
    if not refused:
        assert plan["faults"] == []


def test_old_clusters_go_without_the_admission_policy() -> None:
    def kinds(version: str) -> set[str]:
        return {
            one["kind"]
            for one in run("driver", stack.fleet(platform={"distribution": "kubernetes", "version": version}))[
                "objects"
            ]
        }

    assert "ValidatingAdmissionPolicy" in kinds("v1.33.0")
    assert "ValidatingAdmissionPolicy" not in kinds("v1.29.4")


@pytest.mark.parametrize(
    ("version", "told", "lenient"),
    [
        ("v1.29.4", "Kubernetes 1.29 has no admission policies: the driver manager may write data of every node", None),
        ("v1.30.1", "Kubernetes 1.30: the driver manager is only restricted to its own node", True),
        ("v1.31.9", "Kubernetes 1.31: the driver manager is only restricted to its own node", True),
        ("v1.32.0", "", False),
    ],
)
def test_the_guard_of_nodes_is_as_strict_as_a_version_allows_and_what_is_missing_is_told(
    version: str, told: str, lenient: bool | None
) -> None:
    plan = run(
        "driver",
        stack.fleet(stack.node_class(), platform={"distribution": "kubernetes", "version": version}),
        pools=[TRAINING],
    )
    assert [note.startswith(told) for note in plan["notes"] if "driver manager" in note] == ([True] if told else [])
    rules = [
        rule["expression"]
        for one in plan["objects"]
        if one["kind"] == "ValidatingAdmissionPolicy"
        for rule in one["spec"]["validations"]
    ]
    assert len(rules) == (0 if lenient is None else 4)
    assert [rule.startswith('variables.node == "" || (') for rule in rules] == (
        [] if lenient is None else [lenient, False, False, False]
    )


def test_builds_in_place_get_repositories_certificates_and_proxy() -> None:
    build = {"https_proxy": "http://proxy.example.com:3128", "repositories": "apt-sources", "certificates": "ca"}
    plan = run("driver", stack.fleet(stack.node_class(kernel="6.8.0-45-generic")), build=build)
    spec = next(one for one in daemon_sets(plan, "nvidia-driver") if takes(one, node(kernel="6.8.0-45-generic")))[
        "spec"
    ]["template"]["spec"]
    main = spec["containers"][0]
    env = {entry["name"]: entry.get("value") for entry in main["env"]}
    assert env["HTTPS_PROXY"] == env["https_proxy"] == "http://proxy.example.com:3128"
    mounts = {mount["name"]: mount["mountPath"] for mount in main["volumeMounts"]}
    assert mounts["repositories"] == "/etc/apt/sources.list.d"
    assert {volume["name"]: volume.get("configMap") for volume in spec["volumes"]}["certificates"] == {"name": "ca"}


def test_plan_without_a_cluster_takes_machines() -> None:
    machines = [{"kernel": "6.8.0-134-generic", "os_image": "Ubuntu 24.04.3 LTS"}]
    plan = run("driver", None, pools=[TRAINING | {"machines": machines}])
    assert [one for one in daemon_sets(plan, "nvidia-driver") if takes(one, node("training"))]
    assert plan["assumed"]
    assert [f"assumed: {one}" for one in plan["assumed"]] == [
        line for line in plan["messages"] if line not in plan["notes"]
    ]
    assert declared_pools([TRAINING | {"machines": machines}]) == [TRAINING]
    wrong = run("driver", None, pools=[TRAINING | {"machines": [{"os_image": "Ubuntu"}]}])
    assert "kernel is missing" in wrong["faults"][0]["text"]


@pytest.mark.parametrize(
    ("pools", "provider", "told"),
    [
        ([], "", ["no driver can be rendered"]),
        ([], "hwaccel", ["no driver can be rendered"]),
        ([], "existing", []),
        ([TRAINING], "", ["no driver can be rendered for pool training"]),
        ([TRAINING], "host", []),
    ],
)
def test_a_plan_without_a_cluster_is_refused_where_the_driver_would_be_missing(
    pools: list[dict[str, t.Any]], provider: str, told: list[str]
) -> None:
    faults = run("driver", None, pools=pools, provider=provider)["faults"]
    assert [fault["what"] for fault in faults] == told
    assert all("machines" in fault["next_step"] for fault in faults)
    assert run("driver", stack.fleet(), pools=pools, provider=provider)["faults"] == []


def test_the_plan_before_feature_discovery_is_the_plan_after_it() -> None:
    """Truthful check mode: declared pools give the same objects while GPUs are only assumed."""
    assumed = run("driver", stack.fleet(stack.node_class(gpu_present=False, gpu_assumed=True)), pools=[TRAINING])
    seen = run("driver", stack.fleet(stack.node_class()), pools=[TRAINING])
    assert assumed["objects"] == seen["objects"]
    assert assumed["assumed"]
    assert not seen["assumed"]


def test_a_driver_stays_while_a_node_is_still_labeled_with_its_kernel() -> None:
    plan = run("driver", stack.fleet(stack.node_class(nfd_kernel="6.8.0-57-generic")), pools=[TRAINING])
    found = daemon_sets(plan, "nvidia-driver")
    for kernel in ("6.8.0-134-generic", "6.8.0-57-generic"):
        (one,) = [one for one in found if takes(one, node("training", kernel))]
        assert "other-kernels" not in one["metadata"]["name"]
    assert any("6.8.0-57-generic stays" in note for note in plan["notes"])


def _driver_names(plan: dict[str, t.Any]) -> set[tuple[str, str]]:
    return {(one["kind"], one["metadata"]["name"]) for one in plan["objects"]}


def test_a_second_run_asks_for_what_the_first_made_where_a_driver_manager_has_met_the_hosts_driver() -> None:
    first = run("driver", stack.fleet(stack.node_class("default")))
    second = run("driver", stack.fleet(stack.node_class("default", host_driver="pre-installed")))
    assert _driver_names(first) == _driver_names(second)
    assert "declare provider host" in first["notes"][0]
    assert (second["provider"], second["faults"]) == ("host", [])
    assert second["notes"] == ["pool default: driver by host (detected driver pre-installed on the host)"]
    met = node(**{"nvidia.com/gpu.deploy.driver": "pre-installed"})
    assert not [one for one in daemon_sets(second, "nvidia-driver") if takes(one, met)]


@pytest.mark.parametrize("declared", [{"provider": "host"}, {"pools": [TRAINING | {"driver": {"provider": "host"}}]}])
def test_a_declared_driver_of_the_host_gets_none_of_ours(declared: dict[str, t.Any]) -> None:
    for host in ("", "pre-installed", "580.95.05"):
        pool = "training" if "pools" in declared else "default"
        plan = run("driver", stack.fleet(stack.node_class(pool, host_driver=host)), **declared)
        assert plan["provider"] == "host"
        assert daemon_sets(plan, "nvidia-driver") == []
        assert daemon_sets(plan, "nvidia-validator")


def test_nodes_that_no_declaration_holds_are_one_pool() -> None:
    """A fleet read under other declarations names pools that are none now; two "outside of the rest" would fight for the same nodes."""
    plan = run("driver", stack.fleet(stack.node_class("default"), stack.node_class("gone")), pools=[TRAINING])
    assert sum(takes(one, node("gone")) for one in daemon_sets(plan, "nvidia-driver")) == 1


# -- odd fleets

KERNELS = st.from_regex(r"[0-9]\.[0-9]{1,2}\.[0-9]{1,3}[-+_.a-zA-Z0-9]{0,40}", fullmatch=True)
CLASSES = st.builds(
    lambda pool, kernel, system, architecture, runtime, host: stack.node_class(
        pool,
        kernel,
        os_id=system[0],
        os_version=system[1],
        architecture=architecture,
        runtime=runtime,
        host_driver=host,
    ),
    st.sampled_from(["training", "inference", "default", "pool_with-a.very-long-name-that-goes-on-and-on-and-on"]),
    KERNELS,
    st.sampled_from([("ubuntu", "24.04"), ("ubuntu", "22.04"), ("rhel", "9.6"), ("talos", "1.9"), ("", "")]),
    st.sampled_from(["amd64", "arm64"]),
    st.sampled_from(["containerd", "cri-o", "docker", ""]),
    st.sampled_from(["", "", "550.54.15"]),
)
#: Parsed once: what is tested is the plan.
PARSED = stack.manifests("driver")
LABEL = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"
NAME = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"


@settings(deadline=None, max_examples=60)
@given(st.lists(CLASSES, max_size=6), st.sampled_from([[], [TRAINING], [TRAINING, INFERENCE]]))
def test_odd_fleets_give_objects_that_an_api_server_takes(
    classes: list[dict[str, t.Any]], pools: list[dict[str, t.Any]]
) -> None:
    plan = driver.plan(PARSED, stack.settings("driver", pools=pools), stack.fleet(*classes))
    names = [one["metadata"]["name"] for one in daemon_sets(plan)]
    assert len(names) == len(set(names))
    for one in daemon_sets(plan):
        assert stack.re_match(NAME, one["metadata"]["name"]), one["metadata"]["name"]
        assert len(one["metadata"]["name"]) <= 63
        labels = one["spec"]["template"]["metadata"]["labels"] | one["metadata"]["labels"]
        assert [value for value in labels.values() if not stack.re_match(LABEL, value)] == []
        terms = one["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]["nodeSelectorTerms"]
        assert 0 < len(terms) <= placement.MOST_TERMS
        for requirement in itertools.chain.from_iterable(term["matchExpressions"] for term in terms):
            assert (requirement["operator"] in ("In", "NotIn")) == bool(requirement.get("values"))
            assert [value for value in requirement.get("values", ()) if not stack.re_match(LABEL, value)] == []


@settings(deadline=None, max_examples=60)
@given(st.lists(CLASSES, max_size=5))
def test_no_node_is_taken_by_two_drivers(classes: list[dict[str, t.Any]]) -> None:
    found = daemon_sets(
        driver.plan(PARSED, stack.settings("driver", pools=[TRAINING, INFERENCE]), stack.fleet(*classes)),
        "nvidia-driver",
    )
    for one in classes:
        labels = node(
            one["pool"],
            placement.nfd_value(one["kernel"]),
            **{
                "feature.node.kubernetes.io/system-os_release.ID": one["os_id"],
                "feature.node.kubernetes.io/system-os_release.VERSION_ID": one["os_version"],
                "kubernetes.io/arch": one["architecture"],
            },
        )
        assert sum(takes(daemon_set, labels) for daemon_set in found) <= 1


@given(
    st.lists(
        st.sampled_from(["a=1", "a in (1,2)", "b", "!c", "d!=4", "e notin (x,y)"]), min_size=1, max_size=3, unique=True
    ),
    st.dictionaries(st.sampled_from("abcde"), st.sampled_from(["1", "2", "4", "x"])),
)
def test_outside_is_the_opposite_of_inside(parts: list[str], labels: dict[str, str]) -> None:
    pool = Pool("p", ",".join(parts))

    def within(terms: list[placement.Term]) -> bool:
        return any(all(holds(one, labels) for one in term) for term in terms)

    assert within(placement.pool_terms(pool)) != within(placement.outside([pool]))
