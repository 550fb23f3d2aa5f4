package archtest

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tranca/internal/require"
)

const root = "../.."

// Budgets for the stripped binaries. Sandboxes start as fast as the agent is
// small; raise a budget only with a measured reason. Of tranca's, 11 MiB are
// the second program, compressed: nobody reads them at a start.
const (
	maxGuestBytes  = 4 << 20
	maxProbeBytes  = 3 << 20
	maxTrancaBytes = 36 << 20
)

func report(t *testing.T, bad []string) {
	t.Helper()
	for _, line := range bad {
		t.Error(line)
	}
}

func list(t *testing.T, args ...string) []Package {
	t.Helper()
	require.Program(t, "go")
	all, err := List(root, runtime.GOARCH, args...)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("go list %v found nothing", args)
	}
	return all
}

func TestImports(t *testing.T) {
	all := list(t, "./...")
	report(t, CheckImports(Rules(), all))
	report(t, CheckBackends(all))
	report(t, CheckHeavy(Heavy(), all))
	report(t, CheckWeaken(all))
	report(t, CheckNames(all))
}

func TestGuestLinksLittle(t *testing.T) {
	deps := list(t, "-deps", "./cmd/tranca-guest")
	report(t, CheckLinked("tranca-guest", guestDeny, deps))
	for _, p := range deps {
		if p.Ours() && !anyWithin(p.ImportPath, []string{
			Module, Module + "/cmd/tranca-guest", internal + "guest", linux,
		}) {
			t.Errorf("tranca-guest links %s", p.ImportPath)
		}
	}
}

func TestProbeLinksLittle(t *testing.T) {
	deps := list(t, "-deps", "./cmd/tranca-probe")
	deps = slices.DeleteFunc(deps, func(p Package) bool { return p.ImportPath == "net/netip" }) // addresses alone
	report(t, CheckLinked("tranca-probe", probeDeny, deps))
	for _, p := range deps {
		if p.Ours() && !anyWithin(p.ImportPath, []string{Module + "/cmd/tranca-probe", Module + "/hostile/attempt"}) {
			t.Errorf("tranca-probe links %s", p.ImportPath)
		}
	}
}

// Linking gVisor costs every start some ten milliseconds, so that only the
// second binary does.
func TestTrancaLinksNoGVisor(t *testing.T) {
	report(t, CheckLinked("tranca", []string{"gvisor.dev"}, list(t, "-deps", "./cmd/tranca")))
}

func TestDependencyList(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "DEPENDENCIES.md"))
	if err != nil {
		t.Fatal(err)
	}
	linked := Modules(list(t, "-deps", "./cmd/tranca"))
	sentry := Modules(list(t, "-deps", "./cmd/tranca-sentry"))
	tests := Modules(list(t, "-deps", "-test", "./..."))
	report(t, CheckDependencies(ParseDependencies(string(text)), linked, sentry, tests))
}

func TestSizeBudget(t *testing.T) {
	require.Program(t, "go")
	for name, most := range map[string]int64{
		"tranca-guest": maxGuestBytes, "tranca-probe": maxProbeBytes, "tranca": maxTrancaBytes,
	} {
		out := filepath.Join(t.TempDir(), name)
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", out, "./cmd/"+name)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
			continue
		}
		info, err := os.Stat(out)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d KiB of %d", name, info.Size()>>10, most>>10)
		if info.Size() > most {
			t.Errorf("%s has %d bytes, its budget is %d", name, info.Size(), most)
		}
	}
}

func TestSources(t *testing.T) {
	var all []*Source
	for _, name := range files(t) {
		if filepath.Ext(name) != ".go" {
			continue
		}
		s, err := Parse(name, read(t, name))
		if err != nil {
			t.Error(err)
			continue
		}
		all = append(all, s)
		report(t, CheckSource(s))
	}
	if len(all) < 20 {
		t.Fatalf("only %d Go files found: is the walk right?", len(all))
	}
	report(t, CheckDocs(all))
}

func TestTexts(t *testing.T) {
	for _, name := range files(t) {
		report(t, CheckText(name, read(t, name)))
	}
}

// files returns the files of the tree, without what is built or cached,
// relative to its root.
func files(t *testing.T) []string {
	t.Helper()
	skip := []string{".git", ".cache", "bin", "dist", "node_modules", "__pycache__"}
	var all []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains(skip, d.Name()) {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() && d.Name() != ".git" { // a file where the tree is one of several
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			all = append(all, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
}

func TestListFailsLoudly(t *testing.T) {
	require.Program(t, "go")
	if _, err := List(root, runtime.GOARCH, "./no/such/package"); err == nil || !strings.Contains(err.Error(), "no/such") {
		t.Errorf("go list of a missing package: %v", err)
	}
}
