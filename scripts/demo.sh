#!/bin/bash
# Shows tranca at work: an answer, limits, and things that code would like to
# do. Works as root and as another user; what this host can't enforce for that
# user is refused, and the refusal is shown as it is.
set -u
cd "$(dirname "$0")/.."

tranca=bin/tranca
bold= plain=
if [ -t 1 ]; then
	bold=$'\e[1m' plain=$'\e[0m'
fi

say() { printf '\n%s== %s%s\n' "$bold" "$1" "$plain"; }

waivers=()

# show CAPTION ARGS...: prints a run, does it, says how it ended.
show() {
	say "$1"
	shift
	printf '$ tranca run'
	[ ${#waivers[@]} = 0 ] || printf ' (--waive ...)'
	printf ' %s' "${@@Q}" | sed "s/'\([-a-zA-Z0-9_.,=/]*\)'/\1/g"
	printf '\n'
	local status
	"$tranca" run "${waivers[@]}" "$@" 2>&1 | awk 'NR <= 45 { print } NR == 46 { print "..." }'
	status=${PIPESTATUS[0]}
	case $status in
	0) ;;
	124) echo "-> status 124: a limit ended it" ;;
	125) echo "-> status 125: tranca's own error" ;;
	126) echo "-> status 126: refused; nothing was run" ;;
	*) echo "-> status $status" ;;
	esac
	return "$status"
}

say "$("$tranca" version 2>/dev/null | head -n 1)"
if ! show "An answer" -c 'print(6*7)'; then
	# The refusal names what may be waived, item by item; nothing else is.
	mapfile -t items < <("$tranca" run -c 'print(6*7)' 2>&1 | grep -o -- '--waive [a-z_.]*' | sort -u | cut -d' ' -f2)
	if [ ${#items[@]} -gt 0 ]; then
		echo
		echo "For this user the host doesn't enforce all that the default policy asks; the"
		echo "refusal says what mends it. The demo goes on with these items waived by name,"
		echo "so what they would bound is bounded for each process at most."
	fi
	for item in "${items[@]}"; do
		waivers+=(--waive "$item")
	done
	show "An answer" -c 'print(6*7)' || {
		echo "demo: this host can't run the process backend for this user; see above" >&2
		"$tranca" doctor
		exit 1
	}
fi

show "An endless loop, with two seconds of wall-clock time" \
	--timeout 2s -c 'while True: pass'
show "Memory without end, with 64 MiB" \
	--memory 64MiB -c 'blocks = []
while True: blocks.append(bytearray(1 << 20))'
show "The host's passwords" \
	-c 'print(open("/etc/shadow").read())'
show "A way out to the network" \
	-c 'import socket
socket.create_connection(("192.0.2.1", 80), timeout=2)'
show "The processes of the host" \
	-c 'import os
print([p for p in os.listdir("/proc") if p.isdigit()])'
show "The whole answer, as the operator gets it" \
	--json -c 'print("hello")'

say "What this host can enforce (tranca doctor)"
"$tranca" doctor
exit 0
