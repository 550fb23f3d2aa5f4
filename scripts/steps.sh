# Steps of a long script, one after the other or beside each other, with what
# each took. To be sourced; sets `failed` to 1 when a step fails.

steps=$(mktemp -d "${TMPDIR:-/tmp}/steps.XXXXXX")
took=()    # "seconds name", in the order of their ends
jobs=()    # process of each step in the background
names=()   # and its name
endings=() # commands for the end of the script

# at_end COMMAND: when the script ends in whatever way, the last first.
at_end() { endings=("$1" "${endings[@]}"); }

finish() {
	local pid command
	trap - INT TERM HUP
	# A step in the background leads a group of its own.
	for pid in "${jobs[@]}"; do kill -TERM -- "-$pid" 2>/dev/null || true; done
	for pid in "${jobs[@]}"; do wait "$pid" 2>/dev/null || true; done
	for command in "${endings[@]}"; do eval "$command" || true; done
	rm -rf "$steps"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

tell() { echo "# $(date +%H:%M:%S) $*"; }

# step NAME COMMAND...
step() {
	local name=$1 start=$SECONDS
	shift
	tell "$name"
	"$@" || {
		failed=1
		echo "# failed: $name"
	}
	took+=("$((SECONDS - start)) $name")
}

# beside NAME COMMAND...: begins the step in the background; `gather` waits for
# all of those and prints what they said.
beside() {
	local name=$1 number=${#names[@]}
	shift
	tell "$name (beside others)"
	set -m
	(
		set +m
		start=$SECONDS status=0
		"$@" || status=1
		echo $((SECONDS - start)) >"$steps/$number.seconds"
		exit $status
	) >"$steps/$number.out" 2>&1 </dev/null &
	jobs[number]=$!
	set +m
	names+=("$name")
}

gather() {
	local i
	for i in "${!jobs[@]}"; do
		if wait "${jobs[i]}"; then
			tell "has ended: ${names[i]}"
		else
			failed=1
			tell "failed: ${names[i]}"
		fi
		cat "$steps/$i.out"
		took+=("$(cat "$steps/$i.seconds" 2>/dev/null || echo '?') ${names[i]}")
		unset "jobs[i]"
	done
}

# table prints what the steps took, and the whole.
table() {
	echo "# seconds"
	local entry
	for entry in "${took[@]}"; do printf '# %6s  %s\n' "${entry%% *}" "${entry#* }"; done
	printf '# %6s  in all\n' "$SECONDS"
}
