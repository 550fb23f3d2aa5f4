#!/bin/bash
# Runs the hostile suite of bin/tranca on this host and compares it with the
# reports in hostile/expected: as root against every backend, the test engines'
# containers among them, and as a user without rights against process and gVisor.
# It fails where something escaped, failed or is unknown where it is promised, or
# is worse than in what is kept. The pages are left in .cache/hostile.
#
# usage: hostile.sh [all|quick|expect]
#   all     every probe (the default)
#   quick   one probe for each row of the catalogue
#   expect  every probe, and keep what was found
set -eu
cd "$(dirname "$0")/.."

what=${1:-all}
out=$PWD/.cache/hostile
mkdir -p "$out"
status=0
# Where the user without rights can read and write; of root's it can do neither.
home=$(mktemp -d /var/tmp/tranca-hostile-user.XXXXXX)
stop=

cleanup() {
	rm -rf "$home"
	[ -z "$stop" ] || scripts/engines.sh stop >/dev/null
}
trap cleanup EXIT

# suite NAME COMMAND... runs the suite as one user, in its folder.
suite() {
	local name=$1 rc=0
	shift
	case $what in
	quick) set -- "$@" --quick --compare "$home/expected.json" ;;
	all) set -- "$@" --compare "$home/expected.json" ;;
	esac
	[ "$what" = expect ] || install -m 644 "hostile/expected/$name.json" "$home/expected.json"
	"$@" --html "$home/$name.html" --json >"$out/$name.json" || rc=$?
	mv "$home/$name.html" "$out/" || true
	echo "hostile: as $name: exit status $rc; the page is .cache/hostile/$name.html"
	[ $rc = 0 ] || bad "$out/$name.json" | tee "$out/$name.bad"
	[ $rc != 1 ] || [ "$what" = expect ] || { again "$name" "$@" && rc=0; }
	[ $rc = 0 ] || status=1
	if [ "$what" = expect ] && [ $rc -le 1 ]; then
		go run ./scripts/hostileshort <"$out/$name.json" >"$out/$name-short.json"
		mv "$out/$name-short.json" "hostile/expected/$name.json"
	fi
}

# bad shows what is wrong in a report, as the command says it to people.
bad() {
	go run ./scripts/hostileshort -bad <"$1"
}

# again NAME COMMAND... runs once more what came out wrong without an escape: a
# busy host lets a limit or a twin come too late. What has escaped has escaped.
again() {
	local name=$1 only=() id
	shift
	! grep -qE ': escaped, |^\(' "$out/$name.bad" || return 1
	for id in $(cut -d' ' -f1 "$out/$name.bad" | sort -u); do only+=(--only "$id"); done
	[ ${#only[@]} -gt 0 ] || return 1
	echo "hostile: as $name: once more: ${only[*]}"
	"$@" "${only[@]}" --html "$home/$name.html" --json >"$out/$name-again.json" || return 1
}

if [ "$(id -u)" != 0 ]; then
	suite user bin/tranca hostile --backend process --backend gvisor
	exit $status
fi

if ! scripts/engines.sh status 2>/dev/null; then
	stop=1
	TRANCA_SENTRY_REQUIRED=1 scripts/engines.sh start >&2
fi
eval "$(scripts/engines.sh env)"
export TRANCA_CONTAINER_ENGINE=$TRANCA_TEST_DOCKER TRANCA_CONTAINER_IMAGE=$TRANCA_TEST_IMAGE
others=()
if [ "$what" != quick ]; then # each program in Python, and its control, once more
	others+=(--reference)
	if command -v bwrap >/dev/null; then
		others+=(--against "bubblewrap=bwrap --unshare-all --die-with-parent --clearenv --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp --chdir /tmp python3 -I -")
	fi
	if command -v firejail >/dev/null; then
		others+=(--against "firejail=firejail --quiet --noprofile --net=none --private --private-dev --private-tmp --private-cwd=/tmp --caps.drop=all --nonewprivs --noroot --seccomp --ipc-namespace -- python3 -I -")
	fi
fi
suite root bin/tranca hostile ${others[@]+"${others[@]}"}
install -m 755 bin/tranca "$home/tranca"
chown -R 65534:65534 "$home"
suite user setpriv --reuid 65534 --regid 65534 --clear-groups \
	env -i HOME="$home" PATH="$PATH" "$home/tranca" hostile --backend process --backend gvisor
exit $status
