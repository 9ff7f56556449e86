# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`site` on real control planes: to schedulable GPUs, again without a write, predicted by check mode and shown by `render`.

Runtime: six runs of site, half of them in check mode, and two of render.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import functools
import json
import pathlib
import typing as t

import jsonschema
import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.tests.live.support import predictions, stolen, transcripts
from ansible_collections.hwaccel.gpu.tests.live.support.accounts import await_right
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import AGENTS, until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox
from ansible_collections.hwaccel.gpu.tests.live.support.site import ALL, Run, cluster, playbook

TOP = pathlib.Path(__file__).resolve().parents[2]
MakeSandbox = c.Callable[..., Sandbox]

GPU = {"product": "NVIDIA-H100-80GB-HBM3", "count": 8, "memory_mib": 81559}
FLEET: dict[str, t.Any] = {
    "time_scale": 0.02,
    "images": ["example.org/train:1"],
    "pools": [
        {
            "name": "training",
            "count": 3,
            "labels": {"pool": "training"},
            "kernel": "6.8.0-134-generic",
            "os_image": "Ubuntu 24.04.3 LTS",
            "gpu": {**GPU, "mig_capable": True},
            "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
        },
        {"name": "general", "count": 1},
    ],
}
POOLS = [{"name": "training", "selector": "pool=training", "gpu": GPU}]
WAIT = 240
#: Label of pods that users run.
JOB = {"job": "training"}


def variables(sandbox: Sandbox, **more: t.Any) -> dict[str, t.Any]:
    return cluster(
        sandbox.kubeconfig, **({"hwaccel_pools": POOLS, "hwaccel_wait_timeout": WAIT, "hwaccel_stages": ALL} | more)
    )


def client(sandbox: Sandbox) -> Client:
    return connect({"kubeconfig": sandbox.kubeconfig}, check_mode=False)


def allocatable(sandbox: Sandbox) -> dict[str, str]:
    found = client(sandbox)
    nodes = found.list(found.resource("v1", "Node")).items
    return {one["metadata"]["name"]: one["status"]["allocatable"].get("nvidia.com/gpu", "0") for one in nodes}


@contextlib.contextmanager
def hidden(*files: pathlib.Path) -> c.Iterator[None]:
    """Whoever asks for these files meanwhile finds none."""
    away = {file: file.with_name(f"hidden-{file.name}") for file in files}
    for file, place in away.items():
        file.rename(place)
    try:
        yield
        assert [file for file in files if file.exists()] == []
    finally:
        for file, place in away.items():
            place.rename(file)


@pytest.fixture(scope="module")
def first(make_sandbox: MakeSandbox) -> dict[str, t.Any]:
    """A check run on an empty cluster, and the real run that follows. Neither can read what the fleet was declared to be."""
    sandbox = make_sandbox(FLEET)
    audit = AuditLog(sandbox.audit_log)
    with hidden(sandbox.layout.fleet, sandbox.layout.record):
        planned = playbook("site", {"one": variables(sandbox)}, "--check", "--diff")
        written = audit.our_writes()
        done = playbook("site", {"one": variables(sandbox)}, "--diff")
    return {"sandbox": sandbox, "planned": planned, "written": written, "done": done}


#: Clusters that can be rendered; of the others it is said why not.
WELL = ("whole", "alone", "later")


