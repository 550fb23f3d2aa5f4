#!/bin/bash
# Installs the Debian packages that demo and tests use. As another user than
# root it only names the command: tranca never calls sudo.
#
# usage: setup.sh [--vm]
set -eu

declare -A package=(
	[python3]=python3
	[bwrap]=bubblewrap
	[newuidmap]=uidmap
	[setpriv]=util-linux
	[git]=git
)
if [ "${1:-}" = --vm ]; then
	package=(
		[qemu-system-x86_64]=qemu-system-x86
		[mke2fs]=e2fsprogs
		[mmdebstrap]=mmdebstrap
		[ps]=procps
		[awk]=mawk
	)
fi

missing=()
for program in "${!package[@]}"; do
	PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || missing+=("${package[$program]}")
done
# The Python that sandboxes see is the host's own, not one from a home folder.
if [ "${1:-}" != --vm ] && [ ! -x /usr/bin/python3 ]; then
	missing+=(python3)
fi
[ ${#missing[@]} -gt 0 ] || exit 0

command="apt-get install -y --no-install-recommends ${missing[*]}"
if [ "$(id -u)" != 0 ]; then
	echo "setup: missing here: ${missing[*]}" >&2
	echo "setup: what needs them is left out; to have it, as root: $command" >&2
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	echo "setup: install the equivalents of: ${missing[*]}" >&2
	exit 1
fi
echo "setup: $command"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >/dev/null
$command -q >/dev/null
