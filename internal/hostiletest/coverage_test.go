package hostiletest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCoverage: each row is tried or says why not, each test that a row names
// is there, and each row that a test names is listed.
func TestCoverage(t *testing.T) {
	var text strings.Builder
	for _, pattern := range []string{"*_test.go", "../backend/process/hostile_*_test.go", "../backend/process/mounts_test.go", "../backend/gvisor/hostile_*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(b)
		}
	}
	all := text.String()
	listed := map[string]bool{}
	for _, r := range Rows() {
		if listed[r.ID] {
			t.Errorf("%s is listed twice", r.ID)
		}
		listed[r.ID] = true
		if len(r.Tests) == 0 && r.Not == "" {
			t.Errorf("%s is neither tried nor explained", r.ID)
		}
		if len(r.Tests) > 0 && !strings.Contains(all, r.ID) && r.ID != "API-03" {
			t.Errorf("%s: no test speaks of it", r.ID)
		}
		for _, name := range r.Tests {
			if !strings.Contains(all, "func "+name+"(") {
				t.Errorf("%s: there is no test %s", r.ID, name)
			}
		}
	}
	for _, b := range Bugs() {
		if !listed[b.Row] {
			t.Errorf("%s: there is no row %s", b.Name, b.Row)
		}
	}
	for _, id := range regexp.MustCompile(`\b(CPU|MEM|PRC|DSK|OUT|FS|NET|KRN|TEN|PY|API)-\d\d\b`).FindAllString(all, -1) {
		if !listed[id] {
			t.Errorf("a test speaks of %s, which is not listed", id)
		}
	}
}
