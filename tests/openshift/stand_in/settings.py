# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests ask of the stand-in, by variables of its environment. Without any it works as the real tool does on a machine with a registry.

STAND_IN_CALLS     file to which each call adds a line of JSON: arguments, folder, process ID, time
STAND_IN_CLOCK     seconds that its clock is ahead; negative: behind. Certificates, logs and the check of expired ones follow it
STAND_IN_CLUSTER   what a wait finds: complete, no-api, bootstrap-failed, failed, unstable
STAND_IN_FAULT     hang, kill, torn, exit=CODE or slow=SECONDS, with @N: after N files of the target directory were written (faults.py)
STAND_IN_FIPS      yes: the host is in FIPS mode, and the tool the one for it
STAND_IN_IMAGES    folder of kernel, initramfs and rootfs, whose checksums the release then has
STAND_IN_KEYS      folder of private keys for all certificates but root-ca and kubelet-signer, filled by the first runs: a run needs a tenth of the time
STAND_IN_PKI       P-256, P-384, P-521 or RSA-3072, where the feature gate ConfigurablePKI is on
STAND_IN_REGISTRY  unreachable: the release image cannot be read, without which the agent's commands make nothing
STAND_IN_RELEASE   4.20 (one stream of CoreOS), 5.0 (two streams, pointers of a newer specification) or development (5.0, no version injected)
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import datetime
import time

KINDS_OF_KEYS = ("", "P-256", "P-384", "P-521", "RSA-3072")
OUTCOMES = ("complete", "no-api", "bootstrap-failed", "failed", "unstable")


@dataclasses.dataclass(frozen=True)
class Settings:
    """The variables above, by their names without STAND_IN_. clock: seconds."""

    calls: str = ""
    clock: float = 0.0
    cluster: str = "no-api"
    fault: str = ""
    fips: bool = False
    images: str = ""
    keys: str = ""
    pki: str = ""
    registry: str = ""
    release: str = "4.20"

    @classmethod
    def of(cls, environment: c.Mapping[str, str]) -> Settings:
        """Raises ValueError for a variable that is none of these: a fault that a test asks for must not be missed."""
        given = {
            name.removeprefix("STAND_IN_").lower(): value
            for name, value in environment.items()
            if name.startswith("STAND_IN_")
        }
        unknown = sorted(given.keys() - {field.name for field in dataclasses.fields(cls)})
        if unknown:
            raise ValueError(f"the stand-in has no variables for {', '.join(unknown)}")
        clock, fips = float(given.pop("clock", "") or 0), given.pop("fips", "") == "yes"
        settings = cls(clock=clock, fips=fips, **given)
        if settings.cluster not in OUTCOMES:
            raise ValueError(f"STAND_IN_CLUSTER is one of {', '.join(OUTCOMES)}, not {settings.cluster}")
        if settings.pki not in KINDS_OF_KEYS:
            raise ValueError(f"STAND_IN_PKI is one of {', '.join(KINDS_OF_KEYS[1:])}, not {settings.pki}")
        return settings

    def now(self) -> datetime.datetime:
        """The time by the shifted clock, in whole seconds, as certificates have it."""
        return datetime.datetime.fromtimestamp(int(time.time() + self.clock), datetime.UTC)
