#!/bin/bash
# Runs every fuzzer in the tree, one after the other, each for the given time.
#
# usage: fuzz.sh TIME [PATTERN]   only fuzzers whose package matches PATTERN
set -eu
cd "$(dirname "$0")/.."

time=$1
pattern=${2:-.}
count=0
while IFS=: read -r file fuzzer; do
	package=./$(dirname "$file")
	[[ $package =~ $pattern ]] || continue
	echo "fuzz: $package $fuzzer $time"
	go test -run '^$' -fuzz "^$fuzzer\$" -fuzztime "$time" "$package"
	count=$((count + 1))
done < <(grep -rno --include='*_test.go' 'func Fuzz[A-Za-z0-9_]*(' . |
	sed -E 's/^\.\/([^:]*):[0-9]*:func (Fuzz[A-Za-z0-9_]*)\(/\1:\2/' | sort)
if [ $count = 0 ]; then
	echo "fuzz: no fuzzer matches $pattern" >&2
	exit 1
fi
