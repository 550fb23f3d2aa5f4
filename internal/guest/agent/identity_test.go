package agent

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
	"tranca/internal/require"
)

func utoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// nobody is a user whom no file of a test's folders belongs to.
const nobody = 65534

// File work has the rights of the code's user, not of the agent's.
func TestForeignRights(t *testing.T) {
	require.Root(t)
	dir := t.TempDir()
	for _, p := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, mode := range map[string]os.FileMode{"secret": 0o600, "group": 0o640, "open": 0o644} {
		if err := os.WriteFile(at(name), []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{"closed": 0o700, "his": 0o777} {
		if err := os.Mkdir(at(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(at(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(at("closed/x"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	s := serve(t, Config{Workdir: dir, FSUID: nobody, FSGID: nobody})
	const denied = wire.CodePermissionDenied
	read := func(name string) wire.Code {
		return ask(t, s, message.MethodRead, &message.ReadRequest{Path: name}, &message.ReadResponse{})
	}
	path := func(method, name string) wire.Code {
		return ask(t, s, method, &message.PathRequest{Path: name}, &message.EntryResponse{})
	}
	for _, tt := range []struct {
		name      string
		got, want wire.Code
	}{
		{"read of the agent's", read("secret"), denied},
		{"read of the agent's group's", read("group"), denied},
		{"read of everybody's", read("open"), 0},
		{"read in a closed folder", read("closed/x"), denied},
		{"write to everybody's", ask(t, s, message.MethodWrite, &message.WriteRequest{Path: "open"}, &message.WriteResponse{}), denied},
		{"write in the agent's folder", ask(t, s, message.MethodWrite, &message.WriteRequest{Path: "new"}, &message.WriteResponse{}), denied},
		{"write in his folder", ask(t, s, message.MethodWrite, &message.WriteRequest{Path: "his/new", Mode: 0o4755}, &message.WriteResponse{}), 0},
		{"stat in a closed folder", path(message.MethodStat, "closed/x"), denied},
		{"list of a closed folder", ask(t, s, message.MethodListDir, &message.ListDirRequest{Path: "closed"}, &message.ListDirResponse{}), denied},
		{"make in the agent's folder", path(message.MethodMakeDir, "a/b"), denied},
		{"make in his folder", path(message.MethodMakeDir, "his/a/b"), 0},
		{"move of the agent's", ask(t, s, message.MethodMove, &message.MoveRequest{Source: "open", Destination: "his/x"}, &message.EntryResponse{}), denied},
		{"remove of the agent's", path(message.MethodRemove, "open"), denied},
		{"remove of a closed folder", path(message.MethodRemove, "closed"), denied},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: code %d, want %d", tt.name, tt.got, tt.want)
		}
	}
	for name, mode := range map[string]uint32{"his/new": 0o100755, "his/a/b": 0o40755} {
		var st unix.Stat_t
		if err := unix.Lstat(at(name), &st); err != nil || st.Uid != nobody || st.Gid != nobody || st.Mode != mode {
			t.Errorf("%s: owner %d:%d, mode %o, %v", name, st.Uid, st.Gid, st.Mode, err)
		}
	}
	if n, err := syscall.Getgroups(); err != nil || len(n) != 0 {
		t.Errorf("supplementary groups: %v %v", n, err)
	}
}

// The program's output can be opened anew by the program's user.
func TestOutputBelongsToTheUser(t *testing.T) {
	require.Root(t)
	asNobody := Direct{Attr: func(a *syscall.SysProcAttr) { a.Credential = &syscall.Credential{Uid: nobody, Gid: nobody} }}
	s := serve(t, Config{Workdir: "/", Launcher: asNobody, FSUID: nobody, FSGID: nobody})
	c, _ := begin(t, s, "sh", "-c", "id -u >/dev/stdout && echo e >/dev/stderr")
	var out message.StartResponse
	if err := receiveFrom(t, c.Sides[0], &out); err != nil || string(out.Event.Data.Stdout) != "65534\n" {
		t.Errorf("%+v %v", out, err)
	}
	if end := finish(t, c); end.ExitCode != 0 {
		t.Errorf("%+v", end)
	}
}

// The thread has its own rights again afterwards, also when f panics.
func TestIdentityIsGivenBack(t *testing.T) {
	require.Root(t)
	id, err := newIdentity(nobody, nobody)
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = id.do(func() error { panic("in file work") })
	}()
	for range 100 {
		if err := id.do(func() error {
			if uid, _ := unix.SetfsuidRetUid(-1); uid != nobody {
				t.Errorf("inside: fsuid %d", uid)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if uid, _ := unix.SetfsuidRetUid(-1); uid != 0 {
			t.Fatalf("outside: fsuid %d", uid)
		}
	}
}

func TestForeignRightsAreRefused(t *testing.T) {
	require.Unprivileged(t)
	ours, theirs := net.Pipe()
	defer ours.Close()
	if err := Serve(theirs, Config{Launcher: Direct{}, Workdir: "/", FSUID: uint32(os.Geteuid()) + 1}); err == nil {
		t.Error("served with rights that it can't have")
	}
}
