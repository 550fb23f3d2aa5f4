package agent

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// identity is the user whose rights file work has.
type identity struct {
	uid, gid       int
	ownUID, ownGID int
	switching      bool
	// effective says that the kernel has no user for file work alone, as gVisor
	// has none: then the thread's effective user changes. Its real and saved
	// ones stay, so that the code's user may no more signal it than before.
	effective bool
}

// newIdentity checks that the process can take on the user's rights. With
// another user it gives up the supplementary groups, which would count for file
// work too.
func newIdentity(uid, gid uint32) (identity, error) {
	id := identity{
		uid: int(uid), gid: int(gid),
		ownUID: os.Geteuid(), ownGID: os.Getegid(),
	}
	id.switching = id.uid != id.ownUID || id.gid != id.ownGID
	if !id.switching {
		return id, nil
	}
	groups, err := syscall.Getgroups()
	if err == nil && len(groups) > 0 {
		err = syscall.Setgroups(nil)
	}
	if err != nil {
		return id, errors.New("dropping the agent's supplementary groups, which file work would keep: " + err.Error())
	}
	if _, err := unix.SetfsuidRetUid(-1); err == unix.ENOSYS {
		id.effective = true
	}
	return id, id.do(func() error { return nil })
}

// do runs f with the user's rights. The thread is f's alone meanwhile; f must
// not wait for anybody else.
func (id *identity) do(f func() error) error {
	if !id.switching {
		return f()
	}
	runtime.LockOSThread()
	if err := id.set(id.uid, id.gid); err != nil {
		// The thread's rights are unknown: back to the own, or not at all.
		id.back()
		return err
	}
	defer id.back()
	return f()
}

func (id *identity) back() {
	if err := id.set(id.ownUID, id.ownGID); err != nil {
		panic("agent: can't take back the own user: " + err.Error())
	}
	runtime.UnlockOSThread()
}

func (id *identity) set(uid, gid int) error {
	if id.effective {
		return setEffective(uid, gid)
	}
	return setFS(uid, gid)
}

// setEffective changes the thread's effective user and group. The group goes
// first on the way out, and last on the way back, for it takes the user's right
// to change it.
func setEffective(uid, gid int) error {
	const same = ^uintptr(0)
	user := func() unix.Errno {
		_, _, e := unix.RawSyscall(unix.SYS_SETRESUID, same, uintptr(uid), same)
		return e
	}
	group := func() unix.Errno {
		_, _, e := unix.RawSyscall(unix.SYS_SETRESGID, same, uintptr(gid), same)
		return e
	}
	first, second := group, user
	if uid == 0 {
		first, second = user, group
	}
	if e := first(); e != 0 {
		return os.NewSyscallError("effective user", e)
	}
	if e := second(); e != 0 {
		return os.NewSyscallError("effective user", e)
	}
	return nil
}

// setFS changes the thread's user and group for file work. The calls report no
// error, so the result is read back. Changing a uid from or to 0 takes away or
// gives back the thread's capabilities over files.
func setFS(uid, gid int) error {
	unix.SetfsgidRetGid(gid)
	unix.SetfsuidRetUid(uid)
	gotGID, _ := unix.SetfsgidRetGid(-1)
	gotUID, _ := unix.SetfsuidRetUid(-1)
	if gotUID != uid || gotGID != gid {
		return errors.New("taking on user " + strconv.Itoa(uid) + ":" + strconv.Itoa(gid) +
			" for file work: still " + strconv.Itoa(gotUID) + ":" + strconv.Itoa(gotGID))
	}
	return nil
}
