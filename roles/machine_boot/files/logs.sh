#!/bin/sh
# Reads logs from where they ended when a machine was started.
# logs.sh mark FOLDER MAC ADDRESS DHCP WEB AGAIN     records in FOLDER where the logs end now, before a machine is started
# logs.sh again FOLDER MAC ADDRESS DHCP WEB AGAIN    like mark; and a machine that the boot server has written once is to be written once more
# logs.sh SECONDS FOLDER MAC ADDRESS DHCP WEB AGAIN  prints lines of the machine since then, and waits up to SECONDS for another one.
#                                                    Without a record: "earlier", and its lines of the last day, or of whole files
# DHCP: a systemd unit, whose journal is read, or the path of a file. WEB: the path of a file. AGAIN: the folder of requests to the service
# hwaccel-gpu-once, which exists on boot servers of the role dns_pxe.
set -eu

what=$1 folder=$2 mac=$3 address=$4 dhcp=$5 web=$6 again=$7/$3
kept=$folder/${mac:-$address}

size() { if [ -r "$1" ]; then wc -c <"$1" | tr -d ' '; else echo 0; fi; }

# The service removes the request after it has turned the machine's entries. Nobody may find it later.
renew() {
    [ -n "$mac" ] && [ -d "${again%/*}" ] || return 0
    : >"$again"
    for _try in 1 2 3 4 5 6 7 8 9 10; do
        sleep 1
        [ -e "$again" ] || return 0
    done
    rm -f "$again"
    echo "the service hwaccel-gpu-once does not turn the boot entries of $mac. Next: inspect its log on this boot server" >&2
    return 1
}

if [ "$what" = mark ] || [ "$what" = again ]; then
    mkdir -p "$folder"
    # Written to a temporary file and moved, because another run may read or write it at the same time.
    printf '%s\n' "$(date +%s):$(size "$dhcp"):$(size "$web")" "$dhcp" "$web" >"$kept.$$"
    mv "$kept.$$" "$kept"
    [ "$what" = mark ] || renew
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
