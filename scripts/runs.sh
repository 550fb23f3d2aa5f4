#!/bin/bash
# Runs the compiled suite three times on this machine: as root, as a user with
# subordinate ids and delegated cgroups, as a user with neither. Each run
# declares what it provides (see internal/require); that as root has the test
# engines where they run (see engines.sh). Used by test.sh on the host and
# inside the VM. Must be root, in the module's root.
#
# usage: runs.sh TESTRUN BIN LOG PREFIX PARTS [testrun arguments...]
#   PARTS  comma-separated parts of the host that every run here provides
set -eu

testrun=$1 bin=$2 log=$3 prefix=$4 parts=$5
shift 5
. scripts/subids.sh

sub=tranca-test-sub
plain=tranca-test-plain
group=tranca-test-$$
made=()
cgroups=()
stage=$(mktemp -d "${TMPDIR:-/tmp}/tranca-test.XXXXXX")

# leftovers kills what the tests of a user left running, and fails if there is
# anything: what holds for sandboxes holds for tests. What is dead and waits for
# the host's init is nobody's any more.
leftovers() {
	local user pid found=0
	for user in $sub $plain; do
		for pid in $(ps -o pid= -o state= -u "$user" 2>/dev/null | awk '$2 != "Z" { print $1 }'); do
			echo "runs: $user left process $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline")" >&2
			kill -KILL "$pid" 2>/dev/null || true
			found=1
		done
	done
	return $found
}

cleanup() {
	local dir
	leftovers || true
	for dir in "${cgroups[@]}"; do
		find "$dir" -depth -type d -exec rmdir {} + 2>/dev/null ||
			echo "runs: $dir is not empty" >&2
	done
	for user in "${made[@]}"; do
		userdel "$user" 2>/dev/null || true
	done
	rm -rf "$stage"
}
trap cleanup EXIT

make_users() {
	local user
	for user in $sub $plain; do
		id "$user" >/dev/null 2>&1 && continue
		useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$user"
		made+=("$user")
	done
	give_subids $sub
}

# delegate_v1 gives a group of each v1 hierarchy to the user.
delegate_v1() {
	local mount
	for mount in $(awk '$3 == "cgroup" { print $2 }' /proc/mounts); do
		case $mount in *cpuset*) continue ;; esac
		mkdir "$mount/$group"
		cgroups+=("$mount/$group")
		chown -R "$1" "$mount/$group"
	done
}

# delegate_v2 does what systemd does for a user: the group and the files that
# move processes and hand on controllers are the user's, the limits are not.
delegate_v2() {
	local mount dir controller
	mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	[ -n "$mount" ] || return 0
	dir=$mount/$group
	mkdir "$dir"
	cgroups+=("$dir")
	for controller in cpu memory pids; do
		if grep -qw $controller "$mount/cgroup.controllers"; then
			echo +$controller >"$mount/cgroup.subtree_control"
		fi
	done
	mkdir "$dir/runner"
	for dir in "$dir" "$dir/runner"; do
		chown "$1" "$dir" "$dir"/cgroup.{procs,threads,subtree_control}
	done
}

# enter moves the calling shell into the groups that were delegated: a process
# that uses a delegation lives in it.
enter() {
	local dir
	for dir in "${cgroups[@]}"; do
		if [ -d "$dir/runner" ]; then
			echo $BASHPID >"$dir/runner/cgroup.procs"
		else
			echo $BASHPID >"$dir/cgroup.procs"
		fi
	done
}

# copy_tree lays the sources, with their test data, and the binaries where
# every user can read them: a clone may lie in a home folder that is closed.
copy_tree() {
	chmod 755 "$stage"
	mkdir "$stage/tree" "$stage/log"
	tar -c --exclude=./.git --exclude=./.cache --exclude=./dist . | tar -x --no-same-owner -C "$stage/tree"
	mkdir -p "$stage/tree/.cache"
	cp -r "$bin" "$stage/testbin"
	cp "$testrun" "$stage/testrun"
	chmod -R a+rX "$stage"
}

# as_user USER NAME PROVIDES [ENV=VALUE...] -- ARGS: one run.
as_user() {
	local user=$1 name=$2 provides=$3 home env=() status=0
	shift 3
	while [ "$1" != -- ]; do
		env+=("$1")
		shift
	done
	shift
	home=$stage/home-$name
	mkdir "$home" "$stage/log/$name"
	chown "$user" "$home" "$stage/log/$name"
	(
		cd "$stage/tree"
		[ "$user" != $sub ] || enter
		exec setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups --inh-caps=-all \
			env -i HOME="$home" USER="$user" LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin \
			TRANCA_PROVIDES="$provides" TRANCA_TEST_SCALE="${TRANCA_TEST_SCALE:-1}" \
			TRANCA_TEST_SENTRY="$stage/tree/bin/tranca-sentry" "${env[@]}" \
			"$stage/testrun" run -bin "$stage/testbin" -log "$stage/log" -name "$name" "${order[@]}" "$@"
	) || status=1
	mkdir -p "$log"
	cp -r "$stage/log/$name" "$log/"
	return $status
}

make_users
delegate_v1 $sub
delegate_v2 $sub
copy_tree

version=
if grep -q ' cgroup rw' /proc/mounts; then
	version=cgroup1
elif [ -n "$(cat /sys/fs/cgroup/cgroup.controllers 2>/dev/null)" ]; then
	version=cgroup2
fi

# TRANCA_RUNS names the runs to do, all three where it is not set.
wanted() { [[ " ${TRANCA_RUNS:-root sub plain} " == *" $1 "* ]]; }

# Two packages at a time: most of them wait more than they work. What looks at
# the whole host has it for itself.
order=(
	-jobs "${TRANCA_JOBS:-2}"
	-first '/internal/(backend/[a-z]+|badinput|guest/host|sameresult|server/whole|hostiletest|mcp)$'
	-alone '/internal/hoststate$'
)
# What is the same for every user is done by one alone, or, where rights matter
# in a few tests, by root and one other. The first needs root's Go.
by_root='internal/archtest'
by_plain='client|hostile/report|internal/(api|app/direct|backend/fake|browsertest|guest/message|guest/wire|policy|server/openapi|terminal)'
not_by_sub='internal/(agentconfig|archive|engine|guest/host|hostfiles|interpreter|linux/(forkexec|landlock|seccomp|supervisor)|server)'

failed=0
if wanted root; then
	provides=root,cgroup,subids,$version,$parts
	[ -z "${TRANCA_TEST_DOCKER:-}" ] || provides=$provides,docker,podman,podman-rootless,engine-image
	TRANCA_PROVIDES=$provides TRANCA_TEST_SENTRY=$PWD/bin/tranca-sentry \
		"$testrun" run -bin "$bin" -log "$log" -name "${prefix}root" "${order[@]}" -without "^tranca/($by_plain)$" "$@" || failed=1
fi
if wanted sub; then
	as_user $sub "${prefix}sub" "unprivileged,cgroup,subids,$version,$parts" \
		TRANCA_TEST_CGROUP="$(IFS=: && echo "${cgroups[*]}")" -- -without "^tranca/($by_root|$by_plain|$not_by_sub)$" "$@" || failed=1
fi
if wanted plain; then
	as_user $plain "${prefix}plain" "unprivileged,no-subids,$parts" -- -without "^tranca/($by_root)$" "$@" || failed=1
fi
leftovers || failed=1
exit $failed
