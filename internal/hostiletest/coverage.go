package hostiletest

// Row says where one row of the catalogue is tried against the process
// backend, or why it is not. Rows that no process sandbox can hold are left
// out, but for those of which a part is.
type Row struct {
	// ID is the row's name in the catalogue.
	ID string
	// What the program does.
	What string
	// Tests are the tests that try it, in packages process and hostiletest.
	Tests []string
	// Not says what of it is not tried, and why.
	Not string
}

const (
	later     = "it needs an allowlist and a proxy, which come with a later part; the network is none"
	noServer  = "there is no server yet that hands out credentials"
	noisyHost = "a neighbour's latency can't be measured on a host that other things share; "
)

// Rows lists the catalogue.
func Rows() []Row {
	return append(append(append(append(lifeRows(), spaceRows()...), fileRows()...), networkRows()...), otherRows()...)
}

func lifeRows() []Row {
	return []Row{
		{"CPU-01", "busy loop", []string{"TestHostileLimits"}, ""},
		{"CPU-02", "more threads than the share of CPUs", []string{"TestHostileLimits"}, ""},
		{"CPU-03", "sleep past the wall clock", []string{"TestHostileWall"}, ""},
		{"CPU-04", "ignore every signal", []string{"TestHostileWall"}, ""},
		{"CPU-05", "child burns, parent waits", []string{"TestHostileLimits"}, ""},
		{"CPU-06", "parent exits, child loops", []string{"TestHostileLeavers"}, ""},
		{"CPU-07", "grandchild keeps the output open", []string{"TestHostileLeavers"}, ""},
		{"CPU-08", "double fork, own session, closed descriptors", []string{"TestHostileLeavers"}, ""},
		{"CPU-10", "a call times out", []string{"TestHostileTimedOutCall"}, ""},
		{"CPU-11", "supervisor killed in mid run", []string{"TestHostileSupervisorDeath"}, ""},
		{"CPU-12", "two runs in one sandbox", []string{"TestHostileTwoRuns"}, ""},
		{"CPU-13", "real time, negative nice, affinity", []string{"TestHostileShares"},
			"affinity: no CPU is set aside for anybody, so choosing among those of the host takes nothing from others"},
		{"PRC-01", "fork bomb", []string{"TestHostileLimits", "TestHostileKill"},
			"latency of forks on the host: " + noisyHost + "the bomb is bounded by the limit"},
		{"PRC-02", "thread bomb", []string{"TestHostileLimits"}, ""},
		{"PRC-03", "zombies", []string{"TestHostileLimits"}, ""},
		{"PRC-05", "descriptors without end", []string{"TestHostileLimits"}, ""},
		{"PRC-07", "one sandbox starves another of processes", []string{"TestHostileStarvation"}, ""},
	}
}

func spaceRows() []Row {
	return []Row{
		{"MEM-01", "touch more than the limit", []string{"TestHostileLimits"}, ""},
		{"MEM-02", "six children, each below the limit", []string{"TestHostileLimits"}, ""},
		{"MEM-03", "fill every tmpfs", []string{"TestHostileLimits"}, ""},
		{"MEM-05", "lock memory, huge pages", []string{"TestHostileShares"}, ""},
		{"MEM-06", "kernel memory", []string{"TestHostileLimits"},
			"unix queues, epoll, timers: pipes stand for them; what the kernel does not charge to a group is not bounded"},
		{"MEM-08", "keyring quota", []string{"TestHostileShares", "TestHostileKernel"}, ""},
		{"MEM-09", "push to swap", []string{"TestHostileNoSwap"}, ""},
		{"MEM-10", "1 TiB untouched", []string{"TestHostileLimits"}, ""},
		{"MEM-11", "lower one's own OOM score", []string{"TestHostileLimits"}, ""},
		{"MEM-12", "run out of memory, then the next call", []string{"TestHostileOOMThenMore", "TestHostileOOMInSession"}, ""},
		{"DSK-01", "one big file", []string{"TestHostileLimits"}, "a writable host mount has no bound, which the operator has to accept"},
		{"DSK-02", "many empty files", []string{"TestHostileLimits"}, "the same"},
		{"DSK-03", "sparse file as artifact", []string{"TestHostileArtifacts"}, ""},
		{"DSK-04", "write every path", []string{"TestHostileFiles"}, ""},
		{"DSK-05", "hard link to a protected file", []string{"TestHostileFiles", "TestHostileMounts"}, ""},
		{"DSK-06", "FIFO, socket, device, endless link as artifact", []string{"TestHostileArtifacts", "TestHostileMounts"}, ""},
		{"DSK-10", "fsync storm", []string{"TestHostileKernel"}, "fsync of an own file is allowed, sync of all is not; " + noisyHost + "nothing bounds the disk's bandwidth"},
		{"DSK-11", "very many artifacts", []string{"TestHostileManyArtifacts"}, "archives: none is ever unpacked on the host"},
		{"OUT-01", "stdout flood", []string{"TestHostileFloods", "TestHostileOutputEnds", "TestHostileHugeLine"}, ""},
		{"OUT-02", "stderr flood", []string{"TestHostileFloods"}, ""},
		{"OUT-03", "endless line", []string{"TestHostileFloods"}, ""},
		{"OUT-04", "one huge line", []string{"TestHostileHugeLine"}, ""},
		{"OUT-05", "invalid UTF-8, a cut character", []string{"TestHostileBytes"}, ""},
		{"OUT-06", "NUL", []string{"TestHostileBytes"}, ""},
		{"OUT-07", "terminal control", []string{"TestHostileBytes", "TestHostileTerminal"}, ""},
		{"OUT-09", "forged results", []string{"TestHostileMarkers"}, ""},
		{"OUT-13", "the terminal", []string{"TestHostileFiles", "TestHostileOwnTerminal"}, ""},
	}
}

