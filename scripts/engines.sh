#!/bin/bash
# A Docker Engine and two Podman services for tests, apart from any engine that
# the host runs for its users: folders, sockets, users and configuration of
# their own, no network, nothing in the host's packet filter. Must be root.
#
# usage: engines.sh start   what already answers is left as it is
#        engines.sh stop    ends all of it, with every container, and leaves
#                           nothing but the image in .cache/engines
#        engines.sh crash docker|podman|rootless
#                           kills that one with -9 and starts it again
#        engines.sh env     prints what tests read, for eval
#        engines.sh status  succeeds if all of them answer
#
# What tests read:
#   TRANCA_TEST_DOCKER           /run/tranca-test-engines/docker.sock
#   TRANCA_TEST_PODMAN           /run/tranca-test-engines/podman.sock
#   TRANCA_TEST_PODMAN_ROOTLESS  /run/tranca-test-engines/rootless/podman.sock,
#                                the service of the user tranca-test-podman
#   TRANCA_TEST_IMAGE            in all of them: Debian with python3, from packages
# Docker and Podman as root know the runtimes runc and tranca-runsc, which is
# bin/tranca-sentry. Data lies in /var/lib/tranca-test-engines, with logs.
# TRANCA_ENGINES names another set of them, to have one beside another; without
# it, it is tranca-test. TRANCA_SENTRY_REQUIRED=1 fails the start where
# bin/tranca-sentry is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/subids.sh

set=${TRANCA_ENGINES:-tranca-test}
run=/run/$set-engines
data=/var/lib/$set-engines
user=$set-podman
image=localhost/tranca-test:1
parent=/$set-docker # the control group of Docker's containers
# What the engines make outside folders that can be named to them.
strays=(/run/containerd /run/docker /run/runc /var/lib/containers)
sentry=$PWD/bin/tranca-sentry
PATH=$PATH:/usr/sbin:/sbin

# Debian's client, not one that may stand earlier on PATH.
docker=(env -u DOCKER_HOST -u DOCKER_CONTEXT /usr/bin/docker -H "unix://$run/docker.sock")

# podman_command WHO sets `command` to Podman with its own storage and without
# the host's configuration, as root or as the test user.
podman_command() {
	local home=$data/$1
	command=(env -i --chdir=/ HOME="$home" XDG_RUNTIME_DIR="$run/$1"
		PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
		CONTAINERS_CONF="$home/containers.conf" CONTAINERS_STORAGE_CONF="$home/storage.conf"
		/usr/bin/podman)
	[ "$1" != rootless ] || command=(setpriv --reuid="$user" --regid="$(id -g $user)" --clear-groups
		--inh-caps=-all "${command[@]}")
}

# podman_of WHO ARGS
podman_of() {
	local command who=$1
	shift
	podman_command "$who"
	"${command[@]}" "$@"
}

socket_of() { if [ "$1" = rootless ]; then echo "$run/rootless/podman.sock"; else echo "$run/podman.sock"; fi; }

answers() {
	case $1 in
	docker) timeout 5 "${docker[@]}" version >/dev/null 2>&1 ;;
	*) [ "$(timeout 5 curl -s --unix-socket "$(socket_of "$1")" http://engine/_ping 2>/dev/null)" = OK ] ;;
	esac
}

# until_answers NAME LOG: what a daemon said is shown where it doesn't answer.
until_answers() {
	local deadline=$((SECONDS + 60))
	until answers "$1"; do
		if [ $SECONDS -ge $deadline ]; then
			echo "engines: $1 doesn't answer after 60 s; its log ends with:" >&2
			tail -n 20 "$2" >&2
			return 1
		fi
		sleep 0.1
	done
}

# daemon NAME COMMAND: in a session of its own, so that it outlives this shell
# and no signal of a terminal ends it. The number of its process is kept.
daemon() {
	local name=$1
	shift
	setsid "$@" </dev/null >"$data/$name.log" 2>&1 9>&- &
	echo $! >"$run/$name.pid"
}

