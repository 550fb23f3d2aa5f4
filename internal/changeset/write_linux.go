package changeset

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tranca"
)

// write writes what is pending.
func (a *applier) write() error {
	a.made = map[*node]uint64{}
	if a.again {
		if err := a.clearAll(); err != nil {
			return err
		}
	}
	for _, n := range a.plan.order() {
		if !a.pending(n) {
			continue
		}
		err := context.Cause(a.ctx)
		if err == nil {
			err = a.step(n)
		}
		if err != nil {
			return a.broken(n, err)
		}
		a.settle(n, Written, "")
	}
	for i := len(a.late) - 1; i >= 0; i-- {
		if err := a.lateMode(a.late[i]); err != nil {
			return a.broken(a.late[i], err)
		}
	}
	return nil
}

// broken says where writing ended.
func (a *applier) broken(n *node, err error) error {
	a.settle(n, NotWritten, err.Error())
	class := tranca.ErrUnavailable
	var changed *conflictError
	switch {
	case errors.As(err, &changed):
		class = tranca.ErrRefused
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		class = tranca.ErrNoSpace
	}
	return fmt.Errorf("%w: %s: %w; %d paths were written and %d were not; apply again to go on",
		class, a.plan.set.Place(n.Entry), err, a.report.Count(Written), a.report.Count(NotWritten))
}

// folderNow opens the folder of a node whose turn it is: it is there by now.
func (a *applier) folderNow(n *node) (int, error) {
	dir, err := a.folder(n)
	if err == nil && dir < 0 {
		err = conflict("its folder was removed on the host")
	}
	return dir, err
}

func (a *applier) step(n *node) error {
	dir, err := a.folderNow(n)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	name := path.Base(n.Path)
	switch {
	case n.Kind == Removed:
		return a.remove(dir, name, n.Base)
	case n.Type == tranca.FileDirectory && n.Kind == Modified:
		return a.changeMode(dir, name, n)
	}
	if n.Kind == Replaced && (n.baseFolder() || n.Type == tranca.FileDirectory) {
		if err := a.remove(dir, name, n.Base); err != nil {
			return err
		}
	}
	switch n.Type {
	case tranca.FileDirectory:
		return a.makeFolder(dir, name, n)
	case tranca.FileSymlink:
		return a.makeLink(dir, name, n)
	}
	return a.makeFile(dir, name, n)
}

// remove removes what the host had. What is no folder is moved aside first:
// only then is it certain what is removed.
func (a *applier) remove(dir int, name string, base *State) error {
	if base.Type == tranca.FileDirectory {
		st, err := statAt(dir, name)
		if err != nil {
			return err
		}
		if st == nil || st.Ino != base.Inode {
			return conflict("it is another folder on the host now")
		}
		return pathError("remove", name, unix.Unlinkat(dir, name, unix.AT_REMOVEDIR))
	}
	if err := a.clear(dir); err != nil {
		return err
	}
	if err := unix.Renameat2(dir, name, dir, a.temp, unix.RENAME_NOREPLACE); err != nil {
		return pathError("remove", name, err)
	}
	if err := a.recognize(dir, base); err != nil {
		return errors.Join(err, unix.Renameat2(dir, a.temp, dir, name, unix.RENAME_NOREPLACE))
	}
	return pathError("remove", name, unix.Unlinkat(dir, a.temp, 0))
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: name, Err: err}
}

