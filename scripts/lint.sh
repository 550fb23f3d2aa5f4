#!/bin/bash
# Runs golangci-lint at the pinned version, built once into .cache/bin. It
# stays out of go.mod: a linter's dependencies are not ours.
set -eu
cd "$(dirname "$0")/.."

version=v2.15.0
bin=$PWD/.cache/bin
tool=$bin/golangci-lint-$version
if [ ! -x "$tool" ]; then
	echo "lint: building golangci-lint $version (some minutes, once)"
	mkdir -p "$bin"
	GOFLAGS= GOBIN=$bin go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"
	mv "$bin/golangci-lint" "$tool"
fi
test -z "$(gofmt -l $(git ls-files '*.go'))" || {
	echo "lint: not gofmt-ed:" $(gofmt -l $(git ls-files '*.go')) >&2
	exit 1
}
# The command and the client are also for those who have no Linux at hand.
for os in darwin windows; do
	GOOS=$os CGO_ENABLED=0 go build -o /dev/null ./cmd/tranca
	GOOS=$os CGO_ENABLED=0 go build ./client
done
exec "$tool" run "$@" ./...
