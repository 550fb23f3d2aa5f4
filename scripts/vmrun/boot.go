package main

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"tranca/internal/vmtest"
)

type options struct {
	kernel, init, testrun, bin, log, dir, command, base, only, run, runs string
}

// programs are what the tests and runs.sh call in the VM.
var programs = []string{
	"sh", "bash", "python3", "setpriv", "env", "id", "awk", "cat", "cp", "chmod", "chown",
	"mkdir", "rmdir", "rm", "ls", "ln", "mv", "find", "grep", "sed", "sleep", "tar", "mktemp",
	"mount", "umount", "touch", "true", "false", "echo", "kill", "ps", "dd", "head", "tail",
	"stat", "df", "uname", "newuidmap", "newgidmap", "mkfifo", "readlink", "sort", "seq",
	"useradd", "userdel", "usermod", "dmesg", "test", "yes", "wc", "tr", "timeout", "unshare", "nologin", "mkfs.ext4", "losetup", "prlimit",
}

// resultBytes is the room for the logs that come back.
const resultBytes = 64 << 20

func (o *options) boot(ctx context.Context) (int, error) {
	kernel, err := vmtest.OpenKernel(o.kernel)
	if err != nil {
		return 0, err
	}
	work, err := os.MkdirTemp(o.dir, "run-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	image := filepath.Join(work, "root.img")
	if err := o.makeRoot(filepath.Join(work, "root"), image); err != nil {
		return 0, err
	}
	results := filepath.Join(work, "results.tar")
	if err := os.WriteFile(results, nil, 0o600); err != nil {
		return 0, err
	}
	if err := os.Truncate(results, resultBytes); err != nil {
		return 0, err
	}
	m := &vmtest.Machine{
		Kernel: kernel, Init: o.init, Root: image, Command: o.shell(), Results: results,
		MemoryMiB: 3072, CPUs: 2, Dir: o.dir, Systemd: o.base != "",
	}
	status, err := m.Run(ctx, os.Stdout)
	if err != nil || o.command != "" {
		return status, err
	}
	return status, unpack(results, o.log)
}

// shell is what the VM runs. Deadlines are scaled there, nothing is timed.
func (o *options) shell() string {
	if o.command != "" {
		return o.command
	}
	run := ""
	if o.run != "" {
		run = " -run '" + o.run + "'"
	}
	script := "bash scripts/runs.sh /tranca/testrun /tranca/testbin /tranca/log vm- python3"
	if o.base != "" {
		script = "bash scripts/run-systemd.sh /tranca/testrun /tranca/testbin /tranca/log"
	}
	return `export TRANCA_TEST_SCALE=20 TRANCA_JOBS=1 TRANCA_RUNS='` + o.runs + `'
cd /tranca/tree
` + script + ` -each -timeout 20m -only '` + o.only + `'` + run + `
status=$?
tar -C /tranca/log -cf /dev/vdb .
exit $status
`
}

func (o *options) makeRoot(dir, image string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	var t *vmtest.Tree
	var err error
	if o.base != "" {
		t, err = vmtest.NewTreeFrom(o.base, dir)
	} else {
		t, err = smallTree(dir)
	}
	if err != nil {
		return err
	}
	if err := o.addProject(t); err != nil {
		return err
	}
	return t.Image(image, 512<<20)
}

// smallTree makes a root from the programs of this host.
func smallTree(dir string) (*vmtest.Tree, error) {
	t, err := vmtest.NewTree(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range programs {
		if err := t.Program(name); err != nil {
			return nil, err
		}
	}
	skip := []string{"__pycache__", "test", "idlelib", "tkinter", "lib2to3", "ensurepip", "dist-packages"}
	folders, err := filepath.Glob("/usr/lib/python3*")
	if err != nil {
		return nil, err
	}
	for _, f := range folders {
		if err := t.Folder(f, f, skip...); err != nil {
			return nil, err
		}
	}
	for path, text := range etc {
		if err := t.Write(path, 0o644, text); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (o *options) addProject(t *vmtest.Tree) error {
	if err := t.Folder(".", "/tranca/tree", ".git", ".cache", "dist", "bin"); err != nil {
		return err
	}
	if o.bin != "" {
		if err := o.addSuites(t); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(o.testrun)
	if err != nil {
		return err
	}
	return t.Write("/tranca/testrun", 0o755, string(text))
}

// addSuites adds the binaries of the wanted packages: all of them would not fit
// on the VM's disk.
func (o *options) addSuites(t *vmtest.Tree) error {
	wanted, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	index, err := os.ReadFile(filepath.Join(o.bin, "index.json"))
	if err != nil {
		return err
	}
	var suites []struct{ Package, Binary string }
	if err := json.Unmarshal(index, &suites); err != nil {
		return err
	}
	for _, s := range suites {
		if !wanted.MatchString(s.Package) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(o.bin, s.Binary))
		if err != nil {
			return err
		}
		if err := t.Write("/tranca/testbin/"+s.Binary, 0o755, string(text)); err != nil {
			return err
		}
	}
	return t.Write("/tranca/testbin/index.json", 0o644, string(index))
}

var etc = map[string]string{
	"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	"/etc/group":  "root:x:0:\nnogroup:x:65534:\n",
	// Only root may read it, so that a test can try.
	"/etc/shadow":        "root:*:19000:0:99999:7:::\n",
	"/etc/nsswitch.conf": "passwd: files\ngroup: files\n",
	"/etc/hosts":         "127.0.0.1 localhost\n",
	"/etc/login.defs":    "UID_MIN 1000\nUID_MAX 60000\nSYS_UID_MIN 100\nSYS_UID_MAX 999\nGID_MIN 1000\nGID_MAX 60000\nSYS_GID_MIN 100\nSYS_GID_MAX 999\n",
	"/etc/subuid":        "",
	"/etc/subgid":        "",
}

// unpack reads the archive that the VM left on its second disk.
func unpack(archive, to string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("logs from the VM: %w", err)
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) {
			continue
		}
		path := filepath.Join(to, strings.TrimPrefix(h.Name, "./"))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
}
