# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controls of the CIS Kubernetes Benchmark that cluster_k3s_hardening meets: options, arguments, files and settings of the kernel. Pure.

Sources: https://docs.k3s.io/security/hardening-guide for what is set, and https://docs.k3s.io/security/self-assessment-2.1, for K3s 1.36 and 1.37, for the
numbers. NetworkPolicies are in roles/cluster_k3s/files/policies.yml.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.contents import settings_before
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.files import Content
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import places

Settings = c.Mapping[str, t.Any]
#: Of a control: an option of K3s, an argument of a component, a setting of the kernel, objects of the cluster, what K3s or the role does in any case, and
#: what only its user can decide.
OPTION, ARGUMENT, SYSCTL, OBJECTS, ALWAYS, LEFT = (
    "option",
    "argument",
    "kernel",
    "NetworkPolicies",
    "in any case",
    "left",
)
_PLUGINS, _LIMITS = "enable-admission-plugins", "admission-control-config-file"
_APISERVER, _MANAGER, _KUBELET = "kube-apiserver-arg", "kube-controller-manager-arg", "kubelet-arg"
_CIPHERS = (
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,"
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"
)


@dataclasses.dataclass(frozen=True)
class Control:
    """number: in the benchmark, empty for what its present release has no more. what: in words. kind: see above. option: of K3s, for an argument.

    name, value: of the option, the argument or the setting.
    """

    number: str
    what: str
    kind: str
    option: str = ""
    name: str = ""
    value: str | bool = ""

    @property
    def setting(self) -> str:
        return f"{self.name}={self.value}"


#: The kernel's settings are those that the kubelet compares (setupKernelTunables in pkg/kubelet/cm/container_manager_linux.go of Kubernetes).
CONTROLS = (
    Control(
        "", "the kubelet does not start on a kernel with other settings", OPTION, "", "protect-kernel-defaults", True
    ),
    Control("", "memory is overcommitted", SYSCTL, "", "vm.overcommit_memory", "1"),
    Control("", "want of memory ends processes, and not the machine", SYSCTL, "", "vm.panic_on_oom", "0"),
    Control("", "a machine that panics boots after 10 seconds", SYSCTL, "", "kernel.panic", "10"),
    Control("", "an oops of the kernel is a panic", SYSCTL, "", "kernel.panic_on_oops", "1"),
    Control("", "keys of containers", SYSCTL, "", "kernel.keys.root_maxkeys", "1000000"),
    Control("", "bytes of keys of containers", SYSCTL, "", "kernel.keys.root_maxbytes", "25000000"),
    Control("1.1.13, 1.1.21", "credentials and keys are for root only", ALWAYS),
    Control(
        "1.2.1, 1.2.6 to 1.2.8, 1.2.10, 1.2.12, 1.2.13", "no anonymous access, authorization by Node and RBAC", ALWAYS
    ),
    Control(
        "1.2.9, 1.2.14",
        "events are limited, and nodes change only what is theirs",
        ARGUMENT,
        _APISERVER,
        _PLUGINS,
        "NodeRestriction,EventRateLimit",
    ),
    Control(
        "5.2.1 to 5.2.13",
        "Pod Security: `restricted` is enforced where a namespace says nothing else, except in `kube-system`",
        ARGUMENT,
        _APISERVER,
        _LIMITS,
        places.ADMISSION,
    ),
    Control("1.2.16", "audit log", ARGUMENT, _APISERVER, "audit-log-path", f"{places.DATA}/server/logs/audit.log"),
    Control("1.2.17", "days for which it is kept", ARGUMENT, _APISERVER, "audit-log-maxage", "30"),
    Control("1.2.18", "files that are kept", ARGUMENT, _APISERVER, "audit-log-maxbackup", "10"),
    Control("1.2.19", "MB of a file", ARGUMENT, _APISERVER, "audit-log-maxsize", "100"),
    Control("1.2.27, 1.2.28", "Secrets are encrypted: `cluster_k3s_secrets_encryption`", ALWAYS),
    Control(
        "1.2.30",
        "tokens of ServiceAccounts end when they say",
        ARGUMENT,
        _APISERVER,
        "service-account-extend-token-expiration",
        "false",
    ),
    Control("1.3.1", "pods that have ended and are kept", ARGUMENT, _MANAGER, "terminated-pod-gc-threshold", "100"),
    Control(
        "3.2.1", "audit policy: who did what, without contents", ARGUMENT, _APISERVER, "audit-policy-file", places.AUDIT
    ),
    Control("4.2.5", "idle streams end", ARGUMENT, _KUBELET, "streaming-connection-idle-timeout", "5m"),
    Control("4.2.12", "ciphers of the kubelet", ARGUMENT, _KUBELET, "tls-cipher-suites", _CIPHERS),
    Control(
        "5.3.2",
        "in `kube-system`, `default` and `kube-public` only pods of the namespace, and what each needs",
        OBJECTS,
    ),
    Control("1.2.11", "`AlwaysPullImages`: a machine without a registry could start no pod", LEFT),
    Control("1.2.20", "`request-timeout`: its default of a minute does", LEFT),
    Control("3.2.2", "what your audits need beyond who did what", LEFT),
    Control("4.2.13, 4.2.14", "`pod-max-pids` and `seccomp-default` of `kubelet-arg`: your workloads decide", LEFT),
    Control("5.1.5", "tokens of default ServiceAccounts", LEFT),
    Control("5.3.2", "NetworkPolicies of your own namespaces, and of those with GPU components", LEFT),
)
FILES = (places.ADMISSION, places.AUDIT)


