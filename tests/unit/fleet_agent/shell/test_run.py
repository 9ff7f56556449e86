# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shell language of manifests."""

from __future__ import annotations

import pytest

from fleet_agent.shell.parse import ShellSyntax, parse


def run(world, script, image="example.com/some/image:1", **spec):
    """(exit code, log lines) of a container that runs the script once."""
    kubelet = world.nodes.get("n0") or world.node()
    pod = world.pod(
        kubelet,
        {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": image, "command": ["sh", "-c", script], **spec}],
        },
    )
    world.until(lambda: "terminated" in pod.main[0].state)
    return pod.main[0].state["terminated"]["exitCode"], [line.partition(" ")[2] for line in pod.main[0].log][1:]


@pytest.mark.parametrize(
    ("script", "lines"),
    [
        ("echo one; echo 'two  three' \"four\"", ["one", "two  three four"]),
        ("x=5; echo ${x} $x-${y:-none} $((x * 2 + 1))", ["5 5-none 11"]),
        ("for i in $(seq 1 3); do echo n$i; done", ["n1", "n2", "n3"]),
        ("i=0; while [ $i -lt 3 ]; do i=$((i+1)); done; echo $i", ["3"]),
        ("for i in 1 2 3; do if [ $i = 2 ]; then break; fi; echo $i; false; done; echo $?", ["1", "0"]),
        ("for i in 1 2; do if [ $i = 2 ]; then continue; fi; echo $i; false; done; echo $?", ["1", "0"]),
        ("while true; do for i in 1 2; do echo $i; break 2; done; echo never; done; echo $?", ["1", "0"]),
        ("f() { for i in 1 2; do return 4; done; }; f; echo $?", ["4"]),
        ("if false; then echo a; elif [ 1 = 1 ]; then echo b; else echo c; fi", ["b"]),
        ("true && echo yes || echo no; false && echo yes || echo no", ["yes", "no"]),
        ("case abc in x|a*) echo hit;; *) echo miss;; esac", ["hit"]),
        ("f() { echo got $1; return 3; }; f x; echo $?", ["got x", "3"]),
        ("echo 'a b\nc d' | grep c | awk '{print $2}'", ["d"]),
        (
            "printf 'A=%s\\nB=%s\\n' 1 2 > /tmp/f; . /tmp/f; echo $A$B; grep -q '^B=2$' /tmp/f && echo found",
            ["12", "found"],
        ),
        ("cat <<E\nhello ${NAME:-you}\nE\n", ["hello you"]),
        ("(x=1; echo $x); echo end$x", ["1", "end"]),
        ("echo a | while read line; do echo got $line; done", ["got a"]),
        ("v=a.b.c; echo ${v##*.} ${v%.*} ${#v}", ["c a.b 5"]),
        (
            "{ echo in; } > /tmp/g; cat /tmp/g; rm -f /tmp/g /tmp/none*; ls /tmp/g || echo gone",
            ["in", "ls: cannot access '/tmp/g': No such file or directory", "gone"],
        ),
    ],
)
def test_scripts_print_the_expected_lines(world, script, lines):
    assert run(world, script) == (0, lines)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 7", 7),
        ("false", 1),
        ("set -e; false; echo never", 1),
        ("set -eu; echo $nothing", 1),
        ("cat /no/such/file", 1),
        ("[ -f /etc/none ]", 1),
        ("set -e; if false; then :; fi; false || true; exit 4", 4),
        ("! true", 1),
        ("set -o pipefail; false | true", 1),
        ("trap 'exit 0' TERM; exit 9", 9),
    ],
)
def test_scripts_end_with_the_expected_exit_code(world, script, code):
    assert run(world, script)[0] == code


@pytest.mark.parametrize(
    ("command", "code", "lines"),
    [
        (["sh", "-c", ". /none || :; echo after"], 2, [".: can't open '/none': No such file or directory"]),
        (["bash", "-c", ". /none; echo after"], 0, [".: can't open '/none': No such file or directory", "after"]),
        (
            ["sh", "-c", "source /none; echo after"],
            0,
            ["source: can't open '/none': No such file or directory", "after"],
        ),
    ],
)
def test_a_file_to_source_that_is_missing_ends_a_posix_shell(world, command, code, lines):
    """dash and BusyBox's shell, which NVIDIA's images have, end with 2; bash continues."""
    found, log = run(world, "", command=command)
    assert (found, [line.removeprefix("sh: line 1: ") for line in log]) == (code, lines)


@pytest.mark.parametrize(("first_line", "code"), [("#!/bin/sh", 2), ("#!/bin/bash", 1)])
def test_a_script_is_run_by_the_shell_of_its_first_line(world, first_line, code):
    world.store.data[("configmap", "ns", "scripts")] = {"run.sh": f"{first_line}\n. /none\n"}
    spec = {
        "restartPolicy": "Never",
        "volumes": [{"name": "v", "configMap": {"name": "scripts", "defaultMode": 0o755}}],
        "containers": [
            {
                "name": "c",
                "image": "busybox:1.36",
                "command": ["/scripts/run.sh"],
                "volumeMounts": [{"name": "v", "mountPath": "/scripts"}],
            }
        ],
    }
    pod = world.pod(world.node(), spec)
    world.until(lambda: "terminated" in pod.main[0].state)
    assert pod.main[0].state["terminated"]["exitCode"] == code


def test_unknown_program_of_a_known_image_is_not_found(world):
    code, lines = run(world, "nvidia-smo", image="nvcr.io/nvidia/gpu-operator:v26.7.0")
    assert (code, lines) == (127, ["sh: line 1: nvidia-smo: command not found"])


def test_unknown_program_of_an_unknown_image_just_runs(world):
    pod = world.pod(
        world.node(),
        {"containers": [{"name": "c", "image": "example.com/app:2", "command": ["sh", "-c", "myprogram --serve"]}]},
    )
    world.until(lambda: pod.main[0].ready)
    world.pass_time(60)
    assert "running" in pod.main[0].state


@pytest.mark.parametrize("script", ["if true; then echo", "echo 'open", "while; do", "case x in", "${"])
def test_an_invalid_script_is_rejected(script):
    with pytest.raises(ShellSyntax):
        parse(script)


def test_a_polling_loop_wakes_up_when_the_file_appears_and_uses_no_time_before(world):
    kubelet = world.node()
    script = "until [ -f /run/x/ready ]; do echo waiting; sleep 5; done; echo go"
    spec = {
        "volumes": [{"name": "v", "hostPath": {"path": "/run/x"}}],
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "c",
                "image": "busybox:1.36",
                "command": ["sh", "-c", script],
                "volumeMounts": [{"name": "v", "mountPath": "/run/x"}],
            }
        ],
    }
    pod = world.pod(kubelet, spec)
    world.until(lambda: "running" in pod.main[0].state)
    world.pass_time(200)
    assert len([line for line in pod.main[0].log if line.endswith("waiting")]) == 1
    kubelet.host.write("/run/x/ready", "")
    world.until(lambda: "terminated" in pod.main[0].state)
    assert pod.main[0].log[-1].endswith("go")
