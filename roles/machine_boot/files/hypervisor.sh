#!/bin/sh
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# hypervisor.sh PYTHON MACHINE DISK POOL
# Prints the state of a hypervisor and of one machine, in parts that begin with "== NAME". It only reads.
# PYTHON: the interpreter of Ansible's modules. DISK: the path of the machine's disk, ignored if there is a POOL.
set -u
python=$1 machine=$2 disk=$3 pool=$4
export LC_ALL=C LIBVIRT_DEFAULT_URI=qemu:///system

part() { printf '\n== %s\n' "$1"; }

# Prints 0 if a disk is empty. QEMU knows which parts of a file were written. It takes all of a device for data, but no device that begins with zeros boots.
written() {
    if [ -f "$1" ]; then
        qemu-img map --force-share --output=json "$1" | grep -c '"data": true'
    elif [ -r "$1" ]; then
        head -c 4096 "$1" | tr -d '\0' | wc -c | tr -d ' '
    else
        echo unknown
    fi
}

part lacking
for program in virsh qemu-img; do command -v "$program" || echo "lacks $program"; done | sed -n 's/^lacks //p'
for library in libvirt lxml; do "$python" -c "import $library" 2>/dev/null || echo "python3-$library"; done
command -v virsh >/dev/null || exit 0
part refused
virsh uri 2>&1 >/dev/null || exit 0

part capabilities
virsh domcapabilities --arch x86_64 --machine q35 2>/dev/null
part bridges
for folder in /sys/class/net/*/bridge; do [ ! -d "$folder" ] || basename "$(dirname "$folder")"; done
virsh net-list --name | while read -r network; do
    [ -z "$network" ] || { part network; virsh net-dumpxml "$network"; }
done
part memory
sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo
part users
virsh list --all --name | while read -r domain; do
    [ -z "$domain" ] || virsh domblklist "$domain" | sed -n '3,$ s|^ *[^ ]*  *\(..*\)$|\1|p' | while read -r used; do
        printf '%s\t%s\n' "$used" "$domain"
    done
done

if virsh dominfo "$machine" >/dev/null 2>&1; then
    part definition
    virsh dumpxml --inactive "$machine"
    part state
    virsh domstate "$machine"
    part autostart
    virsh dominfo "$machine" | sed -n 's/^Autostart: *//p'
fi

if [ -n "$pool" ]; then
    part pool
    virsh pool-dumpxml "$pool" 2>/dev/null
    # Only files have formats. In other pools a volume is a device, or an image of a storage service.
    case $(virsh pool-dumpxml "$pool" 2>/dev/null | sed -n "s/^<pool type='\([^']*\)'.*/\1/p") in
    dir | fs | netfs) volume=$machine.qcow2 ;;
    *) volume=$machine ;;
    esac
    part volume
    echo "$volume"
    size=$(virsh vol-dumpxml --pool "$pool" "$volume" 2>/dev/null | sed -n "s/^ *<capacity unit='bytes'>\([0-9]*\)<.*/\1/p")
    if [ -n "$size" ]; then
        part image
        printf '{"virtual-size": %s}\n' "$size"
        part written
        written "$(virsh vol-path --pool "$pool" "$volume" 2>/dev/null)"
    fi
else
    part room
    df -Pk "$(dirname "$disk")" 2>/dev/null | sed 1d
    if [ -e "$disk" ]; then
        part image
        qemu-img info --force-share --output=json "$disk"
        part written
        written "$disk"
    fi
fi
exit 0
