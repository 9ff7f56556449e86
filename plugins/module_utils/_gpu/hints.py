# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The next step, from lines that drivers, toolkits and CUDA write to their logs.

Sources: messages of NVIDIA's driver container (gpu-driver-container 06a208c) and validator (gpu-operator v26.7.0, cmd/nvidia-validator),
of the kernel module (open-gpu-kernel-modules df1c9a3), of modprobe, of CUDA's
runtime, of nvidia-smi, of the device plugin (k8s-device-plugin 1b826ac, internal/rm/health.go), of the kubelet, of the API server and its Go client, of
Node Feature Discovery (v0.19.0), and our own reasons. Xids: NVIDIA's catalog.
"""

from __future__ import annotations

import re

_HINTS: tuple[tuple[str, str], ...] = (
    (r"its image is for kernel", "choose the image for the running kernel (see the driver table), or build in place"),
    (
        r"/run/nvidia/nvidia-driver\.pid: No such file",
        "mount the host's /run/nvidia at /run/nvidia in the driver container",
    ),
    (
        r"Key was rejected by service|Required key not available|module verification failed",
        "Secure Boot refuses the unsigned module: use a signed (precompiled) driver image, enroll its key, or disable Secure Boot",
    ),
    (
        r"modprobe\W[^\n]*(?:No such file or directory|not found in \$PATH)",
        "install kmod on the host: NVIDIA's validator runs its modprobe there",
    ),
    (
        r"toolkit installation: exit status 12\b",
        "the container's linker does not find the driver's libraries: check that ldconfig -p on the host lists libnvidia-ml.so.1",
    ),
    (
        r"toolkit installation: exit status 12[67]\b",
        "the host's nvidia-smi does not run in a container: check that it is the driver's program, and no script",
    ),
    (r"nouveau", "blacklist nouveau on the host and reboot the node"),
    (
        r"Could not (?:resolve|find) Linux kernel|Unable to locate package linux-|No package kernel-(?:headers|devel)|match for argument: kernel",
        "the repositories have no headers for this kernel: boot a kernel that they have, add the repository (driver_build), or use a precompiled image",
    ),
    (
        r"Could not resolve host|Temporary failure (?:in name resolution|resolving)|Failed to fetch http|Cannot download|Connection timed out",
        "the node cannot reach the package repositories: set proxy and repositories (driver_build), or use a precompiled image",
    ),
    (
        r"is in use|Could not unload NVIDIA driver kernel modules|rmmod: ERROR",
        "the old module is in use: end jobs and displays that use GPUs on the node, then delete this pod, because a new one first evicts the other GPU pods; "
        "or reboot the node",
    ),
    (
        r"installed in this system is not supported by",
        "the driver does not support this GPU: set a version for its pool that does (see the driver table)",
    ),
    (
        r"RmInitAdapter failed|rm_init_adapter failed|fallen off the bus|GPU is lost|Unable to determine the device handle|"
        r"Xid(?:.*: |=)(?:79|119|120)\b|could not insert 'nvidia': No such device",
        "the GPU does not respond to the driver: power-cycle the machine; if it persists, replace the GPU or check its firmware",
    ),
    (
        r"Xid(?:.*: |=)(?:48|94|95)\b|uncorrectable ECC error",
        "the GPU's memory has an uncorrectable error: end the jobs on the node and reboot it, which resets the GPU and remaps the bad rows; "
        "if it occurs again, replace the GPU",
    ),
    (
        r"Xid=\d+ on Device",
        "the driver reported a critical error of a GPU: look up its Xid in NVIDIA's catalog; the plugin offers the GPU again after a reboot",
    ),
    (r"\bOOMKilled\b", "give the container more memory: raise its limit, or free memory on the node"),
    (
        r"Exec format error|Invalid module format|disagrees about version of symbol|version magic",
        "the module is for another kernel: choose the image for the running kernel (see the driver table), or build in place",
    ),
    (
        r"API mismatch|version mismatch",
        "kernel module and libraries have different versions: remove the older driver from the host, and reboot the node",
    ),
    (
        r"system not yet initialized|error code 802|fabric ?manager",
        "NVSwitch is not initialized: check that the fabric manager of the driver's version is running on the node",
    ),
    (
        r"it is not a shared (?:or slave )?mount",
        "make the mount shared, as systemd does for / (mount --make-rshared /), and persist this across reboots",
    ),
    (
        r"MountVolume\.SetUp failed",
        "create what the message names (ConfigMap, Secret, path of that type), or correct the pod's volume",
    ),
    (r"failed to detect PCI devices", "mount the host's /sys at /host-sys in the NFD worker"),
    (
        r"could not find the requested resource",
        "check that the CustomResourceDefinition of the kind in the log exists and serves its version",
    ),
    (
        r"error looking up service account",
        "create the service account that the message names, or correct the pod's serviceAccountName",
    ),
    (
        r"violates PodSecurity",
        "set the Pod Security level of the namespace that its pods need, or let the role manage that label",
    ),
    (r"is forbidden: User|forbidden: User", "grant the pod's service account the permission that the log names"),
    (r"no space left on device", "free disk space on the node"),
)
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), hint) for pattern, hint in _HINTS)


def next_step(log: str) -> str:
    """The first hint that matches, "" for an unknown log."""
    return next((hint for pattern, hint in _COMPILED if pattern.search(log)), "")


_TELLING = re.compile(
    r"error|fatal|fail|cannot|could not|unable|forbidden|denied|refused|not found|no such|not permitted|invalid|unknown|panic",
    re.IGNORECASE,
)
_LONGEST_LINE = 300
#: A message in the format of logrus, and what its escapes stand for.
_MESSAGE = re.compile(r'^time=.* msg="((?:[^"\\]|\\.)*)')
_ESCAPES = {r"\n": "\n", r"\t": " ", r"\"": '"', "\\\\": "\\"}


def telling(log: str) -> str:
    """The most relevant line: the last that matches a hint, else the last that reports a failure, else the last. Of a long line, its end."""
    lines = [text for line in log.splitlines() if (text := _message(line).strip())]
    for fits in (next_step, _TELLING.search, bool):
        for line in reversed(lines):
            if fits(line):
                return line[-_LONGEST_LINE:]
    return ""


def _message(line: str) -> str:
    """The first line of a program's message without its time and level."""
    found = _MESSAGE.match(line)
    return (
        re.sub(r"\\.", lambda escape: _ESCAPES.get(escape[0], escape[0]), found[1]).split("\n", 1)[0] if found else line
    )
