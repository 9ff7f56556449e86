#!/bin/sh
# Reads logs from where they ended when a machine was started.
# logs.sh mark FOLDER MAC ADDRESS DHCP WEB       records in FOLDER where the logs end now, before a machine is started
# logs.sh SECONDS FOLDER MAC ADDRESS DHCP WEB    prints lines of the machine since then, and waits up to SECONDS for another one.
#                                                Without a record: "earlier", and its lines of the last day, or of whole files
# DHCP: a systemd unit, whose journal is read, or the path of a file. WEB: the path of a file.
set -eu

what=$1 folder=$2 mac=$3 address=$4 dhcp=$5 web=$6
kept=$folder/${mac:-$address}

size() { if [ -r "$1" ]; then wc -c <"$1" | tr -d ' '; else echo 0; fi; }

if [ "$what" = mark ]; then
    mkdir -p "$folder"
    # Written to a temporary file and moved, because another run may read or write it at the same time.
    printf '%s\n' "$(date +%s):$(size "$dhcp"):$(size "$web")" "$dhcp" "$web" >"$kept.$$"
    mv "$kept.$$" "$kept"
    exit
fi

seconds=$what
# The recorded sizes count only for the same logs.
if [ "$(sed 1d "$kept" 2>/dev/null)" = "$(printf '%s\n' "$dhcp" "$web")" ]; then
    mark=$(sed -n 1p "$kept")
else
    mark=$(($(date +%s) - 86400)):0:0
    echo earlier
fi
since=${mark%%:*} sizes=${mark#*:}

# What was added to a file. A file that is shorter than before was rotated.
added() {
    [ -r "$1" ] || return 0
    from=$2
    [ "$(size "$1")" -ge "$from" ] || from=0
    tail -c "+$((from + 1))" "$1"
}

lines() {
    {
        case $dhcp in
        /*) added "$dhcp" "${sizes%:*}" ;;
        *) journalctl --quiet --no-pager --output=short-unix --unit="$dhcp" --since="@$since" ;;
        esac
        added "$web" "${sizes#*:}"
    } | grep -iF -e "${mac:-$address}" -e "$address" || :
}

found=$(lines)
while [ "$seconds" -gt 0 ]; do
    sleep 1
    seconds=$((seconds - 1))
    later=$(lines)
    [ "$later" = "$found" ] || seconds=0
    found=$later
done
printf '%s\n' "$found"
