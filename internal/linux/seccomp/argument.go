package seccomp

import "golang.org/x/sys/unix"

// argumentRule returns the rule of a call that is allowed or not by its
// arguments. It covers every call of the group "checked".
func argumentRule(name string, p Profile) rule {
	switch name {
	case "clone":
		return allowWithout(0, cloneDenied, notPermitted)
	case "socket":
		return socketRule(p)
	case "socketpair":
		return socketPairRule(p)
	case "setsockopt":
		return socketOptionRule()
	case "ioctl":
		return allowIf(1, ioctlCommands, refuse(unix.ENOTTY))
	case "fcntl":
		return allowIf(1, fcntlCommands, refuse(unix.EINVAL))
	case "prctl":
		return allowIf(0, prctlOptions(p), refuse(unix.EINVAL))
	case "arch_prctl":
		return allowIf(0, archPrctlOptions, refuse(unix.EINVAL))
	case "personality":
		// The default, and the question which it is. All others weaken
		// something: no address randomization, readable means executable.
		return allowIf(0, only(0, allBits), notPermitted)
	case "mmap":
		return allowWithout(3, unix.MAP_HUGETLB, refuse(unix.ENOMEM))
	case "memfd_create":
		return allowWithout(1, unix.MFD_HUGETLB, refuse(unix.ENOMEM))
	case "shmget":
		return allowWithout(2, shmHugeTLB, refuse(unix.ENOMEM))
	case "mknod":
		return nodeRule(1)
	case "mknodat":
		return nodeRule(2)
	case "open", "openat", "creat", "chmod", "fchmod", "fchmodat", "fchmodat2":
		return modeRule(name)
	case "setpriority":
		// A nice value is an int: negative ones are the upper half.
		return allowIf(2, []span{{0, 1<<31 - 1}}, notPermitted)
	case "sched_setscheduler":
		return schedulerRule()
	}
	return notPermitted
}

// schedulerRule allows the policies that share the processor; the real-time
// ones take it.
func schedulerRule() rule {
	return &test{
		arg: 1, mask: ^uint32(unix.SCHED_RESET_ON_FORK),
		in:  only(unix.SCHED_NORMAL, unix.SCHED_BATCH, unix.SCHED_IDLE),
		yes: allow, no: notPermitted,
	}
}

// cloneDenied is what clone may not be asked for: any namespace, and to be the
// sibling of the caller, which would make the agent the parent of processes
// that it did not start. The kernel takes the lower half of the flags only. A
// time namespace cannot be asked for here, its bit is part of the exit signal.
const cloneDenied = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_PARENT

// shmHugeTLB is SHM_HUGETLB. Huge pages come from a pool of the whole host and
// are not charged to the sandbox's memory (MEM-05); callers fall back.
const shmHugeTLB = 0o4000

// setIDs are the bits of a mode that no file may be given. In a writable mount
// a file belongs to the mount's owner on the host, and nosuid ends with the
// sandbox: such a file would later run there as its owner, for anybody (FS-19).
// mkdir needs no rule, since the kernel drops these bits of its mode.
const setIDs = unix.S_ISUID | unix.S_ISGID

// modeRule allows modes without the set-id bits. The mode of an open counts
// only where the flags make a file; elsewhere callers leave anything there.
func modeRule(name string) rule {
	switch name {
	case "open":
		return openRule(1)
	case "openat":
		return openRule(2)
	case "fchmodat", "fchmodat2":
		return allowWithout(2, setIDs, notPermitted)
	}
	return allowWithout(1, setIDs, notPermitted)
}

// openRule is that of an open whose flags have this number; the mode follows.
func openRule(flags int) rule {
	return &test{
		arg: flags, mask: unix.O_CREAT | tmpFile, in: only(0), yes: allow,
		no: allowWithout(flags+1, setIDs, notPermitted),
	}
}

// tmpFile is what O_TMPFILE has beyond O_DIRECTORY.
const tmpFile = unix.O_TMPFILE &^ unix.O_DIRECTORY

// nodeRule allows regular files and FIFOs; mode is the number of the mode's
// argument, of which the kernel takes 16 bits. Devices stay out, also the
// character device 0:0 that Linux lets anybody make.
func nodeRule(mode int) rule {
	return &test{
		arg: mode, mask: unix.S_IFMT | setIDs,
		in:  only(0, unix.S_IFIFO, unix.S_IFREG),
		yes: allow, no: notPermitted,
	}
}

