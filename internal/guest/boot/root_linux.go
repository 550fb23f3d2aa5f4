package boot

import (
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/forkexec"
	"tranca/internal/linux/mount"
)

const (
	rootAttrs  = mount.NoSUID | mount.NoDev
	rootSize   = 1 << 20
	rootInodes = 1024
	// mostTerminals bounds the terminals of a sandbox. All on the host share a
	// number of some thousand, and each holds kernel memory.
	mostTerminals = 32
	// stage is where the new root is attached until it becomes the root. It
	// exists wherever the agent can run at all.
	stage = "/proc"
)

// masked are the parts of /proc that tell of the host or of the kernel's keys
// and addresses. The kernel's command line is among them because hosts put
// tokens and addresses there.
var masked = []struct {
	path string
	dir  bool
}{
	{"kcore", false}, {"keys", false}, {"key-users", false}, {"timer_list", false},
	{"sched_debug", false}, {"latency_stats", false}, {"interrupts", false},
	{"sysrq-trigger", false}, {"kallsyms", false}, {"kpagecount", false},
	{"kpageflags", false}, {"kpagecgroup", false}, {"vmallocinfo", false},
	{"slabinfo", false}, {"kmsg", false}, {"iomem", false}, {"ioports", false}, {"cmdline", false}, {"acpi", true}, {"scsi", true}, {"asound", true},
}

// tree is the root under construction.
type tree struct {
	spec *bootspec.Spec
	root mount.Tree
	// image is the image's tree, or -1.
	image int
	// scratch is the writable space.
	scratch mount.Tree
	// empty is a file and nothing a folder, to cover paths with.
	emptyFile, emptyDir int
}

// buildRoot makes the new root and moves into it. It returns the writable
// space and the init of the code's pid namespace, which has to exist before
// because a /proc belongs to the namespace of the process that mounts it.
func buildRoot(spec *bootspec.Spec, image int) (mount.Tree, forkexec.Child, error) {
	var init forkexec.Child
	none := mount.FromFD(-1)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return none, init, os.NewSyscallError("make mounts private", err)
	}
	proc, err := foundProc(spec)
	if err != nil {
		return none, init, err
	}
	t, binds, err := stageTree(spec, image)
	if err != nil {
		return none, init, err
	}
	defer t.root.Close()
	held, err := t.startInit(proc)
	if err != nil {
		return none, init, err
	}
	if err := t.furnish(); err != nil {
		return none, init, err
	}
	if err := t.showTerminals(); err != nil {
		return none, init, fmt.Errorf("terminals: %w", err)
	}
	if err := t.placeAll(binds); err != nil {
		return none, init, err
	}
	if init, err = held(); err != nil {
		return none, init, err
	}
	if err := t.maskProc(); err != nil {
		return none, init, err
	}
	return t.scratch, init, t.pivot()
}

// stageTree attaches an empty root, with the writable space below it, and opens
// what is to be mounted in it while the host's tree is still in sight.
func stageTree(spec *bootspec.Spec, image int) (*tree, []mount.Tree, error) {
	root, err := mount.Tmpfs(rootSize, rootInodes, 0o755, rootAttrs)
	if err != nil {
		return nil, nil, err
	}
	t := &tree{spec: spec, root: root, image: image}
	binds, err := t.openBinds()
	if err != nil {
		return nil, nil, err
	}
	if err := t.openScratch(); err != nil {
		return nil, nil, fmt.Errorf("writable space: %w", err)
	}
	return t, binds, root.Attach(unix.AT_FDCWD, stage)
}

// placeAll shows the writable space and then the mounts, of which one may lie
// below /work.
func (t *tree) placeAll(binds []mount.Tree) error {
	if err := t.showScratch(); err != nil {
		return fmt.Errorf("writable space: %w", err)
	}
	for i, b := range binds {
		if err := t.place(&t.spec.Binds[i], b); err != nil {
			return fmt.Errorf("mount %s: %w", t.spec.Binds[i].Target, err)
		}
	}
	return nil
}

