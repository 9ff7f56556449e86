# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks this machine's own part of its cluster, on the machine.

member.py health NODE ADDRESS ENDPOINT [VERSION]
                                         prints why this node is not a healthy member yet, and ends with status 0 once it is. A server's own API
                                         server is asked, its etcd must be a voter, and static pods that `restart` has restarted must be Ready again; an
                                         agent's node is asked of the endpoint. Kubelet and API server must have the version, if one is given
member.py serves ADDRESS                 prints why this server's API server is not ready, as it is without a quorum of etcd; ends with status 0 if it is
member.py quorum NODES [LEAVING]         prints why the members of etcd are not exactly these nodes, in JSON, as voters; ends with status 0 if they are.
                                         LEAVING: nodes that may be members in addition
member.py configured ENDPOINT            prints the version of Kubernetes in the cluster's configuration, which kubeadm upgrades to at the end of the
                                         first server's upgrade
member.py nodes ADDRESS LABELS KNOWN HOW  labels nodes, and prints in JSON what differed (labelled), and which nodes of the cluster are none of the known ones
                                         (strangers). LABELS: by node, KNOWN: names, both in JSON; HOW: apply, or check to write nothing
member.py forget ADDRESS MACHINES [lost] removes Nodes and members of etcd that are left of machines which were installed anew, and prints them. MACHINES: the
                                         address by node, in JSON. A Node that is Ready at another address is another machine: ends with status 3. So it does
                                         if a machine that is said to be lost runs
member.py observe ADDRESS                prints what the cluster tells of itself, in JSON: configuration, its ConfigMaps by their names, null where there is
                                         none; nodes, whether each is Ready; members, names of etcd's
member.py configure ADDRESS PATH         writes ConfigMaps, and restarts kube-proxy if its own is among them. PATH: of a list of them, in JSON
member.py proxied ADDRESS                prints why kube-proxy has not loaded its configuration on all nodes, and ends with status 0 once it has
member.py uid ADDRESS                    prints the UID of the namespace kube-system, which identifies the cluster
member.py plans ADDRESS                  prints the Plans of system-upgrade-controller in JSON, by namespace and name, which upgrade nodes too
member.py publish ADDRESS                writes the certificate authorities of this server where clients read them
member.py restart POD...                  lets the kubelet restart these static pods, as kubectl rollout restart does it: by an annotation
member.py withdraw ADDRESS               deletes bootstrap tokens of this run, and of any that was killed, and the certificates that kubeadm has uploaded

Certificates are those that kubeadm has written. etcd is asked through its JSON gateway (https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway).
Needs Python 3.6 or newer, and nothing else.
"""

import base64
import functools
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

FOLDER = "/etc/kubernetes"
AUTHORITY = FOLDER + "/pki/ca.crt"
KUBELET = "/var/lib/kubelet/pki/kubelet-client-current.pem"
KUBELET_CONFIG = "/var/lib/kubelet/config.yaml"
ETCD = FOLDER + "/pki/etcd"
#: Annotation of a static pod, in its manifest and in the API.
RESTARTED = "hwaccel.gpu/restarted-at"
#: Annotation of a ConfigMap whose contents are not loaded yet.
PENDING = "hwaccel.gpu/pending"
#: Of a machine that runs.
PORTS = {10250: "a kubelet", 2380: "etcd"}
CONFIGURATION = ("kubeadm-config", "kubelet-config", "kube-proxy")
MERGE = "application/merge-patch+json"
#: Description of bootstrap tokens that the role creates.
OURS = b"hwaccel.gpu"
#: Status of `forget`.
OCCUPIED = 3
#: Seconds for an answer.
PATIENCE = 10


def context(authority, certificate="", key=""):
    made = ssl.create_default_context(cafile=authority)
    if certificate:
        made.load_cert_chain(certificate, key or None)
    return made


def ask(url, tls, method="GET", body=None, kind="application/json"):
    """The body of the response. Raises OSError, also for a status that is an error."""
    request = urllib.request.Request(url, data=body, method=method, headers={"Content-Type": kind})
    with urllib.request.urlopen(request, timeout=PATIENCE, context=tls) as response:
        return response.read().decode("utf-8", "replace")


def node_reasons(server, node, version=""):
    """Why the Node is not Ready."""
    body = json.loads(ask(f"{server}/api/v1/nodes/{node}", context(AUTHORITY, KUBELET)))
    runs = body.get("status", {}).get("nodeInfo", {}).get("kubeletVersion", "")
    if version and runs != "v" + version:
        return [f"the kubelet of node {node} is {runs}, and not v{version} yet"]
    for one in body.get("status", {}).get("conditions", ()):
        if one["type"] == "Ready":
            return [] if one["status"] == "True" else [f"node {node} is not Ready: {one.get('message', '')}"]
    return [f"node {node} has no condition Ready yet"]


def etcd(path, body):
    """The response of this machine's etcd."""
    tls = context(ETCD + "/ca.crt", ETCD + "/healthcheck-client.crt", ETCD + "/healthcheck-client.key")
    return json.loads(ask("https://127.0.0.1:2379/v3/" + path, tls, "POST", json.dumps(body).encode("utf-8")))


