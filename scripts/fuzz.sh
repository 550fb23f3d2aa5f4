#!/bin/bash
# Runs every fuzzer in the tree, one after the other.
#
# usage: fuzz.sh TIME [PATTERN OTHER]
#   With PATTERN, fuzzers that don't match it ("./package Fuzzer", extended
#   regular expression) get the time OTHER instead.
set -euo pipefail
cd "$(dirname "$0")/.."

# one PACKAGE FUZZER TIME. Go's fuzzer sometimes takes the end of its own time
# for a failure ("context deadline exceeded") when its workers are slow to stop;
# a finding always has an input that fails.
one() {
	local output status=0
	output=$(mktemp)
	go test -run '^$' -fuzz "^$2\$" -fuzztime "$3" -fuzzminimizetime 10x "$1" 2>&1 | tee "$output" || status=1
	if [ $status != 0 ] && grep -q 'context deadline exceeded' "$output" &&
		! grep -qE 'Failing input|panic|testdata/fuzz' "$output"; then
		status=0
	fi
	rm "$output"
	return $status
}

time=$1
pattern=${2:-.}
other=${3:-$1}
count=0 found=
while read -r package fuzzer; do
	for_this=$other
	[[ ! "$package $fuzzer" =~ $pattern ]] || for_this=$time
	echo "fuzz: $package $fuzzer $for_this"
	one "$package" "$fuzzer" "$for_this" || found="$found $fuzzer"
	count=$((count + 1))
done < <(grep -rno --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*(' . |
	sed -E 's/^(.*)\/[^/]*_test\.go:[0-9]*:func (Fuzz[A-Za-z0-9_]*)\(/\1 \2/' | sort)
if [ $count = 0 ]; then
	echo "fuzz: no fuzzer found" >&2
	exit 1
fi
if [ -n "$found" ]; then
	echo "fuzz: findings of$found" >&2
	exit 1
fi
echo "fuzz: $count fuzzers, no finding"
