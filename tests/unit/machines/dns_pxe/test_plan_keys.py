# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Live systems that install a machine themselves, and artifacts that hold keys: boot entries, who gets such a file and how, and when it is removed."""

from __future__ import annotations

import dataclasses
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import model, plan, systems
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.predicted import predicted
from ansible_collections.hwaccel.gpu.tests.unit.machines.dns_pxe.boot_server import (
    SERVER,
    after,
    digest,
    faults,
    findings,
    host,
    machine,
    planned,
    settings,
)

CONF, NGINX = f"{plan.CONFIG}/dnsmasq.conf", f"{plan.CONFIG}/nginx.conf"
WEB = f"http://{SERVER}:8080"
MASTER, WORKER = "01-52-54-00-77-00-11", "01-52-54-00-77-00-21"
_BOOTS = {"kernel": "edge/kernel", "initramfs": "edge/initramfs", "rootfs": "edge/rootfs", "live": True}
AGENT = [{"role": role, **_BOOTS} for role in ("master", "worker")]
#: Its own, by which a machine that is not one of the agent's is installed.
OTHER = machine("other-0", "bootstrap", 10, firmware="bios")
KEYS = f"{plan.STATE}/secret/edge/initramfs"
#: The initramfs, as it would be if everybody could get it.
SHOWN = f"{plan.FILES}/images/edge/initramfs"
LIVE = f"coreos.live.rootfs_url={WEB}/images/edge/rootfs ignition.firstboot ignition.platform.id=metal"


def artifacts(**changed: t.Any) -> list[dict[str, t.Any]]:
    """changed: keys of the initramfs."""
    made: list[dict[str, t.Any]] = [
        {"path": path, "source": f"/files/{path}", "checksum": f"sha256:{digest(path)}"}
        for path in ("edge/kernel", "edge/initramfs", "edge/rootfs")
    ]
    made[1] |= {"secret": True, **changed}
    return made


def agent(**changed: t.Any) -> dict[str, t.Any]:
    """master-0 with a BIOS and worker-0 with UEFI are installed by agents, and other-0 in the usual way."""
    base = settings()
    machines = [OTHER, *base["machines"][1:]]
    own = {"profiles": [base["profiles"][0], *AGENT], "artifacts": [*base["artifacts"], *artifacts()]}
    return settings(**{"machines": machines, "ignitions": base["ignitions"][:1], **own, **changed})


def in_place(**changed: t.Any) -> dict[str, t.Any]:
    profile = {**settings()["profiles"][1], "ignition": "master.ign", "live": True, "arguments": ["ip=dhcp"]}
    del profile["install_device"]
    return settings(
        machines=[machine("master-0", "master", 11, install_device="/dev/sda")], profiles=[profile | changed]
    )


def files(given: dict[str, t.Any]) -> dict[str, str]:
    site, wrong = model.read(given)
    family = systems.family({"ID": "debian"})
    assert site and family and not wrong
    return {path.removeprefix(f"{plan.FILES}/"): text for path, text in plan.rendered(site, given, family).items()}


def test_an_agent_boots_without_an_ignition_file_and_its_keys_come_by_http_whatever_the_loader() -> None:
    made = files(agent())
    assert (
        f"  linux /images/edge/kernel {LIVE}\n  initrd (http,{SERVER}:8080)/secret/edge/initramfs\n  boot\n"
        in made[f"grub/{WORKER}"]
    )
    assert (
        f"kernel {WEB}/images/edge/kernel initrd=main {LIVE} || exit 1\ninitrd --name main {WEB}/secret/edge/initramfs ||"
        in made[f"ipxe/{MASTER}.ipxe"]
    )
    assert made[f"pxelinux.cfg/{MASTER}"].endswith("DEFAULT local\nPROMPT 0\nLABEL local\n  LOCALBOOT 0\n")
    assert not [path for path, text in made.items() if "/secret/" in text and path.startswith("pxelinux.cfg")]


