package weaken

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tranca/internal/require"
)

// signs are in a program that can be weakened, whatever was stripped of it: the
// name of the variable, and functions that take something away.
var signs = []string{"TRANCA_WEAKEN", "tranca/internal/weaken.", ".takeAway", ".showHost"}

// TestNoReleaseCanBeWeakened looks into programs as they are released, and into
// one that was built to be weakened, where all of it is there to be found.
func TestNoReleaseCanBeWeakened(t *testing.T) {
	for _, name := range []string{"tranca", "tranca-guest"} {
		program := build(t, name)
		for _, sign := range signs {
			if bytes.Contains(program, []byte(sign)) {
				t.Errorf("%s has %q in it", name, sign)
			}
		}
	}
	weak := build(t, "tranca", "-tags", "tranca_weaken")
	for _, sign := range signs {
		if !bytes.Contains(weak, []byte(sign)) {
			t.Errorf("a tranca that can be weakened has no %q in it", sign)
		}
	}
}

// TestWeakenedBuild: such a build says what it is, and does nothing where it is
// told what it does not know.
func TestWeakenedBuild(t *testing.T) {
	program := filepath.Join(t.TempDir(), "tranca-weakened")
	if err := os.WriteFile(program, build(t, "tranca", "-tags", "tranca_weaken"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		list         string
		ok           bool
		stdout, errs string
	}{
		{"", true, "Taken away now: nothing", "FOR TESTS"},
		{"process:network", true, "Taken away now: process:network", "process:network"},
		{"process:network,process:nothing", false, "", `no switch for an item "nothing"`},
		{"procces:network", false, "", "no backend"},
	} {
		cmd := exec.Command(program, "version")
		cmd.Env = append(os.Environ(), "TRANCA_WEAKEN="+c.list)
		var stdout, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &errs
		err := cmd.Run()
		if (err == nil) != c.ok || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(errs.String(), c.errs) {
			t.Errorf("%q: %v\n%s%s", c.list, err, stdout.String(), errs.String())
		}
	}
}

// build returns a program of this module, as a release has it but for the flags.
func build(t *testing.T, name string, flags ...string) []byte {
	t.Helper()
	goTool := require.Program(t, "go")
	out := filepath.Join(t.TempDir(), name)
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", out}, flags...)
	cmd := exec.Command(goTool, append(args, "tranca/cmd/"+name)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	program, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return program
}
