#!/bin/sh
# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Writes all files or none: =BASE64 PATH on each line of standard input. If the disk is full, no file is changed.
set -eu
umask 022
listed=$(mktemp)
trap 'while read -r path; do rm -f "$path.hwaccel-new"; done <"$listed"; rm -f "$listed"' EXIT
while read -r text path; do
    folder=${path%/*}
    [ -d "$folder" ] || mkdir -p "$folder"
    printf '%s\n' "$path" >>"$listed"
    printf '%s' "${text#=}" | base64 -d >"$path.hwaccel-new"
done
while read -r path; do mv -f "$path.hwaccel-new" "$path"; done <"$listed"
