# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes what a distribution leaves on a machine (https://kubernetes.io/docs/reference/setup-tools/kubeadm/kubeadm-reset/#cleanup-notes).

leftovers.py network [--programs=FOLDER] [BEFORE...]
                                   removes rules of kube-proxy, which does it itself where its image is there, chains of the kubelet, routes of flannel,
                                   interfaces and configurations of known network plugins. BEFORE: paths of interfaces and configurations that were there
                                   before the machine became a node, and stay. FOLDER: of programs, for example iptables, that the machine may lack
leftovers.py kubelet               removes logs of pods, which the next kubelet would remove as those of pods that it does not know
                                   (evictPodLogsDirectories in pkg/kubelet/kuberuntime of Kubernetes), and control groups of pods that have ended
leftovers.py folders FOLDER...     removes these folders, and those in them, that are empty

Each prints a line for what it has removed, or what stays. What others have made stays. Needs Python 3.6 or newer, and nothing else.
"""

import glob
import os
import re
import shlex
import shutil
import subprocess
import sys

#: Tests have another one.
ROOT = ""
#: Interfaces that network plugins and kube-proxy make, not those of pods, which end with them.
INTERFACES = re.compile(
    r"(cni0|flannel(-v6)?\..+|flannel-wg(-v6)?|vxlan(-v6)?\.calico|wireguard\.cali|cilium_.+"
    r"|kube-ipvs0|kube-bridge|nodelocaldns|weave|antrea-.+|ovn-k8s-mp\d+)$"
)
#: As these plugins and their operators name their files.
CONFIGURATIONS = re.compile(
    r"\d\d-(flannel|calico|canal|cilium|antrea|kindnet|kuberouter|weave|ovn|multus).*\.conf(list)?$|calico-kubeconfig$"
)
#: Of the kubelet, of kube-proxy in its mode iptables, and of flannel. Others than nodes have those of CNI plugins, too.
CHAINS = re.compile(r"(KUBE|FLANNEL)-")
#: Tables of nft that belong to kube-proxy in its mode nftables (pkg/proxy/nftables/proxier.go of Kubernetes), and to flannel (pkg/trafficmngr/nftables).
TABLES = re.compile(r"table (ip6?) (kube-proxy|flannel-ipv[46])$")
#: Where flannel says which networks pods have (pkg/subnet/subnet.go). Those of other nodes have routes there that do not end with an interface, if its
#: backend is host-gw, and another cluster may give such a network to this machine.
NETWORKS, NETWORK = "/run/flannel/subnet.env", re.compile(r"FLANNEL_(IPV6_)?NETWORK=(\S+)$", re.MULTILINE)
#: Of kubelets.
LOGS = ("/var/log/containers", "/var/log/pods")
#: In a hierarchy for all controllers, or in one for each.
GROUPS = ("/sys/fs/cgroup/kubepods*", "/sys/fs/cgroup/*/kubepods*")
#: Seconds for a program.
PATIENCE = 60


def run(*argv):
    """The output of a program, None if it fails or is not installed."""
    if not shutil.which(argv[0]):
        return None
    try:
        return subprocess.check_output(argv, stderr=subprocess.DEVNULL, timeout=PATIENCE)
    except subprocess.SubprocessError:
        return None


def proxy():
    """kube-proxy knows the rules of all its modes. Its image is still there."""
    listed = (run("ctr", "--namespace", "k8s.io", "images", "list", "--quiet") or b"").decode("utf-8", "replace")
    images = [name for name in listed.split() if re.search(r"/kube-proxy:", name)]
    if not images:
        return
    name = "hwaccel-cleanup"
    command = ["ctr", "--namespace", "k8s.io", "run", "--rm", "--net-host", "--privileged", images[-1], name]
    ended = run(*command, "/usr/local/bin/kube-proxy", "--cleanup")
    print("remove the rules of kube-proxy" if ended is not None else "rules of kube-proxy stay until the next boot")


def chains():
    """One by one, so that rules which others add meanwhile stay."""
    for tool in ("iptables", "ip6tables"):
        table, rules, made = "", [], []
        for line in (run(tool + "-save") or b"").decode("utf-8", "replace").splitlines():
            if line.startswith("*"):
                table = line[1:]
            elif CHAINS.match(line[1:]) and line.startswith(":"):
                made.append((table, line[1:].split()[0]))
            # Comments may have a lone quote.
            elif line.startswith("-A ") and not CHAINS.match(line[3:]) and CHAINS.search(line):
                rules.append((table, shlex.split(line)[1:]))
        for table, words in rules:
            run(tool, "--wait", "-t", table, "-D", *words)
        for action in ("-F", "-X"):
            for table, chain in made:
                run(tool, "--wait", "-t", table, action, chain)
        if made:
            print(f"remove chains of {tool}: {', '.join(chain for _table, chain in made)}")


def tables():
    for line in (run("nft", "list", "tables") or b"").decode("utf-8", "replace").splitlines():
        found = TABLES.match(line.strip())
        if found and run("nft", "delete", "table", *found.groups()) is not None:
            print(f"remove the table {' '.join(found.groups())} of nft")


def routes():
    if not os.path.exists(ROOT + NETWORKS):
        return
    with open(ROOT + NETWORKS, encoding="utf-8") as file:
        found = NETWORK.findall(file.read())
    for ipv6, networks in found:
        family = "-6" if ipv6 else "-4"
        for network in networks.split(","):
            shown = run("ip", family, "route", "show", "root", network) or b""
            for words in map(str.split, shown.decode("utf-8", "replace").splitlines()):
                if words[1:2] == ["via"] and run("ip", family, "route", "delete", *words[:5]) is not None:
                    print(f"remove the route to pods {' '.join(words[:3])}")


def interfaces(before):
    for path in sorted(glob.glob(ROOT + "/sys/class/net/*")):
        name = os.path.basename(path)
        if INTERFACES.match(name) and path not in before and run("ip", "link", "delete", name) is not None:
            print(f"remove the interface {name}")


def configurations(before):
    for path in sorted(glob.glob(ROOT + "/etc/cni/net.d/*")):
        if path not in before and CONFIGURATIONS.match(os.path.basename(path)) and os.path.isfile(path):
            os.unlink(path)
            print(f"remove {path}")


def logs():
    for top in LOGS:
        found = glob.glob(ROOT + top + "/*")
        for path in found:
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        if found:
            print(f"remove what is in {top}")
    folders(LOGS)


def folders(tops):
    for top in tops:
        for folder, _folders, _files in os.walk(ROOT + top, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                continue
            print(f"remove {folder}")


def main(what, *before):
    if what == "folders":
        folders(before)
        return
    if what == "kubelet":
        logs()
        folders(path[len(ROOT) :] for pattern in GROUPS for path in sorted(glob.glob(ROOT + pattern)))
        return
    programs = [one.partition("=")[2] for one in before if one.startswith("--programs=")]
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), *programs])
    proxy()
    chains()
    tables()
    routes()
    interfaces(before)
    configurations(before)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
