//go:build linux

package gvisor

import (
	"os"
	"strings"
	"testing"

	"tranca/internal/advisory"
)

// TestVersion shows that the version of which holes are looked up is the one
// that is built, that it can be read, and that it has no hole that is known.
func TestVersion(t *testing.T) {
	text, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "gvisor.dev/gvisor "+gVisorVersion) {
		t.Errorf("go.mod builds another gVisor than %s", gVisorVersion)
	}
	found, err := advisory.BuiltIn().Known(advisory.GVisor, gVisorVersion, advisory.Changelog{})
	if err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}
