#!/bin/bash
# Installs schemathesis from PyPI, which tests a server against its OpenAPI
# document, into .cache/schemathesis. Nothing is done where it is there already.
set -eu
cd "$(dirname "$0")/.."

version=4.32.5
folder=$PWD/.cache/schemathesis

[ ! -e "$folder/installed-$version" ] || exit 0
rm -rf "$folder"
mkdir -p "$folder"
if python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" install -q "schemathesis==$version"; then
	touch "$folder/installed-$version"
else
	echo "schemathesis: it could not be installed" >&2
	exit 1
fi