func (t *tree) bindAttrs(b *bootspec.Bind) uint64 {
	var attrs uint64
	if !t.spec.Omit.Has(bootspec.Privileges) {
		attrs |= mount.NoSUID
	}
	if !b.Device && !t.spec.Omit.Has(bootspec.Devices) {
		attrs |= mount.NoDev
	}
	if !b.Writable && !b.Device {
		attrs |= mount.ReadOnly
	}
	return attrs
}

func (t *tree) place(b *bootspec.Bind, m mount.Tree) error {
	if b.From == bootspec.FromRoot {
		var err error
		if m, err = t.openBind(b); err != nil {
			return err
		}
	}
	defer func() { m.Close() }()
	if b.Cow {
		over, err := t.overlay(b, m)
		if err != nil {
			return fmt.Errorf("%s%w", bootspec.CowFailed, err)
		}
		m.Close()
		m = over
	}
	if err := m.Set(t.bindAttrs(b)); err != nil {
		return err
	}
	if err := t.makeTarget(b.Target, b.File); err != nil {
		return err
	}
	if err := t.attach(m, b.Target); err != nil {
		return err
	}
	return t.restrict(b)
}

// overlay has what is written to a folder of the host go to the writable space,
// beside the parts of it that the code sees, and so within the same bounds.
func (t *tree) overlay(b *bootspec.Bind, lower mount.Tree) (mount.Tree, error) {
	// No path leads to the writable space, of which no part is anybody else's yet.
	if err := unix.Fchdir(t.scratch.FD()); err != nil {
		return mount.FromFD(-1), os.NewSyscallError("fchdir", err)
	}
	return mount.CopyOnWrite(lower, mount.Layers{
		Space: t.scratch, Place: bootspec.CowPlace(b.Target),
		Own: t.spec.AgentUID == 0, UID: t.spec.CodeUID, GID: t.spec.CodeGID,
	})
}

// restrict pins, protects and covers paths of a mount. Parents come before
// what is in them, so that a pin does not hide a protection.
func (t *tree) restrict(b *bootspec.Bind) error {
	if len(b.Pin)+len(b.Protect)+len(b.Deny) == 0 {
		return nil
	}
	at := func(p string) (int, error) {
		dir, err := mount.NoLinks(path.Join(stage, b.Target))
		if err != nil {
			return -1, err
		}
		defer unix.Close(dir)
		return mount.Beneath(dir, p)
	}
	for _, p := range b.Pin {
		if err := rebind(at, p, 0); err != nil {
			return fmt.Errorf("pin %s: %w", p, err)
		}
	}
	for _, p := range b.Protect {
		if err := rebind(at, p, mount.ReadOnly); err != nil {
			return fmt.Errorf("protect %s: %w", p, err)
		}
	}
	for _, c := range b.Deny {
		fd, err := at(c.Path)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return fmt.Errorf("deny %s: %w", c.Path, err)
		}
		err = t.cover(fd, c.File)
		unix.Close(fd)
		if err != nil {
			return fmt.Errorf("deny %s: %w", c.Path, err)
		}
	}
	return nil
}

// rebind mounts a path on itself, with more attributes.
func rebind(at func(string) (int, error), p string, attrs uint64) error {
	fd, err := at(p)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return mount.Rebind(fd, attrs)
}

// cover hides what is at the descriptor behind something empty that nobody
// can read.
func (t *tree) cover(fd int, file bool) error {
	source := t.emptyDir
	if file {
		source = t.emptyFile
	}
	return mount.Cover(fd, source, "")
}

// furnish makes the folders, files and links of the root itself.
func (t *tree) furnish() error {
	fd := t.root.FD()
	for _, dir := range []string{"dev", "dev/shm", "tmp", "work", "etc", ".old"} {
		if err := unix.Mkdirat(fd, dir, 0o755); err != nil {
			return &os.PathError{Op: "mkdir", Path: dir, Err: err}
		}
	}
	if err := unix.Mkdirat(fd, ".none", 0); err != nil {
		return &os.PathError{Op: "mkdir", Path: ".none", Err: err}
	}
	if err := t.writeFile(bootspec.File{Path: ".empty"}); err != nil {
		return err
	}
	for _, dir := range t.spec.Folders {
		if err := t.makeTarget(dir, false); err != nil {
			return err
		}
	}
	for _, f := range t.spec.Files {
		if err := t.writeFile(f); err != nil {
			return err
		}
	}
	for _, l := range t.spec.Links {
		if err := t.makeParents(l.Path); err != nil {
			return err
		}
		if err := unix.Symlinkat(l.Target, fd, l.Path); err != nil {
			return &os.PathError{Op: "symlink", Path: l.Path, Err: err}
		}
	}
	var err error
	if t.emptyDir, err = mount.Beneath(fd, ".none"); err != nil {
		return err
	}
	t.emptyFile, err = mount.Beneath(fd, ".empty")
	return err
}

