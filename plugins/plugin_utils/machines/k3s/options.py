# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options with which a K3s runs, from its command line, its environment and its files. Pure.

Sources: pkg/cli/cmds/{server,agent}.go and pkg/configfilearg of K3s 1.36: what is in files comes before the command line, of which the last value counts, and
an option that has none takes its variable of the environment. install.sh of K3s writes the unit and the file with its environment.
"""

from __future__ import annotations

import collections.abc as c
import re
import shlex

import yaml

#: By their names without --.
Options = dict[str, list[str]]


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SHORT = {
    "t": "token",
    "s": "server",
    "d": "data-dir",
    "i": "node-ip",
    "c": "config",
    "l": "log",
    "o": "write-kubeconfig",
}
#: Those without a value, which is true then.
_SWITCHES = names("""
    alsologtostderr cluster-init cluster-reset debug disable-agent disable-apiserver disable-apiserver-lb disable-cloud-controller
    disable-controller-manager disable-default-registry-endpoint disable-etcd disable-helm-controller disable-kube-proxy
    disable-network-policy disable-scheduler docker embedded-registry enable-pprof etcd-disable-snapshots etcd-expose-metrics etcd-s3
    etcd-s3-insecure etcd-s3-skip-ssl-verify etcd-snapshot-compress flannel-external-ip flannel-ipv6-masq kine-tls nonroot-devices
    prefer-bundled-bin protect-kernel-defaults rootless secrets-encryption selinux supervisor-metrics tls-san-security with-node-id
    """)
#: Those that have several values, of which these are also separated by commas.
_SEPARATED = names("""
    airgap-extra-registry cluster-cidr cluster-dns disable node-external-dns node-external-ip node-internal-dns node-ip node-label
    node-taint service-cidr tls-san
    """)
_LISTS = _SEPARATED | names("""
    etcd-arg kube-apiserver-arg kube-cloud-controller-arg kube-cloud-controller-manager-arg kube-controller-arg kube-controller-manager-arg
    kube-proxy-arg kube-scheduler-arg kubelet-arg
    """)
#: Options by their variables, where these are not K3S_ and the name.
_VARIABLES = {
    "K3S_CONFIG_FILE": "config",
    "K3S_KUBECONFIG_GROUP": "write-kubeconfig-group",
    "K3S_KUBECONFIG_MODE": "write-kubeconfig-mode",
    "K3S_KUBECONFIG_OUTPUT": "write-kubeconfig",
    "K3S_URL": "server",
}
_NAMED = names("""
    agent-token agent-token-file cluster-init cluster-reset data-dir datastore-cafile datastore-certfile datastore-endpoint
    datastore-keyfile debug lb-server-port node-name resolv-conf selinux system-default-registry token token-file vpn-auth vpn-auth-file
    """)
#: Whose values are not shown.
SECRET = names(
    "agent-token datastore-endpoint etcd-s3-access-key etcd-s3-secret-key etcd-s3-session-token token vpn-auth"
)


def command(unit: str) -> list[str]:
    """Program and arguments of the unit that has this text."""
    joined = re.sub(r"\\\n", " ", unit)
    found = re.findall(r"^ExecStart=[-@:+!|]*(.*)$", joined, re.MULTILINE)
    return _words(found[-1]) if found else []


def variables(text: str) -> dict[str, str]:
    """Of a file with the environment of a unit."""
    pairs = (
        line.partition("=") for line in text.splitlines() if "=" in line and not line.lstrip().startswith(("#", ";"))
    )
    return {name.strip(): " ".join(_words(value)) for name, _equals, value in pairs}


def merged(arguments: c.Sequence[str], environment: c.Mapping[str, str], files: c.Iterable[str]) -> Options:
    """arguments: after `server` or `agent`. files: texts of its configuration, in their order."""
    found: Options = {}
    for name, values in [*_of_files(files).items(), *_of_arguments(arguments)]:
        kept = found.get(name, []) if name in _LISTS else []
        found[name] = [*kept, *(part.strip() for one in values for part in _parts(name, one))]
    named = {**{f"K3S_{one.replace('-', '_').upper()}": one for one in _NAMED}, **_VARIABLES}
    for variable, name in named.items():
        if environment.get(variable):
            found.setdefault(name, [environment[variable]])
    return found


def listed(name: str, value: object) -> list[str]:
    """Values of an option as a file of the role has it."""
    values = value if isinstance(value, list) else [value]
    return [part.strip() for one in values for part in _parts(name, _text(one))]


def _of_arguments(arguments: c.Sequence[str]) -> list[tuple[str, list[str]]]:
    found = []
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).lstrip("-").partition("=")
        name = _SHORT.get(name, name)
        # A switch of a release that this table does not have is followed by another option.
        alone = name in _SWITCHES or not rest or rest[0].startswith("-")
        found.append((name, [value if equals else "true" if alone else rest.pop(0)]))
    return found


def _of_files(texts: c.Iterable[str]) -> Options:
    """A later file replaces an option, unless its name ends with a plus sign."""
    found: Options = {}
    for text in texts:
        try:
            read = yaml.safe_load(text)
        except yaml.YAMLError:
            continue
        for key, value in (read if isinstance(read, dict) else {}).items():
            name = _SHORT.get(str(key).rstrip("+"), str(key).rstrip("+"))
            before = found.get(name, []) if str(key).endswith("+") else []
            found[name] = [*before, *map(_text, value if isinstance(value, list) else [value])]
    return found


def _parts(name: str, value: str) -> list[str]:
    return [one for one in value.split(",") if one.strip()] if name in _SEPARATED else [value]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