def members(node):
    return [one for one in etcd("cluster/member/list", {}).get("members", ()) if one.get("name") == node]


def etcd_reasons(node):
    """Why the member of this machine is not a voter."""
    mine = members(node)
    if not mine:
        return [f"etcd has no member {node}"]
    return [f"etcd's member {node} is still a learner"] if mine[0].get("isLearner") else []


def kubelet_reasons():
    """Why the kubelet's process is not healthy. A node stays Ready for a while after it has ended."""
    with open(KUBELET_CONFIG, encoding="utf-8") as file:
        given = re.search(r"^healthzPort: *(\d+)", file.read(), re.M)
    port = given.group(1) if given else "10248"
    if port != "0":
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE).close()
    return []


def static_reasons(server, node):
    """Why a static pod that `restart` has restarted is not Ready again. The API has the pod as its kubelet has last seen the manifest."""
    reasons = []
    for path in sorted(glob.glob(FOLDER + "/manifests/*.yaml")):
        with open(path, encoding="utf-8") as file:
            wanted = re.search(rf'^ +{RESTARTED}: "(.+)"$', file.read(), re.M)
        if wanted:
            pod = f"{os.path.basename(path)[: -len('.yaml')]}-{node}"
            body = json.loads(ask(f"{server}/api/v1/namespaces/kube-system/pods/{pod}", context(AUTHORITY, KUBELET)))
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
    reasons = [f"etcd has no member {node}" for node in nodes if node not in names]
    reasons += [
        f"etcd's member {title(one)} is none of the cluster's servers"
        for one in listed
        if one.get("name", "") not in [*nodes, *leaving]
    ]
    learners = [one for one in listed if one.get("isLearner") and one.get("name", "") not in leaving]
    return reasons + [f"etcd's member {title(one)} is still a learner" for one in learners]


def tried(what, call, *arguments):
    try:
        return call(*arguments)
    except (OSError, ValueError, KeyError) as error:
        return [f"{what}: {error}"]


def api_reasons(server, version=""):
    text = ask(server + "/readyz", context(AUTHORITY))
    if text != "ok":
        return [f"the API server is not ready: {text[:200]}"]
    runs = json.loads(ask(server + "/version", context(AUTHORITY)))["gitVersion"] if version else ""
    return [] if not version or runs == "v" + version else [f"the API server is {runs}, and not v{version} yet"]


def health(node, address, endpoint, version=""):
    serves = os.path.exists(FOLDER + "/manifests/kube-apiserver.yaml")
    server = f"https://{joined(address, '6443') if serves else endpoint}"
    reasons = tried(f"the API server at {server}", api_reasons, server, version if serves else "")
    if not reasons:
        reasons = tried("the kubelet", kubelet_reasons) or tried(f"node {node}", node_reasons, server, node, version)
    if not reasons and serves:
        reasons = tried("static pods", static_reasons, server, node)
    if not reasons and os.path.exists(FOLDER + "/manifests/etcd.yaml"):
        reasons = tried("etcd", etcd_reasons, node)
    return reasons


