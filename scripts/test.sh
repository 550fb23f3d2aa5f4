#!/bin/bash
# The whole suite. As root: three runs on this host (see runs.sh), the second
# without what is the same for every user. As another
# user: the one run that fits. With CI set also fuzzers, churn, the examples,
# and the suite in a VM that has nothing but cgroup v2.
set -eu
cd "$(dirname "$0")/.."

bin=$PWD/.cache/testbin
log=$PWD/.cache/testlog
ci=${CI:-}
failed=0
step() { echo "# $(date +%H:%M:%S) $*"; }

# parts prints what this host has for every user.
parts() {
	local program list=
	for program in python3 bwrap prlimit; do
		! command -v $program >/dev/null || list=$list,$program
	done
	[ -z "$ci" ] || list=$list,git,gcc,node,perl,ruby,bash,landlock
	echo "${list#,}"
}

# own_parts prints what this unprivileged user has.
own_parts() {
	local list=unprivileged
	if grep -q "^$(id -un):" /etc/subuid 2>/dev/null && command -v newuidmap >/dev/null; then
		list=$list,subids
	else
		list=$list,no-subids
	fi
	[ -z "${TRANCA_TEST_CGROUP:-}" ] || list=$list,cgroup
	echo "$list,$(parts)"
}

if [ -n "$ci" ]; then
	step "what only CI installs"
	scripts/setup.sh --ci
	scripts/mcp-clients.sh || failed=1
	scripts/schemathesis.sh || failed=1
fi

step "compile"
rm -rf "$log"
mkdir -p "$log" .cache/bin
go build -o .cache/bin/testrun ./scripts/testrun
.cache/bin/testrun build -o "$bin" ./...

# What no run here provides: the VM's parts, and what setup.sh installs in CI
# alone. In CI nothing may be missing.
absent=cgroup1,cgroup2,systemd,perl,node,ruby,gcc,git,mcp-python,mcp-inspector,schemathesis,ia32,pty
if [ "$(id -u)" = 0 ]; then
	step "three runs on this host"
	PATH=$PATH:/usr/sbin:/sbin scripts/runs.sh .cache/bin/testrun "$bin" "$log" "" "$(parts)" || failed=1
else
	step "one run, as $(id -un)"
	absent=$absent,root,cgroup,subids,no-subids,python3,bwrap,process,landlock,newuidmap,subid-files,usermod
	TRANCA_PROVIDES=$(own_parts) .cache/bin/testrun run -bin "$bin" -log "$log" -name own || failed=1
fi

if [ -n "$ci" ]; then
	absent=systemd # only test-vm has it
	# The whole suite takes an hour there, in software: `make test-vm`.
	step "control groups and the core of conformance in a VM with pure cgroup v2"
	scripts/vm.sh -runs root -only '^tranca/internal/linux/cgroup$' || failed=1
	scripts/vm.sh -runs root -only '^tranca/internal/backend/process$' \
		-run '^TestProcess$/^(Exit|Enforcement|Limits|Kill|Usage|NothingLeft)' || failed=1
	step "fuzzers: 60 s for policies, the guest's stream and results, 5 s for the others"
	scripts/fuzz.sh 60s 'policy FuzzParse$|guest/wire|\. Fuzz' 5s || failed=1
	step "a tenth of churn"
	go run ./bench/cmd/churn -sandboxes 100 -kills 2 || failed=1
	step "a minute of soak"
	go run ./bench/cmd/soak -for 1m -kills 2 || failed=1
	step "the examples"
	scripts/examples.sh || failed=1
	step "the Python package"
	scripts/sdk-python.sh || failed=1
	step "a release for both architectures"
	scripts/dist.sh || failed=1
fi

step "what no run provided for"
.cache/bin/testrun check -log "$log" -absent "$absent" || failed=1

if [ $failed != 0 ]; then
	echo FAIL
	exit 1
fi
step "all passed"