@dataclasses.dataclass(frozen=True)
class Rendered:
    """hosts: variables of each cluster. folder: one folder for each."""

    run: Run
    hosts: dict[str, dict[str, t.Any]]
    folder: pathlib.Path

    def texts(self, host: str) -> dict[str, str]:
        """By file; {} where nothing was written."""
        return {path.name: path.read_text(encoding="utf-8") for path in (self.folder / host).glob("*")}

    def objects(self, host: str) -> dict[str, list[dict[str, t.Any]]]:
        return {name: [one for one in yaml.safe_load_all(text) if one] for name, text in self.texts(host).items()}


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    """All that is asked of `render`, a cluster for each question: as `first` would be, by itself, beside NFD of others, without machines, with a password."""
    folder = tmp_path_factory.mktemp("rendered")
    known = POOLS[0] | {"machines": [{"kernel": "6.8.0-134-generic", "os_image": "Ubuntu 24.04.3 LTS"}]}

    def host(**more: t.Any) -> dict[str, t.Any]:
        return cluster("/nowhere/kubeconfig", **({"hwaccel_pools": [known], "hwaccel_render_to": str(folder)} | more))

    unknown = host()
    del unknown["hwaccel_pools"]
    build = {"https_proxy": "http://bob:planted@proxy.example.com:3128"}
    hosts = {
        "whole": host(hwaccel_stages=ALL, hwaccel_distribution="kubernetes", hwaccel_kubernetes_version="1.36"),
        "alone": host(hwaccel_stages=ALL),
        "later": host(feature_discovery_provider="existing"),
        "unknown": unknown,
        "proxy": host(hwaccel_pools=[known | {"driver": {"source": "build"}}], driver_build=build),
    }
    run = playbook("render", hosts, "-vv", "--diff")
    assert {name for name in hosts if run.recap[name]["failures"]} == set(hosts) - set(WELL), run.stdout
    assert run.rc != 0
    return Rendered(run, hosts, folder)


def test_check_mode_writes_nothing_and_marks_what_it_assumes(first: dict[str, t.Any]) -> None:
    assert first["planned"].rc == 0, first["planned"].stdout
    assert [str(request) for request in first["written"]] == []
    assert "assumed: pool training: GPUs on 3 nodes with kernel 6.8.0-134-generic" in first["planned"].stdout


def test_the_real_run_does_what_was_predicted(first: dict[str, t.Any]) -> None:
    assert predictions.differences(first["planned"], first["done"]) == []
    assert len(predictions.actions(first["done"])) == 4
    assert predictions.marks(first["done"])["driver"]["switched"] == ["training-0", "training-1", "training-2"]


def test_what_check_mode_cannot_know_of_undeclared_pools_is_marked(make_sandbox: MakeSandbox) -> None:
    """GPUs are known once NFD has seen the nodes, of two container runtimes at that."""
    machine = {"kernel": "6.8.0-134-generic", "os_image": "Ubuntu 24.04.3 LTS", "gpu": GPU}
    sandbox = make_sandbox(
        {
            "time_scale": 0.02,
            "pools": [
                {"name": "training", "count": 2, "labels": {"pool": "training"}, **machine},
                {
                    "name": "inference",
                    "count": 1,
                    "labels": {"pool": "inference"},
                    "container_runtime": "cri-o://1.34.1",
                    **machine,
                },
                {"name": "general", "count": 1},
            ],
        }
    )
    undeclared = [{"name": name, "selector": f"pool={name}"} for name in ("training", "inference")]
    hosts = {"one": variables(sandbox, hwaccel_pools=undeclared)}
    planned = playbook("site", hosts, "--check", "--diff", warnings=["no node to judge"])
    done = playbook("site", hosts, "--diff")
    assert (planned.rc, done.rc) == (0, 0), planned.stdout + done.stdout
    assert predictions.marks(done)["driver"]["switched"] == ["inference-0", "training-0", "training-1"]
    names = {name for _kind, _namespace, name in predictions.shown(done)}
    assert {"nvidia-container-toolkit-containerd", "nvidia-container-toolkit-cri-o"} <= names
    created = r"done: .*: created DaemonSet \S+"
    assert (
        predictions.unmarked(
            planned,
            done,
            {
                r"pool (\S+): driver DaemonSets and labels nvidia\.com/gpu\.deploy\.\*": [
                    created + " nvidia-driver-{0}-.*",
                    r"done: gate driver: switched {0}-\d+",
                ],
                "container toolkits, until feature_discovery has labeled the nodes of default, inference, training": [
                    created + " nvidia-container-toolkit-.*"
                ],
            },
        )
        == []
    )


