package archtest

import (
	"strings"
	"testing"
)

func pkg(path string, imports ...string) Package {
	return Package{ImportPath: path, Name: path[strings.LastIndex(path, "/")+1:], Imports: imports}
}

func TestImportRulesSeeViolations(t *testing.T) {
	for name, bad := range map[string]Package{
		"root imports a module":            pkg("tranca", "golang.org/x/sys/unix"),
		"root imports its own":             pkg("tranca", "tranca/internal/machine"),
		"policy imports engine":            pkg("tranca/internal/policy", "tranca/internal/engine"),
		"policy imports a module":          pkg("tranca/internal/policy", "golang.org/x/sys/unix"),
		"machine imports guest":            pkg("tranca/internal/machine", "tranca/internal/guest/wire"),
		"guest imports policy":             pkg("tranca/internal/guest/host", "tranca/internal/policy"),
		"guest imports a backend":          pkg("tranca/internal/guest/host", "tranca/internal/backend/process"),
		"agent links an HTTP server":       pkg("tranca/internal/guest/agent", "net/http"),
		"agent links reflection protobuf":  pkg("tranca/internal/guest/agent", "google.golang.org/protobuf/proto"),
		"backend imports engine":           pkg("tranca/internal/backend/process", "tranca/internal/engine"),
		"backend below imports policy":     pkg("tranca/internal/backend/process/x", "tranca/internal/policy/schema"),
		"engine imports a backend":         pkg("tranca/internal/engine", "tranca/internal/backend/fake"),
		"engine imports net/http":          pkg("tranca/internal/engine", "net/http"),
		"cli imports a backend":            pkg("tranca/internal/cli", "tranca/internal/backend/process"),
		"mcp imports linux":                pkg("tranca/internal/mcp", "tranca/internal/linux/cgroup"),
		"cli imports mcp":                  pkg("tranca/internal/cli", "tranca/internal/mcp"),
		"an interpreter imports ours":      pkg("tranca/hostile/attempt", "tranca/internal/linux/forkexec"),
		"an interpreter links net":         pkg("tranca/hostile/attempt", "net"),
		"linux imports the engine":         pkg("tranca/internal/linux/mount", "tranca/internal/engine"),
		"linux imports a guest's contract": pkg("tranca/internal/linux/mount", "tranca/internal/guest/wire"),
	} {
		t.Run(name, func(t *testing.T) {
			if got := CheckImports(Rules(), []Package{bad}); len(got) == 0 {
				t.Errorf("no rule forbids %s -> %s", bad.ImportPath, bad.Imports)
			}
		})
	}
	allowed := []Package{
		pkg("tranca", "context", "io/fs"),
		pkg("tranca/internal/policy", "tranca", "slices"),
		pkg("tranca/internal/guest/host", "tranca", "tranca/internal/guest/wire", "tranca/internal/machine"),
		pkg("tranca/internal/backend/process", "tranca/internal/linux/cgroup", "tranca/internal/guest/host"),
		pkg("tranca/internal/app", "tranca/internal/backend/process", "tranca/internal/cli"),
		pkg("tranca/hostile/attempt", "encoding/json", "golang.org/x/sys/unix"),
		pkg("tranca/internal/cli", "tranca", "github.com/urfave/cli/v3"),
	}
	if got := CheckImports(Rules(), allowed); len(got) != 0 {
		t.Errorf("forbidden, but right: %q", got)
	}
}

func TestBackendsStandApart(t *testing.T) {
	for _, bad := range []Package{
		pkg("tranca/internal/backend/process", "tranca/internal/backend/subprocess"),
		pkg("tranca/local", "tranca/internal/backend/process"),
		pkg("tranca/cmd/tranca", "tranca/internal/backend/fake"),
	} {
		if got := CheckBackends([]Package{bad}); len(got) != 1 {
			t.Errorf("%s -> %s: violations %q, want one", bad.ImportPath, bad.Imports, got)
		}
	}
	right := []Package{
		pkg("tranca/internal/app", "tranca/internal/backend/process", "tranca/internal/backend/subprocess"),
		pkg("tranca/internal/backend/process", "tranca/internal/backend/process/probe"),
		pkg("tranca/internal/backend/process", "tranca/internal/backend"),
	}
	if got := CheckBackends(right); len(got) != 0 {
		t.Errorf("forbidden, but right: %q", got)
	}
}

func TestHeavyModulesHaveOneUser(t *testing.T) {
	two := []Package{
		pkg("tranca/internal/a", "gvisor.dev/gvisor/runsc/cmd"),
		pkg("tranca/internal/b", "gvisor.dev/gvisor/pkg/log"),
	}
	if got := CheckHeavy(Heavy(), two); len(got) != 1 {
		t.Errorf("two users: %q, want one violation", got)
	}
	if got := CheckHeavy(Heavy(), two[:1]); len(got) != 0 {
		t.Errorf("one user: %q", got)
	}
}

func TestWhoWeakens(t *testing.T) {
	for _, bad := range []string{"tranca/internal/cli", "tranca/internal/guest/boot", "tranca/internal/server", "tranca/local"} {
		if got := CheckWeaken([]Package{pkg(bad, "tranca/internal/weaken")}); len(got) != 1 {
			t.Errorf("%s: violations %q, want one", bad, got)
		}
	}
	right := []Package{
		pkg("tranca/internal/confine", "tranca/internal/weaken"), pkg("tranca/internal/engine", "tranca/internal/weaken"),
		pkg("tranca/internal/backend/process", "tranca/internal/weaken"), pkg("tranca/internal/cli", "tranca"),
	}
	if got := CheckWeaken(right); len(got) != 0 {
		t.Errorf("forbidden, but right: %q", got)
	}
}

func TestNamesSaySomething(t *testing.T) {
	for _, bad := range []Package{
		pkg("tranca/internal/util"), pkg("tranca/helpers"),
		{ImportPath: "tranca/internal/x", Name: "common"},
	} {
		if got := CheckNames([]Package{bad}); len(got) != 1 {
			t.Errorf("%s: %q", bad.ImportPath, got)
		}
	}
}

func TestLinkedSeesAll(t *testing.T) {
	deps := []Package{pkg("tranca/cmd/x"), pkg("net/http"), pkg("net/http/internal"), pkg("net")}
	if got := CheckLinked("x", []string{"net/http"}, deps); len(got) != 2 {
		t.Errorf("violations %q, want two", got)
	}
}
