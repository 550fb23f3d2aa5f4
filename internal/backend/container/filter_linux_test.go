package container

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"tranca/internal/linux/seccomp"
)

var update = flag.Bool("update", false, "write the filters that builds for other systems embed")

// The filters that builds for other systems embed are those that this one
// compiles.
func TestEmbeddedFilters(t *testing.T) {
	calls, err := json.Marshal(codeCalls())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{"calls.json": append(calls, '\n')}
	for _, arch := range []seccomp.Arch{seccomp.AMD64, seccomp.ARM64} {
		for kind, p := range map[string]seccomp.Profile{
			"code": {Arch: arch}, "code-unix": {Arch: arch, UnixSockets: true}, "agent": {Arch: arch, Agent: true, Contained: true},
		} {
			prog, err := seccomp.Compile(p)
			if err != nil {
				t.Fatal(err)
			}
			want[kind+"-"+string(arch)+".bpf"] = prog.Bytes()
		}
	}
	for name, content := range want {
		path := filepath.Join("filters", name)
		if *update {
			if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // source
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s is not what is compiled here (%v); go test ./internal/backend/container -run TestEmbeddedFilters -update writes it", path, err)
		}
	}
}