def test_rendered_files_agree_with_what_check_mode_shows(first: dict[str, t.Any], rendered: Rendered) -> None:
    shown, written = predictions.shown(first["planned"]), rendered.objects("whole")
    found = {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one
        for objects in written.values()
        for one in objects
    }
    assert found.keys() == shown.keys()
    assert [key for key, one in found.items() if not predictions.holds(shown[key], one)] == []


def test_every_gpu_can_be_scheduled(first: dict[str, t.Any]) -> None:
    assert first["done"].rc == 0, first["done"].stdout
    assert allocatable(first["sandbox"]) == {"general-0": "0", "training-0": "8", "training-1": "8", "training-2": "8"}
    summary = first["done"].summary["one"]
    assert summary["failed_nodes"] == []
    (row,) = [row for row in summary["pools"] if row["pool"] == "training"]
    assert (row["expected"], row["seen"], row["gates"]) == (
        24,
        24,
        ["features", "driver", "devices", "exporters", "validation"],
    )


def test_a_check_of_what_is_there_predicts_no_change(first: dict[str, t.Any]) -> None:
    checked = playbook("site", {"one": variables(first["sandbox"])}, "--check", "--diff")
    assert (checked.rc, checked.changed()) == (0, 0), checked.stdout


#: By account, the policy that holds it to its own node.
POLICIES = {
    "nfd-worker": "hwaccel-gpu-nfd-worker-own-node",
    "gpu-feature-discovery": "hwaccel-gpu-feature-discovery-own-node",
}


def test_a_stolen_token_writes_nothing_about_another_node(first: dict[str, t.Any], tmp_path: pathlib.Path) -> None:
    """Tokens as the kubelet gets them for the pods of training-0, which may do everything to NodeFeatures as long as it takes."""
    thief = stolen.Thief(first["sandbox"].kubeconfig, AGENTS, tmp_path)
    back = thief.widen()
    try:
        for account, policy in POLICIES.items():
            mine, other = thief.feature(account, "training-0"), thief.feature(account, "training-1")
            with_token, without = thief.on("training-0", account), thief.of_no_node(account)
            await_right(with_token, "deletecollection", stolen.FEATURES, AGENTS)

            def judged(ways: dict[str, c.Callable[[], t.Any]], policy: str = policy) -> dict[str, str]:
                return {way: stolen.outcome(policy, write) for way, write in ways.items()}

            every = dict.fromkeys(stolen.writes(with_token, other, "training-1"), stolen.DENIED)
            assert judged(stolen.writes(with_token, other, "training-1")) == every
            assert judged(stolen.writes(without, mine, "training-0")) == every
            # About its own node by the name that its program takes: another object would not be its own.
            own = judged(stolen.writes(with_token, mine, "training-0"))
            assert own == dict.fromkeys(every, stolen.ALLOWED) | {
                way: stolen.DENIED for way in every if way.startswith("create")
            }
            # Neither does its own object become another node's.
            body = {"metadata": {"labels": {stolen.NODE_NAME: "training-1"}}}
            taken = functools.partial(with_token.patch, stolen.FEATURES, mine["metadata"]["name"], AGENTS, body)
            assert stolen.outcome(policy, functools.partial(taken, dry_run=True)) == stolen.DENIED
    finally:
        back()
    driver = thief.on("training-0", "nvidia-driver")
    switch = {"metadata": {"labels": {"nvidia.com/gpu.deploy.device-plugin": "false"}}}
    told = {
        node: stolen.outcome(
            "hwaccel-gpu-driver-node-labels",
            functools.partial(driver.patch, stolen.NODE, node, "", switch, dry_run=True),
        )
        for node in ("training-0", "training-1", "general-0")
    }
    assert told == {"training-0": stolen.ALLOWED, "training-1": stolen.DENIED, "general-0": stolen.DENIED}


