package confine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/linux/mount"
)

// SpaceFolder is where the files of writable spaces on disk are made. They
// have no name there, so nothing stays when this process is killed.
const SpaceFolder = "/var/tmp"

// fileSpace makes a writable space on the host's disk: an ext4 of the size in
// an unnamed file, whose blocks are taken from the disk at once, so that a
// full disk refuses the sandbox and not, later, the program. It costs some
// tens of milliseconds, and root, for the loop device.
func (h *Host) fileSpace(ctx context.Context, a *Allotment, pl *Plan) (mount.Tree, error) {
	d := pl.Policy.Limits.Disk
	none := mount.FromFD(-1)
	if !h.Root {
		return none, h.spaceRefusal("a file system in a file needs root, for its loop device", "use `backing: memory`")
	}
	mkfs, err := exec.LookPath("mkfs.ext4")
	if err != nil {
		return none, h.spaceRefusal("mkfs.ext4 is not installed", "apt-get install e2fsprogs")
	}
	fd, err := unix.Open(SpaceFolder, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC|unix.O_EXCL, 0o600)
	if err != nil {
		return none, h.spaceRefusal("no file can be made in "+SpaceFolder+": "+err.Error(), "")
	}
	file := os.NewFile(uintptr(fd), "writable space")
	defer file.Close()
	if err := unix.Fallocate(fd, 0, 0, d.Size); err != nil {
		return none, h.spaceRefusal(fmt.Sprintf("%d bytes in %s: %v", d.Size, SpaceFolder, err), "free space there, or ask for less")
	}
	// Without a journal: nobody reads it after a crash.
	cmd := exec.CommandContext(ctx, mkfs, "-q", "-F", "-m", "0", "-N", strconv.FormatInt(d.Inodes, 10),
		"-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard", "/proc/self/fd/3")
	cmd.ExtraFiles, cmd.Env = []*os.File{file}, []string{}
	if out, err := cmd.CombinedOutput(); err != nil {
		return none, h.spaceRefusal(fmt.Sprintf("mkfs.ext4: %v: %.200q", err, out), "")
	}
	t, err := mountLoop(file)
	if err != nil {
		return none, h.spaceRefusal(err.Error(), "")
	}
	if err := h.mapSpace(t, a, pl); err != nil {
		t.Close()
		return none, err
	}
	return t, nil
}

func (h *Host) spaceRefusal(missing, mend string) error {
	return &tranca.RefusalError{Backend: h.Backend, Problems: []tranca.Problem{{
		Item: tranca.ItemDisk, Asked: "writable space on disk (backing: file)", Missing: missing, Mend: mend,
	}}}
}

// mountLoop mounts the file by a loop device that goes with the mount.
func mountLoop(file *os.File) (mount.Tree, error) {
	none := mount.FromFD(-1)
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return none, err
	}
	defer control.Close()
	// Another process may take the free device first.
	for range 64 {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return none, os.NewSyscallError("free loop device", err)
		}
		dev, err := os.OpenFile("/dev/loop"+strconv.Itoa(n), os.O_RDWR, 0)
		if err != nil {
			return none, err
		}
		config := &unix.LoopConfig{Fd: uint32(file.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
		err = unix.IoctlLoopConfigure(int(dev.Fd()), config)
		if errors.Is(err, unix.EBUSY) {
			dev.Close()
			continue
		}
		if err != nil {
			dev.Close()
			return none, os.NewSyscallError("loop device", err)
		}
		t, err := mount.FileSystem("ext4", dev.Name(), mount.NoSUID|mount.NoDev)
		dev.Close() // the mount holds it now, or nobody does
		return t, err
	}
	return none, errors.New("no free loop device")
}

// mapSpace maps the agent's and the code's users into the file system, whose
// own ids are those of the sandbox.
func (h *Host) mapSpace(t mount.Tree, a *Allotment, pl *Plan) error {
	u := pl.Policy.User
	uid, gid := pl.codeIDs(a)
	ns, err := userNamespace(
		[]IDMap{{0, a.Block.UID}, {u.UID, uid}},
		[]IDMap{{0, a.Block.GID}, {u.GID, gid}},
	)
	if err != nil {
		return err
	}
	defer ns.Close()
	return t.MapIDs(int(ns.Fd()))
}
