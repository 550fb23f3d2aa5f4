//go:build linux

package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"tranca"
)

// TestHostileLayers puts layers that want out of their tree, or to confuse who
// unpacks them, into a tree; unpacked looks at its neighbours.
func TestHostileLayers(t *testing.T) {
	for _, c := range []struct {
		name   string
		layers [][]entry
		want   []string
		err    string // part of the error; empty is none
	}{
		{name: "names with ..", layers: [][]entry{{file("../passwd")}}, err: "a name with .."},
		{name: "names with .. in the middle", layers: [][]entry{{file("a/../../passwd")}}, err: "a name with .."},
		{name: "absolute names", layers: [][]entry{{file("/etc/passwd"), dir("//x//")}}, want: []string{"etc/", "etc/passwd = of /etc/passwd", "x/"}},
		{name: "a link to the root, and through it", layers: [][]entry{{link("d", "/"), file("d/etc/passwd")}},
			want: []string{"d -> /", "etc/", "etc/passwd = of d/etc/passwd"}},
		{name: "a link up, and through it", layers: [][]entry{{link("d", "../../.."), file("d/etc/passwd")}},
			want: []string{"d -> ../../..", "etc/", "etc/passwd = of d/etc/passwd"}},
		{name: "a link of an earlier layer", layers: [][]entry{{link("lib", "usr/lib"), dir("usr/lib")}, {file("lib/x")}},
			want: []string{"lib -> usr/lib", "usr/", "usr/lib/", "usr/lib/x = of lib/x"}},
		{name: "a link to nothing", layers: [][]entry{{dir("var"), link("var/run", "/run/deep")}, {file("var/run/x")}},
			want: []string{"run/", "run/deep/", "run/deep/x = of var/run/x", "var/", "var/run -> /run/deep"}},
		{name: "a loop of links", layers: [][]entry{{link("a", "b"), link("b", "a"), file("a/x")}}, err: "symbolic links"},
		{name: "a link that grows", layers: [][]entry{{link("a", "a/a"), file("a/x")}}, err: "symbolic links"},
		{name: "a file through a link at its end", layers: [][]entry{{link("passwd", "../passwd"), file("passwd")}},
			want: []string{"passwd = of passwd"}},
		{name: "a folder over a link", layers: [][]entry{{link("d", "/etc"), dir("d"), file("d/x")}}, want: []string{"d/", "d/x = of d/x"}},
		{name: "a link over a folder", layers: [][]entry{{file("d/x"), link("d", "/etc")}}, want: []string{"d -> /etc"}},
		{name: "a file in a file", layers: [][]entry{{file("a"), file("a/b")}}, err: "not a directory"},
		{name: "a file over a folder", layers: [][]entry{{file("a/b/c"), file("a")}}, want: []string{"a = of a"}},
		{name: "a folder over a file", layers: [][]entry{{file("a"), dir("a")}}, want: []string{"a/"}},
		{name: "a hard link out", layers: [][]entry{{hard("a", "../passwd")}}, err: "a name with .."},
		{name: "an absolute hard link", layers: [][]entry{{hard("a", "/etc/passwd")}}, err: "no such file"},
		{name: "a hard link through a link", layers: [][]entry{{link("d", "../../etc"), hard("a", "d/passwd")}}, err: "no such file"},
		{name: "a hard link to a link", layers: [][]entry{{link("l", "/etc/passwd"), hard("a", "l")}},
			want: []string{"a -> /etc/passwd", "l -> /etc/passwd"}},
		{name: "a hard link, and then its file again", layers: [][]entry{{file("a"), hard("b", "a"), file("b")}},
			want: []string{"a = of a", "b = of b"}},
		{name: "a hard link to itself", layers: [][]entry{{file("a"), hard("a", "a")}}, want: []string{"a = of a"}},
		{name: "a hard link to a folder", layers: [][]entry{{dir("a"), hard("b", "a")}}, err: "which is no file"},
		{name: "a hard link over the folder of its file", layers: [][]entry{{file("d/a"), hard("d", "d/a")}}, err: "no such file"},
		{name: "a link without a target", layers: [][]entry{{link("a", "")}}, err: "without a target"},
		{name: "the root as a file", layers: [][]entry{{file("."), link(".", "/etc"), file("x")}}, want: []string{"x = of x"}},
		{name: "of an unknown type", layers: [][]entry{{entry{Name: "a", Typeflag: 'Z'}}}, err: "unknown type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var layers [][]byte
			for _, l := range c.layers {
				layers = append(layers, layerOf(t, l...))
			}
			got, _, err := unpacked(t, Bounds{}, layers...)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("error %v, want %q", err, c.err)
			}
			if err != nil {
				if !errors.Is(err, tranca.ErrInvalid) {
					t.Errorf("%v is no ErrInvalid", err)
				}
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhiteouts(t *testing.T) {
	lower := []entry{file("a/x"), file("a/d/y"), file("b"), link("l", "a"), dir("e")}
	for _, c := range []struct {
		name  string
		upper []entry
		want  []string
	}{
		{"of a file", []entry{file(".wh.b")}, []string{"a/", "a/d/", "a/d/y = of a/d/y", "a/x = of a/x", "e/", "l -> a"}},
		{"of a folder", []entry{file(".wh.a")}, []string{"b = of b", "e/", "l -> a"}},
		{"of a link", []entry{file(".wh.l")}, []string{"a/", "a/d/", "a/d/y = of a/d/y", "a/x = of a/x", "b = of b", "e/"}},
		{"through a link", []entry{file("l/.wh.x")}, []string{"a/", "a/d/", "a/d/y = of a/d/y", "b = of b", "e/", "l -> a"}},
		{"of nothing", []entry{file(".wh.none"), file("none/.wh.x"), file("a/.wh..wh.plnk")},
			[]string{"a/", "a/d/", "a/d/y = of a/d/y", "a/x = of a/x", "b = of b", "e/", "l -> a", "none/"}},
		{"opaque", []entry{file("a/.wh..wh..opq"), file("a/new")}, []string{"a/", "a/new = of a/new", "b = of b", "e/", "l -> a"}},
		{"opaque, and last", []entry{dir("a"), file("a/d/new"), file("a/.wh..wh..opq")},
			[]string{"a/", "a/d/", "a/d/new = of a/d/new", "b = of b", "e/", "l -> a"}},
		{"of what the layer itself has", []entry{file("b"), file(".wh.b"), file("a/z"), file(".wh.a")},
			[]string{"a/", "a/z = of a/z", "b = of b", "e/", "l -> a"}},
		{"and again", []entry{file(".wh.a"), file("a/x")}, []string{"a/", "a/x = of a/x", "b = of b", "e/", "l -> a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := unpacked(t, Bounds{}, layerOf(t, lower...), layerOf(t, c.upper...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, name := range []string{".wh.", ".wh..", ".wh...", "a/.wh..."} {
		if _, _, err := unpacked(t, Bounds{}, layerOf(t, lower...), layerOf(t, file(name))); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatATreeHasNot(t *testing.T) {
	got, tally, err := unpacked(t, Bounds{}, layerOf(t, file("dev/old"),
		entry{Name: "dev/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3},
		entry{Name: "dev/sda", Typeflag: tar.TypeBlock, Devmajor: 8},
		entry{Name: "fifo", Typeflag: tar.TypeFifo},
		entry{Name: "su", Mode: 0o6777}, entry{Name: "t", Typeflag: tar.TypeDir, Mode: 0o1777},
		entry{Name: "secret", Mode: 0}, entry{Name: "none/", Typeflag: tar.TypeDir, Mode: 0o1},
		entry{Name: "dev/old", Typeflag: tar.TypeFifo},
	))
	want := []string{"dev/", "none/", "secret = of secret", "su = of su", "t/"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if tally.LeftOut != 4 || tally.SetID != 1 || len(tally.Some) != 4 || tally.Entries != 9 {
		t.Errorf("%+v", tally)
	}
}

// TestPlaces has images that have something else where every sandbox has places
// of its own, or nothing.
func TestPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		layer []entry
		want  []string // beside the empty places
		made  int
	}{
		"nothing": {nil, nil, 12},
		"links": {[]entry{link("proc", "/etc"), link("dev", "usr"), link("etc", "usr/etc"), file("usr/etc/passwd"),
			link("usr/etc/resolv.conf", "/run/resolv.conf"), link("tmp", "/proc/self/root"), file("work"), link("sys", "..")},
			[]string{"etc -> usr/etc", "usr/", "usr/etc/", "usr/etc/group = ", "usr/etc/hostname = ", "usr/etc/hosts = ",
				"usr/etc/nsswitch.conf = ", "usr/etc/passwd = of usr/etc/passwd", "usr/etc/resolv.conf = "}, 10},
		"a link to nothing": {[]entry{link("etc", "/nowhere")}, nil, 12},
		"a file":            {[]entry{file("etc"), file("proc/x")}, []string{"proc/x = of proc/x"}, 11},
		"folders for files": {[]entry{file("etc/passwd/x")}, nil, 11},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			info := mustAdd(t, s, makeImage(t, config{}, layerOf(t, c.layer...)), "x")
			if diff := cmp.Diff(c.want, ofImage(t, mustOpen(t, s, "x").Root), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if len(info.Tally.Made) != c.made {
				t.Errorf("made %q", info.Tally.Made)
			}
		})
	}
}

func TestModesAndTimes(t *testing.T) {
	for _, chmod := range []bool{false, true} {
		root := filepath.Join(t.TempDir(), "root")
		if err := os.Mkdir(root, 0o755); err != nil {
			t.Fatal(err)
		}
		u, err := newUnpacker(root, Bounds{}.withDefaults())
		if err != nil {
			t.Fatal(err)
		}
		u.chmod = u.chmod || chmod
		b := layerOf(t, entry{Name: "d", Typeflag: tar.TypeDir, Mode: 0o4}, entry{Name: "d/run", Mode: 0o100},
			entry{Name: "d/text", Mode: 0o2200}, link("d/l", "none"), entry{Name: "old", ModTime: time.Unix(-5, 0)},
			entry{Name: "new", ModTime: time.Unix(1<<40, 0)})
		if err := errors.Join(u.layer(t.Context(), bytes.NewReader(b), true), u.finish()); err != nil {
			t.Fatal(err)
		}
		u.close()
		for name, want := range map[string]uint32{"d": 0o40755, "d/run": 0o100755, "d/text": 0o100644, "old": 0o100644, "new": 0o100644, "d/l": 0o120777} {
			var st unix.Stat_t
			if err := unix.Lstat(filepath.Join(root, name), &st); err != nil {
				t.Fatal(err)
			}
			when := int64(1_000_000)
			switch name {
			case "old":
				when = 0
			case "new":
				when = maxTime
			}
			if st.Mode != want || st.Mtim.Sec != when || int(st.Uid) != os.Geteuid() {
				t.Errorf("%s: mode %o, changed %d, owner %d", name, st.Mode, st.Mtim.Sec, st.Uid)
			}
		}
	}
}

func TestBoundsOfATree(t *testing.T) {
	deep := strings.Repeat("d/", maxTreeDepth+2)
	var ladder []entry
	step := strings.Repeat("s/", 100)
	for i := range 20 { // each link leads deeper, by a short name
		ladder = append(ladder, dir(fmt.Sprintf("l%d/%s", i, step)), link(fmt.Sprintf("l%d/%sdown", i, step), fmt.Sprintf("/l%d", i+1)))
	}
	far := []entry{dir("l" + step)}
	at := "l" + step
	for range 10 {
		far = append(far, link("x", at), dir("x/"+step))
		at += step
	}
	for name, c := range map[string]struct {
		bounds Bounds
		layer  []byte
	}{
		"bytes":         {Bounds{Bytes: 1000}, layerOf(t, entry{Name: "a", Size: 600}, entry{Name: "b", Size: 600})},
		"entries":       {Bounds{Entries: 2}, layerOf(t, file("a"), file("b"), file("c"))},
		"depth":         {Bounds{}, layerOf(t, dir(deep))},
		"depth by link": {Bounds{}, layerOf(t, far...)},
		"a long name":   {Bounds{}, layerOf(t, file(strings.Repeat("n", 256)))},
		"a long path":   {Bounds{}, layerOf(t, file(strings.Repeat("name/", 1000)+"x"))},
	} {
		if _, _, err := unpacked(t, c.bounds, c.layer); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := unpacked(t, Bounds{}, layerOf(t, ladder...)); err != nil {
		t.Errorf("links that lead no deeper than names: %v", err)
	}
}

// TestSparseBomb has an entry of a few bytes that stands for many: GNU's old form
// tells the size of a file with holes in the header.
func TestSparseBomb(t *testing.T) {
	b := layerOf(t, file("bomb"))
	h := b[:512]
	h[156] = tar.TypeGNUSparse
	copy(h[257:], "ustar  \x00")
	clear(h[386:495])
	copy(h[386:], fmt.Sprintf("%011o\x00%011o\x00", 0, 7)) // the first 7 bytes are there
	copy(h[483:], fmt.Sprintf("%011o\x00", 1<<32))         // of so many
	copy(h[148:], "        ")
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	if _, _, err := unpacked(t, Bounds{Bytes: 1 << 20}, b); !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("%v", err)
	}
}

func TestUnpackingEndsWithItsContext(t *testing.T) {
	root := t.TempDir()
	u, err := newUnpacker(root, Bounds{}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	defer u.close()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	if err := u.layer(ctx, bytes.NewReader(layerOf(t, file("a"))), true); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

// TestFolderMeanwhile opens a folder by a link that goes up, while files are
// renamed elsewhere on the host: for each such rename the kernel may ask for
// another try.
func TestFolderMeanwhile(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "a/b"), 0o755), os.MkdirAll(filepath.Join(dir, "usr/lib"), 0o755),
		os.Symlink("../../usr/lib", filepath.Join(dir, "a/b/l")),
		os.Mkdir(filepath.Join(other, "x"), 0o755), os.Mkdir(filepath.Join(other, "y"), 0o755),
	)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := openTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.close()
	stop := make(chan struct{})
	var renaming sync.WaitGroup
	defer renaming.Wait()
	defer close(stop)
	renaming.Go(func() {
		from, to := filepath.Join(other, "x"), filepath.Join(other, "y/x")
		for {
			select {
			case <-stop:
				return
			default:
				_ = errors.Join(os.Rename(from, to), os.Rename(to, from))
			}
		}
	})
	for range 20_000 {
		f, err := tree.folder("a/b/l")
		if err != nil || f.name != "usr/lib" {
			t.Fatalf("%+v, %v", f, err)
		}
		tree.forget()
		tree.settle()
	}
}
