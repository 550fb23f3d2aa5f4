package place

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"tranca/hostile/world"
	"tranca/internal/linux/netns"
)

// space bounds what may be written in a place.
const space = "size=256m,nr_inodes=65536"

// furnish makes this process's mount namespace a place.
func furnish() error {
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"part its mounts from the host's", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }},
		{"its tree", tree},
		{"its network", network},
		{"its folders", folders},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// stage is where the tree is put together, in a memory file system that covers
// a folder of the host in this namespace alone.
const stage = "/tmp"

func tree() error {
	if err := unix.Mount("tmpfs", stage, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, space); err != nil {
		return err
	}
	root := filepath.Join(stage, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	layer := whole
	if os.Geteuid() != 0 {
		layer = piecemeal
	}
	if err := layer(root); err != nil {
		return err
	}
	if err := system(root); err != nil {
		return err
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	// The old root comes to lie over the new one and is taken away.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("enter the tree: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the host's tree: %w", err)
	}
	return os.Chdir("/")
}

// whole lays one overlay over the host's tree.
func whole(root string) error {
	return overlay("/", root, "all", "")
}

func overlay(lower, target, name, more string) error {
	upper, work := filepath.Join(stage, "upper-"+name), filepath.Join(stage, "work-"+name)
	for _, dir := range []string{upper, work} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	layers := "lowerdir=" + lower + ",upperdir=" + upper + ",workdir=" + work + more
	if err := unix.Mount("overlay", target, "overlay", 0, layers); err != nil {
		return fmt.Errorf("an overlay over %s: %w", lower, err)
	}
	return nil
}

// piecemeal does the same for a user who isn't root: in a user namespace the
// kernel lays no overlay over a tree in which the host has mounted something. So
// each folder of the root gets one, and where that can't be, is shown read-only.
func piecemeal(root string) error {
	if err := unix.Mount("tmpfs", root, "tmpfs", unix.MS_NODEV, space); err != nil {
		return err
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := piece(root, e); err != nil {
			return fmt.Errorf("/%s: %w", e.Name(), err)
		}
	}
	return nil
}

// furnished are the folders that [system] fills.
var furnished = []string{"proc", "dev", "sys", "tmp", "run"}

func piece(root string, e os.DirEntry) error {
	from, to := "/"+e.Name(), filepath.Join(root, e.Name())
	switch {
	case e.Type()&os.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case !e.IsDir():
		return nil
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	if slices.Contains(furnished, e.Name()) || overlay(from, to, e.Name(), ",userxattr") == nil {
		return nil
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return nil //nolint:nilerr // what this user can't see isn't there
	}
	return unix.MountSetattr(-1, to, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// system mounts what a system has beside its files.
func system(root string) error {
	at := func(path string) string { return filepath.Join(root, path) }
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
		data                 string
		optional             bool
	}{
		{"proc", "proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, "", false},
		{"/dev", "dev", "", unix.MS_BIND | unix.MS_REC, "", false},
		{"/sys", "sys", "", unix.MS_BIND | unix.MS_REC, "", true},
		{"tmpfs", "dev/shm", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, space + ",mode=1777", true},
		{"mqueue", "dev/mqueue", "mqueue", unix.MS_NOSUID | unix.MS_NODEV, "", true},
		{"tmpfs", "tmp", "tmpfs", unix.MS_NODEV, space + ",mode=1777", false},
		{"tmpfs", "var/tmp", "tmpfs", 0, space + ",mode=1777", false},
		{"tmpfs", "run", "tmpfs", unix.MS_NODEV, space + ",mode=755", false},
	} {
		err := unix.Mount(m.source, at(m.target), m.kind, m.flags, m.data)
		if err != nil && !m.optional {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	return nil
}

// folders makes a home folder to write to, where the tree has none.
func folders() error {
	home, err := os.UserHomeDir()
	if err != nil || home == "/" {
		return nil //nolint:nilerr // a user may have none
	}
	_ = os.MkdirAll(home, 0o755)
	if unix.Access(home, unix.W_OK) == nil {
		return nil
	}
	if err := unix.Mount("tmpfs", home, "tmpfs", unix.MS_NODEV, space+",mode=755"); err != nil {
		return nil //nolint:nilerr // probes that need a home say that they lack it
	}
	return nil
}

// network raises loopback and gives it the addresses that stand for others.
func network() error {
	if err := netns.RaiseLoopback(); err != nil {
		return err
	}
	for i, address := range world.StandAddresses() {
		if err := addAddress(fmt.Sprintf("lo:%d", i+1), address); err != nil {
			return fmt.Errorf("address %s: %w", address, err)
		}
	}
	return nil
}

func addAddress(label, address string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq(label)
	if err != nil {
		return err
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return err
	}
	if err := r.SetInet4Addr(ip.AsSlice()); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFADDR, r)
}
