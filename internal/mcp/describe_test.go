package mcp

import (
	"strings"
	"testing"

	"tranca"
	"tranca/internal/policy"
)

// TestDescribeCopy tells a model what becomes of what it writes to a copy, and
// not where the folder is.
func TestDescribeCopy(t *testing.T) {
	p := policy.Default()
	p.Mounts = []tranca.Mount{{Source: "/srv/secret", Target: "/project", Cow: true, Protect: []string{".git/hooks"}}}
	got := describeFiles(p)
	want := " /project is a copy of a shared folder and may be written within the same bounds, but for files that programs outside execute by themselves; the folder itself is changed only when a person takes the changes over."
	if !strings.Contains(got, want) || strings.Contains(got, "secret") {
		t.Errorf("it says: %s", got)
	}
}