func (t *tree) writeFile(f bootspec.File) error {
	if err := t.makeParents(f.Path); err != nil {
		return err
	}
	fd, err := unix.Openat(t.root.FD(), f.Path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW, f.Mode)
	if err != nil {
		return &os.PathError{Op: "create", Path: f.Path, Err: err}
	}
	defer unix.Close(fd)
	for rest := f.Content; len(rest) > 0; {
		n, err := unix.Write(fd, rest)
		if err != nil {
			return &os.PathError{Op: "write", Path: f.Path, Err: err}
		}
		rest = rest[n:]
	}
	return nil
}

func (t *tree) makeParents(p string) error {
	for i := range len(p) {
		if p[i] != '/' || i == 0 {
			continue
		}
		if err := unix.Mkdirat(t.root.FD(), p[:i], 0o755); err != nil && err != unix.EEXIST {
			return &os.PathError{Op: "mkdir", Path: p[:i], Err: err}
		}
	}
	return nil
}

// makeTarget makes the place for a mount, in the root or in the writable space.
func (t *tree) makeTarget(p string, file bool) error {
	if err := t.makeParents(p); err != nil {
		return err
	}
	if file {
		fd, err := unix.Openat(t.root.FD(), p, unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o444)
		if err != nil {
			return &os.PathError{Op: "create", Path: p, Err: err}
		}
		return unix.Close(fd)
	}
	if err := unix.Mkdirat(t.root.FD(), p, 0o755); err != nil && err != unix.EEXIST {
		return &os.PathError{Op: "mkdir", Path: p, Err: err}
	}
	return nil
}

// openScratch makes the one writable space, unless the host did. It is attached
// below the new root, where it goes with the old one: before Linux 6.15 only
// what is attached can be cloned in parts.
func (t *tree) openScratch() (err error) {
	t.scratch = mount.FromFD(t.spec.ScratchFD)
	if t.spec.ScratchFD == 0 {
		t.scratch, err = mount.Tmpfs(t.spec.ScratchSize, t.spec.ScratchInodes, 0o755, mount.NoSUID|mount.NoDev)
		if err != nil {
			return err
		}
	}
	return t.scratch.Attach(unix.AT_FDCWD, stage)
}

