# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What K3s and the machines of its cluster need from elsewhere. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import bundle
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import images

_UNKNOWN = "see k3s-images.txt of the release, and set cluster_k3s_image_list to it"


def needs(
    settings: bundle.Data, network: t.Any, listed: c.Iterable[str], sizes: c.Mapping[str, int]
) -> list[bundle.Need]:
    """All that is needed. Arguments are those of kubeadm.bundle.needs. listed: lines of k3s-images.txt, empty if it is not set.

    Images that archives may have are listed too.
    """
    wanted = [_image(settings, one) for one in images.needed(settings, "\n".join(listed))]
    unknown = [bundle.Need("image", name, note=_UNKNOWN) for name in images.names(settings)]
    others = bundle.of_manifests("cluster_k3s", network)
    return [
        *bundle.files(settings, sizes),
        *(wanted or unknown),
        *(bundle.Need("image", name, name.partition("/")[0]) for name in dict.fromkeys(others)),
    ]


def _image(settings: bundle.Data, image: images.Image) -> bundle.Need:
    """From where machines pull it without an archive."""
    own = str(image) == settings["pause_image"]
    host = image.host if own else settings["system_default_registry"] or image.host
    return bundle.Need("image", f"{host}/{str(image).removeprefix(f'{image.host}/')}", host)
