package main

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The test binary itself was made by Go, so it has all that a release has.
func TestBOMOfARealBinary(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "x.json")
	if err := write(out, "v1", []string{self}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var b bom
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	if len(b.Components) != len(info.Deps)+1 || b.Components[0].Version == "" {
		t.Errorf("components %+v, want Go and %d modules", b.Components, len(info.Deps))
	}
	if !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(b.Serial) {
		t.Errorf("serial number %q", b.Serial)
	}
	if b.Metadata.Component.Version != "v1" || len(b.Metadata.Component.Hashes[0].Content) != 64 {
		t.Errorf("component %+v", b.Metadata.Component)
	}
	if err := write(out, "v1", []string{self}); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.ReadFile(out); string(again) != string(text) {
		t.Error("twice the same binary, two different bills")
	}
}

func TestBOMNeedsAGoBinary(t *testing.T) {
	err := write(filepath.Join(t.TempDir(), "x"), "v1", []string{"/etc/passwd"})
	if err == nil || !strings.Contains(err.Error(), "/etc/passwd") {
		t.Errorf("a file that isn't a program: %v", err)
	}
}
