package process

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/hostiletest"
	"tranca/internal/image"
	"tranca/internal/require"
)

// hostPrograms are programs of this host with what they are linked to, as files
// of an image.
func hostPrograms(t *testing.T, names ...string) map[string]string {
	t.Helper()
	ldd := require.Program(t, "ldd")
	files := map[string]string{}
	for _, name := range names {
		at := require.Program(t, name)
		files["usr/bin/"+name] = at
		out, err := exec.Command(ldd, at).Output()
		if err != nil {
			continue // static
		}
		for _, word := range strings.Fields(string(out)) {
			if filepath.IsAbs(word) {
				files[strings.TrimPrefix(word, "/")] = word
			}
		}
	}
	return files
}

// openImage makes an image of programs and further entries, and opens it. The
// store is its owner's alone, as it is for everybody.
func openImage(t *testing.T, files map[string]string, entries ...tar.Header) *tranca.Image {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(h tar.Header, content []byte) {
		t.Helper()
		h.Size = int64(len(content))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	for name, at := range files {
		content, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		add(tar.Header{Name: name, Mode: 0o755, Typeflag: tar.TypeReg}, content)
	}
	for _, h := range entries {
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
			add(h, []byte("of the image\n"))
			continue
		}
		add(h, nil)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s := image.New(image.Options{Dir: filepath.Join(t.TempDir(), "cache")})
	if _, err := s.ImportStream(t.Context(), &b, image.AddOptions{Name: "made"}); err != nil {
		t.Fatal(err)
	}
	img, release, err := s.Open(t.Context(), "made")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return img
}

func symlink(name, to string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}
}

