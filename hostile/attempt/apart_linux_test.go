package attempt_test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca/hostile/attempt"
	"tranca/internal/require"
)

// TestListenAnswers: who connects gets the data, and what they sent is told of.
func TestListenAnswers(t *testing.T) {
	each(t, func(t *testing.T, i interpreter) {
		for _, network := range []string{"tcp", "udp", "unix"} {
			folder := i.place(t)
			address := filepath.Join(folder, "l")
			if network != "unix" {
				address = free(t, network)
			}
			cmd := i.command(t, folder, program(t, `{"do":"listen","network":"`+network+`","address":"`+address+
				`","for":20000,"data":"hex:00ff"}`, folder))
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if got := asked(t, network, address); got != "\x00\xff" {
				t.Errorf("%s: the answer is %q", network, got)
			}
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			if got := lines(t, out.String(), folder); len(got) != 2 || short(got[0]) != "0  ok question" {
				t.Errorf("%s: lines %v", network, got)
			}
		}
	})
}

// asked sends until somebody answers.
func asked(t *testing.T, network, address string) string {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial(network, address)
		if err != nil {
			continue
		}
		_, _ = c.Write([]byte("question"))
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		buf := make([]byte, 64)
		n, err := c.Read(buf)
		c.Close()
		if err == nil {
			return string(buf[:n])
		}
	}
	t.Errorf("%s: nobody answers", network)
	return ""
}

// TestNamespacesEndInTime: the first process of a namespace of pids can't be
// killed from inside. What a program leaves in one ends by itself all the same.
func TestNamespacesEndInTime(t *testing.T) {
	each(t, func(t *testing.T, i interpreter) {
		folder := i.place(t)
		p := program(t, `{"do":"spawn","new":"user+pid","no_wait":true,"session":true,"close":true,"steps":[
			{"do":"ignore"},{"do":"repeat","for":60000,"every":20,"steps":[
				{"do":"write","path":"{dir}/beat","data":"x","append":true}]}]}`, folder)
		i.change = func(script string) string {
			return strings.Replace(script, "LOOSE = 60.0", "LOOSE = 1.5", 1)
		}
		if i.name == "go" {
			p.Within = &attempt.Within{Until: time.Now().Add(1500 * time.Millisecond).UnixMilli()}
		}
		if err := i.command(t, folder, p).Run(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			for _, pid := range marked(t, p.Mark) {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		})
		if !grows(t, filepath.Join(folder, "beat")) {
			t.Error("nothing lives on")
		}
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && len(marked(t, p.Mark)) > 0; {
			time.Sleep(50 * time.Millisecond)
		}
		if got := marked(t, p.Mark); len(got) != 0 {
			t.Errorf("still alive: %v", got)
		}
	})
}

// TestUnmappedUser: where the maps can't be written, the user namespace is made
// without them.
func TestUnmappedUser(t *testing.T) {
	require.Program(t, "python3")
	for _, i := range both() {
		t.Run(i.String(), func(t *testing.T) {
			out, err := run(t, i, i.place(t), `{"do":"spawn","new":"user+mount","steps":[
				{"do":"syscall","call":"mount","args":["text:none","text:/proc","text:tmpfs","0","0"]},
				{"do":"spawn","new":"user","steps":[{"do":"syscall","call":"getuid"},{"do":"syscall","call":"getegid"}]}]}`)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range lines(t, out, "/x") {
				got = append(got, short(l))
			}
			want := "0 syscall ok 0, 0 syscall ok 65534, 0 syscall ok 65534, 0 spawn ok, 0  ok, -1  ok"
			if s := strings.Join(got, ", "); s != want {
				t.Errorf("lines %s\nwant %s", s, want)
			}
		})
	}
}

// TestMapDies: a mapping of what isn't there kills the child that touches it,
// and the program goes on.
func TestMapDies(t *testing.T) {
	each(t, func(t *testing.T, i interpreter) {
		folder := i.place(t)
		out, err := run(t, i, folder, `{"do":"spawn","new":"user+mount","steps":[
			{"do":"syscall","call":"mount","args":["text:none","text:{dir}","text:tmpfs","0","text:size=8192"]},
			{"do":"files","path":"{dir}/d","count":1},
			{"do":"write","path":"{dir}/hole"}, {"do":"truncate","path":"{dir}/hole","size":4096},
			{"do":"fill","path":"{dir}/full","size":1000000},
			{"do":"mmap","path":"{dir}/hole","data":"x"}]}`)
		if err != nil {
			t.Fatal(err)
		}
		got := lines(t, out, folder)
		if len(got) != 8 || short(got[4]) != "0 fill ENOSPC" || short(got[5]) != "0 mmap SIGBUS" || !got[6].OK {
			t.Errorf("lines %v", got)
		}
	})
}
