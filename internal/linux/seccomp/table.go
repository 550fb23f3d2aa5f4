package seccomp

// none marks a call that an architecture does not have.
const none = -1

// call is one system call and its number by architecture.
type call struct {
	name         string
	amd64, arm64 int
}

// group is a set of calls that share a verdict and its reason.
type group struct {
	name  string
	rule  rule // nil: by arguments
	calls []call
}

// groups returns every call that is known, each exactly once. A number that is
// in no group is newer than this table, or nobody's: ENOSYS.
func groups() []group {
	return []group{
		{"files", allow, filesCalls},
		{"descriptors", allow, descriptorsCalls},
		{"sockets", allow, socketsCalls},
		{"memory", allow, memoryCalls},
		{"processes", allow, processesCalls},
		{"signals", allow, signalsCalls},
		{"readings", allow, readingsCalls},
		{"ipc", allow, ipcCalls},
		{"checked", nil, checkedCalls},
		{"namespaces", notPermitted, namespacesCalls},
		{"mounts", notPermitted, mountsCalls},
		{"handles", notPermitted, handlesCalls},
		{"otherProcesses", notPermitted, otherProcessesCalls},
		{"keys", notPermitted, keysCalls},
		{"engines", notPermitted, enginesCalls},
		{"administration", notPermitted, administrationCalls},
		{"clocks", notPermitted, clocksCalls},
		{"hardware", notPermitted, hardwareCalls},
		{"identity", notPermitted, identityCalls},
		{"placement", notPermitted, placementCalls},
		{"flush", notPermitted, flushCalls},
		{"fallback", notThere, fallbackCalls},
		{"absent", notThere, absentCalls},
	}
}

// filesCalls: by name and by descriptor. A lock or a watch on a file that two
// sandboxes share is a slow channel between them (see the package comment).
var filesCalls = []call{
	{"close", 3, 57},
	{"close_range", 436, 436}, {"read", 0, 63}, {"write", 1, 64}, {"pread64", 17, 67},
	{"pwrite64", 18, 68}, {"readv", 19, 65}, {"writev", 20, 66}, {"preadv", 295, 69},
	{"pwritev", 296, 70}, {"preadv2", 327, 286}, {"pwritev2", 328, 287}, {"lseek", 8, 62},
	{"stat", 4, none}, {"fstat", 5, 80}, {"lstat", 6, none}, {"newfstatat", 262, 79}, {"statx", 332, 291},
	{"statfs", 137, 43}, {"fstatfs", 138, 44}, {"access", 21, none}, {"faccessat", 269, 48},
	{"faccessat2", 439, 439}, {"readlink", 89, none}, {"readlinkat", 267, 78}, {"getdents", 78, none},
	{"getdents64", 217, 61}, {"getcwd", 79, 17}, {"chdir", 80, 49}, {"fchdir", 81, 50},
	{"rename", 82, none}, {"renameat", 264, 38}, {"renameat2", 316, 276}, {"mkdir", 83, none},
	{"mkdirat", 258, 34}, {"rmdir", 84, none}, {"link", 86, none}, {"linkat", 265, 37},
	{"unlink", 87, none}, {"unlinkat", 263, 35}, {"symlink", 88, none}, {"symlinkat", 266, 36},
	{"truncate", 76, 45}, {"ftruncate", 77, 46}, {"fallocate", 285, 47}, {"umask", 95, 166},
	{"chown", 92, none}, {"fchown", 93, 55}, {"lchown", 94, none}, {"fchownat", 260, 54},
	{"utime", 132, none}, {"utimes", 235, none}, {"utimensat", 280, 88}, {"futimesat", 261, none},
	{"setxattr", 188, 5}, {"lsetxattr", 189, 6}, {"fsetxattr", 190, 7}, {"getxattr", 191, 8},
	{"lgetxattr", 192, 9}, {"fgetxattr", 193, 10}, {"listxattr", 194, 11}, {"llistxattr", 195, 12},
	{"flistxattr", 196, 13}, {"removexattr", 197, 14}, {"lremovexattr", 198, 15},
	{"fremovexattr", 199, 16}, {"setxattrat", 463, 463}, {"getxattrat", 464, 464},
	{"listxattrat", 465, 465}, {"removexattrat", 466, 466}, {"fsync", 74, 82}, {"fdatasync", 75, 83},
	{"sync_file_range", 277, 84}, {"readahead", 187, 213}, {"fadvise64", 221, 223}, {"flock", 73, 32},
	{"copy_file_range", 326, 285}, {"sendfile", 40, 71}, {"splice", 275, 76}, {"tee", 276, 77},
}