def test_a_second_run_after_a_check_writes_nothing_though_users_take_every_gpu(first: dict[str, t.Any]) -> None:
    sandbox = first["sandbox"]
    with every_gpu_taken(sandbox):
        audit, reads = AuditLog(sandbox.audit_log), AuditLog(sandbox.audit_log)
        run = playbook("site", {"one": variables(sandbox)})
        assert (run.rc, run.changed()) == (0, 0), run.stdout
        assert [str(request) for request in audit.our_writes()] == []
        agents = f"/api/v1/namespaces/{AGENTS}/pods?"
        lists = [request.uri.removeprefix(agents) for request in reads.ours() if request.uri.startswith(agents)]
        # node_info reads those of drivers, for their versions.
        assert [query for query in lists if "labelSelector" not in query] == ["includeObject=None&limit=500"] * 4
        assert set(job_phases(client(sandbox))) == {"Running"}
    lines = run.stdout.splitlines()
    assert "All 4 nodes passed the gates; nothing changed" in lines
    # Decisions are shown by the preflight, and not again by the stages.
    assert [lines.count(line) for line in lines if line.startswith("pool training: driver")] == [1, 1]
    # Three lines for each of the 21 plays on machines, which have none here: Ansible names every play.
    assert len(lines) <= 60 + 3 * 22, run.stdout
    transcripts.check("nothing-to-do", run.stdout)


