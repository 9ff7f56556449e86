# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every host path, socket and device of every container, decided by a compiled SELinux policy that enforces."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.roles import selinux, stack
from ansible_collections.hwaccel.gpu.tests.unit.roles.test_manifests import containers
from ansible_collections.hwaccel.gpu.tests.unit.roles.test_openshift import PODS

DATA: dict[str, t.Any] = stack.load(selinux.HERE / "selinux.yml")
READ = {"dir": {"getattr", "open", "read", "search"}, "file": {"getattr", "open", "read"}}
WRITE = {"dir": {"add_name", "create", "remove_name", "write"}, "file": {"create", "unlink", "write"}}
CONFINED = "container_t"
#: A confined domain with a rule more: what is denied to others is denied by the policy, and not by a table here.
LOOSER = """(type looser_t) (typeattributeset domain (looser_t)) (typeattributeset container_domain (looser_t))
(allow looser_t boot_t (file (open read)))"""

Container = tuple[str, dict[str, t.Any], dict[str, t.Any]]


def everything() -> list[Container]:
    """Workload, pod and container, of plain Kubernetes and as OpenShift with CRI-O has them."""
    found = [one for role in stack.ROLES for one in containers(role)]
    for key, workload in PODS.items():
        spec = workload["spec"]["template"]["spec"]
        found += [(key[1], spec, one) for field in ("initContainers", "containers") for one in spec.get(field, ())]
    return found


def domain(spec: dict[str, t.Any], container: dict[str, t.Any]) -> str:
    """Both runtimes run what is privileged as spc_t, and others as container_t (contexts/lxc_contexts, where container-selinux writes it)."""
    own = container.get("securityContext") or {}
    told = (own.get("seLinuxOptions") or (spec.get("securityContext") or {}).get("seLinuxOptions") or {}).get("type")
    return told or ("spc_t" if own.get("privileged") else CONFINED)


def host_paths(spec: dict[str, t.Any], container: dict[str, t.Any]) -> dict[str, str]:
    hosts = {volume["name"]: volume["hostPath"]["path"] for volume in spec.get("volumes", ()) if "hostPath" in volume}
    return {
        hosts[mount["name"]]: "ro" if mount.get("readOnly") else "rw"
        for mount in container.get("volumeMounts", ())
        if mount["name"] in hosts
    }


ALL = everything()
MOUNTS = sorted(
    {(domain(spec, one), path, mode) for _name, spec, one in ALL for path, mode in host_paths(spec, one).items()}
)


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> selinux.Policy:
    root = selinux.place()
    if root is None:
        pytest.skip(f"a compiled SELinux policy is not here: .ci/run unpacks Debian's packages {selinux.PACKAGES}")
    return selinux.Policy(root, tmp_path_factory.mktemp("selinux"), LOOSER)


# -- what is decided


def test_every_host_path_of_every_pod_is_decided() -> None:
    assert len(ALL) > 20
    assert {path for _domain, path, _mode in MOUNTS} - DATA["paths"].keys() == set()


def test_confined_containers_with_host_paths_are_those_whose_accesses_are_known() -> None:
    confined = {name for name, spec, one in ALL if domain(spec, one) == CONFINED and host_paths(spec, one)}
    assert confined == DATA["confined"].keys()
    for name, spec, one in ALL:
        if name in confined:
            assert {row["path"] for row in DATA["confined"][name]} == host_paths(spec, one).keys()
            assert set(host_paths(spec, one).values()) == {"ro"}
    assert all(len(row.get("why") or row.get("denied")) > 15 for rows in DATA["confined"].values() for row in rows)


def test_only_node_agents_and_what_waits_for_them_are_unconfined() -> None:
    unconfined = {name.partition("-training")[0] for name, spec, one in ALL if domain(spec, one) != CONFINED}
    assert unconfined == {
        "nvidia-driver",
        "nvidia-container-toolkit",
        "nvidia-validator",
        "nvidia-device-plugin",
        "gpu-feature-discovery",
        "nvidia-dcgm-exporter",
    }


# -- what the policy says


def test_paths_have_the_types_that_are_told(policy: selinux.Policy) -> None:
    rows = [*DATA["paths"].values(), *DATA["devices"], *(row for rows in DATA["confined"].values() for row in rows)]
    told = {row["file"]: row.get("context") or row["type"] for row in rows if "file" in row}
    assert {path: policy.context(path) for path in told} == told


@pytest.mark.parametrize(("source", "path", "mode"), [mount for mount in MOUNTS if mount[0] != CONFINED])
def test_an_unconfined_container_may_do_what_it_is_there_for(
    policy: selinux.Policy, source: str, path: str, mode: str
) -> None:
    told = DATA["paths"][path]
    for kind, wanted in READ.items():
        more = (
            WRITE[kind]
            if mode == "rw" and told["context"] not in ("sysfs_t",)
            else {"write"}
            if mode == "rw"
            else set()
        )
        assert policy.lacks(source, told["context"], kind, wanted | more) == set()
    if "listens" in told:
        assert policy.lacks(source, told["context"], "sock_file", {"write"}) == set()
        assert policy.lacks(source, told["listens"], "unix_stream_socket", {"connectto"}) == set()


@pytest.mark.parametrize(
    "row", [row for rows in DATA["confined"].values() for row in rows], ids=lambda row: row["type"]
)
def test_a_confined_container_may_do_what_it_needs_and_no_more_is_told(
    policy: selinux.Policy, row: dict[str, t.Any]
) -> None:
    lacking = policy.lacks(CONFINED, row["type"], row["class"], row["does"])
    assert lacking == (set(row["does"]) if "denied" in row else set())


@pytest.mark.parametrize("row", DATA["devices"], ids=lambda row: row["type"])
def test_gpus_of_confined_pods(policy: selinux.Policy, row: dict[str, t.Any]) -> None:
    def lacking(*booleans: str) -> set[str]:
        return policy.lacks(CONFINED, row["type"], row["class"], row["does"], booleans)

    assert bool(lacking()) == ("boolean" in row)
    if "boolean" in row:
        assert lacking(row["boolean"]) == lacking(row["narrower"]) == set()
        assert policy.lacks(CONFINED, "other_device_t", row["class"], row["does"], [row["boolean"]]) == set(), (
            "it opens every device that is mounted"
        )
        assert policy.lacks(CONFINED, "other_device_t", row["class"], row["does"], [row["narrower"]]) == set(
            row["does"]
        )


def test_what_waits_for_a_proof_could_not_read_it_confined(policy: selinux.Policy) -> None:
    """Why these containers have a type of their own: the folder is the host's."""
    context = DATA["paths"]["/run/nvidia/validations"]["context"]
    assert policy.lacks(CONFINED, context, "file", READ["file"]) == READ["file"]
    assert policy.lacks("spc_t", context, "file", READ["file"]) == set()


def test_a_kubelet_socket_is_closed_to_the_confined(policy: selinux.Policy) -> None:
    told = DATA["paths"]["/var/lib/kubelet/pod-resources"]
    assert policy.lacks(CONFINED, told["listens"], "unix_stream_socket", {"connectto"}) == {"connectto"}


def test_a_rule_more_changes_the_decision(policy: selinux.Policy) -> None:
    assert policy.lacks("looser_t", "boot_t", "file", ["open", "read"]) == set()
    assert policy.lacks(CONFINED, "boot_t", "file", ["open", "read"]) == {"open", "read"}
    assert policy.lacks("looser_t", "sysfs_t", "file", ["open", "read"]) == set(), "what all containers may"