func fileRows() []Row {
	return []Row{
		{"FS-01", "secrets of the host's users", []string{"TestHostileSecrets"}, ""},
		{"FS-02", "variables of the supervisor", []string{"TestHostileSecrets"}, ""},
		{"FS-03", "environment of the first process", []string{"TestHostileSecrets", "TestHostileKernel"}, ""},
		{"FS-04", "processes of the host", []string{"TestHostileSecrets"}, ""},
		{"FS-05", "sockets of the host", []string{"TestHostileFiles", "TestHostSocketInMount"}, ""},
		{"FS-09", "the runtime's own program", []string{"TestHostileFiles"}, ""},
		{"FS-10", "the kernel's own files", []string{"TestHostileSecrets"}, ""},
		{"FS-12", "devices", []string{"TestHostileFiles"}, ""},
		{"FS-13", "mount, unmount, pivot", []string{"TestHostileFiles"}, ""},
		{"FS-14", "walk out of the root", []string{"TestHostileFiles"}, ""},
		{"FS-15", "cgroups", []string{"TestHostileFiles"}, ""},
		{"FS-16", "file requests through links", []string{"TestHostileFileRequests"}, "archives: there is no request that unpacks one"},
		{"FS-17", "swap folder and link while the host reads", []string{"TestHostileSwap", "TestHostileSwapWhileCollected"}, ""},
		{"FS-19", "set-id programs", []string{"TestHostileMounts"}, ""},
		{"FS-20", "open by handle", []string{"TestHostileFiles"}, ""},
		{"FS-23", "files that the host executes", []string{"TestHostileMounts", "TestHostileExecutable", "TestProtectedFilesStay"}, ""},
		{"FS-24", "denied path in an allowed one", []string{"TestHostileMounts"}, ""},
	}
}

func networkRows() []Row {
	return []Row{
		{"NET-01", "TCP", []string{"TestHostileNetwork"}, ""},
		{"NET-02", "UDP", []string{"TestHostileNetwork"}, ""},
		{"NET-03", "IPv6", []string{"TestHostileNetwork"}, ""},
		{"NET-04", "ICMP", []string{"TestHostileNetwork"}, ""},
		{"NET-05", "names that carry secrets", []string{"TestHostileNetwork"}, ""},
		{"NET-06", "metadata services", []string{"TestHostileNetwork"}, ""},
		{"NET-07", "the host's loopback and addresses", []string{"TestHostileNetwork"}, ""},
		{"NET-09", "packet, raw and ping sockets", []string{"TestHostileNetwork"}, ""},
		{"NET-11", "AF_ALG, also by another ABI", []string{"TestHostileNetwork", "TestHostileKernel"}, ""},
		{"NET-12", "netlink", []string{"TestHostileNetwork"}, ""},
		{"NET-13", "unset proxy variables", []string{"TestHostileNetwork"}, ""},
		{"NET-14", "a host that is not on the list", nil, later},
		{"NET-16", "names that differ between layers", nil, later},
		{"NET-17", "many spellings of one name", nil, later},
		{"NET-19", "names that only look allowed", nil, later},
		{"NET-20", "an allowed name that leads inside", nil, later},
		{"NET-23", "sandbox to sandbox", []string{"TestHostileNeighbour"}, ""},
		{"NET-24", "connection flood", nil, "connections stay in the sandbox's own namespace, on its loopback"},
		{"NET-25", "empty allowlist", nil, later},
		{"NET-26", "no network namespace to be had", []string{"TestHostileScarce"}, ""},
	}
}

