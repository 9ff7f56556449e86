#!/bin/sh
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Reads a boot server and writes nothing: one line for each thing that was seen, texts in base64. plugins/plugin_utils/machines/runtime/host.py reads them.
#   look.sh CONFIG STATE PACKAGES [PROGRAM ...]
# PACKAGES: names with blanks between them. PROGRAM: a path that may hold what machines boot.
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
config=$1 state=$2 packages=$3
shift 3

encode() { base64 | tr -d '\n'; }
fact() { printf 'fact %s %s\n' "$1" "$(printf '%s' "$2" | encode)"; }
file() {
    [ -f "$1" ] || return 0
    printf 'file %s =%s %s\n' "$(stat -L -c '%a %u %g %.6Z' "$1")" "$(encode <"$1")" "$1"
}
unit() {
    command -v systemctl >/dev/null 2>&1 || return 0
    printf 'unit %s %s\n' "$1" "$(systemctl show "$1" -p LoadState -p ActiveState -p UnitFileState -p ExecMainStartTimestampMonotonic | tr '\n' ' ')"
}
# Whether a file is as Debian's package has brought it.
packaged() {
    sum=$(md5sum <"$1")
    dpkg-query -W -f='${Conffiles}\n' nginx-common | grep -qF " $(readlink -f "$1") ${sum%% *}"
}
# Files of a service that somebody has written: those with a line that is no comment.
written() {
    for path in "$@"; do [ -f "$path" ] && grep -q '^[[:space:]]*[^#[:space:]]' "$path" && ! packaged "$path" && printf '%s\n' "$path"; done
}
# Protocol, address with port, program and unit of everything that waits for somebody.
listeners() {
    ss -Hlntup | while read -r protocol _state _received _sent address _peer process; do
        program=$(printf '%s' "$process" | sed -n 's/.*(("\([^"]*\)".*/\1/p')
        pid=$(printf '%s' "$process" | sed -n 's/[^=]*pid=\([0-9]*\).*/\1/p')
        unit=$([ -n "$pid" ] && ps -o unit= -p "$pid" | tr -d ' ')
        printf '%s %s %s %s\n' "$protocol" "$address" "${program:--}" "${unit:--}"
    done
}

# Missing files and tools are no errors here.
exec 2>/dev/null

fact os_release "$(cat /etc/os-release || cat /usr/lib/os-release)"
fact addresses "$(ip -o address show)"
fact listeners "$(listeners)"
fact packages "$(dpkg-query -W -f='${db:Status-Abbrev} ${Package}\n' $packages | sed -n 's/^ii *//p' || :
    rpm -q --qf '%{NAME}\n' $packages | grep -v 'not installed')"
fact foreign_dnsmasq "$(written /etc/dnsmasq.conf $(ls -d /etc/dnsmasq.d/* | grep -v '/README$\|\.dpkg-\|\.rpm'))"
fact foreign_nginx "$(written /etc/nginx/sites-enabled/* /etc/nginx/conf.d/*.conf)"
fact sums "$(find "$state/files" "$state/ignition" -path "$state/files/images" -prune -o -type f -exec sha256sum {} +
    for path in "$@"; do [ -f "$path" ] && sha256sum "$path"; done)"
fact selinux "$(getenforce)"
fact gpgv "$(command -v gpgv)"
fact firewalls "$(for name in firewalld nftables; do systemctl is-active --quiet "$name" && echo "$name"; done
    ufw status | sed -n 's/^Status: active$/ufw/p')"
for name in dnsmasq nginx; do
    fact "${name}_loaded" "$(stat -c %.6Z "/run/hwaccel-gpu-dns-pxe/$name.loaded")"
    unit "$name"
    file "/etc/systemd/system/$name.service.d/hwaccel-gpu.conf"
done
for path in "$config"/* "$state/record.json" "$state/joined.json"; do file "$path"; done
# Both clocks in the same hundredth of a second: with a pause between them every service would seem to have begun earlier than it has.
for _try in $(seq 50); do
    read -r before _idle </proc/uptime
    now=$(date +%s.%N)
    read -r after _idle </proc/uptime
    [ "$before" != "$after" ] || break
done
fact booted_at "$(echo "$now $after" | awk '{ printf "%.6f", $1 - $2 }')"
echo end
