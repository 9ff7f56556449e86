# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""rotate.py on a machine, with a root of its own."""

from __future__ import annotations

import base64
import json
import pathlib
import stat
import subprocess
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.tests.unit.machines import scripts
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import KEY, key_pem, made

PATH = pathlib.Path(__file__).parents[4] / "roles" / "cluster_kubeadm" / "files" / "rotate.py"
PKI, ROTATION = "etc/kubernetes/pki", "var/lib/hwaccel-gpu/cluster_kubeadm/rotation"
NAMES = ("ca", "front-proxy-ca", "etcd/ca")
OLD, NEW = ({name: made() for name in NAMES} for _each in range(2))
CROSS = authority.cross_signed(NEW["ca"].pem, OLD["ca"].pem, OLD["ca"].key_pem)
MANAGER = "spec:\n  containers:\n  - command:\n    - kube-controller-manager\n    - --cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt\n"
CLIENT = "/var/lib/kubelet/pki/kubelet-client-current.pem"


def kubeconfig(data: str) -> str:
    return f"""clusters:
- cluster:
    certificate-authority-data: {data}
    server: https://10.0.0.10:6443
users:
- user:
    client-certificate: {CLIENT}
"""


def encoded(text: str) -> str:
    return base64.b64encode(text.encode("ascii")).decode("ascii")


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    """Of a server that has been given the new authorities."""
    files = {f"{PKI}/{name}.crt": one.pem for name, one in OLD.items()}
    files |= {f"{PKI}/{name}.key": one.key_pem for name, one in OLD.items()}
    files |= {f"{ROTATION}/new/{name}.crt": one.pem for name, one in NEW.items()}
    files |= {f"{ROTATION}/new/{name}.key": one.key_pem for name, one in NEW.items()}
    files |= {f"{ROTATION}/cross.crt": CROSS, f"{PKI}/apiserver.crt": OLD["ca"].issue(KEY, "api")}
    files |= {f"etc/kubernetes/{name}.conf": kubeconfig(encoded(OLD["ca"].pem)) for name in ("admin", "kubelet")}
    files |= {f"etc/kubernetes/manifests/{name}.yaml": "spec: {}\n" for name in ("kube-apiserver", "etcd")}
    files |= {"etc/kubernetes/manifests/kube-controller-manager.yaml": MANAGER}
    files |= {CLIENT[1:]: OLD["ca"].issue(KEY, "node") + key_pem(KEY)}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="ascii")
    return tmp_path


