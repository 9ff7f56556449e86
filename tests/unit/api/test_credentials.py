# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options, environment variables and kubeconfigs, and their precedence."""

from __future__ import annotations

import base64
import os
import pathlib
import subprocess
import sys

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import kubeconfig as kubeconfigs
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.credentials import decided_by, resolve
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.identity import Credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError


def config(**more: object) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [
            {
                "name": "c1",
                "cluster": {
                    "server": "https://one.example.com:6443/",
                    "certificate-authority-data": base64.b64encode(b"CA ONE").decode(),
                },
            },
            {
                "name": "c2",
                "cluster": {
                    "server": "https://two.example.com",
                    "insecure-skip-tls-verify": True,
                    "tls-server-name": "t",
                    "proxy-url": "http://p:1",
                },
            },
        ],
        "users": [
            {"name": "u1", "user": {"token": "token-one"}},
            {
                "name": "u2",
                "user": {
                    "username": "joe",
                    "password": "pass-two",
                    "as": "other",
                    "as-groups": ["g"],
                    "as-user-extra": {"why": ["a", "b"], "example.com/node_name": ["n"]},
                },
            },
        ],
        "contexts": [
            {"name": "one", "context": {"cluster": "c1", "user": "u1"}},
            {"name": "two", "context": {"cluster": "c2", "user": "u2"}},
        ],
    } | more


