#!/bin/bash
# The whole suite. As root: three runs on this host (see runs.sh), each without
# what is the same for every user and done by another. As another user: the one
# run that fits. With CI set also the container engines, fuzzers, churn, the
# examples, and the suite in a VM that has nothing but cgroup v2. It ends with a
# table of what each step took.
set -eu
cd "$(dirname "$0")/.."

bin=$PWD/.cache/testbin
log=$PWD/.cache/testlog
ci=${CI:-}
failed=0

. scripts/steps.sh

# parts prints what this host has for every user.
parts() {
	local program list=
	for program in python3 bwrap prlimit; do
		! command -v $program >/dev/null || list=$list,$program
	done
	[ -z "$ci" ] || list=$list,git,gcc,node,perl,ruby,bash,landlock,chromium
	[ ! -x bin/tranca-sentry ] || list=$list,gvisor
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

# installs gets what only CI has, nearly all of it over the network. The
# packages come first, for the rest is installed by them.
installs() {
	local status=0 pids=() pid
	scripts/setup.sh --ci || return 1
	scripts/vm.sh --install || return 1
	scripts/engine-image.sh >&2 &
	pids+=($!)
	scripts/mcp-clients.sh &
	pids+=($!)
	scripts/examples.sh --install &
	pids+=($!)
	{ scripts/schemathesis.sh && scripts/sdk-python.sh --install; } &
	pids+=($!)
	for pid in "${pids[@]}"; do wait "$pid" || status=1; done
	return $status
}

# compile leaves tranca, .cache/bin/testrun and the suite's binaries.
compile() {
	make --no-print-directory -s build && mkdir -p .cache/bin &&
		go build -o .cache/bin/testrun ./scripts/testrun &&
		.cache/bin/testrun build -o "$bin" ./...
}

# weakened runs the tests of a build in which each guarantee can be taken away.
weakened() {
	GOFLAGS="${GOFLAGS:-} -tags=tranca_weaken" .cache/bin/testrun build -o "$bin-weakened" \
		./internal/backend/... ./internal/hostiletest ./hostile || return 1
	if [ "$(id -u)" = 0 ]; then
		scripts/runs.sh .cache/bin/testrun "$bin-weakened" "$log" weakened- "$(parts)" -run '^TestWeakened'
	else
		TRANCA_PROVIDES=$(own_parts) .cache/bin/testrun run -bin "$bin-weakened" -log "$log" -name weakened -run '^TestWeakened'
	fi
}

# in_vm boots twice: what is scaled for software emulation takes an hour in
# full (make test-vm).
in_vm() {
	local status=0
	scripts/vm.sh -runs root -only '^tranca/internal/linux/cgroup$' || status=1
	scripts/vm.sh -runs root -only '^tranca/internal/backend/process$' \
		-run '^TestProcess$/^(Exit|Enforcement|Limits|Kill|Usage|NothingLeft)' || status=1
	return $status
}

# release makes that of this architecture, and sees that the other's programs
# build; but for gVisor, which takes minutes and which make dist builds, too.
release() {
	local own other=arm64
	own=$(go env GOHOSTARCH)
	[ "$own" != arm64 ] || other=amd64
	scripts/dist.sh "$own" && GOARCH=$other go build -o /dev/null ./cmd/tranca ./cmd/tranca-guest ./cmd/tranca-probe
}

rm -rf "$log"
mkdir -p "$log"
# What no run here provides: the VM's parts, and what setup.sh installs in CI
# alone. In CI nothing may be missing.
absent=cgroup1,cgroup2,systemd,perl,node,ruby,gcc,git,mcp-python,mcp-inspector,schemathesis,ia32,pty
absent=$absent,gvisor,docker,podman,podman-rootless,engine-image,chromium
[ -z "$ci" ] || beside "what only CI installs" installs
step "compile" compile
[ $failed = 0 ] || exit 1
if [ -n "$ci" ]; then
	gather
	if ! scripts/engines.sh status 2>/dev/null; then
		at_end 'scripts/engines.sh stop'
		TRANCA_SENTRY_REQUIRED=1 step "container engines" scripts/engines.sh start
	fi
	eval "$(scripts/engines.sh env)"
	absent=systemd # only test-vm has it
fi

if [ "$(id -u)" = 0 ]; then
	PATH=$PATH:/usr/sbin:/sbin step "three runs on this host" \
		scripts/runs.sh .cache/bin/testrun "$bin" "$log" "" "$(parts)"
else
	absent=$absent,root,cgroup,subids,no-subids,python3,bwrap,process,landlock,newuidmap,subid-files,usermod
	TRANCA_PROVIDES=$(own_parts) step "one run, as $(id -un)" \
		.cache/bin/testrun run -bin "$bin" -log "$log" -name own
fi

# Three more runs, of a build of their own: by make test-weakened.
[ -z "${TRANCA_TEST_WEAKENED:-}" ] || PATH=$PATH:/usr/sbin:/sbin step "each guarantee, taken away" weakened

if [ -n "$ci" ]; then
	# These two look at the whole host: nothing beside them.
	step "a tenth of churn, on each rung" scripts/churn.sh 100 2
	step "a minute of soak" go run ./bench/cmd/soak -for 1m -kills 2
	# Emulation leaves most of one processor to others.
	beside "control groups and the core of conformance in a VM with pure cgroup v2" in_vm
	FUZZJOBS=1 step "fuzzers: 60 s for policies, the guest's stream and results, 5 s for the others" \
		scripts/fuzz.sh 60s 'policy FuzzParse$|guest/wire|\. Fuzz' 5s
	gather # some of its programs measure what is beside them
	step "a hostile program for each row, behind every boundary" scripts/hostile.sh quick
	step "the examples" scripts/examples.sh
	step "the Python package" scripts/sdk-python.sh
	step "a release for this architecture" release
	gather
fi

step "what no run provided for" .cache/bin/testrun check -log "$log" -absent "$absent"
table
if [ $failed != 0 ]; then
	echo FAIL
	exit 1
fi
echo "# all passed"
