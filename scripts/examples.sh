#!/bin/bash
# Builds and tests each module under examples/, as somebody from outside would.
set -eu
cd "$(dirname "$0")/../examples"

count=0
for mod in $(find . -name go.mod); do
	echo "examples: $(dirname "$mod")"
	(cd "$(dirname "$mod")" && go vet ./... && go build -o /dev/null ./... && go test ./...)
	count=$((count + 1))
done
if [ $count = 0 ]; then
	echo "examples: no module found" >&2
	exit 1
fi
