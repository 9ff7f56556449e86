# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make lint`, `make test`, `make soak` and the targets of single folders (`make test-node`, ...) consist of, as data. check.py runs it."""

from __future__ import annotations

import dataclasses
import typing as t

#: Exit status of a command that this machine cannot run; the last line of its log says why.
CANNOT_RUN = 77
CORES = ("core-2.19", "core-2.16", "core-newest")


@dataclasses.dataclass(frozen=True)
class Job:
    """One command in one environment.

    after: jobs that must have passed before; heavy: uses the machine's cores itself, so it takes no slot and never holds others up;
    limit: seconds after which it is ended and has failed; sandbox: it gets a state folder of its own and its sandboxes are its own.
    """

    name: str
    profile: str
    command: tuple[str, ...]
    after: tuple[str, ...] = ()
    limit: int = 900
    heavy: bool = False
    sandbox: bool = False
    environment: tuple[tuple[str, str], ...] = ()


def pytest(*arguments: str) -> tuple[str, ...]:
    return ("python", "-m", "pytest", "-q", *arguments)


def tests(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"tests/{folder}/test_{name}.py" for name in names)


def rest(folder: str, jobs: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Arguments of pytest: tests of a folder that none of these jobs runs."""
    return (folder, *(f"--ignore={path}" for paths in jobs.values() for path in paths))


def isolated(*arguments: str) -> tuple[str, ...]:
    """pytest in network, mount and process namespaces of its own, where the machine lets us."""
    return ("tests/tools/isolated", *pytest(*arguments))


#: What tests that passed have printed, such as measured times and sizes, goes to the log as well.
PRINTED = "-raP"

# The collection keeps its scenarios at the top level: said here, or molecule proposes another place in each run.
MOLECULE = ("molecule", "--base-config", "molecule/config.yml", "test", "--all")
METAL = (
    *("tests/tools/isolated", "python", "-m", "ansible_collections.hwaccel.gpu.tests.boot.rig.scenarios"),
    *("molecule", "--base-config", "molecule/config.yml", "--base-config", "molecule/metal/base.yml", "test", "--all"),
)
SCENARIOS = (("MOLECULE_GLOB", "molecule/*/molecule.yml"),)
MACHINE_SCENARIOS = (("MOLECULE_GLOB", "molecule/metal/*/molecule.yml"),)


def mypy(package: str) -> tuple[str, ...]:
    # Two that write one cache at the same time end in an internal error.
    return ("mypy", "--cache-dir", f"../../../mypy-{package.rpartition('.')[2]}", "-p", package)


# Reads the definition and what it names, and writes what an image is built from.
EXECUTION_ENVIRONMENT = (
    "ansible-builder",
    "create",
    "--file",
    "examples/awx-project/execution-environment.yml",
    "--context",
    "../../../execution-environment",
)

#: Of what ansible-test asks these look at texts, by rules of style that no core reads: once. What a core or its Python would refuse, so documentation,
#: arguments, imports and what compiles, is asked on the oldest and the newest, as what one in between has alone no release of it kept.
OF_TEXTS = ("pep8", "pylint", "yamllint")


def sanity(option: str) -> tuple[str, ...]:
    return ("python", "tests/tools/sanity.py", *(word for test in OF_TEXTS for word in (option, test)))


#: Where the fleet agent's package lies.
AGENT = "{tree}/roles/sandbox/files"
LINT = (
    Job(
        "ruff",
        "dev",
        ("sh", "-c", "ruff format --no-cache --check . && ruff check --no-cache --output-format concise ."),
    ),
    Job("words", "dev", ("python", "tests/tools/words.py")),
    Job("mypy", "dev", mypy("ansible_collections.hwaccel.gpu.plugins"), environment=(("MYPYPATH", "{build}"),)),
    Job("mypy fleet agent", "dev", mypy("fleet_agent"), environment=(("MYPYPATH", AGENT),)),
    Job(
        "layers",
        "dev",
        ("lint-imports", "--no-cache", "--config", ".importlinter"),
        environment=(("PYTHONPATH", f"{{build}}:{AGENT}"),),
    ),
    Job(
        "ansible-lint",
        "dev",
        ("ansible-lint", "--strict", "--offline"),
        environment=(("GIT_CEILING_DIRECTORIES", "{build}"),),
    ),
    Job("stand-ins", "core-2.19", pytest("tests/node/components")),
    Job("changelog", "dev", ("antsibull-changelog", "lint")),
    Job("tarball", "dev", ("python", "tests/tools/tarball.py")),
    Job("galaxy-importer", "release", ("python", "tests/tools/importer.py")),
    Job("execution environment", "release", EXECUTION_ENVIRONMENT),
    Job("sanity core-2.19", "core-2.19", sanity("--test"), limit=1800),
    *(Job(f"sanity {core}", core, sanity("--skip-test"), limit=1800) for core in CORES[1:]),
)

#: What starts Ansible or stands on more of it than its errors: on the oldest and the newest core, as what one in between has alone no release of it
#: kept. test_cores.py finds what is missing.
ANSIBLE_FACING = tuple(
    f"tests/unit/{path}"
    for path in (
        "action",
        "filter",
        "inventory",
        "live_mutations/test_asked.py",
        "lookup",
        "module",
        *(f"modules/test_{m}.py" for m in ("ignition_info", "node_csr_approve")),
        *(f"modules/test_openshift_{m}.py" for m in ("archive", "credentials", "install", "wait")),
        *(f"plugin_utils/test_{one}.py" for one in ("direct", "installed", "lines", "looking", "manifests", "slices")),
        *(f"plugin_utils/test_{one}.py" for one in ("evaluation", "variables")),
        "machines/dns_pxe/test_preflight.py",
        "machines/boot/test_role.py",
        *(f"machines/test_{one}.py" for one in ("evidence", "witnesses")),
        "operations/node_gate/test_rights.py",
        "roles/test_cluster_openshift.py",
        "roles/test_validation_pod.py",
        "machines/runtime/test_role.py",
        *(
            f"repository/test_{name}.py"
            for name in (
                *("awx_project", "confirm", "cores", "examples", "inputs", "jetson", "machine_inputs", "quick"),
                *("balanced_anew", "openshift_inputs", "playbooks", "tags", "undefined"),
                *("bootstrap_known", "bootstrap_reused"),
            )
        ),
    )
)
#: What stands on parts of Python that change with it: TLS, HTTP, sockets and processes. Of other layers the newest Python sees that each is
#: imported without a warning (test_cores.py), and whole runs: their logic is the same on every core and Python, and runs once, on the oldest Python.
PYTHON_FACING = ("tests/unit/api", "tests/unit/sandbox", "tests/unit/state")
LAYERS = "unit layers"
#: They try all variables and playbooks on this core, and a few on the others.
ON_ONE_CORE = tuple(f"tests/unit/repository/test_{name}.py" for name in ("inputs", "machine_inputs", "undefined"))
ON_OTHERS = tuple(path for path in ANSIBLE_FACING if path not in ON_ONE_CORE)
UNIT = (
    Job(LAYERS, "core-2.19", pytest(*rest("tests/unit", {LAYERS: ON_OTHERS}), "-m", "not slow"), limit=1800),
    Job("unit core-2.16", "core-2.16", pytest(*ANSIBLE_FACING, "-m", "not slow"), limit=1800),
    Job("unit core-newest", "core-newest", pytest(*ANSIBLE_FACING, *PYTHON_FACING, "-m", "not slow"), limit=1800),
)

CONTROL_PLANE = Job("control plane", "demo", ("python", "tests/tools/control_plane.py"), limit=2400, heavy=True)
PREPARE = "ansible_collections.hwaccel.gpu.tests.node.rig.prepare"
#: Builds what the control plane's job builds too, behind a process namespace: neither would see that the other's compiler runs.
NODE_PARTS = Job(
    "parts of real nodes",
    "core-2.19",
    ("tests/tools/isolated", "--online", "python", "-m", PREPARE),
    (CONTROL_PLANE.name,),
    limit=2400,
    heavy=True,
)

#: What takes longest is told, beside what failed, and what needs most processor time.
SLOWEST = ("--durations=40", "--durations-min=10", "-p", "ansible_collections.hwaccel.gpu.tests.tools.expensive")

#: Whole runs of playbooks, each of many seconds: half of the time of the live tests.
_RUNS = (
    *("awx", "clusters", "coexistence", "credentials_lost", "dead_node"),
    *("gates", "many_clusters", "mutations", "running_drivers"),
)
_INSTALLATIONS = ("added", "alone", "clusters", "install", "machines", "secrets", "wait_rights")
_OF_RUNS = {"live runs": _RUNS, "live installations": tuple(f"openshift_{name}" for name in _INSTALLATIONS)}
WHOLE_RUNS = {name: tests("live", *files) for name, files in _OF_RUNS.items()}

_RUNTIMES = ("default_runtime", "node_runtime_changes", "node_runtime_pods", "node_runtime_repository")
#: Tests that use no fixture of the shared cluster's stack: beside those that do, as each waits most of its time.
MACHINES = {
    "real machines": tests("node", "drain", "node_runtime", "rig"),
    "real runtimes": tests("node", *_RUNTIMES),
}
NODE = tuple(
    Job(name, "core-2.19", isolated(*paths, "-m", "not slow", *SLOWEST), (NODE_PARTS.name,), limit=2400, sandbox=True)
    for name, paths in {"real node": rest("tests/node", MACHINES), **MACHINES}.items()
)

BOOT_PREPARE = PREPARE.replace("node", "boot")
BOOT_PARTS = Job(
    "parts of machines that boot",
    "metal",
    ("tests/tools/isolated", "--online", "python", "-m", BOOT_PREPARE),
    limit=2400,
    heavy=True,
)
#: Those of load balancers and of power wait most of their time: beside the others.
SERVICES = {
    "load balancers": tests(
        "boot", *(f"load_balancer{part}" for part in ("", "_firewall", "_load", "_pair", "_teardown"))
    ),
    "power": tests(
        "boot", *(f"machine_boot{part}" for part in ("", "_ipmi", "_libvirt", "_logs", "_turns", "_virtual"))
    ),
}
BOOT = (
    *(
        Job(name, "metal", isolated(*paths, "-m", "not slow", *SLOWEST), (BOOT_PARTS.name,), limit=2400)
        for name, paths in {"machines that boot": rest("tests/boot", SERVICES), **SERVICES}.items()
    ),
    Job("molecule metal", "metal", METAL, (BOOT_PARTS.name,), environment=MACHINE_SCENARIOS),
)

CLUSTER_PARTS = Job(
    "parts of clusters",
    "metal",
    ("tests/tools/isolated", "--online", "python", "-m", PREPARE.replace("node", "cluster")),
    (CONTROL_PLANE.name, NODE_PARTS.name, BOOT_PARTS.name),
    limit=2400,
    heavy=True,
)
_STAND_IN = tests("cluster", *(f"k3s_standin{part}" for part in ("", "_cluster", "_data")))
K3S = {"machines to K3s": ("tests/cluster/test_k3s.py", *_STAND_IN)}
#: Whole clusters for their own reasons, of which none is among those of make test.
_LONG_K3S = ("tests/cluster/test_k3s_ha.py", "tests/cluster/test_k3s_kills.py")
CLUSTER = tuple(
    Job(
        name,
        "metal",
        isolated(*paths, "-m", "not slow", *SLOWEST),
        (CLUSTER_PARTS.name,),
        limit=2400,
        sandbox=True,
    )
    for name, paths in {"machines to clusters": rest("tests/cluster", {**K3S, "long": _LONG_K3S}), **K3S}.items()
)

OPENSHIFT_PARTS = Job(
    "parts of OpenShift",
    "core-2.19",
    ("tests/tools/isolated", "--online", "python", "-m", PREPARE.replace("node", "openshift")),
    (CONTROL_PLANE.name, BOOT_PARTS.name),
    limit=2400,
)
OPENSHIFT_METAL = {"machines to OpenShift": ("tests/openshift/machines",)}
_APART = {"parts of an installation": tests("openshift", "chain_parts"), **OPENSHIFT_METAL}
OPENSHIFT = tuple(
    Job(name, profile, isolated(*paths, "-m", "not slow", *SLOWEST), (OPENSHIFT_PARTS.name,), limit=2400, sandbox=True)
    for name, paths in {"OpenShift": rest("tests/openshift", _APART), **_APART}.items()
    for profile in ("metal" if name in OPENSHIFT_METAL else "core-2.19",)
)

SITE = ("python", "tests/tools/demo.py", "twice", "--fleet", "molecule/shared/files/fleet.yml")
TWO_RUNTIMES = (*SITE[:-1], "tests/tools/two_runtimes.yml", "--pools", "declared")

LIVE = tuple(
    Job(name, "core-2.19", pytest(*paths, "-m", "not slow", *SLOWEST), ("control plane",), limit=4500, sandbox=True)
    for name, paths in {"live parts": rest("tests/live", WHOLE_RUNS), **WHOLE_RUNS}.items()
)
ROUNDS = (
    Job("molecule", "dev", MOLECULE, ("control plane",), limit=1200, sandbox=True, environment=SCENARIOS),
    Job("demo twice", "demo", ("python", "tests/tools/demo.py", "twice"), ("control plane",), limit=1200, sandbox=True),
    Job("site core-2.16", "core-2.16", SITE, ("control plane",), sandbox=True),
    Job("site core-newest", "core-newest", (*TWO_RUNTIMES, "--installed"), ("control plane",), sandbox=True),
    *(
        Job(f"gates {core}", core, pytest("tests/live/test_failed_gates.py"), ("control plane",), sandbox=True)
        for core in CORES[1:]
    ),
)

#: Control plane and node from nothing, a pod on it, and everything gone, ten times in a row.
BRING_UPS = "for _ in 1 2 3 4 5 6 7 8 9 10; do tests/tools/isolated python -m pytest -q tests/node/test_kubernetes_node.py || exit 1; done"


def slow(parts: dict[str, tuple[str, ...]], profile: str, needs: str, within: tuple[str, ...] = ()) -> tuple[Job, ...]:
    """Parts of make soak. What they measure is printed, and kept."""
    return tuple(
        Job(name, profile, (*within, *pytest(*paths, "-m", "slow", PRINTED)), (needs,), limit=SOAK_LIMIT, sandbox=True)
        for name, paths in parts.items()
    )


#: No part of make soak may last longer: one that is interrupted costs no more than this.
SOAK_LIMIT = 3600
_SLOW_LIVE = {
    "live mutations": ("tests/live/test_mutations.py",),
    "live manifest mutants": ("tests/live/test_manifest_mutants.py",),
    "live faults": ("tests/live/test_disturbed.py",),
    "live thousand nodes": ("tests/live/test_sandbox_scale.py",),
    "live approvals": ("tests/live/test_approvals_scale.py",),
    "live many clusters": tests("live", "controller_cost", "many_clusters", "openshift_machines"),
}
_SLOW_NODE = {
    "node runtimes": tests("node", "drain", *_RUNTIMES),
    "node simulator": ("tests/node/test_simulator.py",),
}
_SLOW_BOOT = {
    "boot virtual machines": SERVICES["power"],
    "boot firmware": ("tests/boot/test_uefi_boot.py",),
    "boot balancers": SERVICES["load balancers"],
}
_SLOW_CLUSTER = {
    "clusters by kubeadm": ("tests/cluster/test_kubeadm.py",),
    "clusters with GPUs": tests("cluster", "gpu_cluster", "gpu_gate"),
    "clusters verdicts": tests("cluster", "causes", "verdicts"),
    "clusters killed": ("tests/cluster/test_kills.py",),
    "clusters killed servers": ("tests/cluster/test_kills_servers.py",),
    "clusters from metal": ("tests/cluster/test_metal.py",),
    "clusters restored": ("tests/cluster/test_restore.py", "tests/cluster/test_restore_one.py"),
    "clusters of examples": ("tests/cluster/test_examples.py",),
    "clusters rotated": ("tests/cluster/test_rotation.py",),
    "clusters certificates": ("tests/cluster/test_serving_certificates.py",),
    "clusters encrypted": ("tests/cluster/test_encryption.py", "tests/cluster/test_encryption_one.py"),
    "clusters K3s": ("tests/cluster/test_k3s.py", "tests/cluster/test_k3s_ha.py"),
    "clusters K3s network": tests("cluster", "k3s_network", "k3s_stacks"),
    "clusters K3s air gap": ("tests/cluster/test_k3s_airgap.py",),
    "clusters K3s external datastore": ("tests/cluster/test_k3s_external.py",),
    "clusters K3s adopted": tests("cluster", "k3s_adopt", "k3s_adopt_servers", "k3s_datastore"),
    "clusters K3s GPUs": ("tests/cluster/test_k3s_gpus.py",),
    "clusters K3s on Jetson": ("tests/cluster/test_k3s_jetson.py",),
    "clusters K3s sites": ("tests/cluster/test_k3s_sites.py",),
    "clusters K3s killed": ("tests/cluster/test_k3s_kills.py",),
    "clusters K3s hardened": ("tests/cluster/test_k3s_hardening.py",),
    "clusters K3s restored": ("tests/cluster/test_k3s_restore.py",),
    "clusters K3s rotated": tests("cluster", "k3s_rotation", "k3s_rotation_one", "k3s_rotation_ca"),
    "clusters K3s stand-in": _STAND_IN,
}
#: What only they need is built for three minutes.
DOCKER_PARTS = dataclasses.replace(
    CLUSTER_PARTS,
    name="parts of K3s on Docker",
    command=(*CLUSTER_PARTS.command, "docker"),
    after=(CLUSTER_PARTS.name,),
)
_SLOW_DOCKER = {"clusters K3s on Docker": tests("cluster", "k3s_docker", "k3s_docker_gpus")}
#: Computers that become a cluster. Ten times in a row that of make test.
_SLOW_OPENSHIFT = {
    f"machines to OpenShift {what}": tests("openshift/machines", name)
    for what, name in {"on day 2": "day_2", "killed": "kills", "six": "six"}.items()
}
CHAINS = "for _ in 1 2 3 4 5; do tests/tools/isolated python -m pytest -q -raP -m 'not slow' tests/openshift/machines || exit 1; done"
ISOLATED = ("tests/tools/isolated",)
SOAK_LIVE = slow(_SLOW_LIVE, "core-2.19", CONTROL_PLANE.name)
SOAK_NODE = (
    *slow({**_SLOW_NODE, "node stack": rest("tests/node", _SLOW_NODE)}, "core-2.19", NODE_PARTS.name, ISOLATED),
    Job("node bring-ups", "core-2.19", ("sh", "-c", BRING_UPS), (NODE_PARTS.name,), limit=SOAK_LIMIT, sandbox=True),
)
SOAK_BOOT = slow({**_SLOW_BOOT, "boot services": rest("tests/boot", _SLOW_BOOT)}, "metal", BOOT_PARTS.name, ISOLATED)
_OTHERS = {"clusters": rest("tests/cluster", {**_SLOW_CLUSTER, **_SLOW_DOCKER})}
SOAK_CLUSTER = (
    *slow({**_SLOW_CLUSTER, **_OTHERS}, "metal", CLUSTER_PARTS.name, ISOLATED),
    *slow(_SLOW_DOCKER, "metal", DOCKER_PARTS.name, ISOLATED),
)
SOAK_OPENSHIFT = (
    *slow(_SLOW_OPENSHIFT, "metal", OPENSHIFT_PARTS.name, ISOLATED),
    *(
        Job(f"machines to OpenShift {half} five", "metal", ("sh", "-c", CHAINS), (OPENSHIFT_PARTS.name,), SOAK_LIMIT)
        for half in ("first", "second")
    ),
)
FRESH = tuple(
    Job(
        f"fresh {name}",
        "demo",
        ("tests/tools/fresh_machine",),
        limit=SOAK_LIMIT,
        environment=(("TARGETS", targets), *others),
    )
    for name, targets, *others in (("demo", "demo demo demo-down"), ("test", "test", ("SHARE_CONTROL_PLANE", "1")))
)
#: The whole of make test, three times in a row.
LOADED = tuple(
    Job(f"loaded {name}", "demo", ("tests/tools/loaded",), limit=SOAK_LIMIT) for name in ("first", "second", "third")
)
_BENCH = ("python", "tests/bench/bench.py", "--nodes", "1000")
#: Parts of make soak, one after the other: some measure. None needs another.
SOAK = (
    Job("unit schedules", "core-2.19", pytest("tests/unit", "-m", "slow", PRINTED), limit=SOAK_LIMIT),
    Job(
        "mutants",
        "mutants",
        ("python", "-m", "ansible_collections.hwaccel.gpu.tests.mutants.mutants", "run", "tests/unit"),
        limit=SOAK_LIMIT,
    ),
    *SOAK_LIVE,
    *SOAK_NODE,
    *SOAK_BOOT,
    *SOAK_CLUSTER,
    *SOAK_OPENSHIFT,
    Job("bench", "core-2.19", _BENCH, (CONTROL_PLANE.name,), limit=SOAK_LIMIT, sandbox=True),
    *FRESH,
    *LOADED,
)

#: In a whole run the layers try the containerd that the rig builds; alone they say that there is none. The others fill the time until it is built.
UNIT_LATER = tuple(dataclasses.replace(job, after=(NODE_PARTS.name,)) if job.name == LAYERS else job for job in UNIT)

#: A whole run has them among its unit and live tests.
_UNITS = ("tests/unit/approval", "tests/unit/openshift", "tests/unit/machines/openshift")
_APPROVALS = pytest("tests/live/test_approvals.py", *_UNITS, "-m", "not slow")
APPROVALS = Job("approvals", "core-2.19", _APPROVALS, (CONTROL_PLANE.name,), sandbox=True)

#: check.py starts the longest first, by what they cost (budgets.json).
SUITES = {
    "lint": LINT,
    "node": (CONTROL_PLANE, NODE_PARTS, *NODE),
    "boot": (BOOT_PARTS, *BOOT),
    "cluster": (CONTROL_PLANE, NODE_PARTS, BOOT_PARTS, CLUSTER_PARTS, *CLUSTER),
    "openshift": (CONTROL_PLANE, BOOT_PARTS, OPENSHIFT_PARTS, *OPENSHIFT, APPROVALS),
    "soak": (CONTROL_PLANE, NODE_PARTS, BOOT_PARTS, CLUSTER_PARTS, DOCKER_PARTS, OPENSHIFT_PARTS, *SOAK),
    "all": (
        CONTROL_PLANE,
        NODE_PARTS,
        BOOT_PARTS,
        CLUSTER_PARTS,
        OPENSHIFT_PARTS,
        *CLUSTER,
        *LIVE,
        *BOOT,
        *NODE,
        *OPENSHIFT,
        *LINT,
        *UNIT_LATER,
        *ROUNDS,
    ),
}


def with_needed(jobs: t.Iterable[Job], suite: str) -> tuple[Job, ...]:
    """Them, and whatever must have passed before them, in the suite's order."""
    named = {job.name: job for job in SUITES[suite]}
    wanted = {job.name for job in jobs}
    while more := {name for job in wanted for name in named[job].after} - wanted:
        wanted |= more
    return tuple(job for job in SUITES[suite] if job.name in wanted)
