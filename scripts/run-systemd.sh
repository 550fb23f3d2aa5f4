#!/bin/bash
# Runs the compiled suite as a user who has logged in where systemd runs: the
# only way to limits that hold for a tree is the user's own manager, by D-Bus.
# Used inside the VM. Must be root, in the module's root.
#
# usage: run-systemd.sh TESTRUN BIN LOG [testrun arguments...]
set -eu

testrun=$1 bin=$2 log=$3
shift 3

user=tranca-test-login
useradd --create-home --shell /bin/bash $user
usermod --add-subuids 1000000-1065535 --add-subgids 1000000-1065535 $user
loginctl enable-linger $user
home=$(getent passwd $user | cut -d: -f6)
mkdir -p "$log"
chown $user "$log"

# A login shell is in a session's scope, outside of the user's manager, as
# that of a person at the machine is.
quoted=$(printf ' %q' "$@")
runuser -l $user -c "
	set -eu
	cd '$PWD'
	for _ in \$(seq 600); do [ -S /run/user/\$(id -u)/bus ] && break; sleep 0.1; done
	cat /proc/self/cgroup
	export TRANCA_PROVIDES=unprivileged,subids,systemd,cgroup2,python3
	export TRANCA_TEST_SCALE=${TRANCA_TEST_SCALE:-1}
	exec '$testrun' run -bin '$bin' -log '$log' -name vm-systemd $quoted
"
