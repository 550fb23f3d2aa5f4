package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/confine"
	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/idrange"
	"tranca/internal/linux/mount"
	"tranca/internal/linux/supervisor"
)

// hostSide is what this process can do beside the engine. Safe for concurrent use.
type hostSide struct {
	folder string        // the runtime folder's path
	ids    *idrange.Pool // nil where only an engine maps users
}

// openHost prepares for root alone: nobody else can mount where an engine sees
// it.
func openHost(runtimeFolder string) (*hostSide, error) {
	h := &hostSide{}
	if os.Geteuid() != 0 {
		return h, nil
	}
	dir, err := supervisor.OpenFolder(runtimeFolder)
	if err != nil {
		return nil, err
	}
	h.folder = dir.Name()
	if err := dir.Close(); err != nil {
		return nil, err
	}
	h.ids, err = idrange.Open(idrange.Options{Folder: runtimeFolder})
	var lack *idrange.Missing
	if errors.As(err, &lack) {
		return h, nil
	}
	return h, err
}

func (h *hostSide) close() error {
	if h.ids == nil {
		return nil
	}
	return h.ids.Close()
}

// stages reports whether this process can make space and mounts itself.
func (h *hostSide) stages() bool { return h.ids != nil }

// stage is where the engine finds what this process has mounted for one
// sandbox, until the container has it: a folder that root alone can enter.
type stage struct {
	path  string
	block *idrange.Block
	space *os.File // the root of the writable space
}

// stagePrefix names the folders of stages; the owner's name follows, with dots
// for slashes, and the sandbox's id.
const stagePrefix = "container-"

// spaceName is the writable space in a stage.
const spaceName = "space"

// newStage makes the folder and takes user ids. On error nothing is left.
func (h *hostSide) newStage(o owner, id tranca.ID) (*stage, error) {
	block, err := h.ids.Acquire()
	if err != nil {
		return nil, fmt.Errorf("user ids: %w", err)
	}
	name := stagePrefix + strings.ReplaceAll(o.process, "/", ".") + "-" + string(id)
	s := &stage{path: filepath.Join(h.folder, name), block: block}
	if err := os.Mkdir(s.path, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("stage: %w", err), block.Release())
	}
	return s, nil
}

// user is who runs the code: the second of the block, as in the process
// backend, whose first is the agent's there and nobody's here.
func (s *stage) user() (uid, gid uint32) { return s.block.UID + 1, s.block.GID + 1 }

// place puts a detached tree at a name in the stage.
func (s *stage) place(t mount.Tree, name string, file bool) (string, error) {
	at := filepath.Join(s.path, name)
	var err error
	if file {
		err = os.WriteFile(at, nil, 0o600)
	} else {
		err = os.Mkdir(at, 0o700)
	}
	if err == nil {
		err = t.Attach(unix.AT_FDCWD, at)
	}
	if err != nil {
		return "", fmt.Errorf("stage: %w", err)
	}
	return at, nil
}

// makeSpace makes the writable space and has it shown at its folders.
func (s *stage) makeSpace(pl *plan) error {
	d := pl.policy.Limits.Disk
	t, err := mount.Tmpfs(uint64(d.Size), uint64(d.Inodes), 0o755, mount.NoSUID|mount.NoDev)
	if err != nil {
		return fmt.Errorf("writable space: %w", err)
	}
	s.space = os.NewFile(uintptr(t.FD()), "writable space")
	at, err := s.place(t, spaceName, false)
	if err != nil {
		return err
	}
	for _, folder := range spaceFolders {
		source := filepath.Join(at, filepath.Base(folder))
		if err := s.makeFolder(source, folder == "/work", pl.user); err != nil {
			return err
		}
		pl.config.HostConfig.Mounts = append(pl.config.HostConfig.Mounts, bind(source, folder, false))
		pl.boot.Writable = append(pl.boot.Writable, bootspec.Writable{
			Path: folder, Size: uint64(d.Size), Inodes: uint64(d.Inodes),
		})
	}
	return nil
}

