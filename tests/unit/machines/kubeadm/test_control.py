# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""control.py on a server: what it changes in its cluster, with servers that answer as kube-apiserver does."""

from __future__ import annotations

import base64
import io
import json
import pathlib
import typing as t
import urllib.error

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.unit.machines.scripts import loaded

PATH = pathlib.Path(__file__).parents[4] / "roles" / "cluster_kubeadm" / "files" / "control.py"
SERVER = "https://10.0.0.11:6443"


class Cluster:
    """Answers by method and URL: an object, a text, or a status that is an error. asked: what was asked, with bodies."""

    def __init__(self, **answers: t.Any) -> None:
        self.answers = answers
        self.asked: list[tuple[str, t.Any]] = []

    def ask(self, url: str, _tls: object, method: str = "GET", body: bytes | None = None, _kind: str = "") -> str:
        self.asked.append((f"{method} {url}", json.loads(body) if body else None))
        answer = self.answers.get(f"{method} {url}", 404)
        if isinstance(answer, int):
            raise urllib.error.HTTPError(url, answer, "error", None, io.BytesIO())  # type: ignore[arg-type]
        return answer if isinstance(answer, str) else json.dumps(answer)


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> t.Any:
    module = loaded(PATH)
    monkeypatch.setattr(module, "administrator", lambda: None)
    return module


def _in_system(kind: str, name: str) -> str:
    group = "apis/apps/v1" if kind == "daemonsets" else "api/v1"
    return f"{SERVER}/{group}/namespaces/kube-system/{kind}/{name}"


#: As kubeadm writes them: keys are sorted, and not all have annotations.
_MANIFESTS = {
    "etcd": "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations:\n    kubeadm.kubernetes.io/etcd.x: https://10.0.0.11:2379\n  labels:\n    tier: x\n",
    "kube-scheduler": "apiVersion: v1\nkind: Pod\nmetadata:\n  labels:\n    tier: x\nspec: {}\n",
}


@pytest.fixture
def manifests(control: t.Any, tmp_path: pathlib.Path) -> pathlib.Path:
    control.FOLDER = str(tmp_path)
    (folder := tmp_path / "manifests").mkdir()
    for pod, text in _MANIFESTS.items():
        (folder / f"{pod}.yaml").write_text(text, encoding="utf-8")
    return folder


def test_the_version_of_the_configuration_is_told(control: t.Any, capsys: t.Any) -> None:
    text = "apiVersion: kubeadm.k8s.io/v1beta4\nkubernetesVersion: v1.36.4\nnetworking: {}\n"
    asked = "GET https://10.0.0.1:6443" + "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
    control.ask = Cluster(**{asked: {"data": {"ClusterConfiguration": text}}}).ask
    assert control.main("configured", "10.0.0.1:6443") == 0
    assert capsys.readouterr().out == "1.36.4\n"


