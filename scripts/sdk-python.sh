#!/bin/bash
# Tests the Python package as it would be published: types and style, then the
# built wheel against a real server, as this user and, from root, as one who is
# nobody. What it needs is installed once into .cache/sdk, in exact versions.
#
# usage: sdk-python.sh --install|[arguments of pytest...]
#
# TRANCA_BIN is the tranca to test against; without it, bin/tranca.
set -eu
cd "$(dirname "$0")/.."

bin=${TRANCA_BIN:-$PWD/bin/tranca}
folder=$PWD/.cache/sdk
package=$PWD/sdk/python
# Debian's own where there is one: others may lie in a home folder that is
# closed to other users.
python=$(PATH=/usr/bin:$PATH command -v python3)
stamp=$("$python" --version | cat - "$package/requirements-test.txt" | sha256sum | cut -c1-16)
if [ ! -e "$folder/$stamp" ]; then
	rm -rf "$folder"
	mkdir -p "$folder"
	"$python" -m venv "$folder/venv"
	"$folder/venv/bin/pip" install -q --no-deps -r "$package/requirements-test.txt"
	touch "$folder/$stamp"
fi
[ "${1:-}" != --install ] || exit 0
[ -x "$bin" ] || {
	echo "sdk-python: $bin is not there: make build" >&2
	exit 1
}
tool=$folder/venv/bin

stage=$(mktemp -d "${TMPDIR:-/tmp}/tranca-sdk-test.XXXXXX")
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"
cp "$bin" "$stage/tranca"
cp -r "$package" "$stage/package"
cd "$stage/package"
rm -rf dist

echo "sdk-python: types and style"
"$tool/mypy" --no-incremental
"$tool/ruff" check -q --no-cache
"$tool/ruff" format -q --check --no-cache

echo "sdk-python: the built package"
"$tool/python" -m build --no-isolation --outdir "$stage/dist" . >"$stage/log" 2>&1 || {
	cat "$stage/log" >&2
	exit 1
}
tar -tzf "$stage"/dist/*.tar.gz | grep -q '/src/tranca/py.typed$'
site=$stage/site
cp -r "$folder"/venv/lib/python3*/site-packages "$site"
"$tool/pip" install -q --no-deps --target "$site" "$stage"/dist/*.whl
chmod -R a+rX "$stage"

args=("$@")
failed=0
# suite AS...: the tests, by a command that runs them.
suite() {
	"$@" env PYTHONPATH="$site" TRANCA_BIN="$stage/tranca" PYTHONDONTWRITEBYTECODE=1 \
		"$python" -m pytest -p no:cacheprovider tests "${args[@]}" || failed=1
}
echo "sdk-python: the suite, as $(id -un)"
suite
if [ "$(id -u)" = 0 ]; then
	echo "sdk-python: the suite, as nobody"
	suite setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all \
		env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/nonexistent LANG=C.UTF-8
fi
exit $failed
