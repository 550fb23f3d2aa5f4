#!/bin/bash
# What `make test` leaves out of the VM: every mechanism and all of conformance
# with pure cgroup v2, and the same as a user who logged in under systemd. Takes
# about an hour, for the VM runs in software.
set -eu
cd "$(dirname "$0")/.."

failed=0
scripts/vm.sh -only '^tranca/internal/linux/(cgroup|forkexec|idrange|landlock|mount|supervisor)$' || failed=1
scripts/vm.sh -only '^tranca/internal/backend/process$' -run '^TestProcess$' || failed=1
scripts/vm.sh --systemd -only '^tranca/internal/linux/cgroup$' || failed=1
scripts/vm.sh --systemd -only '^tranca/internal/backend/process$' -run '^TestProcess$' || failed=1
exit $failed
