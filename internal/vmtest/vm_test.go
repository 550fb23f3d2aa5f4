package vmtest

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCPIOIsWhatLinuxUnpacks(t *testing.T) {
	var b bytes.Buffer
	err := writeCPIO(&b, []entry{
		{name: "dir", mode: fs.ModeDir | 0o755},
		{name: "dir/a", mode: 0o644, data: []byte("hello")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "070701" + "00000001" + "000041ed" + strings.Repeat("0", 16) + "00000001" + strings.Repeat("0", 8) +
		"00000000" + strings.Repeat("0", 32) + "00000004" + "00000000" + "dir\x00" + "\x00\x00" +
		"070701" + "00000002" + "000081a4" + strings.Repeat("0", 16) + "00000001" + strings.Repeat("0", 8) +
		"00000005" + strings.Repeat("0", 32) + "00000006" + "00000000" + "dir/a\x00" + "hello\x00\x00\x00" +
		"070701" + "00000003" + "00000000" + strings.Repeat("0", 16) + "00000001" + strings.Repeat("0", 8) +
		"00000000" + strings.Repeat("0", 32) + "0000000b" + "00000000" + "TRAILER!!!\x00" + "\x00\x00\x00"
	if got := b.String(); got != want {
		t.Errorf("archive\n%q, want\n%q", got, want)
	}
}

func TestModinfo(t *testing.T) {
	got := parseModinfo([]byte("license=GPL\x00depends=virtio-ring,virtio\x00name=virtio_blk\x00"))
	if !slices.Equal(got, []string{"virtio_ring", "virtio"}) {
		t.Errorf("dependencies %q", got)
	}
	if got := parseModinfo([]byte("depends=\x00")); len(got) != 0 {
		t.Errorf("no dependencies: %q", got)
	}
}

func TestFollowWantsAStatus(t *testing.T) {
	var out bytes.Buffer
	long := strings.Repeat("x\n", 10000)
	status, err := follow(strings.NewReader(long+"vmtest: exit 7\n"), &out)
	if err != nil || status != 7 {
		t.Errorf("status %d, %v", status, err)
	}
	if !strings.HasPrefix(out.String(), long) {
		t.Error("output was not passed on")
	}
	if _, err := follow(strings.NewReader("Kernel panic\n"), &out); err == nil {
		t.Error("a VM that dies is taken for one that ran")
	}
}

func TestTreeBringsLibrariesAndLinks(t *testing.T) {
	dir := t.TempDir()
	tree, err := NewTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Program("sh"); err != nil {
		t.Fatal(err)
	}
	if err := tree.Write("/etc/hosts", 0o640, "x"); err != nil {
		t.Fatal(err)
	}
	// The loader of the tree itself, with the tree's libraries alone, must be
	// able to start the program.
	loader, err := filepath.Glob(filepath.Join(dir, "lib64/ld-*"))
	if err != nil || len(loader) == 0 {
		t.Fatalf("no loader in the tree: %v", err)
	}
	libs := filepath.Join(dir, "usr/lib/x86_64-linux-gnu") + ":" + filepath.Join(dir, "lib/x86_64-linux-gnu")
	out, err := exec.Command(loader[0], "--library-path", libs, filepath.Join(dir, "bin/sh"), "-c", "echo $((6*7))").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "42" {
		t.Errorf("sh in the tree: %v, %s", err, out)
	}
	if info, err := os.Stat(filepath.Join(dir, "etc/hosts")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("etc/hosts: %v, %v", info, err)
	}
	if err := tree.Program("no-such-program"); err == nil {
		t.Error("a missing program is not missed")
	}
}
