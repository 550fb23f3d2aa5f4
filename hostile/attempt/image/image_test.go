package image_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tranca/hostile/attempt"
	"tranca/hostile/attempt/image"
)

// TestProgram runs what is embedded: it is one static file that does its steps.
func TestProgram(t *testing.T) {
	data, err := image.Program()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "probe")
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "mark")
	cmd.Stdin = strings.NewReader(`{"steps":[{"do":"check","path":"/proc/self/cmdline","contains":"mark","child":true}],"mark":"mark"}`)
	out, err := cmd.Output()
	want := attempt.Prefix + `{"step":-1,"ok":true}` + "\n"
	if err != nil || !strings.HasSuffix(string(out), want) || !strings.Contains(string(out), `"step":0,"ok":true`) {
		t.Errorf("%q, %v", out, err)
	}
}
