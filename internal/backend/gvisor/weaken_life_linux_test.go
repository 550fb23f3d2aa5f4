//go:build tranca_weaken

package gvisor

import (
	"context"
	"os"
	"strconv"
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
	var env []string
	if weakened {
		env = append(env, "TRANCA_WEAKEN=gvisor:lifetime")
	}
	cmd, pids, _ := startSupervisor(t, folder, env...)
	t.Cleanup(func() {
		for _, pid := range pids {
			if n, err := strconv.Atoi(pid); err == nil && lives(pid) {
				_ = unix.Kill(n, unix.SIGKILL)
			}
		}
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return pids
}