def serves(address):
    server = "https://" + joined(address, "6443")
    return tried(f"the API server at {server}", api_reasons, server)


def joined(address, port):
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def administrator():
    """TLS with the credentials of admin.conf, which are in the file itself. OpenSSL reads them from files only."""
    with open(FOLDER + "/admin.conf", encoding="utf-8") as file:
        text = file.read()
    pair = {
        name: base64.b64decode(re.search(rf"client-{name}-data: (\S+)", text).group(1))
        for name in ("certificate", "key")
    }
    with tempfile.NamedTemporaryFile(dir="/run") as file:
        file.write(pair["certificate"] + b"\n" + pair["key"])
        file.flush()
        return context(AUTHORITY, file.name)


def nodes(address, labels, known, how):
    tls, url = administrator(), f"https://{joined(address, '6443')}/api/v1/nodes"
    listed = {one["metadata"]["name"]: one["metadata"].get("labels", {}) for one in json.loads(ask(url, tls))["items"]}
    labelled = []
    for node, wanted in json.loads(labels).items():
        differing = {key: value for key, value in wanted.items() if listed.get(node, {}).get(key) != value}
        if not differing:
            continue
        if how == "apply":
            patch(f"{url}/{node}", tls, {"metadata": {"labels": differing}})
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
    text = found(f"https://{joined(address, '6443')}/apis/upgrade.cattle.io/v1/plans", administrator())
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
    stacked = os.path.exists(FOLDER + "/manifests/etcd.yaml")
    for name in wanted:
        for one in members(name) if stacked else ():
            etcd("cluster/member/remove", {"ID": one["ID"]})
            print(f"remove the member {name} of etcd")
        if name in present and deleted(nodes + name, tls):
            print(f"delete the node {name}")
    return 0


def system(address, kind, name=""):
    group = "apis/apps/v1" if kind == "daemonsets" else "api/v1"
    return f"https://{joined(address, '6443')}/{group}/namespaces/kube-system/{kind}/{name}".rstrip("/")


def observe(address):
    tls, made = administrator(), {}
    for name in CONFIGURATION:
        body = json.loads(found(system(address, "configmaps", name), tls) or "{}")
        meta = body.get("metadata", {})
        kept = {"data": body.get("data"), "annotations": meta.get("annotations", {})}
        made[name] = {"version": meta["resourceVersion"], **kept} if meta else None
    listed = json.loads(ask(f"https://{joined(address, '6443')}/api/v1/nodes", tls))["items"]
    stacked = os.path.exists(FOLDER + "/manifests/etcd.yaml")
    names = [one.get("name") for one in etcd("cluster/member/list", {}).get("members", ())] if stacked else []
    ready = {one["metadata"]["name"]: is_ready(one) for one in listed}
    print(json.dumps({"configuration": made, "nodes": ready, "members": [name for name in names if name]}))


def patch(url, tls, body):
    ask(url, tls, "PATCH", json.dumps(body).encode("utf-8"), MERGE)


def configure(address, path):
    tls = administrator()
    with open(path, encoding="utf-8") as file:
        maps = json.load(file)
    for one in maps:
        # Refused if others have written it since it was read.
        meta = {"resourceVersion": one["version"]}
        if one["restarts"]:
            meta["annotations"] = {PENDING: "true"}
        patch(system(address, "configmaps", one["name"]), tls, {"metadata": meta, "data": {one["key"]: one["text"]}})
        print(f"write the ConfigMap {one['name']}")
    if any(one["restarts"] for one in maps):
        template = {"metadata": {"annotations": {RESTARTED: now()}}}
        patch(system(address, "daemonsets", "kube-proxy"), tls, {"spec": {"template": template}})
        print("restart kube-proxy")


