package world

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// victim is a process of the host, of the operator's user, whose command line
// and environment hold secrets.
type victim struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
}

// startVictim starts it: the static program that waits for its program.
func (w *World) startVictim() error {
	if w.o.Program == "" {
		return nil
	}
	cmd := exec.Command(w.o.Program, w.secret("a command line of the host"))
	cmd.Env = []string{"SECRET=" + w.secret("an environment of the host")}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return errors.Join(errorf("a process of the host to be tried on", err), in.Close())
	}
	v := &victim{cmd: cmd, stdin: in, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(v.ended)
	}()
	w.victim = v
	w.vars["victim"] = strconv.Itoa(cmd.Process.Pid)
	w.undo = append(w.undo, v.close)
	return nil
}

func (v *victim) close() error {
	_ = v.cmd.Process.Kill()
	<-v.ended
	_ = v.stdin.Close()
	return nil
}

// look tells whether it was ended, stopped or traced.
func (v *victim) look() []Finding {
	select {
	case <-v.ended:
		return []Finding{{"signalled", "a process of the host was ended: " + v.cmd.ProcessState.String()}}
	case <-time.After(5 * time.Millisecond):
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(v.cmd.Process.Pid) + "/stat")
	if err == nil && stopped(status) {
		return []Finding{{"signalled", "a process of the host was stopped"}}
	}
	return nil
}

// stopped reads the state behind the name, which may hold anything.
func stopped(stat []byte) bool {
	for i := len(stat) - 1; i > 0; i-- {
		if stat[i] == ')' {
			return i+2 < len(stat) && (stat[i+2] == 'T' || stat[i+2] == 't')
		}
	}
	return false
}
