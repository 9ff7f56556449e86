# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks this machine's own part of its cluster, on the machine.

member.py PLACES health NODE ADDRESS ENDPOINT [VERSION]
                                         prints why this node is not a healthy member yet, and ends with status 0 once it is. A server's own API
                                         server is asked, its etcd must be a voter, and static pods with the annotation RESTARTED must be Ready again; an
                                         agent's node is asked of the endpoint. Kubelet and API server must have the version, if one is given
member.py PLACES serves ADDRESS          prints why this server's API server is not ready, as it is without a quorum of etcd; ends with status 0 if it is
member.py PLACES quorum NODES [LEAVING]  prints why the members of etcd are not exactly these nodes, in JSON, as voters; ends with status 0 if they are.
                                         LEAVING: nodes that may be members in addition
member.py PLACES nodes ADDRESS LABELS KNOWN HOW
                                         labels nodes, and prints in JSON what differed (labelled), and which nodes of the cluster are none of the known ones
                                         (strangers). LABELS: by node, KNOWN: names, both in JSON; HOW: apply, or check to write nothing
member.py PLACES forget ADDRESS MACHINES [lost]
                                         removes Nodes and members of etcd that are left of machines which were installed anew, and prints them. MACHINES: the
                                         address by node, in JSON. A Node that is Ready at another address is another machine: ends with status 3. So it does
                                         if a machine that is said to be lost runs
member.py PLACES observe ADDRESS         prints what the cluster tells of itself, in JSON: configuration, ConfigMaps by their names, null where there is
                                         none; nodes, whether each is Ready; members, nodes of etcd's
member.py PLACES uid ADDRESS             prints the UID of the namespace kube-system, which identifies the cluster
member.py PLACES plans ADDRESS           prints the Plans of system-upgrade-controller in JSON, by namespace and name, which upgrade nodes too

PLACES, in JSON, is where the installer of the cluster keeps things: admin, a kubeconfig; authority, the certificate of the API server's; serves, a file that
only servers have; kubelet, the certificate and the key of the node, and the configuration of its kubelet; etcd, a file that is there if it runs on
the server (present), the port of its JSON gateway, credentials, and how its member of a node is called (member, a regular expression);
manifests, of static pods; configuration, names of ConfigMaps in kube-system; secret, the name of what a cluster keeps of a node beside it.
About the gateway: https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway. Needs Python 3.6 or newer, and nothing else.
"""

import base64
import glob
import json
import os
import re
import socket
import ssl
import sys
import tempfile
import time
import urllib.error
import urllib.request

#: Annotation of a static pod, in its manifest and in the API.
RESTARTED = "hwaccel.gpu/restarted-at"
#: Of a machine that runs.
PORTS = {10250: "a kubelet", 2380: "etcd"}
MERGE = "application/merge-patch+json"
#: Status of `forget`.
OCCUPIED = 3
#: Seconds for an answer.
PATIENCE = 10
#: How often an API server is asked that is busy.
TRIES = 5
#: See above.
PLACES = {}


def context(authority, certificate="", key=""):
    made = ssl.create_default_context(cafile=authority)
    if certificate:
        made.load_cert_chain(certificate, key or None)
    return made


def own():
    """TLS with the credentials of the kubelet, which everybody has."""
    kubelet = PLACES["kubelet"]
    return context(PLACES["authority"], kubelet["certificate"], kubelet.get("key", ""))


def stacked():
    """Whether etcd runs on this server."""
    return os.path.exists(PLACES["etcd"]["present"])


def is_member(name, node):
    """Whether a member of etcd is that of the node."""
    return bool(re.fullmatch(PLACES["etcd"]["member"].replace("{node}", re.escape(node)), name or ""))


def ask(url, tls, method="GET", body=None, kind="application/json"):
    """The body of the response. Raises OSError, also for a status that is an error."""
    request = urllib.request.Request(url, data=body, method=method, headers={"Content-Type": kind})
    with urllib.request.urlopen(request, timeout=PATIENCE, context=tls) as response:
        return response.read().decode("utf-8", "replace")


def node_reasons(server, node, version=""):
    """Why the Node is not Ready."""
    body = json.loads(ask(f"{server}/api/v1/nodes/{node}", own()))
    runs = body.get("status", {}).get("nodeInfo", {}).get("kubeletVersion", "")
    if version and runs != "v" + version:
        return [f"the kubelet of node {node} is {runs}, and not v{version} yet"]
    for one in body.get("status", {}).get("conditions", ()):
        if one["type"] == "Ready":
            return [] if one["status"] == "True" else [f"node {node} is not Ready: {one.get('message', '')}"]
    return [f"node {node} has no condition Ready yet"]


def etcd(path, body):
    """The response of this machine's etcd."""
    tls = context(*(PLACES["etcd"][name] for name in ("authority", "certificate", "key")))
    return json.loads(
        ask(f"https://127.0.0.1:{PLACES['etcd']['port']}/v3/{path}", tls, "POST", json.dumps(body).encode("utf-8"))
    )


