#!/bin/bash
# The speed tables of `make bench`: those of bench/cmd/bench, then those that
# image packages measure of themselves. As root the container rows have an engine
# of their own, which is stopped again unless it was there before.
#
# usage: bench.sh [flags of bench/cmd/bench]
set -euo pipefail
cd "$(dirname "$0")/.."

parts=()
if [ "$(id -u)" = 0 ]; then
	if ! scripts/engines.sh status 2>/dev/null; then
		trap 'scripts/engines.sh stop >/dev/null' EXIT
		scripts/engines.sh start >&2
	fi
	eval "$(scripts/engines.sh env)"
elif [ -z "${TRANCA_TEST_DOCKER:-}" ]; then
	echo "bench: the container and image rows are left out: they need root, or TRANCA_TEST_DOCKER and TRANCA_TEST_IMAGE" >&2
	parts=(-only starts,throughput,idle,gvisor,stream,agent,server)
fi
"${GO:-go}" run ./bench/cmd/bench "${parts[@]}" "$@"
for flag; do [[ $flag != -only* && $flag != --only* ]] || exit 0; done
CGO_ENABLED=0 "${GO:-go}" test -run '^$' -bench 'Unpack|Open$' -benchtime 3x ./internal/image
