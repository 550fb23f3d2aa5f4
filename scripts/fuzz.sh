#!/bin/bash
# Runs every fuzzer in the tree, as many at a time as there are processors, each
# with one worker.
#
# usage: fuzz.sh TIME [PATTERN OTHER]
#   With PATTERN, fuzzers that don't match it ("./package Fuzzer", extended
#   regular expression) get the time OTHER instead.
# FUZZJOBS is how many run at a time.
set -euo pipefail
cd "$(dirname "$0")/.."

# one PACKAGE FUZZER TIME. Go's fuzzer sometimes takes the end of its own time
# for a failure ("context deadline exceeded") when its workers are slow to stop;
# a finding always has an input that fails.
one() {
	local output status=0
	output=$(mktemp)
	go test -run '^$' -fuzz "^$2\$" -fuzztime "$3" -fuzzminimizetime 10x -parallel 1 "$1" >"$output" 2>&1 || status=1
	if [ $status != 0 ] && grep -q 'context deadline exceeded' "$output" &&
		! grep -qE 'Failing input|panic|testdata/fuzz' "$output"; then
		status=0
	fi
	if [ $status = 0 ]; then
		echo "fuzz: $1 $2 $3: $(grep -o 'execs: [0-9]*' "$output" | tail -n 1)"
	else
		{
			echo "fuzz: $1 $2 $3: a finding"
			cat "$output"
		} >&2
	fi
	rm "$output"
	return $status
}

if [ "$1" = --one ]; then
	one "$2" "$3" "$4"
	exit
fi

time=$1 pattern=${2:-.} other=${3:-$1}
list=$(grep -rno --include='*_test.go' --exclude-dir=.cache '^func Fuzz[A-Za-z0-9_]*(' . |
	sed -E 's/^(.*)\/[^/]*_test\.go:[0-9]*:func (Fuzz[A-Za-z0-9_]*)\(/\1 \2/' | sort)
if [ -z "$list" ]; then
	echo "fuzz: no fuzzer found" >&2
	exit 1
fi
# The long ones first, so that none is left alone at the end.
{
	grep -E "$pattern" <<<"$list" | sed "s/$/ $time/" || true
	grep -vE "$pattern" <<<"$list" | sed "s/$/ $other/" || true
} | xargs -P "${FUZZJOBS:-$(nproc)}" -n 3 "$0" --one || {
	echo "fuzz: there are findings" >&2
	exit 1
}
echo "fuzz: $(wc -l <<<"$list") fuzzers, no finding"
