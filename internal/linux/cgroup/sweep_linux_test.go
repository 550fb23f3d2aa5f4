package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tranca"
	"tranca/internal/linux/supervisor"
)

// helpServe is a supervisor with a sandbox, that gets killed.
func helpServe() error {
	s, err := supervisor.Open(os.Getenv("RUN"))
	if err != nil {
		return err
	}
	tree, err := Find(Options{V2: os.Getenv("V2") != ""}.forTest(s))
	if err != nil {
		return err
	}
	g, err := tree.Create("orphan", defaultLimits)
	if err != nil {
		return err
	}
	var pids []string
	for _, e := range []Entry{g.Code(), g.Agent()} {
		cmd := helper(e, "sleep")
		cmd.Stdout = nil
		if err := cmd.Start(); err != nil {
			return err
		}
		pids = append(pids, fmt.Sprint(cmd.Process.Pid))
	}
	fmt.Println("ready", s.ID(), strings.Join(pids, " "))
	stay()
	return nil
}

func TestSweep(t *testing.T) {
	bothKinds(t, func(t *testing.T, tree *Tree) {
		run := filepath.Join(t.TempDir(), "run")
		s, err := supervisor.Open(run)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		serve := helper(Entry{}, "serve")
		serve.Env = append(serve.Env, "RUN="+run)
		if tree.v2 != nil {
			serve.Env = append(serve.Env, "V2=1")
		}
		p := startCmd(t, serve)
		var id string
		var code, agent int
		if _, err := fmt.Sscanf(p.line(t), "ready %s %d %d", &id, &code, &agent); err != nil {
			t.Fatal(err)
		}
		// The other tree's group belongs to somebody else.
		other := create(t, tree, "other", defaultLimits)
		bystander := start(t, other.Code(), "sleep")
		if err := Sweep(s); err != nil {
			t.Fatal(err)
		}
		if len(folders(t, id)) == 0 || !alive(t, code) || !alive(t, agent) {
			t.Fatal("a living supervisor was swept")
		}
		_ = p.Process.Kill()
		_ = p.Wait()
		if err := Sweep(s); err != nil {
			t.Fatal(err)
		}
		if left := folders(t, id); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		if alive(t, code) || alive(t, agent) {
			t.Error("a process of the dead supervisor lives")
		}
		if !alive(t, bystander.Process.Pid) {
			t.Error("somebody else's process was killed")
		}
		if dead, err := s.Dead(); err != nil || len(dead) > 0 {
			t.Errorf("still known as dead: %v %v", dead, err)
		}
	})
}

// A note that leads elsewhere is no reason to remove anything.
func TestCleanRefuses(t *testing.T) {
	const id = "0123456789abcdef"
	elsewhere := filepath.Join(t.TempDir(), folderName(id))
	if err := os.Mkdir(elsewhere, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{elsewhere, "/", "/sys/fs/cgroup", "tranca-" + id, "/sys/fs/cgroup/tranca-0123456789abcde0"} {
		err := Clean(supervisor.Remains{ID: id, Notes: []supervisor.Note{{Kind: NoteKind, Value: path}}})
		if !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Stat(elsewhere); err != nil {
		t.Error(err)
	}
	gone := supervisor.Note{Kind: NoteKind, Value: "/sys/fs/cgroup/" + folderName(id)}
	other := supervisor.Note{Kind: "mount", Value: "/"}
	if err := Clean(supervisor.Remains{ID: id, Notes: []supervisor.Note{gone, other}}); err != nil {
		t.Errorf("a folder that is gone: %v", err)
	}
}