// descriptorsCalls: pipes, polling and the kernel's event descriptors.
var descriptorsCalls = []call{
	{"dup", 32, 23}, {"dup2", 33, none}, {"dup3", 292, 24}, {"pipe", 22, none}, {"pipe2", 293, 59},
	{"poll", 7, none}, {"ppoll", 271, 73}, {"select", 23, none}, {"pselect6", 270, 72},
	{"epoll_create", 213, none}, {"epoll_create1", 291, 20}, {"epoll_ctl", 233, 21},
	{"epoll_wait", 232, none}, {"epoll_pwait", 281, 22}, {"epoll_pwait2", 441, 441},
	{"eventfd", 284, none}, {"eventfd2", 290, 19}, {"signalfd", 282, none}, {"signalfd4", 289, 74},
	{"timerfd_create", 283, 85}, {"timerfd_settime", 286, 86}, {"timerfd_gettime", 287, 87},
	{"inotify_init", 253, none}, {"inotify_init1", 294, 26}, {"inotify_add_watch", 254, 27},
	{"inotify_rm_watch", 255, 28},
}

// socketsCalls: use of a socket. Which can be made is judged by [argumentRule].
var socketsCalls = []call{
	{"connect", 42, 203}, {"accept", 43, 202}, {"accept4", 288, 242}, {"bind", 49, 200},
	{"listen", 50, 201}, {"shutdown", 48, 210}, {"sendto", 44, 206}, {"recvfrom", 45, 207},
	{"sendmsg", 46, 211}, {"recvmsg", 47, 212}, {"sendmmsg", 307, 269}, {"recvmmsg", 299, 243},
	{"getsockname", 51, 204}, {"getpeername", 52, 205}, {"getsockopt", 55, 209},
}

// memoryCalls: of the caller. mlock is bounded by RLIMIT_MEMLOCK.
var memoryCalls = []call{
	{"brk", 12, 214}, {"munmap", 11, 215}, {"mprotect", 10, 226}, {"mremap", 25, 216}, {"msync", 26, 227},
	{"mincore", 27, 232}, {"madvise", 28, 233}, {"mlock", 149, 228}, {"mlock2", 325, 284},
	{"munlock", 150, 229}, {"mlockall", 151, 230}, {"munlockall", 152, 231}, {"membarrier", 324, 283},
	{"mseal", 462, 462}, {"pkey_alloc", 330, 289}, {"pkey_free", 331, 290}, {"pkey_mprotect", 329, 288},
}

// processesCalls: all within the own process namespace and user. The kernel
// refuses real-time policies by RLIMIT_RTPRIO, processors by cpuset.
var processesCalls = []call{
	{"fork", 57, none}, {"vfork", 58, none}, {"execve", 59, 221}, {"execveat", 322, 281},
	{"exit", 60, 93}, {"exit_group", 231, 94}, {"wait4", 61, 260}, {"waitid", 247, 95}, {"kill", 62, 129},
	{"tkill", 200, 130}, {"tgkill", 234, 131}, {"rt_sigqueueinfo", 129, 138},
	{"rt_tgsigqueueinfo", 297, 240}, {"pidfd_open", 434, 434}, {"pidfd_send_signal", 424, 424},
	{"getpid", 39, 172}, {"getppid", 110, 173}, {"gettid", 186, 178}, {"getpgid", 121, 155},
	{"getpgrp", 111, none}, {"setpgid", 109, 154}, {"getsid", 124, 156}, {"setsid", 112, 157},
	{"getuid", 102, 174}, {"geteuid", 107, 175}, {"getgid", 104, 176}, {"getegid", 108, 177},
	{"getresuid", 118, 148}, {"getresgid", 120, 150}, {"getgroups", 115, 158}, {"capget", 125, 90},
	{"getpriority", 140, 141}, {"getrlimit", 97, 163}, {"setrlimit", 160, 164}, {"prlimit64", 302, 261},
	{"getrusage", 98, 165}, {"times", 100, 153}, {"sched_yield", 24, 124},
	{"sched_getaffinity", 204, 123}, {"sched_setaffinity", 203, 122}, {"sched_getparam", 143, 121},
	{"sched_setparam", 142, 118}, {"sched_getscheduler", 145, 120}, {"sched_getattr", 315, 275},
	{"sched_get_priority_max", 146, 125}, {"sched_get_priority_min", 147, 126},
	{"sched_rr_get_interval", 148, 127}, {"ioprio_get", 252, 31}, {"getcpu", 309, 168},
	{"set_tid_address", 218, 96}, {"set_robust_list", 273, 99}, {"rseq", 334, 293}, {"futex", 202, 98},
	{"futex_waitv", 449, 449}, {"futex_wake", 454, 454}, {"futex_wait", 455, 455},
	{"futex_requeue", 456, 456},
}

