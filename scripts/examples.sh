#!/bin/bash
# Runs every example. The modules under examples/ are built and tested as
# somebody from outside would; the agents are run with a model that only asks
# to run a program and says what that printed (scripts/examples/model.py), and
# plain Python and Go beside a server. What they need is installed once into
# .cache/examples, in exact versions.
#
# usage: examples.sh [--install]
#   --install  only that
# TRANCA_BIN is the tranca to use; without it, bin/tranca.
set -eu
cd "$(dirname "$0")/.."

claude_version=2.1.197
root=$PWD
bin=${TRANCA_BIN:-$root/bin/tranca}
folder=$root/.cache/examples
failed=0

fail() {
	echo "examples: $*" >&2
	failed=1
}

modules() {
	local mod count=0
	for mod in $(find examples -name go.mod); do
		echo "examples: $(dirname "$mod")"
		(cd "$(dirname "$mod")" && go vet ./... && go build -o /dev/null ./... && go test ./...) || fail "$mod"
		count=$((count + 1))
	done
	[ $count -gt 1 ] || fail "modules are missing"
}

# install puts the frameworks and the agent where nothing else is.
install() {
	local stamp
	stamp=$({
		python3 --version
		cat scripts/examples/requirements.txt
		echo "$claude_version"
	} | sha256sum | cut -c1-16)
	[ ! -e "$folder/$stamp" ] || return 0
	rm -rf "$folder"
	mkdir -p "$folder"
	python3 -m venv "$folder/venv"
	"$folder/venv/bin/pip" install -q --no-deps -r scripts/examples/requirements.txt
	npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder/claude" \
		"@anthropic-ai/claude-code@$claude_version"
	# The one script that is needed: it puts this platform's program in its place.
	(cd "$folder/claude/node_modules/@anthropic-ai/claude-code" && node install.cjs)
	touch "$folder/$stamp"
}

# short EXAMPLE FILE: an example is there to be read. What it imports doesn't
# count.
short() {
	local lines
	lines=$(sed -E '/^import \(/,/^\)/d; /^(import|from|package) /d' "$2" | grep -c .)
	[ "$lines" -le 15 ] || fail "$1: $lines lines: want at most 15"
}

# example NAME FILE COMMAND...: runs one. The answer must be what the program
# printed inside.
example() {
	local name=$1 file=$2 out
	shift 2
	echo "examples: $name"
	short "$name" "examples/$name/$file"
	out=$(timeout 300 "$python" scripts/examples/model.py "$@" 2>"$stage/log") || {
		cat "$stage/log" >&2
		fail "$name ended with status $?"
	}
	[[ $out == *"answer 42 in sandbox"* ]] || {
		cat "$stage/log" >&2
		fail "$name: no answer in: $out"
	}
}

if [ "${1:-}" = --install ]; then
	install
	exit
fi

stage=$(mktemp -d "${TMPDIR:-/tmp}/tranca-examples.XXXXXX")
server=
cleanup() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	rm -rf "$stage"
}
trap cleanup EXIT

serve() {
	"$bin" serve --socket "$stage/s/tranca.sock" >"$stage/serve" 2>&1 &
	server=$!
	for _ in $(seq 600); do
		[ ! -S "$stage/s/tranca.sock" ] || return 0
		sleep 0.1
	done
	cat "$stage/serve" >&2
	fail "the server does not start"
}

modules
[ -x "$bin" ] || {
	echo "examples: $bin is not there: make build" >&2
	exit 1
}
install
python=$folder/venv/bin/python

# Nothing of this user's own settings is used.
mkdir "$stage/bin" "$stage/home"
ln -s "$(realpath "$bin")" "$stage/bin/tranca"
export PATH=$stage/bin:$folder/claude/node_modules/.bin:$PATH HOME=$stage/home
go build -C examples/go -o "$stage/answer" .
serve
export TRANCA_SERVER=unix://$stage/s/tranca.sock PYTHONPATH=$root/sdk/python/src PYTHONDONTWRITEBYTECODE=1

example claude-code run.sh examples/claude-code/run.sh
example openai-agents main.py "$python" examples/openai-agents/main.py
example langchain main.py "$python" examples/langchain/main.py
example smolagents main.py "$python" examples/smolagents/main.py
example python main.py "$python" examples/python/main.py
example go main.go "$stage/answer"

kill "$server"
wait "$server" || fail "the server ended with status $?"
server=
exit $failed
