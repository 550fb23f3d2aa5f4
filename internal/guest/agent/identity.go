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
	return id, id.do(func() error { return nil })
}

// do runs f with the user's rights. The thread is f's alone meanwhile; f must
// not wait for anybody else.
func (id *identity) do(f func() error) error {
	if !id.switching {
		return f()
	}
	runtime.LockOSThread()
	if err := setFS(id.uid, id.gid); err != nil {
		// The thread's rights are unknown: back to the own, or not at all.
		id.back()
		return err
	}
	defer id.back()
	return f()
}

func (id *identity) back() {
	if err := setFS(id.ownUID, id.ownGID); err != nil {
		panic("agent: can't take back the own user: " + err.Error())
	}
	runtime.UnlockOSThread()
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