// makeFolder makes a folder of the space: the code's own, or one for all.
func (s *stage) makeFolder(name string, own bool, user codeUser) error {
	mode := os.FileMode(0o777) | os.ModeSticky
	if own {
		mode = 0o755
	}
	err := os.Mkdir(name, 0o700)
	if err == nil {
		err = os.Chmod(name, mode)
	}
	if err == nil && own {
		err = os.Lchown(name, int(user.uid), int(user.gid))
	}
	if err != nil {
		return fmt.Errorf("writable space: %w", err)
	}
	return nil
}

// makeMount clones a source, with its owner mapped to the code's user, hides
// and protects what the policy says in it, and has it shown.
func (s *stage) makeMount(pl *plan, i int) error {
	m := &pl.policy.Mounts[i]
	src, err := confine.OpenSource(m)
	if err != nil {
		return err
	}
	defer src.Close()
	if err := pl.canHold(m, src); err != nil {
		return err
	}
	t, err := src.CloneMapped(Name, pl.user.uid, pl.user.gid, s.fileServer(pl))
	if err != nil {
		return err
	}
	defer func() { t.Close() }()
	same := src.FD()
	if m.Cow {
		over, err := s.overlay(pl, m, t)
		if errors.Is(err, unix.ENOSPC) {
			return fmt.Errorf("%w: mount %s: limits.disk has no room for a copy: a larger size, or more inodes", tranca.ErrInvalid, m.Source)
		}
		if err != nil {
			return confine.CowRefusal(Name, err.Error())
		}
		t.Close()
		t, same = over, over.FD()
	}
	attrs := uint64(mount.NoSUID | mount.NoDev)
	if pl.boot.Omit.Has(bootspec.Privileges) {
		attrs &^= mount.NoSUID
	}
	if pl.boot.Omit.Has(bootspec.Devices) {
		attrs &^= mount.NoDev
	}
	if !src.Bind.Writable {
		attrs |= mount.ReadOnly
	}
	if err := t.Set(attrs); err != nil {
		return fmt.Errorf("mount %s: %w", m.Source, err)
	}
	at, err := s.place(t, "m"+strconv.Itoa(i), src.Bind.File)
	if err != nil {
		return err
	}
	if err := s.restrict(t, &src.Bind); err != nil {
		return fmt.Errorf("mount %s: %w", m.Source, err)
	}
	pl.addMount(m, at)
	// An engine that binds the tree without what is mounted in it would show what
	// the policy hides: the agent looks before any code runs.
	for _, c := range src.Bind.Deny {
		if err := unix.Faccessat(src.FD(), c.Path, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW); err == nil {
			pl.boot.Hidden = append(pl.boot.Hidden, path.Join(m.Target, c.Path))
		}
	}
	if pl.guest {
		// Its kernel numbers files by itself. That the engine sees this stage shows
		// in the space, whose size the agent looks at; and only root could put
		// another tree in a place of it.
		return nil
	}
	return pl.expectSame(m.Target, same)
}

// canHold refuses of a writable folder, beneath a runtime with a kernel of its
// own, what mounts do not hold there. gVisor may open files of the host from a
// mount namespace where nothing is mounted over them (directfs). There the kernel
// lets be renamed or removed what is a mount elsewhere: a protected name is free
// for another file then, a denied file goes into the copy under another name, and
// what the host has mounted below goes with its folder, for the host, too.
func (pl *plan) canHold(m *tranca.Mount, src *confine.Source) error {
	if !pl.guest || !src.Bind.Writable {
		return nil
	}
	below, err := src.Below()
	if err != nil {
		return err
	}
	what := "paths that are protected or denied"
	switch {
	case below != "":
		what = "another file system at " + below
	case len(src.Bind.Protect)+len(src.Bind.Deny) == 0:
		return nil
	}
	return &tranca.RefusalError{Backend: Name, Problems: []tranca.Problem{{
		Item: tranca.ItemProtect, Asked: "mount " + m.Source + " writable, and in it " + what,
		Missing: "a runtime with a kernel of its own may rename what is mounted over",
		Mend:    "choose --backend gvisor, which does not, or mount it read-only",
	}}}
}