func otherRows() []Row {
	return []Row{
		{"KRN-01", "make a namespace", []string{"TestHostileKernel"}, ""},
		{"KRN-03", "join a namespace", []string{"TestHostileKernel"}, ""},
		{"KRN-04", "keyrings", []string{"TestHostileKernel"}, ""},
		{"KRN-05", "bpf, perf, userfaultfd", []string{"TestHostileKernel"}, ""},
		{"KRN-06", "io_uring", []string{"TestHostileKernel"}, ""},
		{"KRN-07", "ptrace and its like", []string{"TestHostileKernel"}, "a sandbox's programs may read each other's memory by /proc: they are one tenant"},
		{"KRN-08", "administer the host", []string{"TestHostileKernel"}, ""},
		{"KRN-09", "personality, segments", []string{"TestHostileKernel"}, ""},
		{"KRN-12", "another ABI", []string{"TestHostileKernel"}, ""},
		{"KRN-15", "capabilities, no_new_privs, filter, uid", []string{"TestHostileKernel"}, ""},
		{"KRN-16", "change the next program's filter", []string{"TestHostileKernel"}, ""},
		{"TEN-01", "a token in a folder", []string{"TestHostileMeetings"}, ""},
		{"TEN-03", "a process of another run", []string{"TestHostileMeetings", "TestHostileLeftInSession"}, ""},
		{"TEN-04", "SysV and POSIX objects", []string{"TestHostileMeetings"}, ""},
		{"TEN-06", "locks and leases on shared files", []string{"TestHostileShares"}, "locks and watches: see Open"},
		{"TEN-09", "traces of the host", []string{"TestHostileSecrets"}, "uptime, load, counters: see Open"},
		{"TEN-10", "another sandbox's credential", nil, noServer},
		{"PY-01", "code that interpreters load by themselves", []string{"TestHostilePlanted", "TestHostileNeighbours"}, ""},
		{"PY-03", "variables that loaders act on", []string{"TestHostileVariables"}, ""},
		{"PY-04", "exit codes that look like limits", []string{"TestHostileOwnEnd"}, ""},
		{"PY-05", "die of a signal", []string{"TestHostileOwnEnd"}, ""},
		{"PY-07", "objects that act when loaded", []string{"TestHostilePickle"}, ""},
		{"API-01", "words with another meaning elsewhere", []string{"TestHostileWords", "TestHostileRequests"}, ""},
		{"API-02", "a build step that does it", nil, "there is no build step: a compiler is a command like others"},
		{"API-03", "a declared policy that is not invoked", []string{"TestHostileLimits", "TestHostileFloods"}, ""},
		{"API-04", "host paths, default credentials", []string{"TestHostileMountSources", "TestBadMountSources"}, "credentials: " + noServer},
	}
}

// Channel is something that code can see or use and that stays open.
type Channel struct{ What, Why string }

// Open lists what stays visible of the host or between sandboxes that run at
// the same time. None of it gives access to anything; docs/SECURITY.md says so
// to users.
func Open() []Channel {
	return []Channel{
		{"the source path of a mount, in /proc/self/mountinfo, with the file system's type, device and options", "the kernel writes it there for each process, and a path can't be masked for all of them; don't mount folders whose names are secret"},
		{"the sandbox's own user and group ids on the host, in /proc/self/uid_map and in options of its own mounts", "they are numbers that exist for this sandbox only"},
		{"uptime, load, memory, CPU and interrupt counters, disk and network statistics of the host in /proc, its kernel version and boot id", "programs read these for good reasons; two sandboxes can signal by them slowly"},
		{"free and total space of the host's file systems, by statfs of the image and of mounts", "the same"},
		{"flock, inotify and access times on files of the image that two sandboxes share", "a filter can't tell one file from another; leases and directory notices are refused"},
		{"cache timing, simultaneous multithreading, page cache of shared files", "one kernel and one processor; a microVM with a core of its own is for that"},
		{"POSIX message queues can't be made", "no folder that Landlock allows holds them; System V queues and pipes work"},
	}
}

// Bug is one that another system had, and the row by which it is tried here.
type Bug struct{ Name, Row string }

// Bugs lists known bugs of other systems that a process sandbox could share.
func Bugs() []Bug {
	return []Bug{
		{"CVE-2018-15664: swap a folder and a link while the host copies out", "FS-17"},
		{"CVE-2019-5736: overwrite the runtime through /proc", "FS-09"},
		{"CVE-2024-21626: a working folder by an inherited descriptor", "API-01"},
		{"CVE-2025-31133, CVE-2025-52565: masks and devices that are not there", "FS-10"},
		{"CVE-2026-87766: a link above a source while the sandbox is set up", "API-04"},
		{"AF_ALG, also by socketcall of i386", "KRN-12"},
		{"io_uring in the default profile", "KRN-06"},
		{"a call that lives on after its client has gone", "CPU-10"},
		{"memory and CPU time of one run counted in the next", "CPU-12"},
		{"a token through /dev/shm, keyrings or locks", "TEN-01"},
		{"links in the work folder followed by file requests", "FS-16"},
		{"hooks of a nested or fresh repository", "FS-23"},
		{"a hidden file inside of a protected folder", "FS-24"},
		{"setsid and double fork outlive the run", "CPU-08"},
		{"the tree outlives a killed supervisor", "CPU-11"},
		{"quotes in paths and arguments", "API-01"},
		{"a FIFO as artifact hangs the collector", "DSK-06"},
		{"OOM told as an exit code", "MEM-01"},
		{"the container's init holds the launcher's environment", "FS-03"},
	}
}
