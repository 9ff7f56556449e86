# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a cluster is and who we are there."""

from __future__ import annotations

import collections.abc as c
import dataclasses


@dataclasses.dataclass(frozen=True)
class Credentials:
    """Where the API server is and who we are. Certificates and keys are PEM text, never paths, once this exists."""

    host: str
    ca: str = ""
    verify: bool = True
    server_name: str = ""
    token: str = dataclasses.field(default="", repr=False)
    username: str = ""
    password: str = dataclasses.field(default="", repr=False)
    client_cert: str = dataclasses.field(default="", repr=False)
    client_key: str = dataclasses.field(default="", repr=False)
    proxy: str = dataclasses.field(default="", repr=False)
    no_proxy: str = ""
    proxy_headers: dict[str, str] = dataclasses.field(default_factory=dict, repr=False)
    impersonate_user: str = ""
    impersonate_groups: tuple[str, ...] = ()
    #: Extra headers of impersonation (kubeconfig as-uid, as-user-extra).
    extra_headers: tuple[tuple[str, str], ...] = ()
    #: Where this came from, for messages: "kubeconfig /x, context y".
    source: str = ""
    #: Asks for a fresh token after a 401 (a rotated token file, an exec plugin); None where there is nothing fresher.
    refresh: c.Callable[[], Credentials] | None = dataclasses.field(default=None, compare=False, repr=False)

    def secrets(self) -> tuple[str, ...]:
        """What must appear nowhere."""
        found = [
            self.token,
            self.password,
            self.client_key,
            *(value for name, value in self.proxy_headers.items() if name != "user_agent"),
        ]
        _scheme, _separator, rest = self.proxy.partition("://")
        userinfo, at, _host = rest.rpartition("@")
        if at:
            found += [userinfo, userinfo.partition(":")[2]]
        # Shorter ones would censor half of every message, and guard nothing.
        return tuple(value for value in found if len(value) >= 4)
