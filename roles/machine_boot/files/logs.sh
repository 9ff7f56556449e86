#!/bin/sh
# Reads only.
# logs.sh mark DHCP WEB                        prints where the logs end now
# logs.sh MARK SECONDS MAC ADDRESS DHCP WEB    prints lines of one machine since the mark ("day": of the last day, and whole files), and
#                                              waits so long for another one where SECONDS is not 0
# DHCP: a unit, whose journal is read, or the path of a file. WEB: the path of a file.
set -eu

size() { if [ -r "$1" ]; then wc -c <"$1" | tr -d ' '; else echo 0; fi; }

if [ "$1" = mark ]; then
    echo "$(date +%s):$(size "$2"):$(size "$3")"
    exit
fi

mark=$1 seconds=$2 mac=$3 address=$4 dhcp=$5 web=$6
[ "$mark" != day ] || mark=$(($(date +%s) - 86400)):0:0
since=${mark%%:*} sizes=${mark#*:}

# What was added to a file; a file that is shorter than it was has begun anew.
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
