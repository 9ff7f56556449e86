# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of the real programs, and that the simulated ones accept and request no more than these."""

from __future__ import annotations

import pathlib
import re

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import container, log
from fleet_agent.programs import registry, tables
from fleet_agent.programs.flags import Refused

FOLDER = pathlib.Path(tables.FOLDER)
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "klog")
#: Samples, and a Python that runs our own script: none has flags or variables of its own.
WITHOUT = {"vectorAdd", "deviceQuery", "python", "python3", "pause"}
PLUGIN = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"
NFD = "registry.k8s.io/nfd/node-feature-discovery:v0.19.0"
TOOLKIT = "nvcr.io/nvidia/k8s/container-toolkit:v1.20.0"
OPERATOR = "nvcr.io/nvidia/gpu-operator:v26.7.0"
MANAGER = "nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.12.0"
DRIVER = "nvcr.io/nvidia/driver:595.91.07-ubuntu24.04"
EXPORTER = "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless"


def table(program):
    found = tables.table_of(program)
    assert found is not None
    return found


def test_every_simulated_program_has_a_table():
    known = {name for programs in registry.PROGRAMS.values() for name in programs} - WITHOUT
    assert {name for name in known if tables.table_of(name) is None} == set()
    assert {tables.table_of(name).program for name in known} == set(PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_table_names_its_source_and_that_of_each_call(program):
    found = table(program)
    assert re.search(r"(v\d+\.\d+\.\d+|[0-9a-f]{7})", found.source)
    assert all(re.search(r"\.go(:\d+|, \w+)", call.source) or call.source.endswith(".go") for call in found.calls)
    conditions = {name for call in found.calls for name, _value in call.condition}
    assert {name for name in conditions if name not in found.by_name and "." not in name and name != "token"} == set()


def test_no_simulated_program_reads_the_environment_past_its_table():
    """all_reduce.py runs a script of this collection, device_query.py prints how it was called, and tables.py is what reads them."""
    sources = pathlib.Path(registry.__file__).parent.glob("*.py")
    found = {path.name for path in sources if re.search(r"\bproc\.(env|argv)\b", path.read_text(encoding="utf-8"))}
    assert found == {"all_reduce.py", "device_query.py", "tables.py"}


def test_a_name_that_is_not_in_the_table_is_an_error_of_the_simulation():
    settings = tables.read(table("nfd-worker"), ["nfd-worker"], {})
    with pytest.raises(tables.Unknown, match="has no flag prot"):
        settings["prot"]
    with pytest.raises(tables.Unknown, match="does not read NODENAME"):
        settings.variable("NODENAME")
    with pytest.raises(tables.Unknown, match="does not delete nodes"):
        tables.confirm(settings, ("delete", "", "nodes"))


@pytest.mark.parametrize(
    ("method", "path", "request_"),
    [
        ("GET", "/api/v1/nodes", ("list", "", "nodes")),
        ("GET", "/api/v1/nodes/n0", ("get", "", "nodes")),
        ("PATCH", "/api/v1/nodes/n0/status", ("patch", "", "nodes/status")),
        ("GET", "/api/v1/namespaces/ns", ("get", "", "namespaces")),
        ("GET", "/api/v1/namespaces", ("list", "", "namespaces")),
        ("POST", "/api/v1/namespaces/ns/pods/p/eviction", ("create", "", "pods/eviction")),
        (
            "PUT",
            "/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/ns/nodefeatures/n",
            ("update", "nfd.k8s-sigs.io", "nodefeatures"),
        ),
        (
            "DELETE",
            "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies/n",
            ("delete", "topology.node.k8s.io", "noderesourcetopologies"),
        ),
    ],
)
def test_a_request_has_the_words_of_rbac(method, path, request_):
    assert tables.request_of(method, path) == request_


@pytest.mark.parametrize(
    ("program", "argv", "env", "name", "value"),
    [
        ("nvidia-device-plugin", [], {}, "device-list-strategy", ("envvar",)),
        (
            "nvidia-device-plugin",
            [],
            {"DEVICE_LIST_STRATEGY": "cdi-annotations, cdi-cri"},
            "device-list-strategy",
            ("cdi-annotations", "cdi-cri"),
        ),
        (
            "nvidia-device-plugin",
            ["--nvidia-ctk-path=/a"],
            {"NVIDIA_CDI_HOOK_PATH": "/b"},
            "nvidia-cdi-hook-path",
            "/a",
        ),
        ("nvidia-device-plugin", [], {"NVIDIA_CTK_PATH": "/c"}, "nvidia-cdi-hook-path", "/c"),
        # Go's Getenv finds an empty variable: a string is empty, a bool false.
        ("nvidia-device-plugin", [], {"MIG_STRATEGY": ""}, "mig-strategy", ""),
        ("nvidia-device-plugin", [], {"FAIL_ON_INIT_ERROR": ""}, "fail-on-init-error", False),
        # A misspelt variable is none.
        ("nvidia-device-plugin", [], {"MIG_STRATEGIE": "mixed"}, "mig-strategy", "none"),
        ("gpu-feature-discovery", [], {"GFD_SLEEP_INTERVAL": "1m30s"}, "sleep-interval", 90.0),
        ("gpu-feature-discovery", ["-o", "/x"], {}, "output-file", "/x"),
        ("nvidia-toolkit", [], {"CDI_ENABLED": "T"}, "cdi-enabled", True),
        ("nvidia-toolkit", ["word", "--root", "/opt"], {}, "toolkit-install-dir", "/opt"),
        ("nvidia-toolkit", [], {"CREATE_DEVICE_NODES": ""}, "create-device-nodes", ("control",)),
        ("nvidia-validator", ["-c", "driver"], {"COMPONENT": "cuda"}, "component", "driver"),
        ("nfd-worker", ["-port=8081"], {"PORT": "1"}, "port", 8081),
        ("nfd-worker", ["--no-publish"], {}, "no-publish", True),
        ("nfd-gc", ["-gc-interval", "2h"], {}, "gc-interval", 7200.0),
        ("dcgm-exporter", ["-a", ":1"], {"DCGM_EXPORTER_LISTEN": ":2"}, "address", ":1"),
    ],
)
def test_a_setting_is_read_as_the_real_program_reads_it(program, argv, env, name, value):
    assert tables.read(table(program), [program, *argv], env)[name] == value


@pytest.mark.parametrize(
    ("program", "argv", "env", "message"),
    [
        ("nvidia-device-plugin", ["--mig-strategie=none"], {}, "flag provided but not defined: -mig-strategie"),
        ("nvidia-device-plugin", ["--mig-strategy"], {}, "flag needs an argument: -mig-strategy"),
        (
            "nvidia-device-plugin",
            ["--pass-device-specs=ja"],
            {},
            'invalid boolean value "ja" for -pass-device-specs: parse error',
        ),
        (
            "nvidia-device-plugin",
            [],
            {"PASS_DEVICE_SPECS": "ja"},
            'could not parse "ja" as bool value from environment variable "PASS_DEVICE_SPECS" for flag pass-device-specs: '
            'strconv.ParseBool: parsing "ja": invalid syntax',
        ),
        (
            "gpu-feature-discovery",
            [],
            {"GFD_SLEEP_INTERVAL": "60"},
            'could not parse "60" from environment variable "GFD_SLEEP_INTERVAL" as value for flag sleep-interval: time: missing unit in duration "60"',
        ),
        ("driver-manager", ["uninstall_driver"], {}, 'Required flag "node-name" not set'),
        ("nvidia-toolkit", ["--rot=/a"], {}, "flag provided but not defined: -rot"),
        (
            "nvidia-toolkit",
            ["--nri-plugin-index", "x"],
            {},
            'invalid value "x" for flag -nri-plugin-index: strconv.ParseUint: parsing "x": invalid syntax',
        ),
        (
            "nvidia-toolkit",
            [],
            {"CDI_ENABLED": "yes"},
            'could not parse "yes" as bool value from environment variable "CDI_ENABLED" for flag cdi-enabled: parse error',
        ),
        (
            "nvidia-validator",
            [],
            {"SLEEP_INTERVAL_SECONDS": "5s"},
            'could not parse "5s" as int value from environment variable "SLEEP_INTERVAL_SECONDS" for flag sleep-interval-seconds: '
            'strconv.ParseInt: parsing "5s": invalid syntax',
        ),
        ("nfd-worker", ["-prot=8080"], {}, "flag provided but not defined: -prot"),
        ("nfd-worker", ["-port=http"], {}, 'invalid value "http" for flag -port: parse error'),
        ("nfd-master", ["prune"], {}, "unknown command line argument: prune"),
        ("dcgm-exporter", ["-c", "1s"], {}, 'invalid value "1s" for flag -c: parse error'),
    ],
)
def test_what_the_real_program_does_not_accept(program, argv, env, message):
    with pytest.raises(Refused) as refused:
        tables.read(table(program), [program, *argv], env)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("image", "command", "code", "message"),
    [
        (PLUGIN, ["nvidia-device-plugin", "--x"], 1, "E main.go] flag provided but not defined: -x"),
        (PLUGIN, ["gpu-feature-discovery", "--x"], 1, "E main.go] flag provided but not defined: -x"),
        (PLUGIN, ["config-manager", "--x"], 1, "E main.go] flag provided but not defined: -x"),
        (PLUGIN, ["config-manager"], 1, "invalid <node-name>: must not be empty string"),
        (
            TOOLKIT,
            ["nvidia-toolkit", "--x"],
            1,
            "error running nvidia-ctk-installer: flag provided but not defined: -x",
        ),
        (
            TOOLKIT,
            ["nvidia-toolkit", "-r", "podman"],
            1,
            'invalid runtime "podman"; expected one of [containerd | crio | docker]',
        ),
        (TOOLKIT, ["nvidia-toolkit", "--pid-file", "/a/b"], 1, "invalid toolkit.pid path /a/b"),
        (TOOLKIT, ["nvidia-toolkit", "--cdi-kind", "gpu"], 1, "invalid CDI vendor name"),
        (OPERATOR, ["nvidia-validator", "--x"], 1, "Error: flag provided but not defined: -x"),
        (OPERATOR, ["nvidia-validator"], 1, "invalid -c <component-name> flag: must not be empty string"),
        (OPERATOR, ["nvidia-validator", "-c", "drivr"], 1, "invalid -c <component-name> flag value: drivr"),
        (OPERATOR, ["nvidia-validator", "-c", "plugin"], 1, "invalid -n <node-name> flag"),
        (OPERATOR, ["gpu-operator", "-x"], 2, "Usage of gpu-operator:"),
        (MANAGER, ["driver-manager", "--x"], 1, "level=fatal msg=flag provided but not defined: -x"),
        (DRIVER, ["nvidia-driver", "init", "--x"], 1, "getopt: unrecognized option '--x'"),
        (NFD, ["nfd-worker", "-x"], 2, "Usage of nfd-worker:"),
        (NFD, ["nfd-master", "-x"], 2, "flag provided but not defined: -x"),
        (NFD, ["nfd-gc", "x"], 2, "unknown command line argument: x"),
        (NFD, ["nfd-topology-updater"], 1, "due to empty NODE_ADDRESS environment"),
        (EXPORTER, ["dcgm-exporter", "--xx"], 1, "flag provided but not defined: -xx"),
        (
            EXPORTER,
            ["dcgm-exporter", "-d", "h"],
            1,
            "the only valid options preceding ':<range>' are 'g' or 'i', but found 'h'",
        ),
        (EXPORTER, ["dcgm-exporter", "--dcgm-log-level", "LOUD"], 1, "invalid dcgm-log-level parameter value: LOUD"),
        (
            PLUGIN,
            ["nvidia-device-plugin", "--help"],
            0,
            "--driver-root-ctr-path, --container-driver-root [$DRIVER_ROOT_CTR_PATH, $CONTAINER_DRIVER_ROOT]",
        ),
    ],
)
def test_a_wrong_command_line_ends_the_program_as_the_real_one(world, image, command, code, message):
    pod = world.pod(world.node(), {"restartPolicy": "Never", "containers": [container("c", image, command)]})
    world.until(lambda: "terminated" in pod.main[0].state)
    assert pod.main[0].state["terminated"]["exitCode"] == code
    assert message in log(pod.main[0])


def test_a_request_beside_the_table_fails_the_container(world, monkeypatch):
    """The simulation would otherwise use a right that the real program does not need."""
    monkeypatch.setattr(tables.Table, "has_call", lambda *_words: False)
    pod = world.pod(world.node(), {"restartPolicy": "Never", "containers": [container("c", NFD, ["nfd-gc"])]})
    world.until(lambda: "terminated" in pod.main[0].state)
    assert "nfd-gc does not list nodes" in log(pod.main[0])


def test_a_pod_without_a_token_sends_no_request(world):
    spec = {"automountServiceAccountToken": False, "restartPolicy": "Never"}
    pod = world.pod(world.node(), {**spec, "containers": [container("c", NFD, ["nfd-gc"])]})
    world.until(lambda: "terminated" in pod.main[0].state)
    assert "serviceaccount/token: no such file or directory" in log(pod.main[0])