// ioctlCommands are terminals, without pushing input (TIOCSTI, TIOCLINUX) or
// changing the line discipline (TIOCSETD); flags and sizes of descriptors; and
// facts about interfaces. What is missing gets ENOTTY, as on a file that knows
// no such command.
var ioctlCommands = []span{
	{unix.TCGETS, unix.TCSETSF},  // also TCSETS, TCSETSW
	{unix.TCSBRK, unix.TIOCOUTQ}, // also TCXONC, TCFLSH, TIOCEXCL, TIOCSCTTY, TIOC?PGRP
	{unix.TIOCGWINSZ, unix.TIOCSWINSZ},
	{unix.TIOCINQ, unix.TIOCINQ},
	{unix.TIOCPKT, unix.TIOCNOTTY}, // also FIONBIO
	{unix.TCSBRKP, unix.TCSBRKP},
	{unix.TIOCGSID, unix.TIOCGSID},
	{unix.TIOCGPTPEER, unix.TIOCGPTPEER},
	{fionclex, fioasync}, // also FIOCLEX
	{fioqsize, fioqsize},
	{fiosetown, siocatmark}, // also SIOCSPGRP, FIOGETOWN, SIOCGPGRP
	{unix.SIOCGIFNAME, unix.SIOCGIFNAME},
	{unix.SIOCGIFCONF, unix.SIOCGIFFLAGS},
	{unix.SIOCGIFADDR, unix.SIOCGIFADDR},
	{unix.SIOCGIFBRDADDR, unix.SIOCGIFBRDADDR},
	{unix.SIOCGIFNETMASK, unix.SIOCGIFNETMASK},
	{unix.SIOCGIFMTU, unix.SIOCGIFMTU},
	{unix.SIOCGIFHWADDR, unix.SIOCGIFHWADDR},
	{unix.SIOCGIFINDEX, unix.SIOCGIFINDEX},
	{unix.TIOCSPTLCK, unix.TIOCSPTLCK},
	{unix.TCSETS2, unix.TCSETSF2}, // also TCSETSW2
	{unix.TIOCGPTN, unix.TIOCGPTN},
	{unix.TIOCGPTLCK, unix.TIOCGPTLCK},
	{unix.TCGETS2, unix.TCGETS2},
}

// Commands that the same number stands for on both architectures, and that
// x/sys does not name.
const (
	fionclex   = 0x5450
	fioasync   = 0x5452
	fioqsize   = 0x5460
	fiosetown  = 0x8901
	siocatmark = 0x8905
)

// fcntlCommands leave out leases, directory delegations and directory notices:
// they act on other openers of a shared file (TEN-06).
var fcntlCommands = []span{
	{unix.F_DUPFD, fGetOwnerUIDs},
	{unix.F_OFD_GETLK, unix.F_OFD_SETLKW},
	{fDupFDQuery, fCreatedQuery},
	{unix.F_DUPFD_CLOEXEC, unix.F_SET_FILE_RW_HINT},
}

const (
	fGetOwnerUIDs = 17
	fDupFDQuery   = 1027
	fCreatedQuery = 1028
)

// prctlOptions are names, death signals, timer slack and the like of the caller
// itself, and questions. Programs cannot add filters: loading one is reach into
// the kernel that buys them nothing here, and EINVAL tells them that there is
// no such thing.
func prctlOptions(p Profile) []span {
	options := []uint32{
		unix.PR_SET_PDEATHSIG, unix.PR_GET_PDEATHSIG,
		unix.PR_GET_DUMPABLE, unix.PR_SET_DUMPABLE,
		unix.PR_GET_KEEPCAPS, unix.PR_GET_TIMING,
		unix.PR_SET_NAME, unix.PR_GET_NAME,
		unix.PR_GET_SECCOMP, unix.PR_CAPBSET_READ, unix.PR_GET_SECUREBITS,
		unix.PR_SET_TIMERSLACK, unix.PR_GET_TIMERSLACK,
		unix.PR_SET_CHILD_SUBREAPER, unix.PR_GET_CHILD_SUBREAPER,
		unix.PR_SET_NO_NEW_PRIVS, unix.PR_GET_NO_NEW_PRIVS,
		unix.PR_SET_THP_DISABLE, unix.PR_GET_THP_DISABLE,
		unix.PR_GET_SPECULATION_CTRL,
	}
	if p.Arch == ARM64 {
		options = append(options,
			unix.PR_SVE_SET_VL, unix.PR_SVE_GET_VL, unix.PR_PAC_RESET_KEYS,
			unix.PR_SET_TAGGED_ADDR_CTRL, unix.PR_GET_TAGGED_ADDR_CTRL)
	}
	return only(options...)
}

// archPrctlOptions are the thread pointers and the permission to use large
// vector state. Shadow stacks are not offered.
var archPrctlOptions = []span{
	{archSetGS, archGetGS},
	{archGetXCompSupp, archReqXCompPerm},
}

const (
	archSetGS        = 0x1001
	archGetGS        = 0x1004
	archGetXCompSupp = 0x1021
	archReqXCompPerm = 0x1023
)
