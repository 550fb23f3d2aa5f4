#!/bin/bash
# Lays the built gVisor where tranca embeds it from: NAME.gz and NAME.sha256.
# What is the same already stays as it is, so that what embeds it isn't linked
# anew. One for this machine is also left as bin/tranca-sentry.
#
# usage: embed-sentry.sh BINARY NAME
set -euo pipefail

binary=$1 name=$2
digest=$(sha256sum "$binary" | cut -d' ' -f1)
if [ "$(cat "$name.sha256" 2>/dev/null)" != "$digest" ] || [ ! -s "$name.gz" ]; then
	rm -f "$name.sha256" # it vouches for the other, so it goes first and comes last
	# Made elsewhere: a build beside this one embeds whatever it finds there.
	gzip -9nc "$binary" >"$binary.gz.$$"
	mv "$binary.gz.$$" "$name.gz"
	echo "$digest" >"$name.sha256"
fi
if [[ $name == *-$(go env GOHOSTARCH) ]] && ! cmp -s "$binary" bin/tranca-sentry; then
	mkdir -p bin
	cp "$binary" bin/tranca-sentry.part
	mv bin/tranca-sentry.part bin/tranca-sentry # it may be running
fi
