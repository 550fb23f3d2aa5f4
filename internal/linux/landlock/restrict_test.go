package landlock

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// probe is one act on the layout. Without a ruleset its errno is free.
type probe struct {
	act  func(dir string) unix.Errno
	want unix.Errno // restricted
	free unix.Errno
	abi  int // below it the act is not restricted
}

var probes = map[string]probe{
	"read a hidden file":    {act: open("hidden/file", unix.O_RDONLY), want: unix.EACCES},
	"list a hidden folder":  {act: open("hidden", unix.O_RDONLY|unix.O_DIRECTORY), want: unix.EACCES},
	"list the parent":       {act: open(".", unix.O_RDONLY|unix.O_DIRECTORY), want: unix.EACCES},
	"read the host's users": {act: func(string) unix.Errno { return open("etc/passwd", unix.O_RDONLY)("/") }, want: unix.EACCES},
	"read":                  {act: open("ro/file", unix.O_RDONLY)},
	"list":                  {act: open("ro", unix.O_RDONLY|unix.O_DIRECTORY)},
	"write read-only":       {act: open("ro/file", unix.O_WRONLY), want: unix.EACCES},
	"make read-only":        {act: open("ro/new", unix.O_WRONLY|unix.O_CREAT), want: unix.EACCES},
	"write":                 {act: open("rw/file", unix.O_RDWR)},
	"make":                  {act: open("rw/new", unix.O_WRONLY|unix.O_CREAT)},
	"truncate read-only":    {act: truncate("ro/file"), want: unix.EACCES, abi: 3},
	"empty read-only":       {act: open("ro/file", unix.O_RDONLY|unix.O_TRUNC), want: unix.EACCES, abi: 3},
	"truncate":              {act: truncate("rw/file")},
	"remove read-only":      {act: func(dir string) unix.Errno { return errnoOf(os.Remove(dir + "/ro/file")) }, want: unix.EACCES},
	"remove":                {act: func(dir string) unix.Errno { return errnoOf(os.Remove(dir + "/rw/file")) }},
	"folder read-only":      {act: func(dir string) unix.Errno { return errnoOf(os.Mkdir(dir+"/ro/d", 0o700)) }, want: unix.EACCES},
	"folder":                {act: func(dir string) unix.Errno { return errnoOf(os.Mkdir(dir+"/rw/d", 0o700)) }},
	"symlink":               {act: func(dir string) unix.Errno { return errnoOf(os.Symlink("x", dir+"/rw/l")) }},

	"move between":       {act: rename("rw/file", "rw2/new")},
	"move out":           {act: rename("rw/file", "ro/new"), want: unix.EACCES},
	"move in":            {act: rename("hidden/file", "rw/new"), want: unix.EACCES},
	"link in":            {act: link("hidden/file", "rw/new"), want: unix.EXDEV},
	"link from ro to rw": {act: link("ro/file", "rw/new"), want: unix.EXDEV},
	"link between":       {act: link("rw/file", "rw2/new")},

	// The file is no program, which the kernel finds out once it may run it.
	"execute":         {act: execute("ro/file"), want: unix.ENOEXEC, free: unix.ENOEXEC},
	"execute hidden":  {act: execute("hidden/file"), want: unix.EACCES, free: unix.ENOEXEC},
	"device node":     {act: node("rw/n", unix.S_IFCHR), want: unix.EACCES, free: deviceAnyway()},
	"FIFO":            {act: node("rw/n", unix.S_IFIFO)},
	"FIFO read-only":  {act: node("ro/n", unix.S_IFIFO), want: unix.EACCES},
	"device":          {act: func(string) unix.Errno { return open("dev/zero", unix.O_RDWR)("/") }},
	"other device":    {act: func(string) unix.Errno { return open("dev/full", unix.O_RDWR)("/") }, want: unix.EACCES},
	"ioctl on device": {act: ioctl, want: unix.EACCES, free: unix.ENOTTY, abi: 5},

	"bind a socket file":           {act: bind("rw/socket")},
	"bind a socket file read-only": {act: bind("ro/socket"), want: unix.EACCES},
	"own socket file":              {act: ownServer(false)},
	"socket file of the host":      {act: connect(false), want: unix.EACCES, abi: 9},
	"own abstract socket":          {act: ownServer(true)},
	"abstract socket of the host":  {act: connect(true), want: unix.EPERM, abi: 6},
	"signal the host":              {act: func(string) unix.Errno { return errnoOf(unix.Kill(os.Getppid(), 0)) }, want: unix.EPERM, abi: 6},
	"signal itself":                {act: func(string) unix.Errno { return errnoOf(unix.Kill(os.Getpid(), 0)) }},

	// The network is left alone unless the ruleset handles it.
	"TCP": {act: listenTCP},
}

func open(name string, flags int) func(string) unix.Errno {
	return func(dir string) unix.Errno {
		fd, err := unix.Open(filepath.Join(dir, name), flags|unix.O_CLOEXEC, 0o600)
		if err == nil {
			unix.Close(fd)
		}
		return errnoOf(err)
	}
}

