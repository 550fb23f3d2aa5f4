#!/bin/bash
# Draws the page of a run of `tranca hostile`, as a browser shows it:
# docs/img/hostile.png. Needs chromium (scripts/setup.sh --ci); without PAGE it runs
# all probes against all backends, which takes minutes.
#
# usage: make build && scripts/hostile-picture.sh [PAGE.html]
set -eu
cd "$(dirname "$0")/.."

work=$(mktemp -d "${TMPDIR:-/tmp}/hostile-picture.XXXXXX")
trap 'rm -rf "$work"' EXIT
page=${1:-}
if [ -z "$page" ]; then
	page=$work/page.html
	bin/tranca hostile --reference --html "$page" || [ $? = 1 ] # what is wrong is a part of the picture
fi
# The browser's own sandbox can't be made by root; the page loads nothing.
HOME=$work chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
	--user-data-dir="$work/profile" --host-resolver-rules="MAP * ~NOTFOUND" --proxy-server=127.0.0.1:1 \
	--window-size=1280,1400 --screenshot="$work/page.png" "file://$(realpath "$page")" 2>"$work/log" ||
	{ cat "$work/log" >&2 && exit 1; }
mkdir -p docs/img
mv "$work/page.png" docs/img/hostile.png
