#!/bin/bash
# Churn on every backend, a small or the whole one: supervisors are killed, and
# the container engine beneath some. Must be root; the test engines must run,
# and be in TRANCA_TEST_DOCKER (see engines.sh).
#
# usage: churn.sh SANDBOXES KILLS
set -euo pipefail
cd "$(dirname "$0")/.."

sandboxes=$1 kills=$2
mkdir -p .cache/bin
go build -o .cache/bin/churn ./bench/cmd/churn
churn() { .cache/bin/churn -kills "$kills" "$@"; }

churn -sandboxes "$sandboxes"
# A Sentry takes several times the processor of a process.
churn -backend gvisor -sandboxes $((sandboxes / 2)) -parallel 8

export TRANCA_CONTAINER_ENGINE=unix://$TRANCA_TEST_DOCKER TRANCA_CONTAINER_IMAGE=$TRANCA_TEST_IMAGE
# An engine that is killed while it makes a container forgets it and leaves its
# folder, which then is nobody's. That it knows of no container is asked below.
churn -backend container -sandboxes $((sandboxes / 4)) -parallel 4 \
	-crashes $((kills / 2)) -crash 'scripts/engines.sh crash docker' -crash-leaves ' /[^ ]*-engines/docker/'
# As a runtime of an engine gVisor holds no exact count of processes.
churn -backend container -runtime tranca-runsc -waive limits.processes -sandboxes $((sandboxes / 4)) -parallel 4
left=$(curl -sf --unix-socket "$TRANCA_TEST_DOCKER" 'http://engine/containers/json?all=1')
if [ "$left" != "[]" ]; then
	echo "churn: containers are left: $left" >&2
	exit 1
fi