// showScratch shows parts of the writable space at /work, /tmp and /dev/shm,
// so that one bound holds over all three.
func (t *tree) showScratch() error {
	m := t.scratch
	for _, d := range []struct {
		name, target string
		mode         uint32
		owned        bool
	}{{"work", "work", 0o755, true}, {"tmp", "tmp", 0o1777, false}, {"shm", "dev/shm", 0o1777, false}} {
		if err := unix.Mkdirat(m.FD(), d.name, 0o700); err != nil && err != unix.EEXIST {
			return &os.PathError{Op: "mkdir", Path: d.name, Err: err}
		}
		if d.owned && t.spec.AgentUID == 0 {
			if err := unix.Fchownat(m.FD(), d.name, int(t.spec.CodeUID), int(t.spec.CodeGID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
				return &os.PathError{Op: "chown", Path: d.name, Err: err}
			}
		}
		if err := unix.Fchmodat(m.FD(), d.name, d.mode, 0); err != nil {
			return &os.PathError{Op: "chmod", Path: d.name, Err: err}
		}
		part, err := mount.Clone(m.FD(), d.name, false)
		if err != nil {
			return err
		}
		err = part.Attach(t.root.FD(), d.target)
		part.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// showTerminals gives the sandbox terminals of its own. Where the kernel refuses
// a devpts, the sandbox has none, and a program that asks for one is refused.
func (t *tree) showTerminals() error {
	m, err := mount.Terminals(mostTerminals, mount.NoSUID|mount.NoExec)
	if err != nil {
		return nil
	}
	defer m.Close()
	if err := unix.Mkdirat(t.root.FD(), "dev/pts", 0o755); err != nil {
		return &os.PathError{Op: "mkdir", Path: "dev/pts", Err: err}
	}
	if err := unix.Symlinkat("pts/ptmx", t.root.FD(), "dev/ptmx"); err != nil {
		return &os.PathError{Op: "symlink", Path: "dev/ptmx", Err: err}
	}
	return m.Attach(t.root.FD(), "dev/pts")
}

// startInit forks the init of the code's pid namespace, and returns what waits
// for it. It mounts /proc, for a /proc shows the namespace of who mounts it, and
// then only waits; the kernel reaps the orphans that it inherits.
//
// Where the agent's own /proc is given, that is shown, and there is no init.
func (t *tree) startInit(own mount.Tree) (held func() (forkexec.Child, error), err error) {
	if err := unix.Mkdirat(t.root.FD(), "proc", 0o755); err != nil {
		return nil, &os.PathError{Op: "mkdir", Path: "proc", Err: err}
	}
	if own.FD() >= 0 {
		defer own.Close()
		return func() (forkexec.Child, error) { return forkexec.Child{}, nil }, own.Attach(t.root.FD(), "proc")
	}
	s := forkexec.New(unix.CLONE_NEWPID).WithPIDFD()
	s.ReapOrphans()
	s.Mount("proc", path.Join(stage, "proc"), unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC)
	s.ParentDeathSignal(unix.SIGKILL)
	s.Name("init")
	s.NotDumpable()
	// It still has the agent's memory and descriptors, and where only one user
	// is to be had, the code's user.
	s.Undumpable()
	s.NoNewPrivileges()
	s.ClearAmbient()
	s.Capabilities(0)
	return s.HoldAside()
}

func (t *tree) maskProc() error {
	proc, err := mount.NoLinks(path.Join(stage, "proc"))
	if err != nil {
		return err
	}
	defer unix.Close(proc)
	for _, m := range masked {
		fd, err := mount.Beneath(proc, m.path)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return err
		}
		err = t.mask(fd, m.dir)
		unix.Close(fd)
		if err != nil {
			return fmt.Errorf("mask /proc/%s: %w", m.path, err)
		}
	}
	return nil
}

// mask covers a part of /proc, unless its mode gives nothing to anybody but
// its owner, the host's root, who is nobody in here: then it stays as it is,
// and the sandbox has a mount less to make and to take down.
func (t *tree) mask(fd int, dir bool) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if st.Mode&0o077 == 0 {
		return nil
	}
	return t.cover(fd, !dir)
}

// pivot makes the new root the root of every process here and lets go of the
// old one.
func (t *tree) pivot() error {
	if err := mount.Pivot(stage, ".old"); err != nil {
		return err
	}
	for _, p := range []string{"/.old", "/.none"} {
		if err := unix.Rmdir(p); err != nil {
			return &os.PathError{Op: "rmdir", Path: p, Err: err}
		}
	}
	if err := unix.Unlink("/.empty"); err != nil {
		return &os.PathError{Op: "unlink", Path: "/.empty", Err: err}
	}
	unix.Close(t.emptyDir)
	unix.Close(t.emptyFile)
	if err := t.removeOwn(); err != nil {
		return err
	}
	return t.sealRoot()
}

// sealRoot makes the root read-only. On a busy host the kernel can still be
// about to end a write there, if only of an access time, and says so.
func (t *tree) sealRoot() error {
	attr := &unix.MountAttr{Attr_set: mount.ReadOnly}
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(time.Millisecond) {
		err := unix.MountSetattr(t.root.FD(), "", unix.AT_EMPTY_PATH, attr)
		if err == unix.EBUSY && time.Now().Before(deadline) {
			continue
		}
		return os.NewSyscallError("make root read-only", err)
	}
}