PART_OF = "app.kubernetes.io/part-of"
#: Changes of others to objects of ten kinds, none of which the nodes notice: group, kind, namespace, name, and the field manager.
DRIFT = (
    ("apps", "Deployment", "hwaccel-gpu-system", "nfd-gc", "kubectl-scale"),
    ("", "Namespace", "", AGENTS, "kubectl-edit"),
    ("", "ServiceAccount", AGENTS, "nfd-worker", "argocd"),
    ("", "ConfigMap", AGENTS, "nfd-worker-conf", "helm"),
    ("rbac.authorization.k8s.io", "Role", AGENTS, "nfd-worker", "lens"),
    ("rbac.authorization.k8s.io", "RoleBinding", AGENTS, "nfd-worker", "terraform"),
    ("rbac.authorization.k8s.io", "ClusterRole", "", "hwaccel-gpu-nfd-gc", "rancher"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", "", "hwaccel-gpu-nfd-gc", "pulumi"),
    ("apiextensions.k8s.io", "CustomResourceDefinition", "", "nodefeatures.nfd.k8s-sigs.io", "kustomize-controller"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "", "hwaccel-gpu-nfd-worker-own-node", "kyverno"),
)


def test_drift_is_corrected_and_reported_with_the_field_and_who_changed_it(first: dict[str, t.Any]) -> None:
    others = client(first["sandbox"])
    for group, kind, namespace, name, manager in DRIFT:
        patch = {"spec": {"replicas": 2}} if kind == "Deployment" else {"metadata": {"labels": {PART_OF: manager}}}
        others.patch(others.resource_by_group(group, kind), name, namespace, patch, field_manager=manager)
    reads_only(first["sandbox"])
    leaves_the_rest(first["sandbox"])
    run = playbook("site", {"one": variables(first["sandbox"])}, "--tags", "feature_discovery")
    assert run.rc == 0, run.stdout[-6000:]
    assert "\nAll 4 nodes passed the gates; 10 objects changed; drift of 10 fields corrected\n" in run.stdout
    shown = run.stdout[run.stdout.index("\nDrift:\n") :].split("\n\n")[0].splitlines()
    expected, corrected = [], []
    for _group, kind, namespace, name, manager in DRIFT:
        path = "spec.replicas" if kind == "Deployment" else f"metadata.labels.{PART_OF}"
        corrected.append({"kind": kind, "namespace": namespace, "name": name, "path": path, "manager": manager})
        where = f"{namespace}/{name}" if namespace else name
        expected.append(f"  {kind} {where}: {path}, changed by {manager}")
    assert sorted(line for line in shown if line.startswith("  ")) == sorted(expected)
    assert sorted(run.summary["one"]["drift"], key=str) == sorted(corrected, key=str)
    transcripts.check("drift", transcripts.closing(run.stdout, "one"))


def reads_only(sandbox: Sandbox) -> None:
    """Status reports the drift, and changes nothing."""
    audit = AuditLog(sandbox.audit_log)
    run = playbook("status", {"one": variables(sandbox)}, "--tags", "feature_discovery")
    assert run.rc == 2, run.stdout[-6000:]
    assert "10 fields have drifted. Next: ansible-playbook hwaccel.gpu.site" in run.failures[-1]
    assert "10 objects would be changed; drift of 10 fields would be corrected" in run.failures[-1]
    assert (len(run.summary["one"]["drift"]), run.summary["one"]["succeeded"]) == (10, False)
    assert [str(request) for request in audit.our_writes()] == []


def leaves_the_rest(sandbox: Sandbox) -> None:
    """A run that is restricted to a pool does not correct objects that also others need."""
    audit = AuditLog(sandbox.audit_log)
    run = playbook(
        "site", {"one": variables(sandbox)}, "--tags", "feature_discovery", "-e", "hwaccel_only_pools=training"
    )
    assert run.rc == 2, run.stdout[-6000:]
    assert (
        "this run is restricted by hwaccel_only_pools, and would change objects that also others need"
        in run.failures[-1]
    )
    assert [str(request) for request in audit.our_writes()] == []


def test_the_status_of_a_healthy_cluster_is_written_as_it_is_documented(
    first: dict[str, t.Any], tmp_path: pathlib.Path
) -> None:
    sandbox, path = first["sandbox"], tmp_path / "status.json"
    audit = AuditLog(sandbox.audit_log)
    run = playbook("status", {"one": variables(sandbox)}, "-e", f"hwaccel_summary_file={path}")
    assert (run.rc, run.changed()) == (0, 0), run.stdout[-6000:]
    assert "Healthy; nothing would be changed" in run.stdout.splitlines()
    assert "Oldest proof: 20" in run.stdout
    assert [str(request) for request in audit.our_writes()] == []
    written = json.loads(path.read_text(encoding="utf-8"))
    schema = json.loads((TOP / "docs" / "summary.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(written)
    described = schema["properties"]["clusters"]["additionalProperties"]["properties"]
    # Only clusters of OpenShift have an installation.
    assert written["clusters"]["one"].keys() == described.keys() - {"installation"}
    assert written["clusters"] == run.summary
    page = (TOP / "docs" / "summary.md").read_text(encoding="utf-8")
    assert [key for key in run.summary["one"] if f"`{key}`" not in page] == []


def test_a_run_that_is_restricted_to_a_node_validates_only_this_node(first: dict[str, t.Any]) -> None:
    sandbox = first["sandbox"]
    audit = AuditLog(sandbox.audit_log)
    run = playbook("validate", {"one": variables(sandbox)}, "-e", "hwaccel_only_nodes=training-1")
    assert run.rc == 0, run.stdout[-6000:]
    assert [(pool["pool"], pool["nodes"]) for pool in run.summary["one"]["pools"]] == [("training", 1)]
    marked = [request for request in audit.our_writes() if request.resource == "nodes"]
    assert {request.name for request in marked} <= {"training-1"}


def test_names_that_the_cluster_does_not_have_are_refused_with_all_other_problems(first: dict[str, t.Any]) -> None:
    wrong = {
        "hwaccel_only_nodes": "training-11",
        "hwaccel_only_pools": "training1",
        "hwaccel_max_failed": "5m",
        "hwaccel_wait_timeout": "5 minutes",
        "hwaccel_excluded_nodes": ["training-3"],
    }
    run = playbook("preflight", {"one": variables(first["sandbox"], **wrong)})
    assert run.rc == 2, run.stdout[-6000:]
    transcripts.check("problems", transcripts.closing(run.stdout, "one"))
    for text in (
        "5 problems found; nothing was changed",
        "the cluster has no pool training1 (hwaccel_only_pools): did you mean training?",
        "the cluster has no node training-11 (hwaccel_only_nodes): did you mean training-1?",
    ):
        assert text in run.failures[-1]


@contextlib.contextmanager
def every_gpu_taken(sandbox: Sandbox) -> c.Iterator[None]:
    """By pods of users, one a node, that run."""
    users = client(sandbox)
    pod, nodes = users.resource("v1", "Pod"), [name for name, count in allocatable(sandbox).items() if count == "8"]
    assert len(nodes) == 3
    for name in nodes:
        container = {
            "name": "train",
            "image": "example.org/train:1",
            "command": ["sleep", "infinity"],
            "resources": {"limits": {"nvidia.com/gpu": "8"}},
        }
        spec = {
            "containers": [container],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
        }
        users.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"on-{name}", "namespace": "default", "labels": JOB},
                "spec": spec,
            },
            pod,
        )
    until(
        lambda: job_phases(users) == ["Running"] * len(nodes), "the users' pods to run", seen=lambda: job_phases(users)
    )
    try:
        yield
    finally:
        for name in nodes:
            users.delete(pod, f"on-{name}", "default")
        until(lambda: not job_phases(users), "the users' pods to go")