// clear removes what a killed application has left under the temporary name.
func (a *applier) clear(dir int) error {
	err := unix.Unlinkat(dir, a.temp, 0)
	if errors.Is(err, unix.EISDIR) {
		err = unix.Unlinkat(dir, a.temp, unix.AT_REMOVEDIR)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return pathError("remove", a.temp, err)
}

// clearAll clears each folder that an earlier application may have written to.
func (a *applier) clearAll() error {
	seen := map[place]bool{}
	for _, n := range a.plan.all {
		at := place{n.Mount, path.Dir(n.Path)}
		if !n.does() || seen[at] {
			continue
		}
		seen[at] = true
		dir, err := a.folder(n)
		if err != nil {
			return fmt.Errorf("%w: %s: %w; nothing was written", tranca.ErrRefused, a.plan.set.Place(n.Entry), err)
		}
		if dir < 0 {
			continue
		}
		err = a.clear(dir)
		unix.Close(dir)
		if err != nil {
			return fmt.Errorf("%w: %w; nothing was written", tranca.ErrUnavailable, err)
		}
	}
	return nil
}

// recognize checks that what was moved aside is what the host had. Its change
// time is no sign any more: the move has set it.
func (a *applier) recognize(dir int, base *State) error {
	st, err := statAt(dir, a.temp)
	if err != nil {
		return err
	}
	if st == nil {
		return conflict("it vanished on the host meanwhile")
	}
	now := stateOf(st)
	if now.Type != base.Type || now.Inode != base.Inode || now.Size != base.Size || now.Modified != base.Modified {
		return conflict("it was changed on the host meanwhile")
	}
	return nil
}

// put gives what was written under the temporary name its own, in one step.
func (a *applier) put(dir int, name string, n *node) error {
	if n.Base == nil || n.baseFolder() {
		return a.putNew(dir, name)
	}
	err := unix.Renameat2(dir, a.temp, dir, name, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) {
		return a.putWithoutExchange(dir, name, n)
	}
	if errors.Is(err, unix.ENOENT) {
		return conflict("it was removed on the host meanwhile")
	}
	if err != nil {
		return pathError("rename", name, err)
	}
	if err := a.recognize(dir, n.Base); err != nil {
		return errors.Join(err, unix.Renameat2(dir, a.temp, dir, name, unix.RENAME_EXCHANGE))
	}
	return pathError("remove", name, unix.Unlinkat(dir, a.temp, 0))
}

// putNew is put where nothing is.
func (a *applier) putNew(dir int, name string) error {
	err := unix.Renameat2(dir, a.temp, dir, name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EEXIST) {
		return conflict("something was put there on the host meanwhile")
	}
	return pathError("rename", name, err)
}

// putWithoutExchange is put on a file system that can't exchange: between the
// last look and the step remains a moment.
func (a *applier) putWithoutExchange(dir int, name string, n *node) error {
	st, err := statAt(dir, name)
	if err != nil {
		return err
	}
	var now *State
	if st != nil {
		now = stateOf(st)
	}
	if err := compare(n.Entry, now); err != nil {
		return err
	}
	return pathError("rename", name, unix.Renameat(dir, a.temp, dir, name))
}

// makeLink makes a symbolic link.
func (a *applier) makeLink(dir int, name string, n *node) error {
	if err := a.clear(dir); err != nil {
		return err
	}
	if err := unix.Symlinkat(n.Link, dir, a.temp); err != nil {
		return pathError("make", name, err)
	}
	if uid, gid, ok := a.owner(dir, n); ok {
		if err := unix.Fchownat(dir, a.temp, uid, gid, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return a.undo(dir, pathError("chown", name, err))
		}
	}
	return a.undo(dir, a.put(dir, name, n))
}

// undo removes what was written, where it could not be put in place.
func (a *applier) undo(dir int, err error) error {
	if err != nil {
		return errors.Join(err, a.clear(dir))
	}
	return nil
}

// owner returns the user and group of what is written: those of what was there,
// else the folder's. Only root can give files away.
func (a *applier) owner(dir int, n *node) (uid, gid int, ok bool) {
	if os.Geteuid() != 0 {
		return -1, -1, false
	}
	if n.Base != nil {
		return int(n.Base.UID), int(n.Base.GID), true
	}
	m := &a.plan.set.Mounts[n.Mount]
	uid, gid = int(m.Owner), int(m.Group)
	var st unix.Stat_t
	if unix.Fstat(dir, &st) == nil && st.Mode&unix.S_ISGID != 0 {
		gid = int(st.Gid)
	}
	return uid, gid, true
}

// makeFolder makes a folder, which has its owner and mode when it comes into its
// place: one that has not would be a stranger to the application that goes on.
func (a *applier) makeFolder(dir int, name string, n *node) error {
	if err := a.clear(dir); err != nil {
		return err
	}
	if err := unix.Mkdirat(dir, a.temp, 0o700); err != nil {
		return pathError("make", name, err)
	}
	err := a.furnish(dir, name, n)
	if err == nil {
		err = a.putNew(dir, name)
	}
	return a.undo(dir, err)
}

// furnish gives a new folder its owner and mode. One whose mode keeps its owner
// out gets that when all is in it.
func (a *applier) furnish(dir int, name string, n *node) error {
	fd, err := openInside(dir, a.temp, folderFlags)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return pathError("look at", name, err)
	}
	a.made[n] = st.Ino
	if uid, gid, ok := a.owner(dir, n); ok {
		if err := unix.Fchown(fd, uid, gid); err != nil {
			return pathError("chown", name, err)
		}
	}
	if n.Mode&0o300 != 0o300 {
		a.late = append(a.late, n)
		return nil
	}
	return pathError("chmod", name, unix.Fchmod(fd, n.Mode|st.Mode&unix.S_ISGID))
}