// inImage runs a script in a sandbox of an image.
func inImage(t *testing.T, b *Backend, p tranca.Policy, img *tranca.Image, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sb, err := b.Create(ctx, tranca.Spec{ID: tranca.NewID(), Policy: p, Image: img})
	if err != nil {
		t.Fatal(err)
	}
	defer closeBox(t, sb)
	var out bytes.Buffer
	proc, err := sb.Start(ctx, tranca.Command{Args: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := proc.Wait(ctx); err != nil || !exit.Success() {
		t.Fatalf("%+v, %v: %s", exit, err, out.String())
	}
	return out.String()
}

func imagePolicy(b *Backend) tranca.Policy {
	p := testPolicy(b)
	p.Image = "made"
	return p
}

func TestImage(t *testing.T) {
	b := newBackend(t)
	img := openImage(t, hostPrograms(t, "sh", "cat", "ls", "id", "stat"),
		symlink("bin", "usr/bin"), tar.Header{Name: "etc/passwd"}, tar.Header{Name: "etc/shadow"}, tar.Header{Name: "etc/own"},
		tar.Header{Name: "marker"}, tar.Header{Name: "usr/bin/rootsh", Mode: 0o6755},
		tar.Header{Name: "srv/", Typeflag: tar.TypeDir, Mode: 0o777}, tar.Header{Name: "dev/sda", Typeflag: tar.TypeBlock, Devmajor: 8})
	img.Env["FROM_IMAGE"], img.Env["HOME"], img.Env["SET"] = "1", "/root", "image"
	p := imagePolicy(b)
	p.Env = map[string]string{"SET": "policy"}
	out := inImage(t, b, p, img, `
cat /marker /etc/own
grep() { while read -r line; do case $line in $1*) echo "$line";; esac; done; }
grep user < /etc/passwd
echo "$FROM_IMAGE $HOME $SET"
stat -c '%a %U' /usr/bin/rootsh
for f in /x /srv/x /etc/x /usr/x /etc/passwd /marker; do (echo x > $f) 2>/dev/null && echo "wrote $f"; done
echo y > /work/y && cat /work/y
ls /dev/sda /usr/share /home /.own 2>/dev/null
echo z > /dev/null && ls -d /proc/self`)
	want := "of the image\nof the image\nuser:x:1000:1000::/work:/bin/sh\n1 /work policy\n755 "
	if !strings.HasPrefix(out, want) || !strings.HasSuffix(out, "\ny\n/proc/self\n") || strings.Contains(out, "wrote") {
		t.Errorf("%s", out)
	}
}

func TestImageOfLinks(t *testing.T) {
	b := newBackend(t)
	programs := hostPrograms(t, "sh", "cat", "ls")
	for name, entries := range map[string][]tar.Header{
		"no /etc":       {symlink("bin", "usr/bin")},
		"links":         {symlink("proc", "/etc"), symlink("dev", "/tmp"), symlink("etc", "usr/etc"), {Name: "usr/etc/passwd"}, symlink("tmp", "/"), symlink("work", "../..")},
		"links to host": {symlink("etc", "/proc/self/root/etc"), symlink("lost", "/"), symlink("dev", "../../../../dev")},
		"files":         {{Name: "proc"}, {Name: "dev"}, {Name: "etc"}, {Name: "work"}, {Name: "tmp"}},
	} {
		t.Run(name, func(t *testing.T) {
			img := openImage(t, programs, entries...)
			out := inImage(t, b, imagePolicy(b), img, `while IFS=: read -r name rest; do echo $name; done < /etc/passwd
echo x > /dev/null; echo y > /tmp/y; echo z > /work/z; cat /tmp/y /work/z; ls -d /proc/self /dev/shm; ls /lost/home 2>/dev/null; true`)
			if !strings.HasPrefix(out, "root\nuser\nnobody\ny\nz\n") || !strings.HasSuffix(out, "/proc/self\n") {
				t.Errorf("%s", out)
			}
		})
	}
}

func TestImageWithoutAShell(t *testing.T) {
	b := newBackend(t)
	img := openImage(t, nil, tar.Header{Name: "data"})
	sb, err := b.Create(t.Context(), tranca.Spec{ID: tranca.NewID(), Policy: imagePolicy(b), Image: img})
	if err != nil {
		t.Fatal(err)
	}
	defer closeBox(t, sb)
	for _, args := range [][]string{{"sh", "-c", "true"}, {"/bin/sh"}, {"/usr/bin/python3"}} {
		if _, err := sb.Start(t.Context(), tranca.Command{Args: args, Stdout: io.Discard, Stderr: io.Discard}); !errors.Is(err, tranca.ErrNotFound) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestMountsInAnImage(t *testing.T) {
	b := newBackend(t)
	img := openImage(t, hostPrograms(t, "sh", "cat", "ls"), tar.Header{Name: "home/user/.profile"}, tar.Header{Name: "home/other"},
		symlink("data", "/etc"), tar.Header{Name: "file"})
	dir := hostiletest.OpenFolder(t)
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("of the host\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{
		"/home/user/project": "f\nof the image\nof the image\n", "/new/deep": "f\nof the image\nof the image\n",
		"/data": "f\nof the image\nof the image\n", "/work/m": "f\nof the image\nof the image\n",
	} {
		p := imagePolicy(b)
		p.Mounts = []tranca.Mount{{Source: dir, Target: target}}
		if got := inImage(t, b, p, img, "ls "+target+"; cat /home/user/.profile /home/other"); got != want {
			t.Errorf("%s: %q", target, got)
		}
	}
	for _, target := range []string{"/data/x", "/file/x", "/home/other/x"} {
		p := imagePolicy(b)
		p.Mounts = []tranca.Mount{{Source: dir, Target: target}}
		_, err := b.Create(t.Context(), tranca.Spec{ID: tranca.NewID(), Policy: p, Image: img})
		if !errors.Is(err, tranca.ErrRefused) || !strings.Contains(err.Error(), "no folder in the image") {
			t.Errorf("%s: %v", target, err)
		}
	}
}

func TestAnImageWithTooMuchAtItsTop(t *testing.T) {
	b := newBackend(t)
	var entries []tar.Header
	for i := range 300 {
		entries = append(entries, tar.Header{Name: fmt.Sprintf("f%d", i)})
	}
	img := openImage(t, nil, entries...)
	_, err := b.Create(t.Context(), tranca.Spec{ID: tranca.NewID(), Policy: imagePolicy(b), Image: img})
	if !errors.Is(err, tranca.ErrRefused) || !strings.Contains(err.Error(), "entries at its top") {
		t.Errorf("%v", err)
	}
}

func TestAnImageThatWasNotOpened(t *testing.T) {
	b := newBackend(t)
	if _, err := b.Create(t.Context(), tranca.Spec{ID: tranca.NewID(), Policy: imagePolicy(b)}); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// TestSetIDShell has a shell with the set-id bit put into the tree behind the
// store's back: the mount has none either.
func TestSetIDShell(t *testing.T) {
	b := newBackend(t)
	img := openImage(t, hostPrograms(t, "sh", "id"))
	if err := os.Chmod(filepath.Join(img.Root, "usr/bin/id"), 0o755|os.ModeSetuid|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(img.Root, "usr/bin/id"), &st); err != nil || st.Mode&unix.S_ISUID == 0 {
		t.Fatalf("the control has no bit: %o, %v", st.Mode, err)
	}
	if got := inImage(t, b, imagePolicy(b), img, "id -u; id -g"); got != "1000\n1000\n" {
		t.Errorf("%q", got)
	}
}