def members(node):
    return [one for one in etcd("cluster/member/list", {}).get("members", ()) if is_member(one.get("name"), node)]


def etcd_reasons(node):
    """Why the member of this machine is not a voter."""
    mine = members(node)
    if not mine:
        return [f"etcd has no member {node}"]
    return [f"etcd's member {node} is still a learner"] if mine[0].get("isLearner") else []


def kubelet_reasons():
    """Why the kubelet's process is not healthy. A node stays Ready for a while after it has ended."""
    given = None
    if PLACES["kubelet"].get("configuration"):
        with open(PLACES["kubelet"]["configuration"], encoding="utf-8") as file:
            given = re.search(r"^healthzPort: *(\d+)", file.read(), re.M)
    port = given.group(1) if given else "10248"
    if port != "0":
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE).close()
    return []


def static_reasons(server, node):
    """Why a static pod that `restart` has restarted is not Ready again. The API has the pod as its kubelet has last seen the manifest."""
    reasons = []
    for path in sorted(glob.glob(PLACES["manifests"] + "/*.yaml")):
        with open(path, encoding="utf-8") as file:
            wanted = re.search(rf'^ +{RESTARTED}: "(.+)"$', file.read(), re.M)
        if wanted:
            pod = f"{os.path.basename(path)[: -len('.yaml')]}-{node}"
            body = json.loads(ask(f"{server}/api/v1/namespaces/kube-system/pods/{pod}", own()))
            ready = {one["type"]: one["status"] for one in body.get("status", {}).get("conditions", ())}.get("Ready")
            if body["metadata"].get("annotations", {}).get(RESTARTED) != wanted.group(1):
                reasons.append(f"the static pod {pod} has not been restarted yet")
            elif ready != "True":
                reasons.append(f"the static pod {pod} is not Ready")
    return reasons


def title(member):
    """Its name, or its ID as etcdctl writes it: it has no name until it has been started once."""
    return member.get("name") or format(int(member["ID"]), "x")


def quorum_reasons(nodes, leaving):
    """Why another server must not be taken away: etcd needs more than half of its members. leaving: nodes that may have been removed from it already."""
    listed = etcd("cluster/member/list", {}).get("members", ())
    names = [one.get("name", "") for one in listed]
    reasons = [f"etcd has no member {node}" for node in nodes if not any(is_member(name, node) for name in names)]
    reasons += [
        f"etcd's member {title(one)} is none of the cluster's servers"
        for one in listed
        if not any(is_member(one.get("name", ""), node) for node in [*nodes, *leaving])
    ]
    leave = [one for one in listed if any(is_member(one.get("name", ""), node) for node in leaving)]
    learners = [one for one in listed if one.get("isLearner") and one not in leave]
    return reasons + [f"etcd's member {title(one)} is still a learner" for one in learners]


def tried(what, call, *arguments):
    try:
        return call(*arguments)
    except (OSError, ValueError, KeyError) as error:
        return [f"{what}: {error}"]


def api_reasons(server, version=""):
    text = ask(server + "/readyz", own())
    if text != "ok":
        return [f"the API server is not ready: {text[:200]}"]
    runs = json.loads(ask(server + "/version", own()))["gitVersion"] if version else ""
    return [] if not version or runs == "v" + version else [f"the API server is {runs}, and not v{version} yet"]


def health(node, address, endpoint, version=""):
    serves = os.path.exists(PLACES["serves"])
    server = f"https://{joined(address, '6443') if serves else endpoint}"
    reasons = tried(f"the API server at {server}", api_reasons, server, version if serves else "")
    if not reasons:
        reasons = tried("the kubelet", kubelet_reasons) or tried(f"node {node}", node_reasons, server, node, version)
    if not reasons and serves:
        reasons = tried("static pods", static_reasons, server, node)
    if not reasons and serves and stacked():
        reasons = tried("etcd", etcd_reasons, node)
    return reasons


def serves(address):
    server = "https://" + joined(address, "6443")
    return tried(f"the API server at {server}", api_reasons, server)


def joined(address, port):
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def administrator():
    """TLS with the credentials of the administrator, which are in the kubeconfig itself. OpenSSL reads them from files only."""
    with open(PLACES["admin"], encoding="utf-8") as file:
        text = file.read()
    pair = {
        name: base64.b64decode(re.search(rf"client-{name}-data: (\S+)", text).group(1))
        for name in ("certificate", "key")
    }
    with tempfile.NamedTemporaryFile(dir="/run") as file:
        file.write(pair["certificate"] + b"\n" + pair["key"])
        file.flush()
        return context(PLACES["authority"], file.name)


