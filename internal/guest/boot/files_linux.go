package boot

import (
	"errors"
	"fmt"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/mount"
)

// fileCaps are what a file server keeps: to act on the files of the code's
// user, which its user namespace maps, as that user may.
const fileCaps = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH |
	1<<unix.CAP_FOWNER

// EnterFiles makes the process the file server of a sandbox whose code runs
// under a kernel in user space. It reads the boot message from the descriptor,
// builds the same root that code would have as a locked process, less its
// devices and its /proc, moves into it, and keeps four capabilities over files.
// It answers the host as an agent does.
//
// openOwn is called with the path of a mount that shows this process's
// descriptors and nothing above them; what it opens there stays usable.
// It returns what else the server was told to leave out.
func EnterFiles(fd int, openOwn func(dir string) error) (bootspec.Omission, error) {
	spec, err := read(fdReader(fd))
	if err != nil {
		return 0, err
	}
	scratch, err := enterFiles(spec, openOwn)
	if err != nil {
		return 0, errors.Join(err, reply(fd, err.Error(), -1))
	}
	defer scratch.Close()
	return spec.Omit, reply(fd, "ok", scratch.FD())
}

func enterFiles(spec *bootspec.Spec, openOwn func(dir string) error) (mount.Tree, error) {
	none := mount.FromFD(-1)
	image, err := openImage(spec)
	if err != nil {
		return none, fmt.Errorf("image: %w", err)
	}
	if err := becomeRoot(spec); err != nil {
		return none, fmt.Errorf("user: %w", err)
	}
	scratch, err := buildFiles(spec, image, openOwn)
	if err != nil {
		return none, fmt.Errorf("root: %w", err)
	}
	if spec.AgentUID == 0 {
		// What it makes belongs to the code's user from the start: a mount of
		// the host's knows no other.
		if err := allThreadsFS(spec.CodeUID, spec.CodeGID); err != nil {
			return none, fmt.Errorf("user of files: %w", err)
		}
	}
	if err := allThreadsCaps(fileCaps); err != nil {
		return none, fmt.Errorf("privileges: %w", err)
	}
	// Modes are set as the sandbox's own kernel says, which has a mask already.
	unix.Umask(0)
	if err := dieWithParent(spec); err != nil {
		return none, err
	}
	return scratch, os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}

// buildFiles is buildRoot for a file server.
func buildFiles(spec *bootspec.Spec, image int, openOwn func(dir string) error) (mount.Tree, error) {
	none := mount.FromFD(-1)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return none, os.NewSyscallError("make mounts private", err)
	}
	own, err := mount.Clone(unix.AT_FDCWD, "/proc/self/fd", false)
	if err != nil {
		return none, fmt.Errorf("own descriptors: %w", err)
	}
	defer own.Close()
	proc, err := foundProc(spec)
	if err != nil {
		return none, err
	}
	t, binds, err := stageTree(spec, image)
	if err != nil {
		return none, err
	}
	defer t.root.Close()
	if err := t.furnish(); err != nil {
		return none, err
	}
	if err := t.placeAll(binds); err != nil {
		return none, err
	}
	if err := t.showKernelFolders(own, openOwn); err != nil {
		return none, err
	}
	if proc.FD() >= 0 {
		defer proc.Close()
		if err := proc.Attach(t.root.FD(), "proc"); err != nil {
			return none, err
		}
	}
	return t.scratch, t.pivot()
}

// showKernelFolders makes the places where the sandbox's own kernel shows what
// it makes up, and lends one of them for a look at the descriptors.
func (t *tree) showKernelFolders(own mount.Tree, openOwn func(dir string) error) error {
	for _, dir := range []string{"proc", "sys"} {
		if err := unix.Mkdirat(t.root.FD(), dir, 0o755); err != nil && err != unix.EEXIST {
			return &os.PathError{Op: "mkdir", Path: dir, Err: err}
		}
	}
	if err := own.Attach(t.root.FD(), "proc"); err != nil {
		return fmt.Errorf("own descriptors: %w", err)
	}
	if err := openOwn(path.Join(stage, "proc")); err != nil {
		return fmt.Errorf("own descriptors: %w", err)
	}
	return os.NewSyscallError("umount own descriptors", unix.Unmount(path.Join(stage, "proc"), unix.MNT_DETACH))
}

// DropAll takes every capability from all threads, and from what they could
// get back by an exec.
func DropAll() error {
	if err := allThreadsBounding(); err != nil {
		return err
	}
	return allThreadsCaps(0)
}
