#!/bin/bash
# Runs every fuzzer in the tree, one after the other.
#
# usage: fuzz.sh TIME [PATTERN OTHER]
#   With PATTERN, fuzzers that don't match it ("./package Fuzzer", extended
#   regular expression) get the time OTHER instead.
set -eu
cd "$(dirname "$0")/.."

time=$1
pattern=${2:-.}
other=${3:-$1}
count=0
while read -r package fuzzer; do
	for_this=$other
	[[ ! "$package $fuzzer" =~ $pattern ]] || for_this=$time
	echo "fuzz: $package $fuzzer $for_this"
	go test -run '^$' -fuzz "^$fuzzer\$" -fuzztime "$for_this" "$package"
	count=$((count + 1))
done < <(grep -rno --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*(' . |
	sed -E 's/^(.*)\/[^/]*_test\.go:[0-9]*:func (Fuzz[A-Za-z0-9_]*)\(/\1 \2/' | sort)
if [ $count = 0 ]; then
	echo "fuzz: no fuzzer found" >&2
	exit 1
fi
echo "fuzz: $count fuzzers, no finding"
