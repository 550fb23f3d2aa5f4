#!/bin/bash
# Makes dist/: one static tranca for each architecture with its guest agent and
# gVisor embedded, a bill of materials for each, and checksums; and one for macOS and
# Windows, which speaks to servers. The same sources and Go release give the
# same bytes, wherever they lie.
#
# usage: VERSION=v1.2.3 dist.sh [ARCH...]
set -eu
cd "$(dirname "$0")/.."

version=${VERSION:-dev}
archs=${*:-amd64 arm64}
rm -rf dist
mkdir dist
ldflags="-s -w -buildid= -X tranca/internal/cli.Version=$version"
for arch in $archs; do
	echo "dist: linux/$arch"
	make --no-print-directory -s guest probe sentry GOARCH="$arch"
	GOARCH=$arch go build -ldflags "$ldflags" -o "dist/tranca-linux-$arch" ./cmd/tranca
	go run ./scripts/sbom -version "$version" -o "dist/tranca-linux-$arch.cdx.json" \
		"dist/tranca-linux-$arch" "internal/guest/image/bin/tranca-guest-$arch" \
		"hostile/attempt/image/bin/tranca-probe-$arch" ".cache/sentry/tranca-sentry-$arch"
done
# What this machine's own builds embed, again.
make --no-print-directory -s guest probe sentry
for arch in $archs; do
	for os in darwin windows; do
		name=tranca-$os-$arch
		echo "dist: $os/$arch"
		file=dist/$name
		[ $os != windows ] || file=$file.exe
		GOOS=$os GOARCH=$arch CGO_ENABLED=0 go build -ldflags "$ldflags" -o "$file" ./cmd/tranca
		go run ./scripts/sbom -version "$version" -o "dist/$name.cdx.json" "$file"
	done
done
(cd dist && sha256sum tranca-* >SHA256SUMS && cat SHA256SUMS)