def nodes(address, labels, known, how):
    tls, url = administrator(), f"https://{joined(address, '6443')}/api/v1/nodes"
    listed = {one["metadata"]["name"]: one["metadata"].get("labels", {}) for one in json.loads(ask(url, tls))["items"]}
    labelled = []
    for node, wanted in json.loads(labels).items():
        differing = {key: value for key, value in wanted.items() if listed.get(node, {}).get(key) != value}
        if not differing:
            continue
        if how == "apply":
            body = json.dumps({"metadata": {"labels": differing}}).encode("utf-8")
            ask(f"{url}/{node}", tls, "PATCH", body, MERGE)
        labelled.append(f"label {node}: {', '.join(f'{key}={value}' for key, value in sorted(differing.items()))}")
    print(json.dumps({"labelled": labelled, "strangers": sorted(set(listed) - set(json.loads(known)))}))


def found(url, tls, method="GET"):
    """The body of the response, None if there is no such object."""
    try:
        return ask(url, tls, method)
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
    return None


def plans(address):
    """Source: pkg/apis/upgrade.cattle.io/v1/types.go of https://github.com/rancher/system-upgrade-controller."""
    url, tls = f"https://{joined(address, '6443')}/apis/upgrade.cattle.io/v1/plans", administrator()
    for tries_left in reversed(range(TRIES)):
        try:
            text = found(url, tls)
            break
        except OSError:
            # Without an answer none would be seen.
            if not tries_left:
                raise
            time.sleep(2)
    listed = [one["metadata"] for one in json.loads(text or "{}").get("items", ())]
    print(json.dumps(sorted(f"{one['namespace']}/{one['name']}" for one in listed)))


def deleted(url, tls):
    return found(url, tls, "DELETE") is not None


def is_ready(node):
    conditions = node.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def running(node, address):
    """What shows that a machine is not lost: its pods would run twice. Empty if nothing does."""
    if is_ready(node):
        return "its node is Ready"
    for port, name in PORTS.items():
        try:
            socket.create_connection((address, port), PATIENCE / 2).close()
            return f"{name} answers at {joined(address, str(port))}"
        except OSError:
            pass
    return ""


def occupied(node, address):
    """Why this Node is not what is left of the machine with this address: two machines have the same name. Empty if it is."""
    places = [one["address"] for one in node.get("status", {}).get("addresses", ()) if one["type"] == "InternalIP"]
    if not is_ready(node) or address in places:
        return ""
    return f"the cluster has a node of this name at {', '.join(places)}, which is Ready, and the machine at {address} is none"


def forget(address, machines, how=""):
    tls, nodes = administrator(), f"https://{joined(address, '6443')}/api/v1/nodes/"
    wanted = json.loads(machines)
    present = {name: json.loads(text) for name in wanted for text in [found(nodes + name, tls)] if text}
    check = running if how == "lost" else occupied
    taken = {name: why for name in wanted for why in [check(present.get(name, {}), wanted[name])] if why}
    for name, why in taken.items():
        print(f"{name}: {why}")
    if taken:
        return OCCUPIED
    for name in wanted:
        for one in members(name) if stacked() else ():
            etcd("cluster/member/remove", {"ID": one["ID"]})
            print(f"remove the member {name} of etcd")
        if name in present and deleted(nodes + name, tls):
            print(f"delete the node {name}")
        if PLACES.get("secret") and deleted(system(address, "secrets", PLACES["secret"].format(node=name)), tls):
            print(f"delete what the cluster keeps of the node {name}")
    return 0


def system(address, kind, name):
    return f"https://{joined(address, '6443')}/api/v1/namespaces/kube-system/{kind}/{name}"


def owner(name, nodes):
    """The node of a member of etcd, or the member's own name if it has none."""
    return next((node for node in nodes if is_member(name, node)), name)


def observe(address):
    tls, made = administrator(), {}
    for name in PLACES.get("configuration", ()):
        body = json.loads(found(system(address, "configmaps", name), tls) or "{}")
        meta = body.get("metadata", {})
        kept = {"data": body.get("data"), "annotations": meta.get("annotations", {})}
        made[name] = {"version": meta["resourceVersion"], **kept} if meta else None
    listed = json.loads(ask(f"https://{joined(address, '6443')}/api/v1/nodes", tls))["items"]
    names = [one.get("name") for one in etcd("cluster/member/list", {}).get("members", ())] if stacked() else []
    ready = {one["metadata"]["name"]: is_ready(one) for one in listed}
    print(
        json.dumps({"configuration": made, "nodes": ready, "members": [owner(name, ready) for name in names if name]})
    )


def uid(address):
    url = f"https://{joined(address, '6443')}/api/v1/namespaces/kube-system"
    print(json.loads(ask(url, administrator()))["metadata"]["uid"])


def quorum(nodes, leaving="[]"):
    if not stacked():
        return []
    return tried("etcd", quorum_reasons, json.loads(nodes), json.loads(leaving))


def main(places, command, *arguments):
    PLACES.update(json.loads(places))
    checks = {"health": health, "quorum": quorum, "serves": serves}
    if command not in checks:
        does = {one.__name__: one for one in (forget, nodes, observe, plans, uid)}
        try:
            return does[command](*arguments) or 0
        except OSError as error:
            # An API server that starts, for example.
            sys.stderr.write(f"{error}\n")
            return 1
    reasons = checks[command](*arguments)
    for one in reasons:
        print(one)
    return 1 if reasons else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
