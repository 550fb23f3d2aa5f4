package agent

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

func selector(pid uint32) message.ProcessSelector { return message.ProcessSelector{PID: pid} }

func TestProcessCalls(t *testing.T) {
	s := serve(t, own(Config{}))
	c, pid := begin(t, s, "cat")
	var list message.ListResponse
	if code := ask(t, s, message.MethodList, &message.Empty{}, &list); code != 0 || len(list.Processes) != 1 ||
		list.Processes[0].PID != pid || list.Processes[0].Tag != "tag-cat" || list.Processes[0].Config.Cmd != "cat" {
		t.Errorf("list: %v %+v", code, list)
	}
	byTag := message.ProcessSelector{Tag: "tag-cat"}
	input := message.SendInputRequest{Process: byTag, Input: message.ProcessInput{Stdin: []byte("hello")}}
	if code := ask(t, s, message.MethodSendInput, &input, &message.Empty{}); code != 0 {
		t.Errorf("input: %v", code)
	}
	var data message.StartResponse
	if err := receiveFrom(t, c.Sides[0], &data); err != nil || data.Event.Data == nil || len(data.Event.Data.Stdout) != 5 {
		t.Errorf("output: %+v %v", data, err)
	}
	for _, req := range []*message.CloseStdinRequest{{Process: byTag}, {Process: selector(pid)}} {
		if code := ask(t, s, message.MethodCloseStdin, req, &message.Empty{}); code != 0 && code != wire.CodeNotFound {
			t.Errorf("close of stdin: %v", code)
		}
	}
	if end := finish(t, c); !end.Exited || end.ExitCode != 0 || end.Status != "exit status 0" || end.Error != "" {
		t.Errorf("end: %+v", end)
	}
	for name, code := range map[string]wire.Code{
		"signal": ask(t, s, message.MethodSendSignal, &message.SendSignalRequest{Process: selector(pid), Signal: 9}, &message.Empty{}),
		"input":  ask(t, s, message.MethodSendInput, &input, &message.Empty{}),
		"close":  ask(t, s, message.MethodCloseStdin, &message.CloseStdinRequest{Process: byTag}, &message.Empty{}),
	} {
		if code != wire.CodeNotFound {
			t.Errorf("%s after the end: %v", name, code)
		}
	}
}

func TestSignalEndsIt(t *testing.T) {
	s := serve(t, own(Config{}))
	c, pid := begin(t, s, "sleep", "300")
	for _, sig := range []uint32{0, 65, 1 << 31} {
		req := message.SendSignalRequest{Process: selector(pid), Number: sig}
		if code := ask(t, s, message.MethodSendSignal, &req, &message.Empty{}); code != wire.CodeInvalidArgument {
			t.Errorf("signal %d: %v", sig, code)
		}
	}
	req := message.SendSignalRequest{Process: selector(pid), Signal: message.SignalTerm}
	if code := ask(t, s, message.MethodSendSignal, &req, &message.Empty{}); code != 0 {
		t.Errorf("signal: %v", code)
	}
	if end := finish(t, c); end.Exited || end.ExitCode != -1 || end.Signal != 15 || end.Error == "" {
		t.Errorf("end: %+v", end)
	}
}

// alive reports whether a process is there and no zombie.
func alive(pid uint32) bool {
	b, err := os.ReadFile("/proc/" + utoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(b), ") Z ")
}