// signalsCalls and the timers that send them.
var signalsCalls = []call{
	{"rt_sigaction", 13, 134}, {"rt_sigprocmask", 14, 135}, {"rt_sigreturn", 15, 139},
	{"rt_sigpending", 127, 136}, {"rt_sigsuspend", 130, 133}, {"rt_sigtimedwait", 128, 137},
	{"sigaltstack", 131, 132}, {"pause", 34, none}, {"restart_syscall", 219, 128}, {"alarm", 37, none},
	{"getitimer", 36, 102}, {"setitimer", 38, 103}, {"timer_create", 222, 107},
	{"timer_settime", 223, 110}, {"timer_gettime", 224, 108}, {"timer_getoverrun", 225, 109},
	{"timer_delete", 226, 111},
}

// readingsCalls of clocks, host facts and random numbers.
var readingsCalls = []call{
	{"time", 201, none}, {"gettimeofday", 96, 169}, {"clock_gettime", 228, 113},
	{"clock_getres", 229, 114}, {"clock_nanosleep", 230, 115}, {"nanosleep", 35, 101}, {"uname", 63, 160},
	{"sysinfo", 99, 179}, {"getrandom", 318, 278},
}

// ipcCalls: objects of the own IPC namespace; they end with it.
var ipcCalls = []call{
	{"semget", 64, 190}, {"semop", 65, 193}, {"semctl", 66, 191}, {"semtimedop", 220, 192},
	{"shmat", 30, 196}, {"shmdt", 67, 197}, {"shmctl", 31, 195}, {"msgget", 68, 186}, {"msgsnd", 69, 189},
	{"msgrcv", 70, 188}, {"msgctl", 71, 187}, {"mq_open", 240, 180}, {"mq_unlink", 241, 181},
	{"mq_timedsend", 242, 182}, {"mq_timedreceive", 243, 183}, {"mq_notify", 244, 184},
	{"mq_getsetattr", 245, 185},
}

// checkedCalls: allowed or not by arguments, see [argumentRule].
var checkedCalls = []call{
	{"clone", 56, 220}, {"socket", 41, 198}, {"socketpair", 53, 199}, {"setsockopt", 54, 208},
	{"ioctl", 16, 29}, {"fcntl", 72, 25}, {"prctl", 157, 167}, {"arch_prctl", 158, none},
	{"personality", 135, 92}, {"mmap", 9, 222}, {"memfd_create", 319, 279}, {"shmget", 29, 194},
	{"mknod", 133, none}, {"mknodat", 259, 33}, {"setpriority", 141, 140},
	{"sched_setscheduler", 144, 119}, {"open", 2, none}, {"openat", 257, 56}, {"creat", 85, none},
	{"chmod", 90, none}, {"fchmod", 91, 52}, {"fchmodat", 268, 53}, {"fchmodat2", 452, 452},
}

// namespacesCalls: a new one gives capabilities in it, and with them the greater
// part of the kernel's attack surface (KRN-01, KRN-03).
var namespacesCalls = []call{
	{"unshare", 272, 97}, {"setns", 308, 268},
}

// mountsCalls: the tree is made before the code runs and stays (FS-13, FS-14).
var mountsCalls = []call{
	{"mount", 165, 40}, {"umount2", 166, 39}, {"pivot_root", 155, 41}, {"chroot", 161, 51},
	{"open_tree", 428, 428}, {"open_tree_attr", 467, 467}, {"move_mount", 429, 429}, {"fsopen", 430, 430},
	{"fsconfig", 431, 431}, {"fsmount", 432, 432}, {"fspick", 433, 433}, {"mount_setattr", 442, 442},
}

// handlesCalls: a file handle names an inode past every path check (FS-20).
var handlesCalls = []call{
	{"open_by_handle_at", 304, 265}, {"name_to_handle_at", 303, 264},
}

// otherProcessesCalls: reading, steering or robbing another process (KRN-07).
var otherProcessesCalls = []call{
	{"ptrace", 101, 117}, {"process_vm_readv", 310, 270}, {"process_vm_writev", 311, 271},
	{"pidfd_getfd", 438, 438}, {"kcmp", 312, 272}, {"process_madvise", 440, 440},
	{"process_mrelease", 448, 448}, {"get_robust_list", 274, 100},
}

// keysCalls: keyrings have no namespace; two sandboxes could meet there (KRN-04,
// MEM-08).
var keysCalls = []call{
	{"add_key", 248, 217}, {"request_key", 249, 218}, {"keyctl", 250, 219},
}

// enginesCalls: programs and machinery run by the kernel for the caller. io_uring
// also does other calls past this filter (KRN-05, KRN-06).
var enginesCalls = []call{
	{"bpf", 321, 280}, {"perf_event_open", 298, 241}, {"userfaultfd", 323, 282},
	{"io_uring_setup", 425, 425}, {"io_uring_enter", 426, 426}, {"io_uring_register", 427, 427},
	{"fanotify_init", 300, 262}, {"fanotify_mark", 301, 263}, {"vmsplice", 278, 75},
	{"remap_file_pages", 216, 234},
}

