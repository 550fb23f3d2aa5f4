//go:build tranca_weaken

package process

import (
	"context"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca/internal/hostiletest"
)

// TestWeakenedLifetime kills a supervisor with -9. With the guarantee, which
// TestHostileSupervisorDeath shows in ordinary builds, the tree dies; without
// it, it lives on.
func TestWeakenedLifetime(t *testing.T) {
	for _, weakened := range []bool{false, true} {
		t.Run(strconv.FormatBool(weakened), func(t *testing.T) {
			s := (&row{}).newScene(t, newBackend(t), false)
			runtime := t.TempDir()
			if err := os.Chmod(runtime, 0o700); err != nil {
				t.Fatal(err)
			}
			env := []string{supervisorEnv + "=none " + s.mark + " " + runtime}
			if weakened {
				env = append(env, "TRANCA_WEAKEN=process:lifetime")
			}
			agents := map[int]bool{}
			t.Cleanup(func() {
				s.killMarked()
				for pid := range agents {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			})
			cmd, _ := hostiletest.StartSupervisor(t, "TestHostileSupervisorDeath", "all run", env...)
			hostiletest.Eventually(t, "the whole tree runs", func() bool { return len(s.marked()) >= 3 })
			if weakened {
				agents = s.agents(cmd.Process.Pid)
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if !weakened {
				hostiletest.Eventually(t, "all are dead", func() bool { return len(s.marked()) == 0 })
				return
			}
			time.Sleep(time.Second)
			if len(s.marked()) < 3 {
				t.Errorf("of the tree %d processes live without the guarantee", len(s.marked()))
			}
			swept, err := New(Options{RuntimeFolder: runtime})
			if err != nil {
				t.Fatal(err)
			}
			defer swept.Close(context.Background())
			if swept.host.Groups != nil {
				hostiletest.Eventually(t, "the next start sweeps them", func() bool { return len(s.marked()) == 0 })
			}
		})
	}
}

// agents are the processes between the marked ones and their supervisor, which
// live on for minutes and are the test's to end.
func (s *scene) agents(supervisor int) map[int]bool {
	s.Helper()
	all := map[int]bool{}
	marked := s.marked()
	for _, pid := range marked {
		for p := pid; p > 1 && p != supervisor && p != os.Getpid(); {
			if !slices.Contains(marked, p) {
				all[p] = true
			}
			above, err := strconv.Atoi(hostiletest.Status(s, p, "PPid"))
			if err != nil {
				s.Fatal(err)
			}
			p = above
		}
	}
	return all
}
