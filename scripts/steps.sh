# Steps of a long script, one after the other or beside each other, with what
# each took. To be sourced; sets `failed` to 1 when a step fails, and `table`
# says once more what did: of a long output often only the end is kept.

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

# step NAME COMMAND... runs it in a shell of its own.
step() {
	local name=$1 start=$SECONDS
	shift
	tell "$name"
	{ "$@" || false; } 2>&1 | tee "$steps/out"
	[ "${PIPESTATUS[0]}" = 0 ] || fail "$name" "$steps/out"
	took+=("$((SECONDS - start)) $name")
}

# fail NAME FILE: the step has failed; keeps those of its lines that say how.
fail() {
	failed=1
	tell "failed: $1"
	{
		echo "# failed: $1"
		grep -aE '^ *--- FAIL|^FAIL|^panic:|^[a-z]+: |^ +[a-z0-9_]+\.go:[0-9]+: | in .*: [a-z/]+, (want|before) ' "$2" |
			grep -avE '^(tranca: [0-9]+ of|fuzz:|examples:|dist:) ' |
			cut -c1-300 | head -n 100
		echo "# its last lines"
		tail -n 5 "$2" | cut -c1-300
	} >>"$steps/failures"
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
			fail "${names[i]}" "$steps/$i.out"
		fi
		cat "$steps/$i.out"
		took+=("$(cat "$steps/$i.seconds" 2>/dev/null || echo '?') ${names[i]}")
		unset "jobs[i]"
	done
}

# table prints what the steps took, the whole, and what failed.
table() {
	echo "# seconds"
	local entry
	for entry in "${took[@]}"; do printf '# %6s  %s\n' "${entry%% *}" "${entry#* }"; done
	printf '# %6s  in all\n' "$SECONDS"
	[ ! -e "$steps/failures" ] || cat "$steps/failures"
}