// administrationCalls of the host (KRN-08).
var administrationCalls = []call{
	{"init_module", 175, 105}, {"finit_module", 313, 273}, {"delete_module", 176, 106},
	{"kexec_load", 246, 104}, {"kexec_file_load", 320, 294}, {"reboot", 169, 142}, {"swapon", 167, 224},
	{"swapoff", 168, 225}, {"acct", 163, 89}, {"quotactl", 179, 60}, {"quotactl_fd", 443, 443},
	{"syslog", 103, 116}, {"sethostname", 170, 161}, {"setdomainname", 171, 162}, {"vhangup", 153, 58},
	{"lookup_dcookie", 212, 18},
}

// clocksCalls of the host. Reading by adjtimex is refused with it: its mode lies
// in memory, where a filter cannot look.
var clocksCalls = []call{
	{"settimeofday", 164, 170}, {"clock_settime", 227, 112}, {"adjtimex", 159, 171},
	{"clock_adjtime", 305, 266},
}

// hardwareCalls: ports and segment tables (KRN-09).
var hardwareCalls = []call{
	{"iopl", 172, none}, {"ioperm", 173, none}, {"modify_ldt", 154, none},
}

// identityCalls: the user was changed before the filter came; nobody changes it
// again, even if a capability were left over by mistake.
var identityCalls = []call{
	{"setuid", 105, 146}, {"setgid", 106, 144}, {"setreuid", 113, 145}, {"setregid", 114, 143},
	{"setresuid", 117, 147}, {"setresgid", 119, 149}, {"setfsuid", 122, 151}, {"setfsgid", 123, 152},
	{"setgroups", 116, 159}, {"capset", 126, 91},
}

// placementCalls of memory and work among nodes, and deadlines; sched_setattr's
// policy lies in memory (CPU-13).
var placementCalls = []call{
	{"sched_setattr", 314, 274}, {"ioprio_set", 251, 30}, {"mbind", 237, 235},
	{"set_mempolicy", 238, 237}, {"get_mempolicy", 239, 236}, {"set_mempolicy_home_node", 450, 450},
	{"migrate_pages", 256, 238}, {"move_pages", 279, 239},
}

// flushCalls: whole file systems of the host, through any read-only mount (DSK-10).
// fsync of a file stays.
var flushCalls = []call{
	{"sync", 162, 81}, {"syncfs", 306, 267},
}

// fallbackCalls: callers know how to do without, and look for ENOSYS to do so.
// clone3 has its flags and openat2 its mode in memory, where a filter cannot
// look; legacy AIO counts against one limit for the whole host; the rest is
// reach into the kernel that no program here needs.
var fallbackCalls = []call{
	{"clone3", 435, 435}, {"openat2", 437, 437}, {"seccomp", 317, 277}, {"landlock_create_ruleset", 444, 444},
	{"landlock_add_rule", 445, 445}, {"landlock_restrict_self", 446, 446}, {"io_setup", 206, 0},
	{"io_destroy", 207, 1}, {"io_getevents", 208, 4}, {"io_pgetevents", 333, 292}, {"io_submit", 209, 2},
	{"io_cancel", 210, 3}, {"memfd_secret", 447, 447}, {"map_shadow_stack", 453, 453},
	{"cachestat", 451, 451}, {"statmount", 457, 457}, {"listmount", 458, 458}, {"listns", 470, 470},
	{"lsm_get_self_attr", 459, 459}, {"lsm_set_self_attr", 460, 460}, {"lsm_list_modules", 461, 461},
	{"file_getattr", 468, 468}, {"file_setattr", 469, 469}, {"rseq_slice_yield", 471, 471},
}

// absentCalls: numbers behind which there is nothing, or nothing for programs.
var absentCalls = []call{
	{"uselib", 134, none}, {"ustat", 136, none}, {"sysfs", 139, none}, {"_sysctl", 156, none},
	{"create_module", 174, none}, {"get_kernel_syms", 177, none}, {"query_module", 178, none},
	{"nfsservctl", 180, 42}, {"getpmsg", 181, none}, {"putpmsg", 182, none}, {"afs_syscall", 183, none},
	{"tuxcall", 184, none}, {"security", 185, none}, {"vserver", 236, none},
	{"set_thread_area", 205, none}, {"get_thread_area", 211, none}, {"epoll_ctl_old", 214, none},
	{"epoll_wait_old", 215, none}, {"uretprobe", 335, none}, {"uprobe", 336, none},
}
