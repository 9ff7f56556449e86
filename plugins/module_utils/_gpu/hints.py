# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do next, from lines that drivers, toolkits and CUDA leave in their logs.

Sources: messages of NVIDIA's driver container (gpu-driver-container 06a208c), of the kernel module (open-gpu-kernel-modules df1c9a3), of modprobe, of CUDA's
runtime, of nvidia-smi, of the device plugin (k8s-device-plugin 1b826ac, internal/rm/health.go), of the kubelet, of the API server and its Go client, of
Node Feature Discovery (v0.19.0), and our own reasons. Xids: NVIDIA's catalogue.
"""

from __future__ import annotations

import re

_HINTS: tuple[tuple[str, str], ...] = (
    (r"its image is for kernel", "choose the image for the kernel that runs (see the driver table), or build in place"),
    (
        r"/run/nvidia/nvidia-driver\.pid: No such file",
        "mount the host's /run/nvidia at /run/nvidia in the driver container",
    ),
    (
        r"Key was rejected by service|Required key not available|module verification failed",
        "Secure Boot refuses the unsigned module: use a signed (precompiled) driver image, enrol its key, or switch Secure Boot off",
    ),
    (r"nouveau", "blacklist nouveau on the host and reboot the node"),
    (
        r"Could not (?:resolve|find) Linux kernel|Unable to locate package linux-|No package kernel-(?:headers|devel)|match for argument: kernel",
        "the repositories have no headers for this kernel: boot a kernel that they have, give the repository (driver_build), or use a precompiled image",
    ),
    (
        r"Could not resolve host|Temporary failure (?:in name resolution|resolving)|Failed to fetch http|Cannot download|Connection timed out",
        "the node does not reach the package repositories: set proxy and repositories (driver_build), or use a precompiled image",
    ),
    (
        r"is in use|Could not unload NVIDIA driver kernel modules|rmmod: ERROR",
        "the old module is in use: end jobs and displays that use GPUs on the node, then delete this pod, as a new one first sends the other GPU pods away; "
        "or reboot the node",
    ),
    (
        r"installed in this system is not supported by",
        "the driver does not know this GPU: give its pool a version that does (see the driver table)",
    ),
    (
        r"RmInitAdapter failed|rm_init_adapter failed|fallen off the bus|GPU is lost|Unable to determine the device handle|"
        r"Xid(?:.*: |=)(?:79|119|120)\b|could not insert 'nvidia': No such device",
        "the GPU does not answer the driver: power-cycle the machine; if it stays, replace the GPU or see its firmware",
    ),
    (
        r"Xid(?:.*: |=)(?:48|94|95)\b|uncorrectable ECC error",
        "the GPU's memory has an error that cannot be corrected: end the jobs on the node and reboot it, which resets the GPU and takes the bad rows out of "
        "use; if it comes again, replace the GPU",
    ),
    (
        r"Xid=\d+ on Device",
        "the driver has reported a critical error of a GPU: look its Xid up in NVIDIA's catalogue; the plugin offers the GPU again after a reboot",
    ),
    (r"\bOOMKilled\b", "give the container more memory: raise its limit, or free memory on the node"),
    (
        r"Exec format error|Invalid module format|disagrees about version of symbol|version magic",
        "the module is for another kernel: choose the image for the kernel that runs (see the driver table), or build in place",
    ),
    (
        r"API mismatch|version mismatch",
        "kernel module and libraries have different versions: remove the older driver from the host, and reboot the node",
    ),
    (
        r"system not yet initialized|error code 802|fabric ?manager",
        "NVSwitch is not initialised: see that the fabric manager of the driver's version runs on the node",
    ),
    (
        r"it is not a shared (?:or slave )?mount",
        "make the mount shared, as systemd does with / (mount --make-rshared /), also at the next boot",
    ),
    (
        r"MountVolume\.SetUp failed",
        "create what the message names (ConfigMap, Secret, path of that type), or correct the pod's volume",
    ),
    (r"failed to detect PCI devices", "mount the host's /sys at /host-sys in the NFD worker"),
    (
        r"could not find the requested resource",
        "see that the CustomResourceDefinition of the kind that the log names is there, and serves its version",
    ),
    (
        r"error looking up service account",
        "create the service account that the message names, or correct the pod's serviceAccountName",
    ),
    (
        r"violates PodSecurity",
        "give the namespace the Pod Security level that its pods need, or leave its label to the role",
    ),
    (r"is forbidden: User|forbidden: User", "give the pod's service account the right that the log names"),
    (r"no space left on device", "free disk space on the node"),
)
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), hint) for pattern, hint in _HINTS)


def next_step(log: str) -> str:
    """The first hint that fits, "" for an unknown log."""
    return next((hint for pattern, hint in _COMPILED if pattern.search(log)), "")


_TELLING = re.compile(
    r"error|fatal|fail|cannot|could not|unable|forbidden|denied|refused|not found|no such|not permitted|invalid|unknown|panic",
    re.IGNORECASE,
)
_LONGEST_LINE = 300


def telling(log: str) -> str:
    """The line that a person would quote: the last that a hint fits, else the last that speaks of a failure, else the last."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    for fits in (next_step, _TELLING.search, bool):
        for line in reversed(lines):
            if fits(line):
                return line[-_LONGEST_LINE:]
    return ""