def on(settings: Settings) -> bool:
    return bool(settings["hardening"] == "cis")


def _of(kind: str) -> c.Iterator[Control]:
    return (one for one in CONTROLS if one.kind == kind)


def added(found: Settings, serves: bool) -> dict[str, t.Any]:
    """Options of a machine with those of the controls. Whoever has set an option or an argument keeps it.

    The API server does not start with limits of events that no file has (ValidateConfiguration in plugin/pkg/admission/eventratelimit/apis of Kubernetes), so
    that they go with the file.
    """
    made = {**{one.name: one.value for one in _of(OPTION)}, **found}
    options = dict.fromkeys(one.option for one in _of(ARGUMENT) if serves or one.option == _KUBELET)
    for option in options:
        # Arguments that others have set in config.yaml stay.
        name = option if option in found else f"{option}+"
        given = _listed(found.get(name, []))
        taken = set(map(_argument, given))
        taken |= {_PLUGINS} if _LIMITS in taken else set()
        made[name] = [*(one.setting for one in _of(ARGUMENT) if one.option == option and one.name not in taken), *given]
    return made


def kept(found: Settings, serves: bool) -> list[str]:
    """What is set otherwise than by a control, in words."""
    told = [f"{one.name} is {found[one.name]}" for one in _of(OPTION) if found.get(one.name, one.value) != one.value]
    taken = set()
    for one in _of(ARGUMENT):
        if serves or one.option == _KUBELET:
            given = [*_listed(found.get(one.option, [])), *_listed(found.get(f"{one.option}+", []))]
            taken |= set(map(_argument, given))
            told += [
                f"{text} is set ({one.number})" for text in given if _argument(text) == one.name and text != one.setting
            ]
    return [*told, *(["events are not limited (1.2.9)"] if _LIMITS in taken and _PLUGINS not in taken else [])]


def _listed(value: t.Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, (list, tuple)) else [str(value)]


def _argument(text: str) -> str:
    """Its name. With + or - at its end it adds to others (GetArgs in pkg/util/args.go of K3s)."""
    return text.removeprefix("--").partition("=")[0]


def contents(settings: Settings, head: str) -> list[Content]:
    """The files of a machine. head: their first line."""
    files = [Content(places.HARDENED, head + "".join(f"{one.name} = {one.value}\n" for one in _of(SYSCTL)))]
    if settings["serves"]:
        files += [
            Content(places.ADMISSION, head + yaml.safe_dump(_ADMISSION, sort_keys=False), "0600"),
            Content(places.AUDIT, head + yaml.safe_dump(_AUDIT, sort_keys=False), "0600"),
        ]
    return files


def differing(host: Host) -> list[str]:
    """Settings of the kernel that are other ones than those of the controls, as they are, for the record, too."""
    now = _sysctls(host)
    return [f"{one.name}={now[one.name]}" for one in _of(SYSCTL) if now.get(one.name, one.value) != one.value]


def restored(host: Host, before: str) -> list[str]:
    """Settings of the kernel to write, so that they are as they were. before: with spaces between them."""
    return settings_before(_sysctls(host), before)


def _sysctls(host: Host) -> dict[str, str]:
    rows = (line.partition("=") for line in host.fact("sysctls").splitlines())
    return {name.strip(): value.strip() for name, _sign, value in rows}


SYSCTLS = tuple(one.name for one in _of(SYSCTL))
#: https://kubernetes.io/docs/tasks/configure-pod-container/enforce-standards-admission-controller/ and
#: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#eventratelimit. The limit is far above what nodes write.
_ADMISSION = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AdmissionConfiguration",
    "plugins": [
        {
            "name": "PodSecurity",
            "configuration": {
                "apiVersion": "pod-security.admission.config.k8s.io/v1",
                "kind": "PodSecurityConfiguration",
                "defaults": {
                    key: value
                    for mode in ("enforce", "audit", "warn")
                    for key, value in ((mode, "restricted"), (f"{mode}-version", "latest"))
                },
                "exemptions": {"usernames": [], "runtimeClasses": [], "namespaces": ["kube-system"]},
            },
        },
        {
            "name": "EventRateLimit",
            "configuration": {
                "apiVersion": "eventratelimit.admission.k8s.io/v1alpha1",
                "kind": "Configuration",
                "limits": [{"type": "Server", "qps": 5000, "burst": 20000}],
            },
        },
    ],
}
_AUDIT = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
