#!/bin/bash
# Runs compiled tests in a VM with pure cgroup v2 and Landlock, in software.
# Fetches the kernel and QEMU by the distribution's packages. Must be root, so
# that the files in the VM's root are root's.
#
# usage: vm.sh --install | [--systemd] [vmrun arguments...]
#   --install    only fetches what a VM without systemd needs
#   --systemd    a root with systemd, and the tests as a user who logged in;
#                else a root from files of this host, and runs.sh
#   e.g. -only REGEXP, -command 'sh command'; see scripts/vmrun
set -eu
cd "$(dirname "$0")/.."

if [ "$(id -u)" != 0 ]; then
	echo "vm: must be root to make the VM's root tree" >&2
	exit 1
fi
export CGO_ENABLED=0 PATH=$PATH:/usr/sbin:/sbin
scripts/setup.sh --vm

cache=.cache/vm
kernel=$cache/kernel
if ! compgen -G "$kernel/boot/vmlinuz-*" >/dev/null; then
	mkdir -p "$kernel"
	apt-get update -q >/dev/null
	package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p')
	(cd "$kernel" && apt-get download -q -o APT::Sandbox::User=root "$package" >/dev/null)
	dpkg -x "$kernel"/linux-image-*.deb "$kernel"
	rm "$kernel"/linux-image-*.deb
fi

[ "${1:-}" != --install ] || exit 0
base=()
if [ "${1:-}" = --systemd ]; then
	shift
	base=(-base "$cache/systemd.tar")
	if [ ! -s "$cache/systemd.tar" ]; then
		suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
		mmdebstrap --quiet --variant=minbase \
			--include=systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,python3-minimal,uidmap,procps \
			"$suite" "$cache/systemd.part" 2>"$cache/mmdebstrap.log" ||
			{ tail -n 20 "$cache/mmdebstrap.log" >&2; exit 1; }
		mv "$cache/systemd.part" "$cache/systemd.tar"
	fi
fi

mkdir -p .cache/bin
go build -o .cache/bin/vminit ./internal/vmtest/init
go build -o .cache/bin/testrun ./scripts/testrun
go build -o .cache/bin/vmrun ./scripts/vmrun
exec .cache/bin/vmrun "${base[@]}" "$@"