def job_phases(users: Client) -> list[str]:
    found = users.list(
        users.resource("v1", "Pod"), "default", label_selector=",".join(f"{key}={value}" for key, value in JOB.items())
    ).items
    return [one["status"]["phase"] for one in found]


def test_render_needs_no_cluster_and_agrees_with_itself(rendered: Rendered) -> None:
    written = rendered.objects("alone")
    assert sorted(written) == ["device-plugin.yaml", "driver.yaml", "feature-discovery.yaml", "monitoring.yaml"]
    drivers = [
        one
        for one in written["driver.yaml"]
        if one["kind"] == "DaemonSet" and one["metadata"]["name"].startswith("nvidia-driver-training")
    ]
    assert len(drivers) == 2
    again = playbook("render", {"alone": rendered.hosts["alone"]})
    assert (again.rc, again.changed(), rendered.run.changed("alone") > 0) == (0, 0, True), again.stdout
    assert "assumed: pool training: GPUs on its nodes with kernel 6.8.0-134-generic" in again.stdout.splitlines()


def test_a_render_that_knows_no_machine_is_refused(rendered: Rendered) -> None:
    (told,) = rendered.run.failures_of("unknown")
    assert (
        "no driver can be rendered (hwaccel_pools): no cluster is queried, and no pool with gpu is declared. Next: declare pools"
        in told
    )
    assert "driver.yaml" not in rendered.texts("unknown")


def test_a_password_of_a_proxy_is_refused_and_shown_nowhere(rendered: Rendered) -> None:
    assert "https_proxy contains a user or password (driver_build)" in "\n".join(rendered.run.failures_of("proxy"))
    texts = [rendered.run.stdout, *(text for host in rendered.hosts for text in rendered.texts(host).values())]
    assert len(texts) > len(WELL)
    assert not any("planted" in text for text in texts)


def test_the_first_stage_that_needs_a_namespace_writes_it(rendered: Rendered) -> None:
    def namespaces(host: str) -> list[tuple[str, str]]:
        return sorted(
            (file, one["metadata"]["name"])
            for file, objects in rendered.objects(host).items()
            for one in objects
            if one["kind"] == "Namespace"
        )

    assert namespaces("alone") == [
        ("feature-discovery.yaml", "hwaccel-gpu"),
        ("feature-discovery.yaml", "hwaccel-gpu-system"),
    ]
    assert namespaces("later") == [("driver.yaml", "hwaccel-gpu")]