@pytest.mark.parametrize(
    ("etcd", "server", "told"),
    [
        ("registry.k8s.io/etcd:3.6.6-0", "v1.36.4", "same"),
        ("registry.example.com:5000/k8s/etcd:3.6.6-0@sha256:ab", "v1.36.5", "same"),
        ("registry.k8s.io/etcd:3.6.5-0", "v1.36.4", "other"),
        # Of an upgrade that was killed after etcd, too.
        ("registry.k8s.io/etcd:3.6.6-0", "v1.35.9", "other"),
        ("", "v1.36.4", "other"),
    ],
)
def test_an_etcd_is_the_same_by_its_version_and_the_minor_version_of_its_server(
    control: t.Any,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: t.Any,
    etcd: str,
    server: str,
    told: str,
) -> None:
    control.FOLDER = str(tmp_path)
    (folder := tmp_path / "manifests").mkdir()
    images = {"etcd": etcd, "kube-apiserver": f"registry.k8s.io/kube-apiserver:{server}"}
    for name, image in images.items():
        if image:
            (folder / f"{name}.yaml").write_text(f"spec:\n  containers:\n  - image: {image}\n", encoding="utf-8")
    program = tmp_path / "kubeadm"
    program.write_text(
        f"#!/bin/sh\nprintf '%s\\n' registry.k8s.io/kube-apiserver:v1.36.5 registry.k8s.io/etcd:3.6.6-0 >&1\necho \"$*\" >{tmp_path}/asked\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert control.main("etcd", "1.36.5") == 0
    assert capsys.readouterr().out == f"{told}\n"
    assert (tmp_path / "asked").read_text() == "config images list --kubernetes-version=v1.36.5\n"


_SECRETS = f"{SERVER}/api/v1/namespaces/kube-system/secrets"
_TOKENS = f"GET {_SECRETS}?fieldSelector=type%3Dbootstrap.kubernetes.io%2Ftoken"
#: Of kubeadm, as it describes those that end certificates.
_OWNER = b"Proxy for managing TTL for the kubeadm-certs secret"


def tokens(**descriptions: bytes) -> dict[str, t.Any]:
    found = [
        {"metadata": {"name": f"bootstrap-token-{name}"}, "data": {"description": base64.b64encode(text).decode()}}
        for name, text in descriptions.items()
    ]
    return {_TOKENS: {"items": found}}


def test_secrets_are_withdrawn_also_those_of_runs_that_were_killed(
    control: t.Any, monkeypatch: pytest.MonkeyPatch, capsys: t.Any
) -> None:
    """Each upload of certificates leaves the token that ends them, and replaces only the certificates."""
    listed = tokens(
        abcdef=b"hwaccel.gpu", ghijkl=b"of an administrator", mnopqr=b"hwaccel.gpu", uvwxyz=_OWNER, killed=_OWNER
    )
    cluster = Cluster(**listed, **{f"DELETE {_SECRETS}/bootstrap-token-abcdef": {}})
    control.ask = cluster.ask
    assert control.main("withdraw", "10.0.0.11") == 0
    assert [asked for asked, _body in cluster.asked] == [
        _TOKENS,
        f"DELETE {_SECRETS}/bootstrap-token-abcdef",
        f"DELETE {_SECRETS}/bootstrap-token-mnopqr",
        f"DELETE {_SECRETS}/bootstrap-token-uvwxyz",
        f"DELETE {_SECRETS}/bootstrap-token-killed",
        f"DELETE {_SECRETS}/kubeadm-certs",
    ]
    monkeypatch.setattr(control.time, "sleep", lambda _seconds: None)
    control.ask = Cluster(**listed, **{f"DELETE {_SECRETS}/bootstrap-token-abcdef": 500}).ask
    assert control.main("withdraw", "10.0.0.11") == 1
    assert "HTTP Error 500" in capsys.readouterr().err


@pytest.mark.parametrize(("busy", "status"), [(4, 0), (5, 1)])
def test_a_busy_api_server_is_asked_again_to_delete_them(
    control: t.Any, monkeypatch: pytest.MonkeyPatch, capsys: t.Any, busy: int, status: int
) -> None:
    cluster, refused = Cluster(**tokens(abcdef=b"hwaccel.gpu")), [TimeoutError("timed out")] * busy

    def ask(*arguments: t.Any) -> str:
        if refused:
            raise refused.pop()
        return cluster.ask(*arguments)

    control.ask = ask
    monkeypatch.setattr(control.time, "sleep", lambda _seconds: None)
    assert control.main("withdraw", "10.0.0.11") == status
    assert capsys.readouterr().err == ("timed out\n" if status else "")
    assert len(cluster.asked) == (0 if status else 3)


def test_secrets_end_later_as_long_as_their_run_goes_on(control: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of administrators do not, and the certificates end with the token that owns them."""
    patched = [f"PATCH {_SECRETS}/bootstrap-token-{name}" for name in ("abcdef", "killed", "uvwxyz")]
    listed = tokens(abcdef=b"hwaccel.gpu", ghijkl=b"of an administrator", killed=_OWNER, uvwxyz=_OWNER)
    # That of a run that was killed ends in this moment.
    cluster = Cluster(**listed, **{patched[0]: {}, patched[2]: {}})
    control.ask = cluster.ask
    monkeypatch.setattr(control.time, "time", lambda: 1_800_000_000)
    assert control.main("extend", "10.0.0.11", "900") == 0
    ends = base64.b64encode(b"2027-01-15T08:15:00Z").decode()
    assert cluster.asked[1:] == [(one, {"data": {"expiration": ends}}) for one in patched]
    control.ask = Cluster(**tokens(ghijkl=b"of an administrator")).ask
    with pytest.raises(SystemExit, match="run the playbook again"):
        control.main("extend", "10.0.0.11", "900")
    assert control.main("extend", "10.0.0.11", "900", "left") == 0


def test_authorities_are_published_where_clients_read_them(control: t.Any, tmp_path: pathlib.Path) -> None:
    (tmp_path / "pki").mkdir()
    for name in ("ca", "front-proxy-ca"):
        (tmp_path / "pki" / f"{name}.crt").write_text(name, encoding="ascii")
    control.FOLDER, control.AUTHORITY = str(tmp_path), str(tmp_path / "pki/ca.crt")
    known = f"{SERVER}/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    public = f"{SERVER}/api/v1/namespaces/kube-public/configmaps/cluster-info"
    text = "clusters:\n- cluster:\n    certificate-authority-data: {}\n    server: https://api:6443\n"
    cluster = Cluster(
        **{
            f"PATCH {known}": {},
            f"GET {public}": {"metadata": {}, "data": {"kubeconfig": text.format("b2xk")}},
            f"PATCH {public}": {},
        }
    )
    control.ask = cluster.ask
    assert control.main("publish", "10.0.0.11") == 0
    assert [body for asked, body in cluster.asked if asked.startswith("PATCH")] == [
        {"data": {"client-ca-file": "ca", "requestheader-client-ca-file": "front-proxy-ca"}},
        {"data": {"kubeconfig": text.format(base64.b64encode(b"ca").decode("ascii"))}},
    ]
    # A cluster may have none of it, as kubeadm can leave its phase out.
    control.ask = Cluster(**{f"PATCH {known}": {}, f"GET {public}": 404}).ask
    assert control.main("publish", "10.0.0.11") == 0


def test_a_static_pod_is_restarted_by_an_annotation_of_its_manifest(
    control: t.Any, manifests: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for moment in ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"):
        monkeypatch.setattr(control.time, "strftime", lambda *_given, moment=moment: moment)
        assert control.main("restart", *_MANIFESTS) == 0
        for pod, text in _MANIFESTS.items():
            made = yaml.safe_load((manifests / f"{pod}.yaml").read_text(encoding="utf-8"))
            before = yaml.safe_load(text)
            before["metadata"].setdefault("annotations", {})["hwaccel.gpu/restarted-at"] = moment
            assert made == before
    assert {path.name for path in manifests.iterdir()} == {f"{pod}.yaml" for pod in _MANIFESTS}
    assert {path.stat().st_mode & 0o777 for path in manifests.iterdir()} == {0o600}


def test_a_manifest_of_another_form_is_left_alone(control: t.Any, manifests: pathlib.Path) -> None:
    (manifests / "etcd.yaml").write_text("{kind: Pod}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"etcd\.yaml is no manifest as kubeadm writes them"):
        control.main("restart", "etcd")
    assert (manifests / "etcd.yaml").read_text(encoding="utf-8") == "{kind: Pod}\n"


@pytest.fixture
def written(tmp_path: pathlib.Path) -> str:
    maps = [
        {"name": "kubelet-config", "key": "kubelet", "text": "a: 1", "version": "7", "restarts": False},
        {"name": "kube-proxy", "key": "config.conf", "text": "b: 1", "version": "8", "restarts": True},
    ]
    (tmp_path / "maps.json").write_text(json.dumps(maps))
    return str(tmp_path / "maps.json")


def test_kube_proxy_is_marked_before_it_is_restarted(control: t.Any, written: str) -> None:
    names = [("configmaps", "kubelet-config"), ("configmaps", "kube-proxy"), ("daemonsets", "kube-proxy")]
    cluster = Cluster(**{f"PATCH {_in_system(*one)}": {} for one in names})
    control.ask = cluster.ask
    assert control.main("configure", "10.0.0.11", written) == 0
    assert [url for url, _body in cluster.asked] == [f"PATCH {_in_system(*one)}" for one in names]
    kubelet, proxy, daemon_set = (body for _url, body in cluster.asked)
    assert kubelet == {"metadata": {"resourceVersion": "7"}, "data": {"kubelet": "a: 1"}}
    assert proxy["metadata"] == {"resourceVersion": "8", "annotations": {"hwaccel.gpu/pending": "true"}}
    assert "hwaccel.gpu/restarted-at" in daemon_set["spec"]["template"]["metadata"]["annotations"]


def test_what_others_have_written_meanwhile_is_not_overwritten(control: t.Any, written: str) -> None:
    cluster = Cluster(**{f"PATCH {_in_system('configmaps', 'kubelet-config')}": 409})
    control.ask = cluster.ask
    with pytest.raises(urllib.error.HTTPError):
        control.main("configure", "10.0.0.11", written)
    assert len(cluster.asked) == 1


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({"observedGeneration": 2, "updatedNumberScheduled": 4, "numberAvailable": 4}, ""),
        ({"observedGeneration": 2, "updatedNumberScheduled": 4, "numberAvailable": 3}, "on 3 of 4 nodes"),
        ({"observedGeneration": 2, "updatedNumberScheduled": 1, "numberAvailable": 4}, "on 1 of 4 nodes"),
        ({"observedGeneration": 1, "updatedNumberScheduled": 4, "numberAvailable": 4}, "on 0 of 4 nodes"),
    ],
)
def test_kube_proxy_has_to_run_everywhere(control: t.Any, capsys: t.Any, status: dict[str, int], told: str) -> None:
    body = {"metadata": {"generation": 2}, "status": {"desiredNumberScheduled": 4, **status}}
    mark = f"PATCH {_in_system('configmaps', 'kube-proxy')}"
    cluster = Cluster(**{f"GET {_in_system('daemonsets', 'kube-proxy')}": body, mark: {}})
    control.ask = cluster.ask
    assert control.main("proxied", "10.0.0.11") == (1 if told else 0)
    assert told in capsys.readouterr().out
    unmarked = {"metadata": {"annotations": {"hwaccel.gpu/pending": None}}}
    assert [one for one in cluster.asked if one[0] == mark] == ([] if told else [(mark, unmarked)])


def test_all_secrets_are_written_again(control: t.Any, capsys: t.Any) -> None:
    """Those that are gone, or that others have written meanwhile, are encrypted with the key of now anyway."""
    listed, one = f"{SERVER}/api/v1/secrets?limit=200", f"{SERVER}/api/v1/namespaces/default/secrets"
    secrets = [{"metadata": {"namespace": "default", "name": name}, "data": {"x": "eQ=="}} for name in "abcd"]
    answers = {
        f"GET {listed}": {"items": secrets[:2], "metadata": {"continue": "a/b="}},
        f"GET {listed}&continue=a%2Fb%3D": {"items": secrets[2:], "metadata": {}},
        **{f"PUT {one}/{name}": answer for name, answer in {"a": {}, "b": 409, "c": 404, "d": {}}.items()},
    }
    cluster = Cluster(**answers)
    control.ask = cluster.ask
    assert control.main("reencrypt", "10.0.0.11") == 0
    assert capsys.readouterr().out == "write 4 Secrets\n"
    written = [body for asked, body in cluster.asked if asked.startswith("PUT")]
    assert written == [{"apiVersion": "v1", "kind": "Secret", **one} for one in secrets]
    control.ask = Cluster(**{**answers, f"PUT {one}/d": 403}).ask
    with pytest.raises(OSError, match="the Secret default/d could not be written"):
        control.main("reencrypt", "10.0.0.11")
