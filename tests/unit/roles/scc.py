# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""OpenShift's admission of pods, by the rules of openshift/apiserver-library-go a8019f39f670 (2025-09-17), pkg/securitycontextconstraints.

First, missing fields get the defaults of a SecurityContextConstraints (sccmatching/provider.go, Create…SecurityContext), then the result is validated
(Validate…SecurityContext). So a field that a pod does not set is never rejected, and one that it sets must be allowed.
"""

from __future__ import annotations

import pathlib
import typing as t

import yaml

Data = dict[str, t.Any]

#: From the most restrictive to the most permissive.
ALL: dict[str, Data] = yaml.safe_load((pathlib.Path(__file__).parent / "scc.yml").read_text(encoding="utf-8"))
#: Constraints that all authenticated users may use.
FOR_ALL_USERS = ("restricted-v2", "restricted-v3")
#: The user range of a namespace starts far above the users of images (openshift.io/sa.scc.uid-range).
_NAMESPACE_USERS = range(1_000_000_000, 1_000_010_000)


def refusals(spec: Data, scc: Data) -> list[str]:
    """Reasons why this SecurityContextConstraints does not admit a pod with this spec; empty if it does."""
    pod = spec.get("securityContext") or {}
    found = [
        f"{field} is not allowed"
        for field, allowed in (
            ("hostNetwork", "allowHostNetwork"),
            ("hostPID", "allowHostPID"),
            ("hostIPC", "allowHostIPC"),
        )
        if spec.get(field) and not scc[allowed]
    ]
    if scc.get("userNamespaceLevel") == "RequirePodLevel" and spec.get("hostUsers", True):
        found.append("hostUsers must be false")
    volumes = {next(key for key in volume if key != "name") for volume in spec.get("volumes") or ()}
    if "hostPath" in volumes and not scc["allowHostDirVolumePlugin"]:
        found.append("hostPath volumes are not allowed")
    found += [
        f"{kind} volumes are not allowed"
        for kind in sorted(volumes - {"hostPath"})
        if not {kind, "*"} & set(scc["volumes"])
    ]
    found += _group("fsGroup", [pod["fsGroup"]] if "fsGroup" in pod else [], scc["fsGroup"])
    found += _group("supplementalGroups", pod.get("supplementalGroups") or [], scc["supplementalGroups"])
    found += [
        f"sysctl {one['name']} is not allowed"
        for one in pod.get("sysctls") or ()
        if "*" not in (scc.get("allowedUnsafeSysctls") or ())
    ]
    for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
        found += [f"{container['name']}: {text}" for text in _container(container, pod, scc)]
    return found


def admitted_by(spec: Data, bound: t.Iterable[str]) -> str:
    """The first constraints that admit the pod, of those for all users and those that its ServiceAccount is bound to; "" for none."""
    usable = {*FOR_ALL_USERS, *bound}
    return next((name for name, scc in ALL.items() if name in usable and not refusals(spec, scc)), "")


def _container(container: Data, pod: Data, scc: Data) -> t.Iterator[str]:
    own = container.get("securityContext") or {}
    security = pod | own
    yield from _user(security.get("runAsUser"), security.get("runAsNonRoot"), scc["runAsUser"])
    # MustRunAs requires type, user, role and level of the namespace, which a manifest cannot know.
    if scc["seLinuxContext"]["type"] == "MustRunAs" and security.get("seLinuxOptions"):
        yield f"seLinuxOptions {security['seLinuxOptions']} are not the namespace's"
    yield from _seccomp(security.get("seccompProfile"), scc.get("seccompProfiles") or [])
    if own.get("privileged") and not scc["allowPrivilegedContainer"]:
        yield "privileged is not allowed"
    if own.get("allowPrivilegeEscalation") and not scc["allowPrivilegeEscalation"]:
        yield "allowPrivilegeEscalation is not allowed"
    allowed = {*(scc.get("allowedCapabilities") or ()), *(scc.get("defaultAddCapabilities") or ())}
    added = (own.get("capabilities") or {}).get("add") or ()
    yield from (f"capability {name} may not be added" for name in added if not {name, "*"} & allowed)
    if scc["readOnlyRootFilesystem"] and own.get("readOnlyRootFilesystem", True) is False:
        yield "readOnlyRootFilesystem must be true"
    if not scc["allowHostPorts"] and any(port.get("hostPort") for port in container.get("ports") or ()):
        yield "host ports are not allowed"


def _user(user: int | None, non_root: bool | None, rule: Data) -> t.Iterator[str]:
    """`user` and `non_root`: None if the pod does not set them. Then the default of the rule is used, or the node checks the user of the image."""
    if rule["type"] == "MustRunAsNonRoot" and (user == 0 or non_root is False):
        yield "must not run as root"
    if rule["type"] == "MustRunAsRange" and user is not None:
        users = range(rule["uidRangeMin"], rule["uidRangeMax"] + 1) if "uidRangeMin" in rule else _NAMESPACE_USERS
        if user not in users:
            yield f"runAsUser {user} is not in the range {users.start} to {users.stop - 1}"


def _seccomp(profile: Data | None, allowed: list[str]) -> t.Iterator[str]:
    """A missing profile becomes the first allowed one. If none are listed, a profile must not be set."""
    if profile is None or "*" in allowed:
        return
    name = {"RuntimeDefault": "runtime/default", "Unconfined": "unconfined"}.get(
        profile["type"], f"localhost/{profile.get('localhostProfile')}"
    )
    if name not in allowed:
        yield f"seccomp profile {name} is not allowed"


def _group(field: str, groups: list[int], rule: Data) -> list[str]:
    if rule["type"] == "RunAsAny":
        return []
    ranges = [range(one["min"], one["max"] + 1) for one in rule.get("ranges") or ()] or [_NAMESPACE_USERS]
    return [f"{field} {group} is not allowed" for group in groups if not any(group in one for one in ranges)]