func truncate(name string) func(string) unix.Errno {
	return func(dir string) unix.Errno { return errnoOf(unix.Truncate(filepath.Join(dir, name), 1)) }
}

func rename(from, to string) func(string) unix.Errno {
	return func(dir string) unix.Errno {
		return errnoOf(unix.Rename(filepath.Join(dir, from), filepath.Join(dir, to)))
	}
}

func link(from, to string) func(string) unix.Errno {
	return func(dir string) unix.Errno {
		return errnoOf(unix.Link(filepath.Join(dir, from), filepath.Join(dir, to)))
	}
}

func execute(name string) func(string) unix.Errno {
	return func(dir string) unix.Errno { return errnoOf(unix.Exec(filepath.Join(dir, name), nil, nil)) }
}

// node makes a node; a character device 0:0 is what Linux lets anybody make.
func node(name string, kind uint32) func(string) unix.Errno {
	return func(dir string) unix.Errno {
		return errnoOf(unix.Mknod(filepath.Join(dir, name), kind|0o600, nullDevice))
	}
}

// nullDevice is the number of /dev/null. Number 0 would be a whiteout, which
// some kernels don't take for a device.
const nullDevice = 1<<8 | 3

// deviceAnyway returns what making a device node gives this user where nothing
// restricts it: only some may.
func deviceAnyway() unix.Errno {
	dir, err := os.MkdirTemp("", "landlock-")
	if err != nil {
		return unix.EDOM
	}
	defer os.RemoveAll(dir)
	return node("n", unix.S_IFCHR)(dir)
}

func ioctl(string) unix.Errno {
	fd, err := unix.Open("/dev/zero", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return unix.EDOM
	}
	defer unix.Close(fd)
	_, err = unix.IoctlGetTermios(fd, unix.TCGETS)
	return errnoOf(err)
}

func listenTCP(string) unix.Errno {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return unix.EDOM
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return errnoOf(err)
	}
	return errnoOf(unix.Listen(fd, 1))
}

// address is that of a server, as a file or as an abstract name.
func address(abstract bool, dir, name string) *unix.SockaddrUnix {
	if abstract {
		return &unix.SockaddrUnix{Name: "@" + filepath.Join(dir, name)}
	}
	return &unix.SockaddrUnix{Name: filepath.Join(dir, name)}
}

// serve makes a server and returns its descriptor.
func serve(at *unix.SockaddrUnix) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, at); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, unix.Listen(fd, 1)
}

func dial(at *unix.SockaddrUnix) unix.Errno {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return unix.EDOM
	}
	defer unix.Close(fd)
	return errnoOf(unix.Connect(fd, at))
}

func bind(name string) func(string) unix.Errno {
	return func(dir string) unix.Errno {
		fd, err := serve(address(false, dir, name))
		unix.Close(fd)
		return errnoOf(err)
	}
}

// connect dials the server that the test has made, outside of the domain.
func connect(abstract bool) func(string) unix.Errno {
	return func(dir string) unix.Errno { return dial(address(abstract, dir, "rw/host")) }
}

// ownServer makes a server inside the domain and dials it.
func ownServer(abstract bool) func(string) unix.Errno {
	return func(dir string) unix.Errno {
		at := address(abstract, dir, "rw/own")
		fd, err := serve(at)
		if err != nil {
			return errnoOf(err)
		}
		defer unix.Close(fd)
		return dial(at)
	}
}

// hostServers makes the servers of the host that probes try to reach.
func hostServers(t *testing.T, dir string) {
	t.Helper()
	for _, abstract := range []bool{false, true} {
		fd, err := serve(address(abstract, dir, "rw/host"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
	}
}

// TestRestricted runs each probe under the ruleset and, as a control, without.
func TestRestricted(t *testing.T) {
	abi := requireABI(t)
	for name, p := range probes {
		t.Run(name, func(t *testing.T) {
			want := p.want
			if abi < p.abi {
				want = p.free // what Lacks tells
			}
			for set, want := range map[string]unix.Errno{restricted: want, free: p.free} {
				dir := layout(t)
				hostServers(t, dir)
				if got := probeErrno(t, set, name, dir); got != want {
					t.Errorf("ruleset %s: got %s, want %s", set, show(got), show(want))
				}
			}
		})
	}
}

func TestOtherRulesets(t *testing.T) {
	abi := requireABI(t)
	dir := layout(t)
	if got := probeErrno(t, terminal, "ioctl on device", dir); got != unix.ENOTTY {
		t.Errorf("ioctl on a terminal's device: got %s, want ENOTTY from the device", show(got))
	}
	if abi < 4 {
		return
	}
	if got := probeErrno(t, networked, "TCP", dir); got != unix.EACCES {
		t.Errorf("TCP where the ruleset handles the network: got %s, want EACCES", show(got))
	}
}

func show(errno unix.Errno) string {
	if errno == 0 {
		return "success"
	}
	return fmt.Sprintf("%s (%d)", unix.ErrnoName(errno), errno)
}