def proxied(address):
    """Why kube-proxy does not run everywhere with its configuration."""
    tls = administrator()
    body = json.loads(ask(system(address, "daemonsets", "kube-proxy"), tls))
    status, wanted = body["status"], body["status"]["desiredNumberScheduled"]
    seen = status.get("observedGeneration", 0) >= body["metadata"]["generation"]
    ready = min(status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)) if seen else 0
    if ready < wanted:
        return [f"kube-proxy has loaded its configuration on {ready} of {wanted} nodes"]
    patch(system(address, "configmaps", "kube-proxy"), tls, {"metadata": {"annotations": {PENDING: None}}})
    return []


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def restart(*pods):
    moment = now()
    for pod in pods:
        path = f"{FOLDER}/manifests/{pod}.yaml"
        with open(path, encoding="utf-8") as file:
            text = re.sub(rf"^ +{RESTARTED}: .*\n", "", file.read(), flags=re.M)
        # kubeadm sorts the keys, so that annotations come first.
        made, count = re.subn(
            r"^metadata:\n(?:  annotations:\n)?",
            f'metadata:\n  annotations:\n    {RESTARTED}: "{moment}"\n',
            text,
            count=1,
            flags=re.M,
        )
        if not count:
            raise ValueError(f"{path} is no manifest as kubeadm writes them")
        # The kubelet reads no hidden files.
        hidden = f"{FOLDER}/manifests/.{pod}.yaml"
        with open(os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(made)
        os.replace(hidden, path)
        print(f"restart the static pod {pod}")


def publish(address):
    """API servers only add to what is in extension-apiserver-authentication (pkg/controlplane/controller/clusterauthenticationtrust)."""
    tls, texts = administrator(), {}
    for key, path in (
        ("client-ca-file", AUTHORITY),
        ("requestheader-client-ca-file", FOLDER + "/pki/front-proxy-ca.crt"),
    ):
        with open(path, encoding="utf-8") as file:
            texts[key] = file.read()
    patch(system(address, "configmaps", "extension-apiserver-authentication"), tls, {"data": texts})
    url = f"https://{joined(address, '6443')}/api/v1/namespaces/kube-public/configmaps/cluster-info"
    body = json.loads(found(url, tls) or "{}")
    if body:
        data = base64.b64encode(texts["client-ca-file"].encode("ascii")).decode("ascii")
        text = re.sub(r"(certificate-authority-data: )\S+", lambda one: one.group(1) + data, body["data"]["kubeconfig"])
        patch(url, tls, {"data": {"kubeconfig": text}})
    print("publish the certificate authorities")


def withdraw(address):
    tls, secrets = administrator(), system(address, "secrets")
    tokens = json.loads(ask(secrets + "?fieldSelector=type%3Dbootstrap.kubernetes.io%2Ftoken", tls))["items"]
    ours = base64.b64encode(OURS).decode("ascii")
    names = [one["metadata"]["name"] for one in tokens if one.get("data", {}).get("description") == ours]
    # kubeadm gives the certificates a token as their owner, which only serves to end them.
    owners = json.loads(found(secrets + "/kubeadm-certs", tls) or "{}").get("metadata", {}).get("ownerReferences", ())
    for name in [*names, *(one["name"] for one in owners), "kubeadm-certs"]:
        if deleted(f"{secrets}/{name}", tls):
            print(f"delete the secret {name}")


def uid(address):
    url = f"https://{joined(address, '6443')}/api/v1/namespaces/kube-system"
    print(json.loads(ask(url, administrator()))["metadata"]["uid"])


def quorum(nodes, leaving="[]"):
    if not os.path.exists(FOLDER + "/manifests/etcd.yaml"):
        return []
    return tried("etcd", quorum_reasons, json.loads(nodes), json.loads(leaving))


def configured(endpoint):
    url = f"https://{endpoint}/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
    text = json.loads(ask(url, administrator()))["data"]["ClusterConfiguration"]
    print(re.search(r"^kubernetesVersion: *v?(\S+)", text, re.M).group(1))


def main(command, *arguments):
    checks = {
        "health": health,
        "proxied": functools.partial(tried, "kube-proxy", proxied),
        "quorum": quorum,
        "serves": serves,
    }
    if command not in checks:
        does = {
            one.__name__: one
            for one in (configure, configured, forget, nodes, observe, plans, publish, restart, uid, withdraw)
        }
        return does[command](*arguments) or 0
    reasons = checks[command](*arguments)
    for one in reasons:
        print(one)
    return 1 if reasons else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