// changeMode sets the mode of a folder that is there, late where it would keep
// its owner out.
func (a *applier) changeMode(dir int, name string, n *node) error {
	if n.Mode&0o300 != 0o300 {
		a.late = append(a.late, n)
		return nil
	}
	return a.setMode(dir, name, n)
}

func (a *applier) lateMode(n *node) error {
	dir, err := a.folderNow(n)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return a.setMode(dir, path.Base(n.Path), n)
}

// setMode sets the mode of a folder. Its set-id and sticky bits are the host's.
func (a *applier) setMode(dir int, name string, n *node) error {
	fd, err := openInside(dir, name, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := a.checkFolder(fd, n); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return pathError("look at", name, err)
	}
	// By the descriptor, which the kernel takes only in this way.
	mode := st.Mode&0o7000 | n.Mode
	return pathError("chmod", name, unix.Fchmodat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), mode, 0))
}

// makeFile writes a regular file.
func (a *applier) makeFile(dir int, name string, n *node) error {
	if err := a.clear(dir); err != nil {
		return err
	}
	fd, err := unix.Openat(dir, a.temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return pathError("make", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	err = a.fill(f, dir, name, n)
	if err := errors.Join(err, f.Close()); err != nil {
		return a.undo(dir, err)
	}
	return a.undo(dir, a.put(dir, name, n))
}

// fill writes content, owner, attributes, mode and time.
func (a *applier) fill(f *os.File, dir int, name string, n *node) error {
	sum := sha256.New()
	from := &contextReader{a.ctx, io.NewSectionReader(a.contents, n.Offset, n.Size)}
	written, err := io.Copy(io.MultiWriter(f, sum), from)
	switch {
	case err != nil:
		return err
	case written != n.Size || hex.EncodeToString(sum.Sum(nil)) != n.Digest:
		return fmt.Errorf("%w: what is kept of it was damaged", tranca.ErrInvalid)
	}
	fd := int(f.Fd())
	if uid, gid, ok := a.owner(dir, n); ok {
		if err := unix.Fchown(fd, uid, gid); err != nil {
			return pathError("chown", name, err)
		}
	} else if n.Base != nil {
		_ = unix.Fchown(fd, -1, int(n.Base.GID)) // only where it is a group of the user's
	}
	if n.Base != nil && n.Base.Type == tranca.FileRegular {
		copyAttrs(fd, dir, name)
	}
	if err := unix.Fchmod(fd, n.Mode); err != nil {
		return pathError("chmod", name, err)
	}
	at := unix.NsecToTimespec(n.Modified)
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, at}
	return pathError("set time of", name, unix.UtimesNanoAt(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), times, 0))
}

// copyAttrs takes over the extended attributes of the file that is replaced,
// such as its access list, but for those that give its program rights. It does
// what it can: not every file system has all.
func copyAttrs(to, dir int, name string) {
	from, err := openInside(dir, name, fileFlags)
	if err != nil {
		return
	}
	defer unix.Close(from)
	names := make([]byte, 64<<10)
	n, err := unix.Flistxattr(from, names)
	if err != nil {
		return
	}
	value := make([]byte, 64<<10)
	for attr := range bytes.SplitSeq(names[:n], []byte{0}) {
		key := string(attr)
		if !strings.HasPrefix(key, "user.") && key != "system.posix_acl_access" && key != "security.selinux" {
			continue
		}
		if size, err := unix.Fgetxattr(from, key, value); err == nil {
			_ = unix.Fsetxattr(to, key, value[:size], 0)
		}
	}
}

// sameContent reports whether a file of the host has the content of a node.
func (a *applier) sameContent(dir int, name string, n *node) (bool, error) {
	fd, err := openInside(dir, name, fileFlags)
	if errors.Is(err, unix.EACCES) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, &contextReader{a.ctx, io.LimitReader(f, n.Size+1)}); err != nil {
		return false, err
	}
	return hex.EncodeToString(sum.Sum(nil)) == n.Digest, nil
}
