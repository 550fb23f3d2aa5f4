package attempt

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Calls returns the number of each system call that the steps name, also inside
// others, on this architecture. One that only another architecture has gets -1,
// which every kernel answers with ENOSYS. A name that no architecture has is an
// error.
func Calls(steps []Step) (map[string]int64, error) {
	named := map[string]int64{}
	collect(steps, named)
	if len(named) == 0 {
		return nil, nil
	}
	known := table()
	var errs []error
	for name := range named {
		number, ok := known[name]
		if !ok {
			errs = append(errs, fmt.Errorf("no system call %q is known: see hostile/attempt/calls_linux.go", name))
		}
		named[name] = number
	}
	return named, errors.Join(errs...)
}

func collect(steps []Step, named map[string]int64) {
	for i := range steps {
		if steps[i].Do == "syscall" {
			named[steps[i].Call] = 0
		}
		collect(steps[i].Steps, named)
	}
}

type numbered struct {
	name   string
	number int64
}

func table() map[string]int64 {
	known := map[string]int64{}
	for _, c := range append(everywhere(), amd64Only()...) {
		known[c.name] = c.number
	}
	return known
}

// everywhere lists the calls that each architecture has: those that a probe of
// a sandbox may want, by what they are for.
func everywhere() []numbered {
	return []numbered{
		// namespaces, roots and processes
		{"unshare", unix.SYS_UNSHARE}, {"setns", unix.SYS_SETNS}, {"clone", unix.SYS_CLONE},
		{"clone3", unix.SYS_CLONE3}, {"execve", unix.SYS_EXECVE}, {"execveat", unix.SYS_EXECVEAT},
		{"exit", unix.SYS_EXIT}, {"exit_group", unix.SYS_EXIT_GROUP}, {"kill", unix.SYS_KILL},
		{"tkill", unix.SYS_TKILL}, {"tgkill", unix.SYS_TGKILL}, {"chroot", unix.SYS_CHROOT},
		{"pivot_root", unix.SYS_PIVOT_ROOT}, {"chdir", unix.SYS_CHDIR}, {"fchdir", unix.SYS_FCHDIR},
		{"capget", unix.SYS_CAPGET}, {"capset", unix.SYS_CAPSET}, {"setuid", unix.SYS_SETUID},
		{"setgid", unix.SYS_SETGID}, {"setreuid", unix.SYS_SETREUID}, {"setregid", unix.SYS_SETREGID},
		{"setresuid", unix.SYS_SETRESUID}, {"setresgid", unix.SYS_SETRESGID},
		{"setgroups", unix.SYS_SETGROUPS}, {"setfsuid", unix.SYS_SETFSUID},
		{"setfsgid", unix.SYS_SETFSGID}, {"setsid", unix.SYS_SETSID}, {"setpgid", unix.SYS_SETPGID},
		{"getpgid", unix.SYS_GETPGID}, {"getsid", unix.SYS_GETSID}, {"waitid", unix.SYS_WAITID},
		{"prctl", unix.SYS_PRCTL}, {"personality", unix.SYS_PERSONALITY}, {"seccomp", unix.SYS_SECCOMP},
		{"landlock_create_ruleset", unix.SYS_LANDLOCK_CREATE_RULESET},
		{"landlock_add_rule", unix.SYS_LANDLOCK_ADD_RULE},
		{"landlock_restrict_self", unix.SYS_LANDLOCK_RESTRICT_SELF},
		{"lsm_get_self_attr", unix.SYS_LSM_GET_SELF_ATTR},
		{"lsm_set_self_attr", unix.SYS_LSM_SET_SELF_ATTR},
		{"lsm_list_modules", unix.SYS_LSM_LIST_MODULES},
		// keys
		{"add_key", unix.SYS_ADD_KEY}, {"request_key", unix.SYS_REQUEST_KEY}, {"keyctl", unix.SYS_KEYCTL},
		// programs in the kernel, events, other processes
		{"bpf", unix.SYS_BPF}, {"perf_event_open", unix.SYS_PERF_EVENT_OPEN},
		{"userfaultfd", unix.SYS_USERFAULTFD}, {"io_uring_setup", unix.SYS_IO_URING_SETUP},
		{"io_uring_enter", unix.SYS_IO_URING_ENTER}, {"io_uring_register", unix.SYS_IO_URING_REGISTER},
		{"ptrace", unix.SYS_PTRACE}, {"process_vm_readv", unix.SYS_PROCESS_VM_READV},
		{"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV}, {"process_madvise", unix.SYS_PROCESS_MADVISE},
		{"process_mrelease", unix.SYS_PROCESS_MRELEASE}, {"pidfd_open", unix.SYS_PIDFD_OPEN},
		{"pidfd_getfd", unix.SYS_PIDFD_GETFD}, {"pidfd_send_signal", unix.SYS_PIDFD_SEND_SIGNAL},
		{"kcmp", unix.SYS_KCMP}, {"init_module", unix.SYS_INIT_MODULE},
		{"finit_module", unix.SYS_FINIT_MODULE}, {"delete_module", unix.SYS_DELETE_MODULE},
		{"kexec_load", unix.SYS_KEXEC_LOAD}, {"kexec_file_load", unix.SYS_KEXEC_FILE_LOAD},
		// mounts, old and new
		{"mount", unix.SYS_MOUNT}, {"umount2", unix.SYS_UMOUNT2}, {"fsopen", unix.SYS_FSOPEN},
		{"fsconfig", unix.SYS_FSCONFIG}, {"fsmount", unix.SYS_FSMOUNT}, {"fspick", unix.SYS_FSPICK},
		{"open_tree", unix.SYS_OPEN_TREE}, {"open_tree_attr", unix.SYS_OPEN_TREE_ATTR},
		{"move_mount", unix.SYS_MOVE_MOUNT}, {"mount_setattr", unix.SYS_MOUNT_SETATTR},
		{"statmount", unix.SYS_STATMOUNT}, {"listmount", unix.SYS_LISTMOUNT},
		{"quotactl", unix.SYS_QUOTACTL}, {"quotactl_fd", unix.SYS_QUOTACTL_FD},
		{"swapon", unix.SYS_SWAPON}, {"swapoff", unix.SYS_SWAPOFF},
		// the machine
		{"reboot", unix.SYS_REBOOT}, {"settimeofday", unix.SYS_SETTIMEOFDAY},
		{"clock_settime", unix.SYS_CLOCK_SETTIME}, {"clock_gettime", unix.SYS_CLOCK_GETTIME},
		{"clock_adjtime", unix.SYS_CLOCK_ADJTIME},
		{"adjtimex", unix.SYS_ADJTIMEX}, {"syslog", unix.SYS_SYSLOG}, {"acct", unix.SYS_ACCT},
		{"sethostname", unix.SYS_SETHOSTNAME}, {"setdomainname", unix.SYS_SETDOMAINNAME},
		{"vhangup", unix.SYS_VHANGUP}, {"lookup_dcookie", unix.SYS_LOOKUP_DCOOKIE},
		{"nfsservctl", unix.SYS_NFSSERVCTL},
		// files
		{"openat", unix.SYS_OPENAT}, {"openat2", unix.SYS_OPENAT2}, {"close", unix.SYS_CLOSE},
		{"close_range", unix.SYS_CLOSE_RANGE}, {"read", unix.SYS_READ}, {"write", unix.SYS_WRITE},
		{"pread64", unix.SYS_PREAD64}, {"pwrite64", unix.SYS_PWRITE64}, {"lseek", unix.SYS_LSEEK},
		{"dup", unix.SYS_DUP}, {"dup3", unix.SYS_DUP3}, {"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT},
		{"name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT}, {"fanotify_init", unix.SYS_FANOTIFY_INIT},
		{"fanotify_mark", unix.SYS_FANOTIFY_MARK}, {"inotify_init1", unix.SYS_INOTIFY_INIT1},
		{"inotify_add_watch", unix.SYS_INOTIFY_ADD_WATCH}, {"memfd_create", unix.SYS_MEMFD_CREATE},
		{"memfd_secret", unix.SYS_MEMFD_SECRET}, {"mkdirat", unix.SYS_MKDIRAT},
		{"mknodat", unix.SYS_MKNODAT}, {"linkat", unix.SYS_LINKAT}, {"symlinkat", unix.SYS_SYMLINKAT},
		{"unlinkat", unix.SYS_UNLINKAT}, {"renameat2", unix.SYS_RENAMEAT2}, {"fchmod", unix.SYS_FCHMOD},
		{"fchmodat", unix.SYS_FCHMODAT}, {"fchmodat2", unix.SYS_FCHMODAT2}, {"fchown", unix.SYS_FCHOWN},
		{"fchownat", unix.SYS_FCHOWNAT}, {"truncate", unix.SYS_TRUNCATE},
		{"ftruncate", unix.SYS_FTRUNCATE}, {"fallocate", unix.SYS_FALLOCATE},
		{"faccessat", unix.SYS_FACCESSAT}, {"faccessat2", unix.SYS_FACCESSAT2},
		{"setxattr", unix.SYS_SETXATTR}, {"getxattr", unix.SYS_GETXATTR},
		{"setxattrat", unix.SYS_SETXATTRAT}, {"sync", unix.SYS_SYNC}, {"syncfs", unix.SYS_SYNCFS},
		{"fsync", unix.SYS_FSYNC}, {"fdatasync", unix.SYS_FDATASYNC}, {"fcntl", unix.SYS_FCNTL},
		{"flock", unix.SYS_FLOCK}, {"ioctl", unix.SYS_IOCTL}, {"statx", unix.SYS_STATX},
		{"newfstatat", unix.SYS_NEWFSTATAT}, {"statfs", unix.SYS_STATFS},
		{"getdents64", unix.SYS_GETDENTS64}, {"readlinkat", unix.SYS_READLINKAT},
		{"utimensat", unix.SYS_UTIMENSAT}, {"splice", unix.SYS_SPLICE}, {"tee", unix.SYS_TEE},
		{"vmsplice", unix.SYS_VMSPLICE}, {"sendfile", unix.SYS_SENDFILE},
		{"copy_file_range", unix.SYS_COPY_FILE_RANGE}, {"pipe2", unix.SYS_PIPE2},
		{"epoll_create1", unix.SYS_EPOLL_CREATE1}, {"eventfd2", unix.SYS_EVENTFD2},
		{"signalfd4", unix.SYS_SIGNALFD4}, {"timerfd_create", unix.SYS_TIMERFD_CREATE},
		{"io_setup", unix.SYS_IO_SETUP}, {"io_submit", unix.SYS_IO_SUBMIT},
		{"io_getevents", unix.SYS_IO_GETEVENTS}, {"io_cancel", unix.SYS_IO_CANCEL},
		{"io_destroy", unix.SYS_IO_DESTROY}, {"umask", unix.SYS_UMASK}, {"cachestat", unix.SYS_CACHESTAT},
		{"file_getattr", unix.SYS_FILE_GETATTR}, {"file_setattr", unix.SYS_FILE_SETATTR},
		// memory
		{"mmap", unix.SYS_MMAP}, {"mprotect", unix.SYS_MPROTECT}, {"munmap", unix.SYS_MUNMAP},
		{"mremap", unix.SYS_MREMAP}, {"madvise", unix.SYS_MADVISE}, {"mlock", unix.SYS_MLOCK},
		{"mlock2", unix.SYS_MLOCK2}, {"mlockall", unix.SYS_MLOCKALL}, {"munlockall", unix.SYS_MUNLOCKALL},
		{"mbind", unix.SYS_MBIND}, {"set_mempolicy", unix.SYS_SET_MEMPOLICY},
		{"get_mempolicy", unix.SYS_GET_MEMPOLICY}, {"migrate_pages", unix.SYS_MIGRATE_PAGES},
		{"move_pages", unix.SYS_MOVE_PAGES},
		{"set_mempolicy_home_node", unix.SYS_SET_MEMPOLICY_HOME_NODE},
		{"remap_file_pages", unix.SYS_REMAP_FILE_PAGES}, {"pkey_alloc", unix.SYS_PKEY_ALLOC},
		{"pkey_mprotect", unix.SYS_PKEY_MPROTECT}, {"mseal", unix.SYS_MSEAL},
		{"map_shadow_stack", unix.SYS_MAP_SHADOW_STACK}, {"brk", unix.SYS_BRK},
		{"membarrier", unix.SYS_MEMBARRIER},
		// messages, segments, semaphores
		{"shmget", unix.SYS_SHMGET}, {"shmat", unix.SYS_SHMAT}, {"shmctl", unix.SYS_SHMCTL},
		{"shmdt", unix.SYS_SHMDT}, {"semget", unix.SYS_SEMGET}, {"semop", unix.SYS_SEMOP},
		{"semctl", unix.SYS_SEMCTL}, {"msgget", unix.SYS_MSGGET}, {"msgsnd", unix.SYS_MSGSND},
		{"msgrcv", unix.SYS_MSGRCV}, {"msgctl", unix.SYS_MSGCTL}, {"mq_open", unix.SYS_MQ_OPEN},
		{"mq_unlink", unix.SYS_MQ_UNLINK}, {"mq_timedsend", unix.SYS_MQ_TIMEDSEND},
		{"mq_timedreceive", unix.SYS_MQ_TIMEDRECEIVE}, {"futex", unix.SYS_FUTEX},
		{"futex_waitv", unix.SYS_FUTEX_WAITV}, {"futex_wake", unix.SYS_FUTEX_WAKE},
		{"futex_wait", unix.SYS_FUTEX_WAIT}, {"futex_requeue", unix.SYS_FUTEX_REQUEUE},
		{"set_robust_list", unix.SYS_SET_ROBUST_LIST}, {"get_robust_list", unix.SYS_GET_ROBUST_LIST},
		// scheduling and limits
		{"sched_setaffinity", unix.SYS_SCHED_SETAFFINITY},
		{"sched_getaffinity", unix.SYS_SCHED_GETAFFINITY},
		{"sched_setscheduler", unix.SYS_SCHED_SETSCHEDULER}, {"sched_setparam", unix.SYS_SCHED_SETPARAM},
		{"sched_setattr", unix.SYS_SCHED_SETATTR}, {"sched_getattr", unix.SYS_SCHED_GETATTR},
		{"setpriority", unix.SYS_SETPRIORITY}, {"getpriority", unix.SYS_GETPRIORITY},
		{"ioprio_set", unix.SYS_IOPRIO_SET}, {"prlimit64", unix.SYS_PRLIMIT64},
		{"setrlimit", unix.SYS_SETRLIMIT}, {"getrlimit", unix.SYS_GETRLIMIT},
		{"getrusage", unix.SYS_GETRUSAGE}, {"sysinfo", unix.SYS_SYSINFO},
		{"nanosleep", unix.SYS_NANOSLEEP}, {"setitimer", unix.SYS_SETITIMER},
		{"timer_create", unix.SYS_TIMER_CREATE},
		// sockets
		{"socket", unix.SYS_SOCKET}, {"socketpair", unix.SYS_SOCKETPAIR}, {"bind", unix.SYS_BIND},
		{"connect", unix.SYS_CONNECT}, {"listen", unix.SYS_LISTEN}, {"accept4", unix.SYS_ACCEPT4},
		{"sendto", unix.SYS_SENDTO}, {"recvfrom", unix.SYS_RECVFROM}, {"sendmsg", unix.SYS_SENDMSG},
		{"recvmsg", unix.SYS_RECVMSG}, {"setsockopt", unix.SYS_SETSOCKOPT},
		{"getsockopt", unix.SYS_GETSOCKOPT}, {"shutdown", unix.SYS_SHUTDOWN},
		// who and where
		{"getcwd", unix.SYS_GETCWD}, {"getpid", unix.SYS_GETPID}, {"getppid", unix.SYS_GETPPID}, {"gettid", unix.SYS_GETTID},
		{"getuid", unix.SYS_GETUID}, {"geteuid", unix.SYS_GETEUID}, {"getgid", unix.SYS_GETGID},
		{"getegid", unix.SYS_GETEGID}, {"uname", unix.SYS_UNAME}, {"getcpu", unix.SYS_GETCPU},
		{"getrandom", unix.SYS_GETRANDOM}, {"rseq", unix.SYS_RSEQ},
	}
}
