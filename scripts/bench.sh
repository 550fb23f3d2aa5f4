#!/bin/bash
# The speed tables of `make bench`: those of `tranca bench`, then what
# developers measure beyond it and hold against targets (bench/cmd/bench), then
# what image packages measure of themselves. As root the rows of containers have
# an engine of their own, which is stopped again unless it was there before.
#
# usage: bench.sh [flags of tranca bench]
set -euo pipefail
cd "$(dirname "$0")/.."

state=$(mktemp -d)
started=
finish() {
	rm -rf "$state"
	[ -z "$started" ] || scripts/engines.sh stop >/dev/null
}
trap finish EXIT

parts=()
if [ "$(id -u)" = 0 ]; then
	if ! scripts/engines.sh status 2>/dev/null; then
		started=1
		scripts/engines.sh start >&2
	fi
	eval "$(scripts/engines.sh env)"
elif [ -z "${TRANCA_TEST_DOCKER:-}" ]; then
	echo "bench: the container and image rows are left out: they need root, or TRANCA_TEST_DOCKER and TRANCA_TEST_IMAGE" >&2
	parts=(-only targets,starts,stream,agent,server)
fi
if [ -n "${TRANCA_TEST_DOCKER:-}" ]; then
	export TRANCA_CONTAINER_ENGINE=unix://$TRANCA_TEST_DOCKER TRANCA_CONTAINER_IMAGE=$TRANCA_TEST_IMAGE
fi

# Its status says whether the result stands. The other rows are shown in any
# case, and it decides in the end: showing one that doesn't stand has such a
# status, too.
status=0
bin/tranca bench --json "$@" >"$state/result.json" || status=$?
bin/tranca bench --show "$state/result.json" || [ "$status" != 0 ]
[ "$status" -le 1 ] || exit "$status"
for flag; do [[ $flag != --only* ]] || exit "$status"; done
echo
"${GO:-go}" run ./bench/cmd/bench -result "$state/result.json" "${parts[@]}"
CGO_ENABLED=0 "${GO:-go}" test -run '^$' -bench 'Unpack|Open$' -benchtime 3x ./internal/image
exit "$status"