func gone(t testing.TB, pid uint32) {
	t.Helper()
	for range 1000 {
		if !alive(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d lives on", pid)
}

func TestResetKills(t *testing.T) {
	s := serve(t, own(Config{}))
	c, pid := begin(t, s, "sleep", "300")
	c.Reset(wire.CodeCanceled, "given up")
	c.Close()
	gone(t, pid)
	if code := ask(t, s, message.MethodPing, &message.Empty{}, &message.Empty{}); code != 0 {
		t.Errorf("ping afterwards: %v", code)
	}
}

func TestEndOfStreamKills(t *testing.T) {
	s := serve(t, own(Config{}))
	_, pid := begin(t, s, "sleep", "300")
	s.Fail(wire.ErrEnded)
	gone(t, pid)
}

// Output that the host gives up does not stop the program.
func TestOutputGivenUp(t *testing.T) {
	s := serve(t, own(Config{}))
	c, _ := begin(t, s, "head", "-c", "32M", "/dev/zero")
	c.Sides[0].Close()
	if end := finish(t, c); !end.Exited || end.ExitCode != 0 {
		t.Errorf("end: %+v", end)
	}
}

func TestTooManyPrograms(t *testing.T) {
	s := serve(t, own(Config{MaxProcesses: 2}))
	first, _ := begin(t, s, "sleep", "300")
	second, _ := begin(t, s, "sleep", "300")
	defer second.Close()
	req := message.StartRequest{Process: message.ProcessConfig{Cmd: "true"}}
	third := func() wire.Code {
		c, err := s.Open(within(t), message.MethodStart, 2, req.Append(nil), true)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return codeIn(t, receiveFrom(t, c.Stream, &message.StartResponse{}))
	}
	if code := third(); code != wire.CodeUnavailable {
		t.Errorf("a third: %v", code)
	}
	first.Close()
	for range 1000 {
		if third() == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the place of the first is never free")
}

func TestBadCalls(t *testing.T) {
	s := serve(t, own(Config{}))
	start := message.StartRequest{Process: message.ProcessConfig{Cmd: "true"}}
	nul := message.StartRequest{Process: message.ProcessConfig{Cmd: "true", Args: []string{"a\x00"}}}
	for _, tt := range []struct {
		name, method string
		sides        int
		req          []byte
		want         wire.Code
	}{
		{"no such method", "/no/Such", 0, nil, wire.CodeUnimplemented},
		{"a method of later", "/process.Process/Connect", 0, nil, wire.CodeUnimplemented},
		{"no message", message.MethodStat, 0, []byte{0xff}, wire.CodeInvalidArgument},
		{"a start without side streams", message.MethodStart, 0, start.Append(nil), wire.CodeInvalidArgument},
		{"a start of nothing", message.MethodStart, 2, nil, wire.CodeInvalidArgument},
		{"a NUL", message.MethodStart, 2, nul.Append(nil), wire.CodeInvalidArgument},
		{"a signal to nobody", message.MethodSendSignal, 0, (&message.SendSignalRequest{Signal: 9}).Append(nil), wire.CodeNotFound},
	} {
		c, err := s.Open(within(t), tt.method, tt.sides, tt.req, true)
		if err != nil {
			t.Fatal(err)
		}
		if code := codeIn(t, receiveFrom(t, c.Stream, &message.Empty{})); code != tt.want {
			t.Errorf("%s: code %d, want %d", tt.name, code, tt.want)
		}
		c.Close()
	}
}

func TestFilesCanBeOff(t *testing.T) {
	s := serveConfig(t, own(Config{Launcher: Direct{}, Workdir: "/"}))
	if code := ask(t, s, message.MethodStat, &message.PathRequest{Path: "/"}, &message.Empty{}); code != wire.CodeUnimplemented {
		t.Errorf("stat: %v", code)
	}
}

// A child is not reached by signals once it was reaped, whoever has its pid.
func TestDirectAfterTheEnd(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	prog := Program{Path: "/bin/sh", Args: []string{"sh", "-c", "exit 7"}, Dir: "/", Stdin: null, Stdout: null, Stderr: null}
	for _, blocking := range []bool{false, true} {
		c, err := Direct{}.Launch(prog)
		if err != nil {
			t.Fatal(err)
		}
		child := c.(*directChild)
		if blocking {
			child.pidfd.Close()
			child.pidfd = nil
		}
		if st, err := c.Wait(); err != nil || st != (Status{Code: 7}) {
			t.Errorf("blocking %v: %+v %v", blocking, st, err)
		}
		for _, group := range []bool{false, true} {
			if err := c.Signal(9, group); err != syscall.ESRCH {
				t.Errorf("signal after the end: %v", err)
			}
		}
	}
}

func TestDirectAttributes(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if _, err := (Direct{Attr: func(a *syscall.SysProcAttr) { a.Chroot = "/no/such" }}).Launch(Program{
		Path: "/bin/true", Args: []string{"true"}, Dir: "/", Stdin: null, Stdout: null, Stderr: null,
	}); err == nil {
		t.Error("the attributes were not applied")
	}
}
