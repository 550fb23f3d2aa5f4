#!/bin/bash
# Prints the path of a root tree as a tarball for the test engines: Debian with
# python3 alone, made once from packages and kept in .cache/engines. Must be root.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=bookworm
folder=$PWD/.cache/engines
arch=$(dpkg --print-architecture)
tar=$folder/python-$suite-$arch-$(sha256sum "$0" | cut -c1-12).tar
if [ ! -s "$tar" ]; then
	mkdir -p "$folder"
	rm -f "$folder"/*.tar
	SOURCE_DATE_EPOCH=1700000000 mmdebstrap --quiet --format=tar --variant=minbase --include=python3 \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
		--dpkgopt='path-exclude=/usr/share/man/*' --aptopt='Acquire::Languages "none"' \
		$suite "$folder/part" >"$folder/mmdebstrap.log" 2>&1 </dev/null || {
		tail -n 20 "$folder/mmdebstrap.log" >&2
		exit 1
	}
	mv "$folder/part" "$tar"
fi
echo "$tar"
