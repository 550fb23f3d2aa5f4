#!/bin/bash
# Installs the Debian packages that demo and tests use. As another user than
# root it only names the command: tranca never calls sudo.
#
# usage: setup.sh [--test|--ci|--engines|--vm]
#   what the demo needs; with --test also what the suite needs, with --ci what
#   each single test needs, with --engines what the container engines need, with
#   --vm what the virtual machine needs
set -eu

# Each is "program:package". A path is a path; a name is looked up.
needs=(/usr/bin/python3:python3)
case ${1:-} in
--test | --ci)
	needs+=(
		bwrap:bubblewrap newuidmap:uidmap setpriv:util-linux prlimit:util-linux git:git ps:procps
		useradd:passwd
	)
	;;&
--ci)
	# Languages that tranca runs where the host has them, everyday programs
	# that its filter must let through, and what the MCP clients come with.
	needs+=(perl:perl node:nodejs ruby:ruby gcc:gcc /usr/include/stdio.h:libc6-dev npm:npm)
	# A browser for the pages that tranca writes, and letters for its pictures.
	needs+=(chromium:chromium /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf:fonts-dejavu-core)
	python3 -c 'import ensurepip' 2>/dev/null || needs+=(no:python3-venv)
	;;&
--ci | --engines)
	# The engines of scripts/engines.sh, and what their image is made by.
	needs+=(
		dockerd:docker.io /usr/bin/docker:docker.io runc:runc /usr/bin/podman:podman
		newuidmap:uidmap setpriv:util-linux useradd:passwd mmdebstrap:mmdebstrap curl:curl
	)
	;;
--vm)
	needs+=(
		qemu-system-x86_64:qemu-system-x86 mke2fs:e2fsprogs mmdebstrap:mmdebstrap
		ps:procps awk:mawk newuidmap:uidmap setpriv:util-linux
	)
	;;
esac

missing=()
for need in "${needs[@]}"; do
	[ -e "${need%%:*}" ] || PATH=$PATH:/usr/sbin:/sbin command -v "${need%%:*}" >/dev/null ||
		missing+=("${need##*:}")
done
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
# No package starts a service here: the tests' engines are started by their own
# script, apart from the host's.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	trap 'rm -f $policy' EXIT
	printf '#!/bin/sh\nexit 101\n' >$policy
	chmod 755 $policy
fi
$command -q >/dev/null
