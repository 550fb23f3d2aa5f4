#!/bin/bash
# Installs the two clients that `tranca mcp` is tested by into .cache/mcp: the
# `mcp` package from PyPI, and the official inspector from npm. Nothing is done
# where they are there already.
set -eu
cd "$(dirname "$0")/.."

python_version=2.3.0
inspector_version=2.12.0
folder=$PWD/.cache/mcp
failed=0

if [ ! -e "$folder/python-$python_version" ]; then
	rm -rf "$folder/venv"
	mkdir -p "$folder"
	if python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" install -q "mcp==$python_version"; then
		touch "$folder/python-$python_version"
	else
		echo "mcp-clients: the Python client could not be installed" >&2
		failed=1
	fi
fi

if [ ! -e "$folder/inspector-$inspector_version" ]; then
	rm -rf "$folder/inspector"
	mkdir -p "$folder/inspector"
	if npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder/inspector" \
		"@modelcontextprotocol/inspector@$inspector_version"; then
		touch "$folder/inspector-$inspector_version"
	else
		echo "mcp-clients: the inspector could not be installed" >&2
		failed=1
	fi
fi
exit $failed
