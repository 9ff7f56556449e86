# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection to a cluster: the options of every module of the action group `cluster`, and of the inventory plugin."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - Path to a kubeconfig file, several paths separated by C(:), or the content of one as a dictionary or as YAML text.
      - If no connection option is set, E(K8S_AUTH_KUBECONFIG), then E(KUBECONFIG), then C(~/.kube/config) is read.
        If none of them exists, the service account of the pod that this runs in is used.
      - Environment variables are those of the machine that this runs on. An option always takes precedence over its variable.
        For each of these options, an empty string is the same as no value.
    type: raw
  context:
    description: Context of the kubeconfig to use. Also E(K8S_AUTH_CONTEXT).
    type: str
  host:
    description: URL of the API server. Also E(K8S_AUTH_HOST).
    type: str
  api_key:
    description: Bearer token. Also E(K8S_AUTH_API_KEY).
    type: str
  username:
    description:
      - User name for HTTP basic authentication. Also E(K8S_AUTH_USERNAME).
      - Only servers behind an authenticating proxy accept it. Kubernetes itself no longer supports it.
    type: str
  password:
    description: Password for O(username). Also E(K8S_AUTH_PASSWORD).
    type: str
  client_cert:
    description: Path to a client certificate in PEM form. Also E(K8S_AUTH_CLIENT_CERT) and E(K8S_AUTH_CERT_FILE).
    type: path
    aliases: [cert_file]
  client_key:
    description: Path to the key of O(client_cert). Also E(K8S_AUTH_CLIENT_KEY) and E(K8S_AUTH_KEY_FILE).
    type: path
    aliases: [key_file]
  ca_cert:
    description: Path to the CA certificates that the server's certificate is verified with. Also E(K8S_AUTH_CA_CERT) and E(K8S_AUTH_SSL_CA_CERT).
    type: path
    aliases: [ssl_ca_cert]
  validate_certs:
    description: Whether to verify the server's certificate, by default yes. Also E(K8S_AUTH_VALIDATE_CERTS) and E(K8S_AUTH_VERIFY_SSL).
    type: bool
    aliases: [verify_ssl]
  proxy:
    description:
      - URL of an HTTP proxy. Also E(K8S_AUTH_PROXY), or C(proxy-url) in the kubeconfig.
      - E(HTTPS_PROXY) and similar variables are not read.
    type: str
  no_proxy:
    description: Comma separated hosts, domains and networks that are reached without O(proxy). Also E(K8S_AUTH_NO_PROXY).
    type: str
  proxy_headers:
    description: Headers for the proxy.
    type: dict
    suboptions:
      proxy_basic_auth:
        description: C(user:password) for the proxy. Also E(K8S_AUTH_PROXY_HEADERS_PROXY_BASIC_AUTH).
        type: str
      basic_auth:
        description: C(user:password) for an C(Authorization) header to the proxy. Also E(K8S_AUTH_PROXY_HEADERS_BASIC_AUTH).
        type: str
      user_agent:
        description: User agent sent to the proxy. Also E(K8S_AUTH_PROXY_HEADERS_USER_AGENT).
        type: str
  impersonate_user:
    description: User to act as. Also E(K8S_AUTH_IMPERSONATE_USER).
    type: str
  impersonate_groups:
    description: Groups to act as, together with O(impersonate_user). Also E(K8S_AUTH_IMPERSONATE_GROUPS), comma separated.
    type: list
    elements: str
  retry_timeout:
    description:
      - Seconds for which requests are retried if the server cannot be reached or responds that it is overloaded.
      - By default a few seconds for the first response, so that a wrong address is reported soon, and a minute once the server has responded.
      - M(kubernetes.core.k8s) and its siblings do not have this option.
    version_added: 0.2.0
    type: float
requirements:
  - python >= 3.11
  - urllib3 >= 2.0
  - PyYAML >= 6.0 (if a kubeconfig is read)
  - kubernetes >= 29.0 (only for kubeconfigs with an exec plugin or an authentication provider)
notes:
  - No option that holds a secret appears in a result, a message, a log or the arguments of a process.
"""