start_docker() {
	! answers docker || return 0
	end docker
	mkdir -p "$data/docker" "$data/containerd"
	cat >"$data/containerd.toml" <<-TOML
		version = 2
		root = "$data/containerd"
		state = "$run/containerd"
		disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
		[grpc]
		  address = "$run/containerd.sock"
	TOML
	cat >"$data/daemon.json" <<-JSON
		{
		  "runtimes": {"tranca-runsc": {"path": "$sentry"}},
		  "bridge": "none", "iptables": false, "ip6tables": false,
		  "ip-forward": false, "ip-masq": false, "userland-proxy": false,
		  "exec-opts": ["native.cgroupdriver=cgroupfs"], "cgroup-parent": "$parent"
		}
	JSON
	# A containerd of its own, as the packages of every distribution have it:
	# dockerd would otherwise take the host's.
	alive containerd || daemon containerd containerd --config "$data/containerd.toml"
	daemon docker dockerd --config-file "$data/daemon.json" --containerd "$run/containerd.sock" \
		--data-root "$data/docker" --exec-root "$run/docker" --pidfile "$run/dockerd.pid" \
		--host "unix://$run/docker.sock"
	until_answers docker "$data/docker.log"
	"${docker[@]}" image inspect $image >/dev/null 2>&1 ||
		"${docker[@]}" import --change 'CMD ["/bin/sh"]' "$1" $image >/dev/null
}

# configure WHO FOLDER: Podman's defaults for open files and processes may be
# above what the host lets anybody set, so they are given. Over the API it has
# no such defaults to give: there the one who asks for a container must.
configure() {
	cat >"$2/storage.conf" <<-TOML
		[storage]
		driver = "overlay"
		graphroot = "$2/storage"
		rootless_storage_path = "$2/storage"
		runroot = "$run/$1/storage"
	TOML
	cat >"$2/containers.conf" <<-TOML
		[containers]
		default_ulimits = ["nofile=1024:4096", "nproc=4096:4096"]
		[engine]
		cgroup_manager = "cgroupfs"
		events_logger = "file"
		lock_type = "file"
		runtime = "runc"
		static_dir = "$2/storage/libpod"
		tmp_dir = "$run/$1/libpod"
		volume_path = "$2/storage/volumes"
		[engine.runtimes]
		runc = ["/usr/sbin/runc"]
		tranca-runsc = ["$sentry"]
	TOML
}

# start_podman WHO TAR
start_podman() {
	local command who=$1 folder=$data/$1
	! answers "$who" || return 0
	end "$who"
	mkdir -p "$folder" "$run/$who"
	chmod 711 "$folder"
	chmod 700 "$run/$who"
	configure "$who" "$folder"
	[ "$who" != rootless ] || chown $user "$folder" "$run/$who"
	rm -f "$(socket_of "$who")"
	podman_of "$who" image exists $image 2>/dev/null ||
		podman_of "$who" import -q --change 'CMD ["/bin/sh"]' - $image <"$2" >/dev/null 2>"$data/$who.log" || {
		cat "$data/$who.log" >&2
		return 1
	}
	podman_command "$who"
	daemon "$who" "${command[@]}" system service --time=0 "unix://$(socket_of "$who")"
	until_answers "$who" "$data/$who.log"
}

# make_user makes the user whose Podman runs without root.
make_user() {
	id $user >/dev/null 2>&1 ||
		useradd --system --no-create-home --home-dir "$data/rootless" --shell /usr/sbin/nologin $user
	give_subids $user
}

alive() { kill -0 "$(cat "$run/$1.pid" 2>/dev/null)" 2>/dev/null; }

# crash NAME: the daemon dies as by a fault, and comes back.
crash() {
	local pid
	pid=$(cat "$run/$1.pid") || return 1
	# Podman without root starts itself again in a user namespace.
	kill -KILL $(ps -o pid= --ppid "$pid") "$pid" 2>/dev/null || true
	gone "$pid" 50
	if [ "$1" = docker ]; then
		start_docker "$(scripts/engine-image.sh)"
	else
		start_podman "$1" "$(scripts/engine-image.sh)"
	fi
}

# gone PID TENTHS waits until the process has ended, for so long.
gone() {
	local i
	for ((i = 0; i < $2; i++)); do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.1
	done
}