def test_a_kernel_and_a_root_file_system_with_keys_come_by_http_too() -> None:
    given = agent(artifacts=[*settings()["artifacts"], *({**one, "secret": "true"} for one in artifacts())])
    text = files(given)[f"grub/{WORKER}"]
    assert f"  linux (http,{SERVER}:8080)/secret/edge/kernel coreos.live.rootfs_url={WEB}/secret/edge/rootfs" in text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pxelinux.cfg/{}", "  APPEND initrd=/images/os/initramfs {}\n"),
        ("grub/{}", "  linux /images/os/kernel {}\n"),
        ("ipxe/{}.ipxe", f"kernel {WEB}/images/os/kernel initrd=main {{}} || exit 1\n"),
    ],
)
def test_a_machine_that_installs_itself_has_its_ignition_file_as_that_of_the_live_system(path: str, text: str) -> None:
    made = files(in_place())[path.format(MASTER)]
    live = f"coreos.live.rootfs_url={WEB}/images/os/rootfs ignition.firstboot ignition.platform.id=metal"
    assert text.format(f"{live} ignition.config.url={WEB}/ignition/master.ign ip=dhcp") in made
    assert "coreos.inst" not in made


def test_only_machines_that_boot_it_get_what_holds_keys_and_nobody_by_tftp() -> None:
    made = files(agent())
    (rule,) = [one for one in made[NGINX].split("location ") if one.startswith("= /secret/edge/initramfs {")]
    assert [line.strip() for line in rule.splitlines() if "allow" in line or "deny" in line or "root" in line] == [
        f"root {plan.STATE};",
        "allow 10.77.0.11;",
        "allow 10.77.0.21;",
        "deny all;",
    ]
    assert "location /secret/ {\n      return 404;" in made[NGINX]
    assert f"tftp-root={plan.FILES}\n" in made[CONF] and not plan.SECRET.startswith(plan.FILES)
    asked = planned(agent())["expected"]
    assert f"{WEB}/secret/edge/initramfs" in asked["refused"]
    assert not [path for path, _sum in (*asked["tftp"], *asked["http"]) if "edge/initramfs" in path]
    assert [path for path, _sum in asked["tftp"] if "edge/" in path] == ["images/edge/kernel"]


def test_nobody_gets_it_once_its_machines_have_joined() -> None:
    made = files(agent(joined={"ocp": ["master-0", "worker-0"]}))
    assert "= /secret/" not in made[NGINX] and "/secret/" not in made[f"grub/{WORKER}"] + made[f"ipxe/{MASTER}.ipxe"]
    observed, found = after(agent())
    assert KEYS in observed.checksums
    result = plan.plan(observed, agent(joined={"ocp": ["master-0", "worker-0"]}), found)
    assert KEYS in result["absent"] and result["protected"] == []


def test_machines_get_ipxe_first_where_what_they_boot_holds_keys() -> None:
    """pxelinux and the signed GRUB of Debian 12 have no HTTP."""
    lines = files(agent())[CONF].splitlines()
    boots = [line.removeprefix("dhcp-boot=tag:machine,") for line in lines if ",tag:!ipxe" in line]
    assert boots[:4] == [
        f"tag:bios,tag:client-bios,tag:!ipxe,tag:keys,undionly.kpxe,,{SERVER}",
        f"tag:bios,tag:client-bios,tag:!ipxe,tag:!keys,pxelinux.0,,{SERVER}",
        f"tag:uefi,tag:client-efi64,tag:!ipxe,tag:keys,snponly.efi,,{SERVER}",
        f"tag:uefi,tag:client-efi64,tag:!ipxe,tag:!keys,shimx64.efi,,{SERVER}",
    ]
    tagged = {line.rsplit(",", 1)[1]: "set:keys" in line for line in lines if line.startswith("dhcp-host=")}
    assert tagged == {"other-0": False, "master-0": True, "worker-0": True}
    given = agent()
    site, _faults = model.read(given)
    # The disk is booted by GRUB, and other-0 by pxelinux.
    assert site and {"undionly.kpxe", "snponly.efi", "grubx64.efi", "pxelinux.0"} <= set(systems.needed(site, given))
    assert "tag:keys" not in files(settings())[CONF], "others boot as before"


def test_files_with_keys_are_copied_for_the_web_server_alone_and_a_second_run_changes_nothing() -> None:
    given = agent()
    first = planned(given)
    assert {"path": "secret/edge/initramfs", "source": "/files/edge/initramfs", "assumed": False} in first["protected"]
    assert [one["path"] for one in first["artifacts"] if one["path"].startswith("edge/")] == [
        "edge/kernel",
        "edge/rootfs",
    ]
    observed, found = after(given)
    assert predicted(plan.plan(observed, given, found), absent=False) == []
    observed.checksums[KEYS] = digest("another one")
    assert predicted(plan.plan(observed, given, found), absent=False) == ["copy secret/edge/initramfs"]


