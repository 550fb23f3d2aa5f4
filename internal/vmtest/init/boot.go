package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// boot brings the VM up and runs the command. answer becomes the serial line
// on which the host listens as soon as there is one.
func boot(answer **os.File) (int, error) {
	if err := mountAll(early); err != nil {
		return 0, err
	}
	line, err := os.OpenFile("/dev/ttyS1", os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	if _, err := term.MakeRaw(int(line.Fd())); err != nil {
		return 0, err
	}
	*answer = line
	if err := loadModules(); err != nil {
		return 0, err
	}
	command, err := os.ReadFile("/command")
	if err != nil {
		return 0, err
	}
	_, err = os.Stat("/systemd")
	systemd := err == nil
	if err := switchRoot("/dev/vda"); err != nil {
		return 0, err
	}
	if systemd {
		return 0, becomeSystemd(string(command))
	}
	if err := mountAll(late); err != nil {
		return 0, err
	}
	if err := loopbackUp(); err != nil {
		return 0, err
	}
	return runCommand(string(command), line)
}

type mount struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

var early = []mount{
	{"proc", "/proc", "proc", 0, ""},
	{"sysfs", "/sys", "sysfs", 0, ""},
	{"dev", "/dev", "devtmpfs", 0, ""},
}

// late are the mounts of an ordinary host; cgroup v2 alone.
var late = []mount{
	{"pts", "/dev/pts", "devpts", 0, "ptmxmode=0666,mode=620,gid=5"},
	{"shm", "/dev/shm", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
	{"run", "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755"},
	{"tmp", "/tmp", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
	{"cgroup2", "/sys/fs/cgroup", "cgroup2", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
	{"securityfs", "/sys/kernel/security", "securityfs", 0, ""},
}

func mountAll(mounts []mount) error {
	for _, m := range mounts {
		if err := os.MkdirAll(m.target, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	return nil
}

// loadModules loads /modules in the order of their names.
func loadModules() error {
	files, err := filepath.Glob("/modules/*.ko")
	if err != nil {
		return err
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		f.Close()
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("load %s: %w", name, err)
		}
	}
	return nil
}

// switchRoot makes the disk the root, as an ordinary initramfs does: pivot_root
// in the sandboxes wouldn't work from the first root.
func switchRoot(disk string) error {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(disk); err == nil {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s didn't appear", disk)
		}
	}
	if err := unix.Mount(disk, "/root", "ext4", 0, ""); err != nil {
		return fmt.Errorf("mount %s: %w", disk, err)
	}
	for _, m := range early {
		if err := unix.Mount(m.target, "/root"+m.target, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("move %s: %w", m.target, err)
		}
	}
	if err := os.Chdir("/root"); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("chroot: %w", err)
	}
	return os.Chdir("/")
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, req); err != nil {
		return err
	}
	req.SetUint16(req.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// runCommand runs the command and reaps everything that becomes an orphan
// meanwhile, as a host's process 1 does.
func runCommand(command string, answer *os.File) (int, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	child, err := os.StartProcess("/bin/sh", []string{"sh", "-c", command}, &os.ProcAttr{
		Dir:   "/",
		Env:   []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/root", "LANG=C.UTF-8"},
		Files: []*os.File{null, answer, answer},
	})
	if err != nil {
		return 0, err
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case pid == child.Pid && status.Exited():
			return status.ExitStatus(), nil
		case pid == child.Pid:
			return 128 + int(status.Signal()), nil
		}
	}
}