# end NAME: the daemon, politely and then not.
end() {
	local pid
	pid=$(cat "$run/$1.pid" 2>/dev/null) || return 0
	kill -TERM "$pid" 2>/dev/null || true
	gone "$pid" 200
	kill -KILL "$pid" 2>/dev/null || true
	rm -f "$run/$1.pid"
}

# ours lists the processes that name a folder of ours: shims and monitors of
# containers outlive their engine, and so do the containers beneath them.
ours() {
	local entry
	for entry in /proc/[0-9]*; do
		if { tr '\0' ' ' <"$entry/cmdline"; } 2>/dev/null | grep -q "^[^ ]*\(containerd-shim\|conmon\|runc\|tranca-sentry\|podman\|catatonit\|fuse-overlayfs\).*\($run\|$data\)"; then
			echo "${entry#/proc/}"
		fi
	done
	ps -o pid= -u $user 2>/dev/null || true
}

stop() {
	local pid dir
	if answers docker; then
		"${docker[@]}" ps -aq | xargs -r "${docker[@]}" rm -f >/dev/null 2>&1 || true
	fi
	for who in podman rootless; do
		[ ! -e "$data/$who/containers.conf" ] || podman_of $who rm -fa -t 0 >/dev/null 2>&1 || true
	done
	for name in rootless podman docker containerd; do
		end $name
	done
	for pid in $(ours); do
		kill -KILL "$pid" 2>/dev/null || true
	done
	awk -v a="$run/" -v b="$data/" 'index($2, a) == 1 || index($2, b) == 1 { print $2 }' /proc/mounts |
		sort -r | while read -r dir; do umount -l "$dir" || true; done
	for dir in /sys/fs/cgroup{,/*}{"$parent",/libpod_parent}; do
		[ ! -d "$dir" ] || find "$dir" -depth -type d -exec rmdir {} + 2>/dev/null || true
	done
	if [ -e "$data/strays" ]; then
		while read -r dir; do
			rm -f "$dir/cache/blob-info-cache-v1.boltdb"
			[ ! -d "$dir" ] || find "$dir" -depth -type d -empty -delete
		done <"$data/strays"
	fi
	! id $user >/dev/null 2>&1 || userdel $user 2>/dev/null || true
	rm -rf "$run" "$data"
}

env_of() {
	cat <<-ENV
		export TRANCA_TEST_DOCKER=$run/docker.sock
		export TRANCA_TEST_PODMAN=$run/podman.sock
		export TRANCA_TEST_PODMAN_ROOTLESS=$run/rootless/podman.sock
		export TRANCA_TEST_IMAGE=$image
	ENV
}

status() {
	local name missing=0
	for name in docker podman rootless; do
		answers $name || {
			echo "engines: $name doesn't answer" >&2
			missing=1
		}
	done
	return $missing
}

# locked runs the rest with the one lock that start and stop share.
locked() {
	if [ "$(id -u)" != 0 ]; then
		echo "engines: must be root" >&2
		exit 1
	fi
	exec 9>"$run.lock"
	flock 9
}

case ${1:-} in
start)
	locked
	if [ ! -x "$sentry" ]; then
		echo "engines: $sentry is missing: the runtime tranca-runsc doesn't work until it is built" >&2
		[ -z "${TRANCA_SENTRY_REQUIRED:-}" ] || exit 1
	fi
	mkdir -p "$run" "$data"
	chmod 755 "$run" "$data"
	if [ ! -e "$data/strays" ]; then
		for dir in "${strays[@]}"; do [ -d "$dir" ] || echo "$dir"; done >"$data/strays"
	fi
	tar=$(scripts/engine-image.sh)
	make_user
	start_docker "$tar"
	start_podman podman "$tar"
	start_podman rootless "$tar"
	;;
stop)
	locked
	stop
	rm -f "$run.lock"
	;;
crash)
	case ${2:-} in
	docker | podman | rootless) ;;
	*)
		echo "engines: crash what: docker, podman or rootless?" >&2
		exit 2
		;;
	esac
	locked
	crash "$2"
	;;
env) env_of ;;
status) status ;;
*)
	sed -n 's/^# \{0,1\}//; 2,/^$/p' "$0" >&2
	exit 2
	;;
esac
