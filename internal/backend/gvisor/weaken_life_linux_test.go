//go:build tranca_weaken

package gvisor

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca/internal/hostiletest"
)

// TestWeakenedLifetime kills a supervisor with -9. With the guarantee all
// processes of its sandbox die; without it Sentry and file server live on, until
// the next start sweeps their control groups.
func TestWeakenedLifetime(t *testing.T) {
	for _, weakened := range []bool{false, true} {
		t.Run(strconv.FormatBool(weakened), func(t *testing.T) {
			folder := t.TempDir()
			if err := os.Chmod(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			pids := killedSupervisor(t, folder, weakened)
			if !weakened {
				for _, pid := range pids {
					hostiletest.Eventually(t, "process "+pid+" is dead", func() bool { return !lives(pid) })
				}
				return
			}
			time.Sleep(time.Second)
			for _, pid := range pids {
				if !lives(pid) {
					t.Errorf("process %s has died all the same", pid)
				}
			}
			swept, err := New(Options{Options: confineOptions(folder)})
			if err != nil {
				t.Fatal(err)
			}
			defer swept.Close(context.Background())
			if swept.host.Groups == nil {
				return // then they are the test's to end
			}
			for _, pid := range pids {
				hostiletest.Eventually(t, "process "+pid+" is swept", func() bool { return !lives(pid) })
			}
		})
	}
}

// killedSupervisor returns the processes of a sandbox whose supervisor was
// killed.
func killedSupervisor(t *testing.T, folder string, weakened bool) []string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestHostileSupervisorDeath$")
	cmd.Env = append(os.Environ(), supervisorEnv+"="+folder)
	if weakened {
		cmd.Env = append(cmd.Env, "TRANCA_WEAKEN=gvisor:lifetime")
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []string
	t.Cleanup(func() {
		for _, pid := range pids {
			if n, err := strconv.Atoi(pid); err == nil && lives(pid) {
				_ = unix.Kill(n, unix.SIGKILL)
			}
		}
	})
	in := bufio.NewScanner(out)
	for pids == nil && in.Scan() {
		if rest, ok := strings.CutPrefix(in.Text(), "pids "); ok {
			pids = strings.Fields(rest)
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if len(pids) < 4 {
		t.Fatalf("only %v run", pids)
	}
	return pids
}

// lives reports whether there is a process, a stub of a Sentry's too, which has
// no name of its own.
func lives(pid string) bool {
	status, err := os.ReadFile("/proc/" + pid + "/status")
	return err == nil && !strings.Contains(string(status), "State:\tZ")
}