@pytest.fixture
def rotate(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> t.Any:
    module = scripts.loaded(PATH)
    module.ROOT = str(root)

    def renew(argv: list[str], **_options: t.Any) -> subprocess.CompletedProcess[bytes]:
        """As kubeadm does: with the first authority, which is the only one in kubeconfigs then."""
        assert argv == ["kubeadm", "certs", "renew", "all"]
        first = authority.certificates((root / PKI / "ca.crt").read_text(encoding="ascii"))[0]
        assert first == NEW["ca"].pem and (root / PKI / "ca.key").read_text(encoding="ascii") == NEW["ca"].key_pem
        (root / PKI / "apiserver.crt").write_text(NEW["ca"].issue(KEY, "api"), encoding="ascii")
        (root / "etc/kubernetes/admin.conf").write_text(kubeconfig(encoded(first)), encoding="ascii")
        return subprocess.CompletedProcess(argv, 0, b"")

    monkeypatch.setattr(module.subprocess, "run", renew)
    return module


def trusted(root: pathlib.Path) -> list[list[str]]:
    """Whether they are the old or the new ones, in order. Kubeconfigs have the same as the first one."""
    known = {**{one.pem: "old" for one in OLD.values()}, **{one.pem: "new" for one in NEW.values()}}
    bundle = (root / PKI / "ca.crt").read_text(encoding="ascii")
    for name in ("admin", "kubelet"):
        text = (root / f"etc/kubernetes/{name}.conf").read_text(encoding="ascii")
        assert text == kubeconfig(encoded(bundle))
    texts = [(root / PKI / f"{name}.crt").read_text(encoding="ascii") for name in NAMES]
    return [[known[one] for one in authority.certificates(text)] for text in texts]


def signs(root: pathlib.Path) -> str:
    text = (root / "etc/kubernetes/manifests/kube-controller-manager.yaml").read_text(encoding="ascii")
    assert text.startswith(MANAGER.partition("--cluster")[0])
    path = text.strip().partition("--cluster-signing-cert-file=")[2]
    known = {OLD["ca"].pem: "old", NEW["ca"].pem: "new"}
    return known.get((root / path[1:]).read_text(encoding="ascii"), "several")


def looked(rotate: t.Any, capsys: pytest.CaptureFixture[str]) -> dict[str, t.Any]:
    capsys.readouterr()
    assert rotate.main("look") == 0
    return t.cast("dict[str, t.Any]", json.loads(capsys.readouterr().out))


def test_what_a_machine_has(rotate: t.Any, root: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = looked(rotate, capsys)
    assert "PRIVATE" not in json.dumps(found)
    assert (found["authority"], found["new"], found["old"], found["done"]) == (OLD["ca"].pem, NEW["ca"].pem, "", None)
    assert (found["serves"], found["stacked"], found["linked"], found["missing"]) == (True, True, True, [])
    assert authority.issued(found["client"], OLD["ca"].pem)
    (root / PKI / "etcd/ca.key").unlink()
    assert looked(rotate, capsys)["missing"] == ["etcd/ca.key"]
    (root / "etc/kubernetes/manifests/etcd.yaml").unlink()
    found = looked(rotate, capsys)
    assert (found["missing"], found["stacked"]) == ([], False)


def test_the_phases_of_a_server(rotate: t.Any, root: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    rotate.main("begin")
    assert looked(rotate, capsys)["done"] == []
    for _again in range(2):
        rotate.main("trust")
        assert trusted(root) == [["old", "new"]] * 3
        # It would not sign with two certificates.
        assert signs(root) == "old"
    rotate.main("done", "trust")
    for _again in range(2):
        assert rotate.main("reissue") == 0
        assert trusted(root) == [["new", "old"]] * 3
        assert signs(root) == "new"
        served = authority.certificates((root / PKI / "apiserver.crt").read_text(encoding="ascii"))
        assert authority.issued(served[0], NEW["ca"].pem) and served[1:] == [CROSS]
    rotate.main("done", "reissue")
    rotate.main("drop")
    assert trusted(root) == [["new"]] * 3 and signs(root) == "new"
    assert not (root / PKI / "ca-signing.crt").exists()
    rotate.main("done", "drop")
    assert looked(rotate, capsys)["done"] == ["trust", "reissue", "drop"]
    rotate.main("end")
    found = looked(rotate, capsys)
    assert (found["done"], found["replaced"]) == (None, authority.fingerprint(OLD["ca"].pem))
    assert not (root / ROTATION).exists()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (root / PKI).iterdir() if path.is_file()}
    assert modes["ca.key"] == 0o600 and modes["ca.crt"] == 0o644


def test_the_old_authority_stays_known_where_a_phase_is_repeated(rotate: t.Any, root: pathlib.Path) -> None:
    rotate.main("begin")
    rotate.main("trust")
    rotate.main("reissue")
    (root / ROTATION / "done.json").unlink()
    rotate.main("begin")
    rotate.main("trust")
    assert trusted(root) == [["old", "new"]] * 3


def test_kubeadm_may_fail(rotate: t.Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rotate.main("begin")
    rotate.main("trust")
    failed = subprocess.CompletedProcess([], 1, b"the API server does not answer")
    monkeypatch.setattr(rotate.subprocess, "run", lambda *_arguments, **_options: failed)
    assert rotate.main("reissue") == 1
    assert "the API server does not answer" in capsys.readouterr().out


def test_a_kubelet_requests_its_certificates(
    rotate: t.Any, root: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    serving = root / "var/lib/kubelet/pki/kubelet-server-current.pem"
    serving.write_text("of the old authority", encoding="ascii")
    (root / "token").write_text("abcdef.0123456789abcdef\n", encoding="ascii")
    for _again in range(2):
        rotate.main("request", "/token")
        made_file = root / "etc/kubernetes/bootstrap-kubelet.conf"
        config = json.loads(made_file.read_text(encoding="ascii"))
        assert stat.S_IMODE(made_file.stat().st_mode) == 0o600
        assert config["users"][0]["user"] == {"token": "abcdef.0123456789abcdef"}
        cluster = {"server": "https://10.0.0.10:6443", "certificate-authority-data": encoded(OLD["ca"].pem)}
        assert config["clusters"][0]["cluster"] == cluster
        assert not (root / CLIENT[1:]).exists() and not serving.exists()
    assert rotate.main("requested") == 1
    (root / CLIENT[1:]).write_text(NEW["ca"].issue(KEY, "node"), encoding="ascii")
    assert rotate.main("requested") == 0
    assert not made_file.exists()
    assert "abcdef" not in capsys.readouterr().out


def test_an_agent_has_one_authority(rotate: t.Any, root: pathlib.Path) -> None:
    for path in (root / "etc/kubernetes/manifests").iterdir():
        path.unlink()
    (root / "etc/kubernetes/admin.conf").write_text(
        kubeconfig(encoded(OLD["ca"].pem + NEW["ca"].pem)), encoding="ascii"
    )
    before = (root / PKI / "etcd/ca.crt").read_text(encoding="ascii")
    rotate.main("begin")
    rotate.main("trust")
    assert trusted(root)[0] == ["old", "new"]
    assert (root / PKI / "etcd/ca.crt").read_text(encoding="ascii") == before