def test_one_that_everybody_could_get_is_removed() -> None:
    observed, found = after(agent())
    assert SHOWN not in plan.plan(observed, agent(), found)["absent"]
    found = dataclasses.replace(found, images={**found.images, "edge/initramfs": digest("edge/initramfs")})
    assert plan.plan(observed, agent(), found)["absent"] == [SHOWN]


def test_what_this_run_is_going_to_make_is_no_fault() -> None:
    given = agent(
        artifacts=[*settings()["artifacts"], *({**one, "assumed": True, "checksum": "unknown"} for one in artifacts())]
    )
    found = findings(settings())
    result = plan.plan(host(), given, found)
    assert result["faults"] == []
    assert {"path": "secret/edge/initramfs", "source": "", "assumed": True} in result["protected"]


@pytest.mark.parametrize(
    ("given", "number", "paths"),
    [
        (agent(), 11, ["/images/edge/rootfs"]),
        (
            agent(profiles=[{key: text for key, text in one.items() if key != "rootfs"} for one in AGENT]),
            11,
            ["/secret/edge/initramfs"],
        ),
        (in_place(), 11, ["/ignition/master.ign"]),
        (in_place(ignition=""), 11, None),
    ],
    ids=["agent", "agent without rootfs", "in place", "nothing to see it by"],
)
def test_a_wish_is_used_up_by_the_last_file_that_only_an_installation_fetches(
    given: dict[str, t.Any], number: int, paths: list[str] | None
) -> None:
    site, _faults = model.read(given)
    assert site
    wanted = site.wanted().paths.get(f"52:54:00:77:00:{number}")
    assert (list(wanted) if wanted else None) == paths
    for path in paths or ():
        (rule,) = [one for one in files(given)[NGINX].split("location ") if one.startswith(f"= {path} {{")]
        assert "access_log /var/log/nginx/hwaccel-gpu-fetched fetched if=$fetched;" in rule.partition("}")[0]


LIVE_WITH_DISK = [{**AGENT[0], "install_device": "/dev/sda"}, AGENT[1]]
ANSWER = {
    "kind": "kickstart",
    "user": "admin",
    "ssh_keys": ["ssh-ed25519 AAAA x@y"],
    "source": "https://m.example.com/",
}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"ipxe": "never"}, "machine master-0 cannot boot files that hold keys"),
        (
            {"ipxe": "never", "machines": [machine("master-0", "master", 11)]},
            "machine master-0 cannot boot files that hold keys",
        ),
        ({"artifacts": artifacts(source="https://mirror.example.com/x")}, "edge/initramfs cannot be downloaded"),
        ({"artifacts": artifacts(signature="/a.sig", keyring="/a.gpg")}, "edge/initramfs cannot be downloaded"),
        ({"artifacts": artifacts(secret="perhaps")}, "perhaps is neither true nor false (dns_pxe_artifacts[1])"),
        ({"profiles": LIVE_WITH_DISK}, "the profile has install_device, and a live system does not read it"),
        (
            {"profiles": [{**AGENT[0], "answer": ANSWER}]},
            "the profile has an answer, and a live system does not read it",
        ),
        ({"profiles": [{**AGENT[0], "live": "perhaps"}]}, "perhaps is neither true nor false (dns_pxe_profiles[0])"),
    ],
)
def test_a_problem_is_reported_with_the_next_step(changed: dict[str, t.Any], expected: str) -> None:
    found = [fault for fault in faults(agent(**changed)) if expected in fault]
    assert found and "Next: " in found[0], faults(agent(**changed))


def test_without_ipxe_a_loader_for_http_boot_is_enough() -> None:
    uefi = [
        OTHER,
        machine("master-0", "master", 11, firmware="uefi"),
        machine("worker-0", "worker", 21, firmware="uefi"),
    ]
    given = agent(ipxe="never", machines=uefi)
    assert len([one for one in faults(given) if "cannot boot files that hold keys" in one]) == 2
    given = agent(ipxe="never", machines=uefi, loaders={"httpx64.efi": "/srv/httpx64.efi"})
    assert not [one for one in faults(given) if "cannot boot files that hold keys" in one]


def test_a_missing_source_is_a_problem_until_the_file_is_there() -> None:
    given = agent()
    observed, found = after(given)
    gone = dataclasses.replace(found, sources={name: one for name, one in found.sources.items() if "edge/" not in name})
    assert plan.plan(observed, given, gone)["faults"] == []
    del observed.checksums[KEYS]
    assert "edge/initramfs is missing" in json.dumps(plan.plan(observed, given, gone)["faults"])
