# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which operating system a node's `nodeInfo.osImage` names."""

from __future__ import annotations

import functools
import re

#: Pretty name of os-release (what the kubelet reports) to ID; the first match counts, so the more specific ones come first.
_IDS: tuple[tuple[str, str], ...] = (
    (r"Red Hat Enterprise Linux CoreOS", "rhcos"),
    (r"Fedora CoreOS|Fedora Linux|Fedora", "fedora"),
    (r"Red Hat Enterprise Linux", "rhel"),
    (r"CentOS Stream CoreOS", "scos"),
    (r"CentOS", "centos"),
    (r"Rocky Linux", "rocky"),
    (r"AlmaLinux", "almalinux"),
    (r"Oracle Linux", "ol"),
    (r"Ubuntu", "ubuntu"),
    (r"Debian GNU/Linux", "debian"),
    (r"SUSE Linux Enterprise Micro|SUSE Linux Micro", "sl-micro"),
    (r"SUSE Linux Enterprise Server", "sles"),
    (r"openSUSE Leap", "opensuse-leap"),
    (r"Flatcar Container Linux", "flatcar"),
    (r"Amazon Linux", "amzn"),
    (r"Bottlerocket OS", "bottlerocket"),
    (r"Container-Optimized OS from Google", "cos"),
    (r"Talos", "talos"),
    (r"CBL-Mariner|CBL-Mariner/Linux", "mariner"),
    (r"Microsoft Azure Linux", "azurelinux"),
    (r"k3OS", "k3os"),
    (r"DGX OS|NVIDIA DGX", "dgxos"),
)
_PATTERNS = tuple((re.compile(rf"^(?:{pattern})\b", re.IGNORECASE), os_id) for pattern, os_id in _IDS)
_VERSION = re.compile(r"\bv?(\d+(?:\.\d+)*)")
_SERVICE_PACK = re.compile(r"\b(\d+) SP(\d+)\b")
#: Systems whose VERSION_ID keeps this many parts of the number in the pretty name ("Ubuntu 24.04.1 LTS" is 24.04).
_PARTS = {"ubuntu": 2, "debian": 1, "amzn": 1, "fedora": 1, "centos": 1}


@functools.lru_cache(maxsize=1024)
def os_of_image(os_image: str) -> tuple[str, str]:
    """("ubuntu", "24.04") of "Ubuntu 24.04.1 LTS"; ("", "") for an unknown system."""
    os_id = next((os_id for pattern, os_id in _PATTERNS if pattern.match(os_image)), "")
    if not os_id:
        return "", ""
    if found := _SERVICE_PACK.search(os_image):
        return os_id, f"{found.group(1)}.{found.group(2)}"
    found = _VERSION.search(os_image)
    if not found:
        return os_id, ""
    parts = found.group(1).split(".")
    if os_id == "rhcos":
        return _rhcos(parts)
    return os_id, ".".join(parts[: _PARTS.get(os_id, 2)])


def _rhcos(parts: list[str]) -> tuple[str, str]:
    """Up to OpenShift 4.18 the number is OpenShift's (418.94.…), later RHEL's (9.6.…), and os-release says rhel."""
    if len(parts[0]) >= 3:
        return "rhcos", f"{parts[0][0]}.{parts[0][1:]}"
    return "rhel", ".".join(parts[:2])
