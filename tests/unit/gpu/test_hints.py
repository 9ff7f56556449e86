# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Next steps from lines of logs."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import hints


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("modprobe: ERROR: could not insert 'nvidia': Key was rejected by service", "Secure Boot"),
        (
            "failed to load module nvidia: exit status 127; output=chroot: can't execute '/sbin/modprobe': No such file or directory",
            "kmod",
        ),
        ("chroot: failed to run command 'modprobe': No such file or directory", "kmod"),
        ("Error: error validating toolkit installation: exit status 12", "ldconfig -p"),
        ("Error: error validating toolkit installation: exit status 127", "no script"),
        ("E: Unable to locate package linux-headers-6.8.0-45-generic", "headers"),
        ("curl: (6) Could not resolve host: archive.ubuntu.com", "repositories"),
        ("NVRM: GPU 0000:18:00.0: RmInitAdapter failed! (0x62:0x40:2477)", "power-cycle"),
        ("Failed to allocate device vector A (error code system not yet initialized)!", "fabric manager"),
        ('daemonsets.apps is forbidden: User "system:serviceaccount:x:y" cannot list', "service account"),
        ("modprobe: ERROR: could not insert 'nvidia': Exec format error", "another kernel"),
        (
            "/usr/local/bin/nvidia-driver: line 747: /run/nvidia/nvidia-driver.pid: No such file or directory",
            "mount the host's /run/nvidia",
        ),
        (
            '"feature discovery failed" err="failed to detect PCI devices: open /host-sys/bus/pci/devices: no such file or directory"',
            "mount the host's /sys",
        ),
        (
            "the server could not find the requested resource (post nodefeatures.nfd.k8s-sigs.io)",
            "CustomResourceDefinition",
        ),
        ('error looking up service account x/absent: serviceaccount "absent" not found', "create the service account"),
        (
            "crashed 3 times; its image is for kernel 6.8.0-111-generic, the node runs 6.8.0-45-generic",
            "choose the image",
        ),
        ('failed to generate spec: path "/run/nvidia" is mounted on "/" but it is not a shared mount', "make-rshared"),
        ("NVRM: installed in this system is not supported by the", "does not support this GPU"),
        (
            "Unable to determine the device handle for GPU 0000:1f:00.0: GPU is lost.  Reboot the system to recover this GPU",
            "does not respond to the driver",
        ),
        (
            "I health.go] XidCriticalError: Xid=79 on Device=GPU-1; marking device as unhealthy.",
            "does not respond to the driver",
        ),
        *(
            (f"XidCriticalError: Xid={xid} on Device=GPU-1; marking device as unhealthy.", "uncorrectable")
            for xid in (48, 94, 95)
        ),
        (
            "NVRM: Xid (PCI:0000:01:00): 95, pid=7062, Uncontained: LTC TAG (0x2, 0x1). RST: Yes, D-RST: No",
            "uncorrectable",
        ),
        ("XidCriticalError: Xid=62 on Device=GPU-1; marking device as unhealthy.", "look up its Xid"),
        ("container nfd-worker of pod w crashed 3 times, last with exit code 137 (OOMKilled)", "more memory"),
        ("all is well", ""),
    ],
)
def test_a_log_line_has_a_next_step(line: str, words: str) -> None:
    found = hints.next_step(line)
    assert words in found
    assert bool(found) is bool(words)


def test_of_a_logged_message_the_first_line_is_told() -> None:
    """As NVIDIA's validator writes it on a host without modprobe (gpu-operator v26.7.0, on an H100)."""
    log = (
        'time="2026-11-26T15:58:05Z" level=info msg="Detected a pre-installed driver on the host"\n'
        'time="2026-11-26T15:58:05Z" level=info msg="Error: error validating driver installation: failed to load module nvidia: exit status 127; '
        """output=chroot: can't execute '/sbin/modprobe': No such file or directory\\n\\n\\nFailed to create symlinks under /dev/char\\n\\n"""
        '    validator:\\n      env:\\n        - name: \\"DISABLE_DEV_CHAR_SYMLINK_CREATION\\""\n'
        "the driver is not ready\n"
    )
    assert hints.telling(log).endswith("output=chroot: can't execute '/sbin/modprobe': No such file or directory")
    assert hints.telling('time="x" level=error msg="cannot read \\"a\\""') == 'cannot read "a"'
