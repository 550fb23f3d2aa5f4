package badinput

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/require"
)

// sources makes a folder with one of each kind of file.
func sources(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(dir, "folder", "inner"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "folder", "file"), []byte("content"), 0o644))
	must(os.Symlink("folder", filepath.Join(dir, "link")))
	must(os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	must(os.Symlink("/etc/shadow", filepath.Join(dir, "secret")))
	must(unix.Mkfifo(filepath.Join(dir, "fifo"), 0o666))
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	must(err)
	t.Cleanup(func() { l.Close() })
	return dir
}

// TestMountSources: what is no folder or regular file by its real name is
// refused, and opening it never waits.
func TestMountSources(t *testing.T) {
	nothingLeft(t)
	dir := sources(t)
	for source, words := range map[string]string{
		dir + "/missing":          "no such file or folder",
		dir + "/folder/file/deep": "no such file or folder",
		dir + "/link":             "a part of the path is a symbolic link",
		dir + "/link/inner":       "a part of the path is a symbolic link",
		dir + "/dangling":         "a part of the path is a symbolic link",
		dir + "/secret":           "a part of the path is a symbolic link",
		dir + "/fifo":             "it is a FIFO",
		dir + "/socket":           "it is a socket",
		"/dev/null":               "it is a device",
		"/dev/zero":               "it is a device",
		"/proc/self/root":         "a part of the path is a symbolic link",
		"/proc/self/fd/0":         "a part of the path is a symbolic link",
		"/":                       "whole tree can't be mounted",
		"":                        "source: it is empty",
		dir + "/folder/../folder": "goes up by",
	} {
		row{
			name: source, args: []string{"--mount", source + ":/m:rw", "-c", "print('ran')"},
			status: 125, stderr: words,
		}.run(t)
	}
}

// TestMountTargets: nothing replaces what tranca makes itself.
func TestMountTargets(t *testing.T) {
	nothingLeft(t)
	dir := sources(t) + "/folder"
	for target, words := range map[string]string{
		"/": "can't replace the whole root", "/proc": "is in /proc", "/proc/self": "is in /proc",
		"/sys": "is in /sys", "/dev": "is in /dev", "/dev/null": "is in /dev", "/usr/bin": "is in /usr",
		"/etc": "is in /etc", "/etc/passwd": "is in /etc", "/tmp": "is in /tmp", "/tmp/x": "is in /tmp",
		"/work": "tranca makes /work itself", "/lib64": "is in /lib64",
		"/a/../b": "goes up by", "/..": "goes up by", "/../proc": "goes up by",
		"relative": "is not absolute", "": "it is empty", "//proc": "not in its shortest form",
		"/proc/": "not in its shortest form", "/./proc": "not in its shortest form", "/m/.": "not in its shortest form",
	} {
		row{
			name: "to " + target, args: []string{"--mount", dir + ":" + target, "-c", "print('ran')"},
			status: 125, stderr: words,
		}.run(t)
	}
}

// TestMountsInOneAnother: which of two modes held would be a matter of order.
func TestMountsInOneAnother(t *testing.T) {
	nothingLeft(t)
	dir := sources(t)
	outer, inner := dir+"/folder", dir+"/folder/inner"
	for _, r := range []row{
		{name: "sources", args: []string{"--mount", outer + ":/a", "--mount", inner + ":/b:rw"}},
		{name: "sources reversed", args: []string{"--mount", inner + ":/a:rw", "--mount", outer + ":/b"}},
		{name: "same source", args: []string{"--mount", outer + ":/a", "--mount", outer + ":/b:rw"}},
		{name: "targets", args: []string{"--mount", outer + ":/a", "--mount", dir + ":/a/b"}},
		{name: "same target", args: []string{"--mount", inner + ":/a", "--mount", dir + "/folder/file:/a"}},
	} {
		r.args = append(r.args, "-c", "print('ran')")
		r.status, r.stderr = 125, "mounts[0]"
		r.run(t)
	}
}

// TestMountReplaced: the source was a folder when the policy was made, and is
// a link when the sandbox is.
func TestMountReplaced(t *testing.T) {
	nothingLeft(t)
	dir := sources(t)
	l := open(t, func(p *tranca.Policy) {
		p.Mounts = []tranca.Mount{{Source: dir + "/folder", Target: "/m"}}
	})
	res, err := l.Run(t.Context(), "print(open('/m/file').read())")
	if err != nil || string(res.Stdout) != "content\n" {
		t.Fatalf("%+v, %v", res, err)
	}
	if err := os.Rename(dir+"/folder", dir+"/moved"); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"", "/etc", "moved"} {
		os.Remove(dir + "/folder")
		if target != "" {
			if err := os.Symlink(target, dir+"/folder"); err != nil {
				t.Fatal(err)
			}
		}
		if res, err := l.Run(t.Context(), "print('ran')"); err == nil || classless(err) {
			t.Errorf("source is a link to %q: %+v, %v", target, res, err)
		}
	}
}

// TestMountAcrossHostMounts: a source in a file system of its own works, and
// one above another file system shows that, not what it covers.
func TestMountAcrossHostMounts(t *testing.T) {
	require.Root(t)
	nothingLeft(t)
	dir := sources(t) + "/folder"
	inner := dir + "/inner"
	if err := os.WriteFile(inner+"/covered", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", inner, "tmpfs", 0, "mode=755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(inner, 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(inner+"/mounted", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	list := func(folder string) string { return "import os; print(sorted(os.listdir('" + folder + "')))" }
	for _, mode := range []string{"ro", "rw"} {
		for _, r := range []row{
			{name: "in it " + mode, args: []string{"--mount", inner + ":/m:" + mode, "-c", list("/m")}},
			{name: "above it " + mode, args: []string{"--mount", dir + ":/m:" + mode, "-c", list("/m/inner")}},
		} {
			r.stdout = "['mounted']\n"
			r.run(t)
		}
	}
}
