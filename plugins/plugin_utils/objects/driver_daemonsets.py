# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One driver DaemonSet for each class of nodes, and one for unknown kernels."""

from __future__ import annotations

import collections.abc as c
import copy
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names, placement
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.driver_matrix import (
    DriverImage,
    NoDriverImage,
    choose,
    label_value,
    object_name,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import image_tag
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.common import Manifest, digest, set_env, text
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.fleet import DriverInCluster, Fleet, NodeClass

#: Paths of package repositories and certificates by OS, for modules that are built in place.
_BUILD_FOLDERS = {
    "ubuntu": ("/etc/apt/sources.list.d", "/usr/local/share/ca-certificates"),
    "debian": ("/etc/apt/sources.list.d", "/usr/local/share/ca-certificates"),
}
_RPM_FOLDERS = ("/etc/yum.repos.d", "/etc/pki/ca-trust/extracted/pem")
_LONGEST_NAME = 56


@dataclasses.dataclass(frozen=True)
class PoolDriver:
    """The driver of the nodes of one pool. default: the version of nodes without a version label."""

    pool: str
    version: str
    source: str
    others: tuple[str, ...] = ()
    default: bool = True


@dataclasses.dataclass(frozen=True)
class Options:
    """repository: of driver images; precompiled, builds: the user's tags; build: proxy and ConfigMaps for builds in place."""

    repository: str
    module_type: str
    validator_image: str
    precompiled: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    build: c.Mapping[str, str] = dataclasses.field(default_factory=dict)


class DriverDaemonSets:
    """Builds the DaemonSets of one fleet from one manifest. `notes` has the image of each class and why."""

    def __init__(self, manifest: Manifest, fleet: Fleet, options: Options) -> None:
        self._manifest, self._fleet, self._options = manifest, fleet, options
        self._gpu = placement.gpu_present(foreign_nfd=bool(fleet.found("nfd")), integrated=False)
        self.notes: list[str] = []
        #: Classes without an image, each with a sentence.
        self.without: list[tuple[NodeClass, str]] = []
        #: Classes with an image.
        self.served: set[NodeClass] = set()

    def of(self, pool_driver: PoolDriver, classes: c.Sequence[NodeClass]) -> list[Manifest]:
        """The DaemonSets of one pool and version: one for each class, and one for other kernels for each operating system."""
        made: dict[tuple[str, ...], Manifest] = {}
        covered: dict[tuple[str, str, str], set[str]] = {}
        for one in sorted(set(classes)):
            if not one.os_id:
                # Without it a DaemonSet would select nodes of all others.
                self.without.append(
                    (
                        one,
                        f"pool {pool_driver.pool}: the operating system of nodes with kernel {one.kernel} is unknown",
                    )
                )
                continue
            machine = (one.os_id, one.os_version, one.architecture)
            covered.setdefault(machine, set())
            kernel = placement.nfd_value(one.kernel)
            image = self._image(pool_driver, one)
            if image is None or not kernel:
                continue
            if kernel != one.kernel:
                self.notes.append(f"kernel {one.kernel} is selected by the label value {kernel}")
            self.served.add(one)
            covered[machine].add(kernel)
            made[(kernel, *machine)] = self._of_class(pool_driver, one, kernel, image)
        rest = [self._rest(pool_driver, machine, kernels) for machine, kernels in sorted(covered.items())]
        return [*made.values(), *rest]

    def again(self, there: DriverInCluster) -> Manifest:
        """An existing DaemonSet as this collection would create it now: with its name, image and nodes, and everything else from the manifest."""
        made = self._labeled(there.name, there.key, there.pool, there.version)
        os_id = next(
            (
                value
                for term in there.terms
                for one in term
                if one["key"] == names.OS_ID_LABEL
                for value in one.get("values", ())
            ),
            "",
        )
        tag = image_tag(there.image)
        # A precompiled image's tag names the kernel.
        source = "precompiled" if there.kernel and there.kernel in tag else "build"
        self._run(made, DriverImage(tag, there.version, source, "", ""), os_id)
        if there.kernel:
            made["spec"]["template"]["metadata"]["labels"][names.DRIVER_KERNEL_LABEL] = there.kernel
        placement.place(made, there.terms)
        return made

    def _image(self, pool_driver: PoolDriver, one: NodeClass) -> DriverImage | None:
        options = self._options
        try:
            image = choose(
                one.kernel,
                one.os_id,
                one.os_version,
                one.architecture,
                pool_driver.version,
                pool_driver.source,
                precompiled=options.precompiled,
                builds=options.builds,
            )
        except NoDriverImage as error:
            self.without.append((one, f"pool {pool_driver.pool}: {error}"))
            return None
        self.notes.append(f"pool {pool_driver.pool}: driver {image.version} as {image.tag} ({image.why})")
        return image

    def _of_class(self, pool_driver: PoolDriver, one: NodeClass, kernel: str, image: DriverImage) -> Manifest:
        key = (pool_driver.pool, one.kernel, one.os_id, one.os_version, one.architecture, pool_driver.version)
        made = self._named(pool_driver, key, object_name(one.kernel, 24))
        self._run(made, image, one.os_id)
        self._select(
            made,
            pool_driver,
            (one.os_id, one.os_version, one.architecture),
            placement.need(names.KERNEL_LABEL, "In", kernel),
        )
        made["spec"]["template"]["metadata"]["labels"][names.DRIVER_KERNEL_LABEL] = label_value(one.kernel)
        return made

    def _rest(self, pool_driver: PoolDriver, machine: tuple[str, str, str], kernels: c.Collection[str]) -> Manifest:
        """A DaemonSet for nodes with unknown kernels. It builds in place if an image supports that. Otherwise the gate fails with the reason."""
        os_id, os_version, architecture = machine
        made = self._named(pool_driver, (pool_driver.pool, "", *machine, pool_driver.version), "other-kernels")
        try:
            source = "precompiled" if pool_driver.source == "precompiled" else "build"
            image = choose(
                "unseen", os_id, os_version, architecture, pool_driver.version, source, builds=self._options.builds
            )
        except NoDriverImage:
            self._refuse(made)
        else:
            self._run(made, image, os_id)
        unknown_kernel = (
            placement.need(names.KERNEL_LABEL, "NotIn", *kernels)
            if kernels
            else placement.need(names.KERNEL_LABEL, "Exists")
        )
        self._select(made, pool_driver, machine, unknown_kernel, placement.need(names.KERNEL_LABEL, "Exists"))
        return made

    def _named(self, pool_driver: PoolDriver, key: tuple[str, ...], what: str) -> Manifest:
        suffix = digest(key, 6)
        name = f"{self._manifest['metadata']['name']}-{object_name(pool_driver.pool, 20)}-{what}"[
            :_LONGEST_NAME
        ].rstrip("-.")
        return self._labeled(
            f"{name}-{suffix}", suffix, label_value(pool_driver.pool), label_value(pool_driver.version)
        )

    def _labeled(self, name: str, key: str, pool: str, version: str) -> Manifest:
        """pool, version: as label values."""
        made = copy.deepcopy(self._manifest)
        made["metadata"]["name"] = name
        template = made["spec"]["template"]
        made["spec"]["selector"]["matchLabels"][names.DRIVER_CLASS_LABEL] = key
        template["metadata"]["labels"][names.DRIVER_CLASS_LABEL] = key
        for labels in (made["metadata"].setdefault("labels", {}), template["metadata"]["labels"]):
            labels.update({names.DRIVER_POOL_LABEL: pool, names.DESIRED_DRIVER_VERSION_LABEL: version})
        return made

    def _run(self, made: Manifest, image: DriverImage, os_id: str) -> None:
        spec = made["spec"]["template"]["spec"]
        main, manager = spec["containers"][0], spec["initContainers"][0]
        main["image"] = f"{self._options.repository}:{image.tag}"
        if image.source == "build":
            self._prepare_build(spec, main, os_id)
        config = {
            "image": main["image"],
            "module": self._options.module_type,
            "env": main["env"],
            "mounts": main["volumeMounts"],
        }
        config_digest = {"DRIVER_CONFIG_DIGEST": digest(config)}
        set_env(main, config_digest)
        set_env(manager, config_digest)

    def _prepare_build(self, spec: Manifest, main: Manifest, os_id: str) -> None:
        """Settings for builds on a node: package repositories, certificates and a proxy."""
        build = self._options.build
        proxies = {"HTTP_PROXY": "http_proxy", "HTTPS_PROXY": "https_proxy", "NO_PROXY": "no_proxy"}
        set_env(
            main,
            {spelling: text(build[key]) for name, key in proxies.items() if build.get(key) for spelling in (name, key)},
        )
        if build.get("proxy_secret"):
            main["envFrom"] = [{"secretRef": {"name": text(build["proxy_secret"])}}]
        folders = _BUILD_FOLDERS.get(os_id, _RPM_FOLDERS)
        for key, folder in zip(("repositories", "certificates"), folders, strict=True):
            if build.get(key):
                main["volumeMounts"].append({"name": key, "mountPath": folder, "readOnly": True})
                spec["volumes"].append({"name": key, "configMap": {"name": build[key]}})

    def _refuse(self, made: Manifest) -> None:
        """Replaces the driver by a message in the log, which the gate reports. All privileges are removed."""
        spec = made["spec"]["template"]["spec"]
        spec.update({"initContainers": [], "hostPID": False, "volumes": [], "automountServiceAccountToken": False})
        del spec["initContainers"]
        spec["containers"] = [
            {
                "name": "nvidia-driver-ctr",
                "image": self._options.validator_image,
                "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c"],
                "args": ['echo "no driver image for kernel $(cat /proc/sys/kernel/osrelease)"; exit 1'],
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ]

    def _select(
        self, made: Manifest, pool_driver: PoolDriver, machine: tuple[str, str, str], *requirements: dict[str, t.Any]
    ) -> None:
        os_id, os_version, architecture = machine
        fixed = [
            placement.OPERANDS,
            placement.switch("driver", names.PRE_INSTALLED),
            *requirements,
            placement.need(placement.ARCHITECTURE, "In", architecture),
        ]
        fixed.append(placement.need(names.OS_ID_LABEL, "In", os_id))
        if os_version:
            fixed.append(placement.need(names.OS_VERSION_LABEL, "In", os_version))
        if not pool_driver.default:
            fixed.append(placement.need(names.DESIRED_DRIVER_VERSION_LABEL, "In", pool_driver.version))
        elif pool_driver.others:
            fixed.append(placement.need(names.DESIRED_DRIVER_VERSION_LABEL, "NotIn", *pool_driver.others))
        terms = placement.both(self._gpu, [tuple(fixed)])
        placement.place(made, placement.both(terms, placement.of_pool(pool_driver.pool, self._fleet.pools)))