// fileServer shows the first user of the block, who is nobody here, as root: a
// runtime with a kernel of its own makes files as root, and gives them to the
// code's user then.
func (s *stage) fileServer(pl *plan) confine.Mapped {
	if !pl.guest {
		return confine.Mapped{}
	}
	return confine.Mapped{
		Users:  []confine.IDMap{{Inside: s.block.UID}},
		Groups: []confine.IDMap{{Inside: s.block.GID}},
	}
}

// overlay has what is written to a folder go to the writable space, beside the
// parts of it that the container sees, and so within the same bounds.
func (s *stage) overlay(pl *plan, m *tranca.Mount, lower mount.Tree) (mount.Tree, error) {
	return mount.CopyOnWrite(lower, mount.Layers{
		Space: mount.FromFD(int(s.space.Fd())), Path: filepath.Join(s.path, spaceName), Place: confine.CowPlace(m.Target),
		Own: true, UID: pl.user.uid, GID: pl.user.gid,
	})
}

// openChanges opens what was written to a mount of mode cow.
func (s *stage) openChanges(target string) (*os.File, error) {
	if s.space == nil {
		return nil, fmt.Errorf("%w: the sandbox is destroyed", tranca.ErrGone)
	}
	return confine.OpenUpper(s.space, target)
}

// settled takes the mounts out of this host's sight: the container has its own.
func (s *stage) settled() error {
	err := unix.Unmount(filepath.Join(s.path, spaceName), unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if err == unix.EINVAL || err == unix.ENOENT {
		err = nil // there is none
	}
	errs := []error{os.NewSyscallError("umount", err)}
	entries, err := os.ReadDir(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs = append(errs, err)
	for _, e := range entries {
		errs = append(errs, dropStaged(filepath.Join(s.path, e.Name())))
	}
	return errors.Join(append(errs, os.Remove(s.path))...)
}

// dropStaged unmounts what is at a place of a stage and removes the place. It
// never removes a file in it: that is somebody's, if it is still mounted. Empty
// folders are those that an engine makes where it finds no source of a mount.
func dropStaged(at string) error {
	for {
		err := unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err == unix.EINVAL {
			break // it is no mount any more
		}
		if err != nil {
			return fmt.Errorf("stage: %w", &os.PathError{Op: "umount", Path: at, Err: err})
		}
	}
	entries, _ := os.ReadDir(at) // none in a file
	for _, e := range entries {
		if e.IsDir() {
			_ = os.Remove(filepath.Join(at, e.Name())) // or the next one fails, and says so
		}
	}
	return os.Remove(at)
}

// giveBack ends the stage. The container must be gone.
func (s *stage) giveBack() error {
	errs := []error{s.settled()}
	if s.space != nil {
		errs = append(errs, s.space.Close())
		s.space = nil
	}
	return errors.Join(append(errs, s.block.Release())...)
}

// full reports whether the writable space is.
func (s *stage) full() (disk, inodes bool) {
	if s.space == nil {
		return false, false
	}
	return fullSpace(s.space)
}

// fullSpace reports whether a file system is full: without room for a page,
// without an inode.
func fullSpace(f *os.File) (disk, inodes bool) {
	var st unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &st) != nil {
		return false, false
	}
	return st.Blocks > 0 && st.Bavail*uint64(st.Bsize) < 4096, st.Files > 0 && st.Ffree == 0
}

// sweepStages takes down the stages of processes that no longer live.
func (h *hostSide) sweepStages() error {
	if h.folder == "" {
		return nil
	}
	entries, err := os.ReadDir(h.folder)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), stagePrefix)
		end := strings.LastIndexByte(rest, '-')
		if !ok || end < 0 || !e.IsDir() {
			continue
		}
		if lives(strings.ReplaceAll(rest[:end], ".", "/")) != dead {
			continue
		}
		s := &stage{path: filepath.Join(h.folder, e.Name())}
		errs = append(errs, s.settled())
	}
	if h.ids != nil {
		errs = append(errs, h.ids.Sweep())
	}
	return errors.Join(errs...)
}
