package debian

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tranca"
	"tranca/internal/require"
)

func TestRecipesThatAreNone(t *testing.T) {
	for name, r := range map[string]Recipe{
		"profile":        {Profile: "large"},
		"package":        {Profile: "code", Packages: []string{"jq", "a b"}},
		"an option":      {Profile: "code", Packages: []string{"--hook=x"}},
		"several in one": {Profile: "code", Packages: []string{"a,b"}},
		"suite":          {Profile: "code", Suite: "../x"},
		"mirror":         {Profile: "code", Mirror: "file:///x"},
		"mirror's parts": {Profile: "code", Mirror: "http://x/ main; y"},
	} {
		if err := Build(t.Context(), r, io.Discard, nil); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWithoutTheTool(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var refused *tranca.RefusalError
	err := Build(t.Context(), Recipe{Profile: "code"}, io.Discard, nil)
	if !errors.As(err, &refused) || refused.Problems[0].Mend != "apt-get install mmdebstrap" {
		t.Errorf("%v", err)
	}
}

// TestWhereATreeIsMade: mmdebstrap shows the host's /dev in its tree, and empties
// what is below it with the tree if that lies there itself.
func TestWhereATreeIsMade(t *testing.T) {
	link := t.TempDir() + "/link"
	if err := os.Symlink("/dev", link); err != nil {
		t.Fatal(err)
	}
	for dir, fit := range map[string]bool{
		"/tmp": true, t.TempDir(): true, "/dev/shm": false, "/dev": false, "/proc/self": false, link: false, link + "/shm": false,
		"": false, "relative": false, "/nowhere/at/all": false,
	} {
		t.Setenv("TMPDIR", dir)
		if got := slices.Contains(Recipe{}.environment(), "TMPDIR="+dir); got != fit {
			t.Errorf("TMPDIR %q is passed on: %v", dir, got)
		}
	}
}

// fakeTool puts a program of the tool's name first on PATH.
func fakeTool(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"mmdebstrap", "newuidmap", "newgidmap"} {
		if err := os.WriteFile(dir+"/"+name, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestAToolThatFails(t *testing.T) {
	require.Root(t)
	fakeTool(t, "echo 'I: begins' >&2; echo 'E: no such package' >&2; exit 3")
	var said []string
	err := Build(t.Context(), Recipe{Profile: "code"}, io.Discard, func(s string) { said = append(said, s) })
	if !errors.Is(err, tranca.ErrUnavailable) || !strings.Contains(err.Error(), "no such package") {
		t.Errorf("%v", err)
	}
	if len(said) != 1 || said[0] != "begins" {
		t.Errorf("said %q", said)
	}
}

func TestAToolThatHangs(t *testing.T) {
	require.Root(t)
	fakeTool(t, "trap 'kill $!; exit 130' INT; sleep 60 & wait")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := Build(ctx, Recipe{Profile: "code"}, io.Discard, nil); err == nil || time.Since(began) > 50*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

func tarOf(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		content := h.Linkname
		if h.Typeflag == 0 {
			h.Typeflag, h.Linkname, h.Size = tar.TypeReg, "", int64(len(content))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(t *testing.T, b []byte) (names []string, all map[string]string) {
	t.Helper()
	all = map[string]string{}
	r := tar.NewReader(bytes.NewReader(b))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return names, all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		all[h.Name] = h.ModTime.UTC().Format(time.DateTime) + " " + string(content)
	}
}

// TestNormalize has two builds of one day that differ in all that may differ.
func TestNormalize(t *testing.T) {
	old := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	build := func(now time.Time, word string) []byte {
		file := func(name, content string, at time.Time) tar.Header {
			return tar.Header{Name: "./" + name, Linkname: content, ModTime: at, Mode: 0o644, Uname: word, AccessTime: now, Format: tar.FormatPAX}
		}
		folder := func(name string) tar.Header {
			return tar.Header{Name: "./" + name, Typeflag: tar.TypeDir, ModTime: now, Mode: 0o755}
		}
		return tarOf(t, folder(""), file(".tranca-dates", "Date: Sat, 07 Nov 2026 10:00:00 UTC\nDate: Fri, 06 Nov 2026 10:00:00 UTC\n", now),
			folder("var/log/"), file("var/log/dpkg.log", word, now), folder("var/cache/"), folder("var/cache/apt/"),
			file("etc/machine-id", word, now), file("etc/passwd", "root:x:0:0", now), file("etc/passwd-", word, now),
			file("etc/shadow", "root:*:"+word+":0:99999:7:::\nuser:!::0:99999:7:::\n", now),
			tar.Header{Name: "./dev/null", Typeflag: tar.TypeChar, ModTime: now},
			file("usr/lib/x.py", "print()", old), file("usr/share/doc/x/copyright", "free", old), file("usr/share/doc/x/news.gz", word, now),
			tar.Header{Name: "./bin", Typeflag: tar.TypeSymlink, Linkname: "usr/bin", ModTime: now},
		)
	}
	now := time.Date(2026, 11, 30, 1, 2, 3, 4, time.UTC)
	var first, second bytes.Buffer
	if err := normalize(bytes.NewReader(build(now, "20423")), &first, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := normalize(bytes.NewReader(build(now.Add(time.Hour), "20424")), &second, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the builds differ")
	}
	names, all := read(t, first.Bytes())
	want := []string{"./", "./var/log/", "./var/cache/", "./etc/passwd", "./etc/shadow", "./usr/lib/x.py", "./usr/share/doc/x/copyright", "./bin"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if got := all["./usr/lib/x.py"]; got != "2020-01-01 00:00:00 print()" {
		t.Errorf("an old file: %q", got)
	}
	if got := all["./etc/shadow"]; got != "2026-11-07 10:00:00 root:*:20764:0:99999:7:::\nuser:!::0:99999:7:::\n" {
		t.Errorf("shadow: %q", got)
	}
	if err := normalize(bytes.NewReader(tarOf(t, tar.Header{Name: "x"})), io.Discard, time.Time{}); !errors.Is(err, tranca.ErrUnavailable) {
		t.Errorf("without dates: %v", err)
	}
	if err := normalize(strings.NewReader("garbage that is no archive"), io.Discard, now); err == nil {
		t.Error("garbage was taken")
	}
}

// TestTwoBuildsAreOne builds a real tree twice.
func TestTwoBuildsAreOne(t *testing.T) {
	require.Part(t, "engine-image") // whoever has it made it in the same way
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		if err := Build(t.Context(), Recipe{Profile: "minimal"}, w, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("two builds differ: %d and %d bytes", first.Len(), second.Len())
	}
	names, _ := read(t, first.Bytes())
	if !strings.Contains(strings.Join(names, "\n"), "usr/bin/python3") {
		t.Error("there is no python3")
	}
}