@pytest.fixture
def home(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """An empty home folder, without environment variables of the machine."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in list(os.environ):
        if name.startswith(("K8S_AUTH_", "KUBE")):
            monkeypatch.delenv(name)
    return tmp_path


def write(path: pathlib.Path, content: object) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def test_a_bearer_token_credential_of_awx_is_supported(home: pathlib.Path) -> None:
    ca = write(home / "ca.crt", "AWX CA")
    environ = {
        "K8S_AUTH_HOST": "https://h:1",
        "K8S_AUTH_API_KEY": "key",
        "K8S_AUTH_VERIFY_SSL": "True",
        "K8S_AUTH_SSL_CA_CERT": ca,
    }
    found = resolve({}, environ)
    assert (found.host, found.token, found.verify, found.ca) == ("https://h:1", "key", True, "AWX CA")
    assert resolve({}, environ | {"K8S_AUTH_VERIFY_SSL": "False"}).verify is False


def test_options_have_precedence_over_the_environment_and_empty_ones_are_unset(home: pathlib.Path) -> None:
    environ = {"K8S_AUTH_HOST": "https://h:1", "K8S_AUTH_API_KEY": "env-key", "K8S_AUTH_VERIFY_SSL": ""}
    options = {
        "api_key": "option-key",
        "host": "",
        "kubeconfig": "",
        "context": "",
        "validate_certs": None,
        "impersonate_groups": [],
        "ca_cert": "",
    }
    found = resolve(options, environ)
    assert (found.host, found.token, found.verify) == ("https://h:1", "option-key", True)


def test_every_variable_of_kubernetes_core_is_supported(home: pathlib.Path) -> None:
    cert, key = write(home / "c.pem", "CERT"), write(home / "k.pem", "KEY")
    environ = {
        "K8S_AUTH_HOST": "h",
        "K8S_AUTH_CERT_FILE": cert,
        "K8S_AUTH_KEY_FILE": key,
        "K8S_AUTH_PROXY": "http://p:3128",
        "K8S_AUTH_NO_PROXY": "x",
        "K8S_AUTH_PROXY_HEADERS_PROXY_BASIC_AUTH": "u:secret",
        "K8S_AUTH_IMPERSONATE_USER": "joe",
        "K8S_AUTH_IMPERSONATE_GROUPS": "a,b",
    }
    found = resolve({}, environ)
    assert (found.host, found.client_cert, found.client_key) == ("https://h", "CERT", "KEY")
    assert (found.proxy, found.no_proxy, found.proxy_headers) == (
        "http://p:3128",
        "x",
        {"proxy_basic_auth": "u:secret"},
    )
    assert (found.impersonate_user, found.impersonate_groups) == ("joe", ("a", "b"))
    found = resolve({}, {"K8S_AUTH_HOST": "h", "K8S_AUTH_USERNAME": "u", "K8S_AUTH_PASSWORD": "pass"})
    assert (found.username, found.password) == ("u", "pass")


def test_a_kubeconfig_option_is_not_mixed_with_the_environment_of_another_cluster(home: pathlib.Path) -> None:
    environ = {
        "K8S_AUTH_HOST": "https://another",
        "K8S_AUTH_API_KEY": "another-key",
        "K8S_AUTH_VERIFY_SSL": "no",
        "K8S_AUTH_PROXY": "http://p:1",
    }
    found = resolve({"kubeconfig": config()}, environ)
    assert (found.host, found.token, found.verify) == ("https://one.example.com:6443", "token-one", True)
    assert found.proxy == "http://p:1"


def test_a_host_alone_has_no_credentials(home: pathlib.Path) -> None:
    write(home / ".kube" / "config", config())
    found = resolve({"host": "https://another"}, {})
    assert (found.host, found.token, found.client_cert) == ("https://another", "", "")


@pytest.mark.parametrize("form", ["path", "dictionary", "yaml", "json", "variable", "KUBECONFIG", "home"])
def test_every_form_of_a_kubeconfig_is_supported(home: pathlib.Path, form: str) -> None:
    path = write(home / (".kube/config" if form == "home" else "kc"), config())
    options: dict = {
        "path": {"kubeconfig": path},
        "dictionary": {"kubeconfig": config()},
        "yaml": {"kubeconfig": yaml.safe_dump(config())},
        "json": {"kubeconfig": __import__("json").dumps(config())},
    }.get(form, {})
    environ = {"variable": {"K8S_AUTH_KUBECONFIG": path}, "KUBECONFIG": {"KUBECONFIG": path}}.get(form, {})
    found = resolve(options, environ)
    assert (found.host, found.ca, found.token) == ("https://one.example.com:6443", "CA ONE", "token-one")
    assert "context one" in found.source


def test_the_context_is_selected_and_options_replace_its_user(home: pathlib.Path) -> None:
    found = resolve({"kubeconfig": config(), "context": "two"}, {})
    assert (found.host, found.verify, found.server_name, found.proxy) == (
        "https://two.example.com",
        False,
        "t",
        "http://p:1",
    )
    assert (found.username, found.password, found.impersonate_user, found.impersonate_groups) == (
        "joe",
        "pass-two",
        "other",
        ("g",),
    )
    assert found.extra_headers == (
        ("Impersonate-Extra-why", "a"),
        ("Impersonate-Extra-why", "b"),
        ("Impersonate-Extra-example.com%2Fnode_name", "n"),
    )
    found = resolve(
        {
            "kubeconfig": config(),
            "context": "two",
            "api_key": "Bearer mine",
            "validate_certs": True,
            "host": "https://three",
        },
        {},
    )
    assert (found.host, found.verify, found.token, found.username, found.password) == (
        "https://three",
        True,
        "mine",
        "",
        "",
    )


def test_several_files_are_merged_and_paths_are_relative_to_their_file(home: pathlib.Path) -> None:
    write(home / "a" / "ca.crt", "CA OF A")
    write(home / "b" / "token", "token-of-b\n")
    first = {
        "clusters": [{"name": "c", "cluster": {"server": "https://a", "certificate-authority": "ca.crt"}}],
        "current-context": "x",
    }
    second = {
        "clusters": [{"name": "c", "cluster": {"server": "https://not-this"}}],
        "users": [{"name": "u", "user": {"tokenFile": "token"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "not-this",
    }
    path = os.pathsep.join(
        [write(home / "a" / "config", first), write(home / "b" / "config", second), str(home / "missing")]
    )
    found = resolve({"kubeconfig": path}, {})
    assert (found.host, found.ca, found.token) == ("https://a", "CA OF A", "token-of-b")
    (home / "b" / "token").write_text("rotated")
    assert found.refresh is not None and found.refresh().token == "rotated"


def test_options_have_precedence_also_after_a_refresh(home: pathlib.Path) -> None:
    write(home / "token", "old-token")
    kubeconfig = config(users=[{"name": "u1", "user": {"tokenFile": str(home / "token")}}])
    found = resolve({"kubeconfig": kubeconfig, "host": "https://other", "impersonate_user": "joe"}, {})
    (home / "token").write_text("new-token")
    assert found.refresh is not None
    fresh = found.refresh()
    assert (fresh.token, fresh.host, fresh.impersonate_user) == ("new-token", "https://other", "joe")


def test_the_pods_service_account_is_the_last_resort(home: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account = home / "account"
    write(account / "token", "pod-token\n")
    write(account / "ca.crt", "POD CA")
    monkeypatch.setattr(kubeconfigs.in_cluster, "__defaults__", (str(account),))
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    found = resolve({}, environ)
    assert (found.host, found.token, found.ca) == ("https://[fd00::1]:443", "pod-token", "POD CA")
    write(home / ".kube" / "config", config())
    assert resolve({}, environ).token == "token-one"


def test_without_a_cluster_the_searched_sources_are_reported(home: pathlib.Path) -> None:
    with pytest.raises(HwaccelError) as caught:
        resolve({}, {})
    assert "K8S_AUTH_KUBECONFIG" in str(caught.value) and "hwaccel_connection" in caught.value.faults[0].next_step


INVALID = [
    ("text: [planted-secret\n  x", "not valid YAML"),
    ("- planted-secret\n- b\n", "not a mapping"),
    ("\n\n", "not a mapping"),
    (config(clusters="planted-secret"), "clusters of the kubeconfig is malformed"),
    (config(users=[{"name": "u1", "user": ["planted-secret"]}]), "users of the kubeconfig is malformed"),
    (config(users=[]), "has no user named 'u1'"),
    (config(clusters=[{"name": "c1", "cluster": {}}]), "has no server"),
    (config(**{"current-context": ""}), "no current context"),
    (config(**{"current-context": "three"}), "has no context named 'three' .*it has: one, two"),
    (
        config(users=[{"name": "u1", "user": {"client-key-data": "planted-secret%%"}}]),
        "client-key-data of the kubeconfig is not a base64",
    ),
    (
        config(users=[{"name": "u1", "user": {"client-certificate": "/nowhere/planted"}}]),
        "client-certificate .* cannot be read .*No such file",
    ),
    (config(clusters=[{"name": "c1", "cluster": {"server": "ftp://x"}}]), "not the URL of an API server"),
]


@pytest.mark.parametrize(("content", "message"), INVALID)
def test_invalid_kubeconfigs_are_reported_without_their_content(
    home: pathlib.Path, content: object, message: str
) -> None:
    path = write(home / "kc", content)
    with pytest.raises(HwaccelError, match=message) as caught:
        resolve({"kubeconfig": path}, {})
    assert "planted-secret" not in str(caught.value)
    assert caught.value.faults[0].next_step


@pytest.mark.parametrize(
    "options",
    [
        {"kubeconfig": "/nowhere/kc"},
        {"host": "h", "api_key": "k", "ca_cert": "/nowhere/ca"},
        {"host": "h h", "api_key": "k"},
        {"host": "h:70000", "api_key": "k"},
        {"host": "https://h:api", "api_key": "k"},
        {"host": "https://[fd00::1", "api_key": "k"},
        {"host": "https://:6443", "api_key": "k"},
    ],
)
def test_invalid_options_are_reported_with_a_next_step(home: pathlib.Path, options: dict) -> None:
    with pytest.raises(HwaccelError) as caught:
        resolve(options, {})
    assert caught.value.faults[0].next_step


def test_an_invalid_boolean_is_reported(home: pathlib.Path) -> None:
    with pytest.raises(HwaccelError, match="validate_certs is neither true nor false"):
        resolve({"host": "h", "api_key": "k"}, {"K8S_AUTH_VERIFY_SSL": "maybe"})


def test_an_exec_plugin_provides_a_token_and_a_new_one(home: pathlib.Path) -> None:
    script = home / "plugin"
    script.write_text(
        "#!/bin/sh\necho x >> $0.calls\nn=$(wc -l < $0.calls | tr -d ' ')\n"
        'echo "{\\"apiVersion\\": \\"client.authentication.k8s.io/v1\\", \\"kind\\": \\"ExecCredential\\", \\"status\\": {\\"token\\": \\"exec-token-$n\\"}}"\n'
    )
    script.chmod(0o755)
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "interactiveMode": "Never"}
    path = write(home / "kc", config(users=[{"name": "u1", "user": {"exec": plugin}}]))
    found = resolve({"kubeconfig": path}, {})
    assert (found.token, found.host, found.ca) == ("exec-token-1", "https://one.example.com:6443", "CA ONE")
    assert found.refresh is not None and found.refresh().token == "exec-token-2"


def test_an_exec_plugin_that_fails_is_named(home: pathlib.Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/nowhere/plugin", "interactiveMode": "Never"}
    with pytest.raises(HwaccelError, match="exec plugin") as caught:
        resolve({"kubeconfig": config(users=[{"name": "u1", "user": {"exec": plugin}}])}, {})
    assert "kubectl --context one get nodes" in caught.value.faults[0].next_step


def test_secrets_are_listed_for_masking_and_not_shown() -> None:
    found = Credentials(
        "https://h",
        token="planted-token",
        password="planted-password",
        client_cert="planted-cert",
        client_key="planted-key",
        proxy="http://user:planted-proxy@p:1",
        proxy_headers={"basic_auth": "u:planted-basic", "user_agent": "agent"},
    )
    assert "planted" not in repr(found)
    assert set(found.secrets()) == {
        "planted-token",
        "planted-password",
        "planted-key",
        "u:planted-basic",
        "user:planted-proxy",
        "planted-proxy",
    }
    assert Credentials("h", token="abc").secrets() == ()


def test_common_credentials_do_not_import_kubernetes() -> None:
    code = (
        "import sys\n"
        "from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import connect\n"
        "connect({'host': 'https://127.0.0.1:1', 'api_key': 'a-token'})\n"
        "assert 'kubernetes' not in sys.modules and 'requests' not in sys.modules\n"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=300,
    )


@pytest.mark.parametrize("name", ["urllib3", "yaml", "jmespath", "jsonpatch", "kubernetes_config"])
def test_a_missing_package_is_named_with_its_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from ansible_collections.hwaccel.gpu.plugins.module_utils._api import _deps

    package = {"yaml": "yaml", "kubernetes_config": "kubernetes.config"}.get(name, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(_deps.MissingPackage) as caught:
        getattr(_deps, name)()
    assert sys.executable in caught.value.faults[0].next_step and "-m pip install" in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"api_key": "planted\nsecret"},
        {"username": "planted\nsecret", "password": "p"},
        {"api_key": "k", "impersonate_user": "planted\u2028"},
    ],
)
def test_a_value_that_cannot_be_in_a_header_is_reported_without_its_content(home: pathlib.Path, options: dict) -> None:
    with pytest.raises(HwaccelError, match="cannot be sent") as caught:
        resolve({"host": "h"} | options, {})
    assert "planted" not in str(caught.value)


#: Options, environment, whether there is a default kubeconfig, and the local setting that selects the cluster.
DECIDED: dict[str, tuple[dict[str, object], dict[str, str], bool, str]] = {
    "server": ({"host": "https://h"}, {"K8S_AUTH_API_KEY": "key", "KUBECONFIG": "/other"}, True, ""),
    "own kubeconfig": ({"kubeconfig": "ONE"}, {"K8S_AUTH_HOST": "https://h"}, True, ""),
    "own kubeconfig and context": ({"kubeconfig": "TWO", "context": "two"}, {"K8S_AUTH_CONTEXT": "one"}, True, ""),
    "several contexts": ({"kubeconfig": "TWO"}, {}, False, "the current context of that kubeconfig"),
    "context of the environment": (
        {"kubeconfig": "TWO"},
        {"K8S_AUTH_CONTEXT": "one"},
        False,
        "K8S_AUTH_CONTEXT of the environment",
    ),
    "server of the environment": ({}, {"K8S_AUTH_HOST": "https://h"}, True, "K8S_AUTH_HOST of the environment"),
    "only a token": (
        {"api_key": "key"},
        {"K8S_AUTH_HOST": "https://h"},
        True,
        "K8S_AUTH_HOST of the environment",
    ),
    "kubeconfig of the environment": (
        {},
        {"K8S_AUTH_KUBECONFIG": "ONE", "KUBECONFIG": "TWO"},
        True,
        "K8S_AUTH_KUBECONFIG of the environment",
    ),
    "kubeconfig of kubectl": ({}, {"KUBECONFIG": "ONE"}, True, "KUBECONFIG of the environment"),
    "context of kubectl's kubeconfig": (
        {"context": "one"},
        {"KUBECONFIG": "TWO"},
        True,
        "KUBECONFIG of the environment",
    ),
    "default kubeconfig": ({}, {}, True, "the default kubeconfig"),
    "context of the default kubeconfig": ({"context": "one"}, {}, True, "the default kubeconfig"),
    "empty values are unset": ({"host": "", "kubeconfig": ""}, {"K8S_AUTH_HOST": ""}, True, "the default kubeconfig"),
    "pod": ({}, {}, False, "the pod that this runs in"),
}


@pytest.mark.parametrize(("options", "environ", "default", "expected"), DECIDED.values(), ids=DECIDED)
def test_the_setting_that_selects_the_cluster_is_known(
    home: pathlib.Path, options: dict[str, object], environ: dict[str, str], default: bool, expected: str
) -> None:
    paths = {
        "TWO": write(home / "two", config()),
        "ONE": write(home / "one", config(contexts=config()["contexts"][:1])),
    }
    if default:
        write(home / ".kube" / "config", config())
    options, environ = (
        {name: paths.get(str(value), value) for name, value in given.items()} for given in (options, environ)
    )
    assert decided_by(options, environ) == expected
