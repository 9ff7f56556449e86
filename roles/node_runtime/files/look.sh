#!/bin/sh
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Reads a machine and writes nothing: one line for each thing that was seen, texts in base64. plugins/plugin_utils/machines/runtime/host.py reads them.
#   look.sh CONTAINERD_CONFIG [FILE ...]
# What is not there gives an empty text: whether that is wrong is decided on the controller.
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/var/lib/rancher/rke2/bin
LC_ALL=C
export PATH LC_ALL
config=$1
shift

encode() { base64 | tr -d '\n'; }
fact() { printf 'fact %s %s\n' "$1" "$(printf '%s' "$2" | encode)"; }
first() { sed -n 1p "$1"; }
file() {
    [ -f "$1" ] || return 0
    # Of a link, what it leads to: a link's own mode lets everybody write.
    printf 'file %s %s %s\n' "$(stat -L -c '%a %u %g %.6Z' "$1")" "=$(encode <"$1")" "$1"
}
run() {
    name=$1
    shift
    command -v "$1" >/dev/null 2>&1 || return 0
    error=$({ output=$("$@" 2>&3); printf '%s %s' $? "$(printf '%s' "$output" | encode)" >&4; } 3>&1 4>"$scratch/out")
    printf 'command %s %s =%s\n' "$name" "$(sed 's/ / =/' "$scratch/out")" "$(printf '%s' "$error" | encode)"
}
# When the clock of processes began, in that of files. Read one after the other, where the machine does something else in between, every service would seem
# to have begun earlier than it has, and its files to be newer: the pair that was read closest together counts.
booted_at() {
    closest=
    for _try in 1 2 3 4 5 6 7 8 9 10; do
        read -r before _idle </proc/uptime
        now=$(date +%s.%N)
        read -r after _idle </proc/uptime
        apart=$((${after%.*}${after#*.} - ${before%.*}${before#*.}))
        if [ -z "$closest" ] || [ "$apart" -lt "$closest" ]; then closest=$apart clocks="$now $after"; fi
        [ "$closest" -gt 1 ] || break
    done
    echo "$clocks" | awk '{ printf "%.6f", $1 - $2 }'
}
unit() {
    command -v systemctl >/dev/null 2>&1 || return 0
    printf 'unit %s %s\n' "$1" "$(systemctl show "$1" -p LoadState -p ActiveState -p UnitFileState -p ExecMainStartTimestampMonotonic | tr '\n' ' ')"
}
# The files that a containerd configuration imports, in their order.
imports() {
    sed -n '/^[[:space:]]*imports[[:space:]]*=/{:more;s/#[^\n]*//g;/\]/!{N;b more
};s/\].*//;p;q;}' "$1" | tr ',[]' '\n\n\n' | sed -n "s/^.*[\"']\(.*\)[\"'].*/\1/p" |
        while read -r pattern; do
            case $pattern in /*) ;; *) pattern=$(dirname "$1")/$pattern ;; esac
            for path in $pattern; do
                printf 'import %s\n' "$path"
                file "$path"
            done
        done
}

# Missing files and tools are no errors here.
exec 2>/dev/null
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fact os_release "$(cat /etc/os-release || cat /usr/lib/os-release)"
fact kernel "$(uname -r)"
fact machine "$(uname -m)"
fact ostree "$([ -e /run/ostree-booted ] && echo yes)"
fact usr_writable "$([ -w /usr ] && echo yes)"
fact etc_writable "$([ -w /etc ] && echo yes)"
fact tegra "$(first /etc/nv_tegra_release)"
fact model "$(tr -d '\0' </proc/device-tree/model)"
fact csv "$(find /etc/nvidia-container-runtime/host-files-for-container.d -name '*.csv' | sort | tr '\n' ' ')"
fact gpus "$(for folder in /sys/bus/pci/devices/*; do [ "$(first "$folder/vendor")" = 0x10de ] && sed -n '/^0x03/p' "$folder/class"; done)"
fact modules "$(sed -n 's/^\(nvidia\|nouveau\) .*/\1/p' /proc/modules)"
fact driver "$(first /sys/module/nvidia/version)"
fact driver_in_container "$([ -e /run/nvidia/driver/usr ] && echo yes)"
fact module_file "$(modinfo -F filename nvidia)"
fact signer "$(modinfo -F signer nvidia)"
fact secure_boot "$(od -An -t u1 -j 4 -N 1 /sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c | tr -d ' ')"
fact cgroup "$(stat -fc %T /sys/fs/cgroup)"
fact swap "$(sed 1d /proc/swaps)"
fact clock "$(timedatectl show -p NTPSynchronized --value)"
fact disk_kib "$(df -Pk /var/lib | sed -n '2s/[[:space:]]\{1,\}/ /gp' | cut -d' ' -f4)"
fact apparmor "$(first /sys/module/apparmor/parameters/enabled)"
fact selinux "$(getenforce)"
fact container_use_devices "$(getsebool container_use_devices)"
fact denials "$(ausearch -m avc -ts today | sed -n '/container_t/{/nvidia\|xserver_misc_device_t/p;}' | sed -n '1,5p')"
fact managers "$(for name in apt-get dnf rpm-ostree; do command -v "$name"; done)"
fact package "$(dpkg-query -W -f='${db:Status-Abbrev} ${Version}' nvidia-container-toolkit | sed -n 's/^ii *//p' ||
    rpm -q --qf '%{VERSION}-%{RELEASE}' nvidia-container-toolkit)"
fact runtime_binary "$(command -v nvidia-container-runtime || ls /usr/local/nvidia/toolkit/nvidia-container-runtime)"
fact runtime_since "$(stat -L -c %.6Z "$(command -v nvidia-container-runtime)")"
for product in k3s rke2; do
    generated=/var/lib/rancher/$product/agent/etc/containerd/config.toml
    [ -f "$generated" ] && fact "${product}_generated" "$(grep -c nvidia-container-runtime "$generated")"
done
fact booted_at "$(booted_at)"

fact folders "$(for path in "$@"; do [ -d "${path%/*}" ] && echo "${path%/*}"; done)"

for name in containerd docker crio k3s k3s-agent rke2-server rke2-agent kubelet nvidia-cdi-refresh.path hwaccel-gpu-cdi.path; do unit "$name"; done

run containerd containerd --version
run docker dockerd --version
run crio crio --version
run k3s k3s --version
run rke2 rke2 --version
run kubelet kubelet --version
# Asked while it is stopped, its socket would start it.
[ "$(systemctl is-active docker)" = active ] && run docker_live_restore docker info --format '{{.LiveRestoreEnabled}}'
run nvidia_ctk nvidia-ctk --version
run cdi nvidia-ctk cdi list
if [ -f "$config" ]; then run containerd_dump containerd -c "$config" config dump; else run containerd_dump containerd config default; fi

file "$config"
imports "$config"
for path in "$@"; do file "$path"; done
echo end
