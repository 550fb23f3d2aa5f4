#!/bin/bash
# Runs the commands of the README's picture and draws what they print:
# docs/img/run.txt and docs/img/run.svg. Needs root, so that every limit is
# there, python3 and jq.
#
# usage: make build && scripts/picture.sh
set -eu
cd "$(dirname "$0")/.."

if [ "$(id -u)" != 0 ]; then
	echo "picture: run it as root" >&2
	exit 1
fi
PATH=$PWD/bin:$PATH

show() {
	printf '$ %s\n' "$1"
	bash -c "$1" 2>&1 || true # that most of them fail is the point
}

{
	show "tranca run -c 'print(6*7)'"
	show "tranca run --lang sh -c 'cat /etc/shadow ~/.ssh/id_ed25519'"
	show "tranca run -c 'import socket; socket.create_connection((\"192.0.2.1\", 80))' 2>&1 | tail -n 1"
	show "tranca run --timeout 2s -c 'while True: pass'"
	show "tranca run --memory 64MiB -c 'list(range(10**9))'"
	show "tranca run --json -c 'print(6*7)' | jq -r '.enforcement[] | .item + \": \" + .mechanism'"
} >docs/img/run.txt
go run ./scripts/picture -title 'tranca run' <docs/img/run.txt >docs/img/run.svg
