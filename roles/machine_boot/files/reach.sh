#!/bin/sh
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# What a machine answers by SSH, one fact a line: key FINGERPRINT, refused REASON, os ID VERSION, disk NAME (of its root), device NAME (of DEVICE).
# reach.sh SECONDS ADDRESS USER IDENTITY FINGERPRINT DEVICE
# SECONDS: how long to wait until somebody can log in. IDENTITY: path of a private key, empty for those of ssh. FINGERPRINT: of the host key that it must have,
# empty if it is unknown; nobody logs in to a machine with another one. DEVICE: path of a disk there, empty for none.
set -eu

seconds=$1 address=$2 user=$3 identity=$4 fingerprint=$5 device=$6
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
end=$(($(date +%s) + seconds))

# Only keys that may be trusted become known hosts.
keys() {
    : >"$folder/known"
    ssh-keyscan -T 5 "$address" 2>/dev/null | while read -r line; do
        printf '%s\n' "$line" >"$folder/key"
        found=$(ssh-keygen -lf "$folder/key" | cut -d ' ' -f 2)
        echo "key $found"
        [ -n "$fingerprint" ] && [ "$found" != "$fingerprint" ] || cat "$folder/key" >>"$folder/known"
    done
}

login() {
    set -- -o BatchMode=yes -o ConnectTimeout=10 -o StrictHostKeyChecking=yes -o GlobalKnownHostsFile=/dev/null
    set -- "$@" -o UserKnownHostsFile="$folder/known" -l "$user"
    [ -z "$identity" ] || set -- "$@" -o IdentitiesOnly=yes -i "$identity"
    # A system of rpm-ostree has its disk at /sysroot.
    ssh "$@" "$address" DEVICE="'$(printf %s "$device" | sed "s/'/'\\\\''/g")'" sh 2>"$folder/error" <<'REMOTE'
. /etc/os-release
echo "os $ID ${VERSION_ID:-}"
root=$(findmnt -nvo SOURCE /sysroot || findmnt -nvo SOURCE /) || :
lsblk -nsro NAME,TYPE "$root" 2>/dev/null | sed -n 's/^\(.*\) disk$/disk \1/p'
[ -z "$DEVICE" ] || echo "device $(basename "$(readlink -f "$DEVICE")")"
REMOTE
}

while :; do
    keys >"$folder/told"
    if [ -s "$folder/known" ]; then
        if login >>"$folder/told"; then break; fi
        echo "refused $(tail -n 1 "$folder/error")" >>"$folder/told"
    fi
    [ "$(date +%s)" -lt "$end" ] || break
    sleep 5
done
cat "$folder/told"
