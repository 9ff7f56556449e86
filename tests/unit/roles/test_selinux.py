# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Access of every container to host paths, sockets and devices, decided by a compiled SELinux policy."""

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
#: A confined domain with an additional rule, to show that the policy decides and not a table of this test.
LOOSER = """(type looser_t) (typeattributeset domain (looser_t)) (typeattributeset container_domain (looser_t))
(allow looser_t boot_t (file (open read)))"""

Container = tuple[str, dict[str, t.Any], dict[str, t.Any]]


def everything() -> list[Container]:
    """Workload, pod and container, of plain Kubernetes and of OpenShift with CRI-O."""
    found = [one for role in stack.ROLES for one in containers(role)]
    for key, workload in PODS.items():
        spec = workload["spec"]["template"]["spec"]
        found += [(key[1], spec, one) for field in ("initContainers", "containers") for one in spec.get(field, ())]
    return found


def domain(spec: dict[str, t.Any], container: dict[str, t.Any]) -> str:
    """Both runtimes run privileged containers as spc_t, and others as container_t (contexts/lxc_contexts of container-selinux)."""
    own = container.get("securityContext") or {}
    declared = (own.get("seLinuxOptions") or (spec.get("securityContext") or {}).get("seLinuxOptions") or {}).get(
        "type"
    )
    return declared or ("spc_t" if own.get("privileged") else CONFINED)


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


# -- coverage


def test_every_host_path_of_every_pod_is_in_the_table() -> None:
    assert len(ALL) > 20
    assert {path for _domain, path, _mode in MOUNTS} - DATA["paths"].keys() == set()


def test_confined_containers_with_host_paths_have_known_accesses() -> None:
    confined = {name for name, spec, one in ALL if domain(spec, one) == CONFINED and host_paths(spec, one)}
    assert confined == DATA["confined"].keys()
    for name, spec, one in ALL:
        if name in confined:
            assert {row["path"] for row in DATA["confined"][name]} == host_paths(spec, one).keys()
            assert set(host_paths(spec, one).values()) == {"ro"}
    assert all(len(row.get("why") or row.get("denied")) > 15 for rows in DATA["confined"].values() for row in rows)


def test_only_node_agents_and_pods_that_wait_for_them_are_unconfined() -> None:
    unconfined = {name.partition("-training")[0] for name, spec, one in ALL if domain(spec, one) != CONFINED}
    assert unconfined == {
        "nvidia-driver",
        "nvidia-container-toolkit",
        "nvidia-validator",
        "nvidia-device-plugin",
        "gpu-feature-discovery",
        "nvidia-dcgm-exporter",
    }


# -- decisions of the policy


def test_paths_have_the_expected_types(policy: selinux.Policy) -> None:
    rows = [*DATA["paths"].values(), *DATA["devices"], *(row for rows in DATA["confined"].values() for row in rows)]
    expected = {row["file"]: row.get("context") or row["type"] for row in rows if "file" in row}
    assert {path: policy.context(path) for path in expected} == expected


@pytest.mark.parametrize(("source", "path", "mode"), [mount for mount in MOUNTS if mount[0] != CONFINED])
def test_an_unconfined_container_has_the_required_access(
    policy: selinux.Policy, source: str, path: str, mode: str
) -> None:
    row = DATA["paths"][path]
    for kind, required in READ.items():
        more = (
            WRITE[kind] if mode == "rw" and row["context"] not in ("sysfs_t",) else {"write"} if mode == "rw" else set()
        )
        assert policy.missing_permissions(source, row["context"], kind, required | more) == set()
    if "listens" in row:
        assert policy.missing_permissions(source, row["context"], "sock_file", {"write"}) == set()
        assert policy.missing_permissions(source, row["listens"], "unix_stream_socket", {"connectto"}) == set()


@pytest.mark.parametrize(
    "row", [row for rows in DATA["confined"].values() for row in rows], ids=lambda row: row["type"]
)
def test_a_confined_container_has_exactly_the_declared_access(policy: selinux.Policy, row: dict[str, t.Any]) -> None:
    missing = policy.missing_permissions(CONFINED, row["type"], row["class"], row["does"])
    assert missing == (set(row["does"]) if "denied" in row else set())


@pytest.mark.parametrize("row", DATA["devices"], ids=lambda row: row["type"])
def test_access_of_confined_pods_to_gpus(policy: selinux.Policy, row: dict[str, t.Any]) -> None:
    def missing(*booleans: str) -> set[str]:
        return policy.missing_permissions(CONFINED, row["type"], row["class"], row["does"], booleans)

    assert bool(missing()) == ("boolean" in row)
    if "boolean" in row:
        assert missing(row["boolean"]) == missing(row["narrower"]) == set()
        assert (
            policy.missing_permissions(CONFINED, "other_device_t", row["class"], row["does"], [row["boolean"]]) == set()
        ), "it allows access to every mounted device"
        assert policy.missing_permissions(
            CONFINED, "other_device_t", row["class"], row["does"], [row["narrower"]]
        ) == set(row["does"])


def test_a_confined_container_could_not_read_validation_files(policy: selinux.Policy) -> None:
    """This is why these containers have another type: the folder belongs to the host."""
    context = DATA["paths"]["/run/nvidia/validations"]["context"]
    assert policy.missing_permissions(CONFINED, context, "file", READ["file"]) == READ["file"]
    assert policy.missing_permissions("spc_t", context, "file", READ["file"]) == set()


def test_a_confined_container_cannot_connect_to_the_kubelet_socket(policy: selinux.Policy) -> None:
    row = DATA["paths"]["/var/lib/kubelet/pod-resources"]
    assert policy.missing_permissions(CONFINED, row["listens"], "unix_stream_socket", {"connectto"}) == {"connectto"}


def test_an_additional_rule_changes_the_decision(policy: selinux.Policy) -> None:
    assert policy.missing_permissions("looser_t", "boot_t", "file", ["open", "read"]) == set()
    assert policy.missing_permissions(CONFINED, "boot_t", "file", ["open", "read"]) == {"open", "read"}
    assert policy.missing_permissions("looser_t", "sysfs_t", "file", ["open", "read"]) == set(), (
        "all containers have this access"
    )
