package process

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tranca/internal/confine"
)

const crash = `
print(resource.getrlimit(resource.RLIMIT_CORE), flush=True)
if os.fork() == 0: ctypes.string_at(0)
print(os.WCOREDUMP(os.wait()[1]), [f for f in os.listdir('.') if f.startswith('core')])`

// A program that crashes leaves no core file, and starts no handler of the
// host. Whether the kernel dumped is in what its parent is told; the control
// has no limit, and is shown where a core is a file.
func TestCrashIsNotDumped(t *testing.T) {
	b := newBackend(t)
	s := (&row{}).newScene(t, b, false)
	if got := s.whole(crash, nil); got.Stdout != "(1, 1)\nFalse []\n" {
		t.Errorf("%s: %q %q", got.Exit, got.Stdout, got.Stderr)
	}
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(pattern), "core") || confine.HardLimit(unix.RLIMIT_CORE) < 1<<20 {
		return
	}
	dumping := func(_ *scene, pl *plan) {
		for i := range pl.Boot.Rlimits {
			if r := &pl.Boot.Rlimits[i]; r.Resource == unix.RLIMIT_CORE {
				r.Soft, r.Hard = 64<<20, 64<<20
			}
		}
	}
	if got := s.whole(crash, dumping); !strings.Contains(got.Stdout, "True ['core") {
		t.Errorf("control: %s: %q %q", got.Exit, got.Stdout, got.Stderr)
	}
}
