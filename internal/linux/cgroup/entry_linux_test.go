package cgroup

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tranca/internal/linux/supervisor"
	"tranca/internal/require"
)

// helpStart is an agent that starts a program in the v2 folder of its last
// file and with the tasks files before.
func helpStart() error {
	files := inherited()
	last := len(files) - 1
	cmd := helper(Entry{Tasks: files[:last], Dir: files[last]}, "sleep")
	cmd.Stdout = os.Stdout
	if err := cmd.Start(); err != nil {
		fmt.Println("refused:", err)
		return nil
	}
	return cmd.Wait()
}

// The owner, who has no other right on the host, starts programs in the
// code's leaf, if he was given that right.
func TestOwnerStartsPrograms(t *testing.T) {
	require.Root(t)
	tree := needTree(t, Options{V2: true})
	require.Check(t, "cgroup2", tree.v2 != nil, "no v2 tree")
	for name, owner := range map[string]*Owner{"owner": {nobody, nobody}, "stranger": nil} {
		t.Run(name, func(t *testing.T) {
			l := defaultLimits
			l.Owner = owner
			g := create(t, tree, name, l)
			code := g.Code()
			if !code.Detached {
				t.Fatal("root can't detach the folder")
			}
			cmd := helper(g.Agent(), "start", append(code.Tasks, code.Dir)...)
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
			line := startCmd(t, cmd).line(t)
			if owner == nil {
				if !strings.HasPrefix(line, "refused") {
					t.Errorf("started: %q", line)
				}
				return
			}
			if line != "ready" {
				t.Fatalf("not started: %q", line)
			}
			for _, l := range g.leaves {
				if pids, _, err := l.pids(); l.role == forCode && (err != nil || len(pids) != 1) {
					t.Errorf("in %s: %v %v", l, pids, err)
				}
			}
		})
	}
}

// From a detached folder nothing above it is reached.
func TestDetached(t *testing.T) {
	require.Root(t)
	tree := needTree(t, Options{V2: true})
	require.Check(t, "cgroup2", tree.v2 != nil, "no v2 tree")
	g := create(t, tree, "detached", defaultLimits)
	plain, err := place{tree.v2.dir, "detached"}.open(".", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	again, err := Detach(plain)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for _, d := range []*os.File{g.Code().Dir, again} {
		var here, up unix.Stat_t
		if err := unix.Fstatat(int(d.Fd()), ".", &here, 0); err != nil {
			t.Fatal(err)
		}
		if err := unix.Fstatat(int(d.Fd()), "../../..", &up, 0); err != nil {
			t.Fatal(err)
		}
		if here.Ino != up.Ino || here.Dev != up.Dev {
			t.Errorf("%s leads up to inode %d", d.Name(), up.Ino)
		}
	}
}

// joiner is a user that an unprivileged supervisor gives programs to.
const joiner = 65533

// helpShare is an unprivileged supervisor with a sandbox for another user.
func helpShare() error {
	s, err := supervisor.Open(os.Getenv("RUN"))
	if err != nil {
		return err
	}
	tree, err := Find(Options{}.forTest(s))
	if err != nil {
		return err
	}
	l := defaultLimits
	l.Owner = &Owner{joiner, joiner}
	g, err := tree.Create("shared", l)
	if err != nil {
		return err
	}
	var names []string
	for _, f := range g.Code().Tasks {
		names = append(names, f.Name())
	}
	fmt.Println("ready", g.Code().Reopen, strings.Join(names, " "))
	_, _ = os.Stdin.Read(make([]byte, 1)) // until it is told to end
	if err := g.Destroy(context.Background()); err != nil {
		return err
	}
	return tree.Close()
}

// helpReopen joins by files that somebody else has opened for their name
// only.
func helpReopen() error {
	runtime.LockOSThread()
	for _, f := range inherited() {
		own, err := Reopen(f)
		if err != nil {
			return err
		}
		if err := writeZero([]*os.File{own}); err != nil {
			return err
		}
	}
	os.Setenv(helperEnv, "sleep")
	return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
}

// Under v1 the joining user must have opened the file: the supervisor's own
// descriptor is of no use to him.
func TestReopen(t *testing.T) {
	require.Root(t)
	tree := needTree(t, Options{})
	require.Check(t, "cgroup1", len(tree.v1) > 0, "no v1 hierarchy")
	paths, _ := delegate(t, nobody)
	run, err := os.MkdirTemp("/tmp", "cgroup-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(run)
	if err := os.Chown(run, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := helper(Entry{}, "share")
	cmd.Env = append(cmd.Env, "RUN="+run, pathsEnv+"="+strings.Join(paths, ":"))
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	share := startCmd(t, cmd)
	fields := strings.Fields(share.line(t))
	if len(fields) < 3 || fields[1] != "true" {
		t.Fatalf("helper said %q", fields)
	}
	var byName []*os.File
	for _, name := range fields[2:] {
		fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), name)
		defer f.Close()
		byName = append(byName, f)
		// Others must not reach the files by their names.
		folder := strings.TrimSuffix(name, "/shared/tasks")
		if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", folder, info.Mode(), err)
		}
	}
	in := helper(Entry{}, "reopen", byName...)
	in.SysProcAttr.Credential = &syscall.Credential{Uid: joiner, Gid: joiner}
	p := startCmd(t, in)
	if line := p.line(t); line != "ready" {
		t.Fatalf("the joiner said %q", line)
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.Process.Pid) + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	if !hasController(t, string(text), ctlMemory, "/shared") {
		t.Errorf("the joiner is not in the group:\n%s", text)
	}
	_ = p.Process.Kill()
	_ = p.Wait()
	stdin.Close()
	if err := share.Wait(); err != nil {
		t.Error(err)
	}
}
