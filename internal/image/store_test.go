//go:build linux

package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"tranca"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("IMAGE_TEST_STORE"); dir != "" {
		os.Exit(importSlowly(dir))
	}
	goleak.VerifyTestMain(m)
}

// mustOpen opens an image until the end of the test.
func mustOpen(t testing.TB, s *Store, name string) *tranca.Image {
	t.Helper()
	img, release, err := s.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return img
}

func TestAddAndOpen(t *testing.T) {
	base, upper := layerOf(t, file("etc/passwd"), file("bin/sh"), link("sh", "bin/sh")), layerOf(t, file("bin/.wh.sh"), file("x"))
	c := config{Config: runConfig{
		Env: []string{"PATH=/bin", "A=b=c", "novalue", "=x"}, Entrypoint: []string{"/evil"}, Cmd: []string{"a b"}, User: "0",
		Volumes: map[string]struct{}{"/data": {}}, WorkingDir: "/proc/self", Healthcheck: []byte(`{"Test":["CMD","/evil"]}`),
	}}
	for name, pack := range map[string]func(testing.TB, []byte) []byte{
		"plain": func(_ testing.TB, b []byte) []byte { return b }, "gzip": gzipOf, "zstd": zstdOf,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			src := makeImage(t, c, pack(t, base), pack(t, upper))
			info := mustAdd(t, s, src, "tool")
			if info.Digest != digestOf(src.root) || !slices.Equal(info.Names, []string{"tool"}) || info.Damaged != "" || info.Tally.Entries != 5 {
				t.Errorf("%+v", info)
			}
			for _, name := range []string{"tool", "tool:latest", info.Digest, info.Digest[:20], hexOf(info.Digest)[:12], "tool@" + info.Digest} {
				img := mustOpen(t, s, name)
				if img.Digest != info.Digest || img.Name != name {
					t.Errorf("%s opened %+v", name, img)
				}
				want := []string{"bin/", "etc/passwd = of etc/passwd", "sh -> bin/sh", "x = of x"}
				if diff := cmp.Diff(want, ofImage(t, img.Root)); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(map[string]string{"PATH": "/bin", "A": "b=c"}, img.Env); diff != "" {
					t.Error(diff)
				}
			}
			d, err := s.Inspect(t.Context(), "tool")
			if err != nil || d.User != "0" || d.Entrypoint[0] != "/evil" || d.Volumes[0] != "/data" || len(d.Layers) != 2 {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
}

func TestWhatIsRefused(t *testing.T) {
	l := layerOf(t, file("a"))
	change := func(f func(m *made, doc map[string]any)) *made {
		m := makeImage(t, config{}, l)
		doc := map[string]any{}
		if err := decode("manifest", m.root, &doc); err != nil {
			t.Fatal(err)
		}
		f(m, doc)
		m.root = marshal(t, doc)
		return m
	}
	layer := func(doc map[string]any) map[string]any { return doc["layers"].([]any)[0].(map[string]any) }
	for name, c := range map[string]struct {
		src  Source
		want error
		say  string
	}{
		"another platform": {makeImage(t, config{Platform: Platform{OS: "linux", Architecture: "m68k"}}, l), tranca.ErrNotFound, "linux/m68k"},
		"another system":   {makeImage(t, config{Platform: Platform{OS: "windows", Architecture: "amd64"}}, l), tranca.ErrInvalid, "only Linux"},
		"a wrong digest": {change(func(m *made, doc map[string]any) {
			m.blobs[digestOf(l)] = append(slices.Clone(l[:len(l)-1]), 1)
		}), tranca.ErrInvalid, "another digest"},
		"a longer blob":  {change(func(m *made, _ map[string]any) { m.blobs[digestOf(l)] = append(slices.Clone(l), 0) }), tranca.ErrInvalid, "longer than"},
		"a shorter blob": {change(func(m *made, _ map[string]any) { m.blobs[digestOf(l)] = l[:100] }), tranca.ErrInvalid, "ended after 100"},
		"no such blob":   {change(func(m *made, _ map[string]any) { delete(m.blobs, digestOf(l)) }), tranca.ErrNotFound, "no blob"},
		"a layer of another kind": {change(func(_ *made, doc map[string]any) { layer(doc)["mediaType"] = "text/html" }),
			tranca.ErrInvalid, "text/html"},
		"sha512":        {change(func(_ *made, doc map[string]any) { layer(doc)["digest"] = "sha512:00" }), tranca.ErrInvalid, "sha256"},
		"a path":        {change(func(_ *made, doc map[string]any) { layer(doc)["digest"] = "sha256:../../x" }), tranca.ErrInvalid, "sha256"},
		"too large":     {change(func(_ *made, doc map[string]any) { layer(doc)["size"] = int64(1) << 60 }), tranca.ErrInvalid, "claims"},
		"below nothing": {change(func(_ *made, doc map[string]any) { layer(doc)["size"] = -1 }), tranca.ErrInvalid, "claims"},
		"no image": {change(func(_ *made, doc map[string]any) {
			doc["config"].(map[string]any)["mediaType"] = "application/vnd.chart"
		}),
			tranca.ErrInvalid, "no image"},
		"fewer layers": {change(func(_ *made, doc map[string]any) { doc["layers"] = []any{} }), tranca.ErrInvalid, "layers in it"},
		"the first version": {change(func(_ *made, doc map[string]any) { doc["fsLayers"] = []any{} }),
			tranca.ErrInvalid, "first version"},
		"garbage":           {&made{root: []byte("<html>")}, tranca.ErrInvalid, "manifest"},
		"a long manifest":   {&made{root: append(bytes.Repeat([]byte(" "), MaxDocument), '{', '}')}, tranca.ErrInvalid, "longer than"},
		"a damaged archive": {makeImage(t, config{}, []byte("no archive at all, but as long as one might be")), tranca.ErrInvalid, "archive"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			_, err := s.Add(t.Context(), c.src, AddOptions{Name: "x"})
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.say) {
				t.Fatalf("%v; want %v with %q", err, c.want, c.say)
			}
			empty(t, s)
		})
	}
}

// empty makes sure that a store has no image, and nothing is under way.
func empty(t *testing.T, s *Store) {
	t.Helper()
	if all, err := s.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	if list, err := os.ReadDir(s.path(tempDir)); err != nil || len(list) != 0 {
		t.Errorf("left under way: %v, %v", list, err)
	}
}

// TestAWrongDiffID has a layer that is what the manifest says, and not what the
// configuration does.
func TestAWrongDiffID(t *testing.T) {
	m := makeImage(t, config{}, gzipOf(t, layerOf(t, file("a"))))
	doc, err := parseManifest(m.root, Bounds{}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.Replace(m.blobs[doc.Config.Digest], []byte(`"sha256:`), []byte(`"sha256:0000`), 1)
	text = append(text[:bytes.Index(text, []byte(`"sha256:0000`))+72], text[bytes.Index(text, []byte(`"sha256:0000`))+76:]...)
	doc.Config = m.add(text, typeOCIConfig)
	m.root = marshal(t, doc)
	s := newStore(t)
	if _, err := s.Add(t.Context(), m, AddOptions{Name: "x"}); !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(err.Error(), "configuration says") {
		t.Errorf("%v", err)
	}
	empty(t, s)
}

func TestBounds(t *testing.T) {
	bomb := gzipOf(t, layerOf(t, entry{Name: "zeros", Size: 8 << 20}))
	tail := gzipOf(t, append(layerOf(t, file("a")), make([]byte, 8<<20)...))
	for name, c := range map[string]struct {
		bounds Bounds
		layers [][]byte
	}{
		"a bomb":            {Bounds{Bytes: 1 << 20}, [][]byte{bomb}},
		"behind an archive": {Bounds{Bytes: 1 << 20, Entries: 10}, [][]byte{tail}},
		"layers":            {Bounds{Layers: 2}, [][]byte{bomb, bomb, bomb}},
		"time":              {Bounds{Time: 1}, [][]byte{bomb}},
	} {
		s := New(Options{Dir: filepath.Join(t.TempDir(), "c"), Bounds: c.bounds})
		if _, err := s.Add(t.Context(), makeImage(t, config{}, c.layers...), AddOptions{Name: "x"}); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if list, err := s.trees(); err != nil || len(list) != 0 {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
}

func TestIndexes(t *testing.T) {
	mine := makeImage(t, config{}, layerOf(t, file("mine")))
	other := makeImage(t, config{Platform: Platform{OS: "linux", Architecture: "m68k"}}, layerOf(t, file("other")))
	for d, b := range other.blobs {
		mine.blobs[d] = b
	}
	platform := func(arch string) *Platform { return &Platform{OS: "linux", Architecture: arch} }
	list := index{SchemaVersion: 2, MediaType: typeOCIIndex}
	for _, e := range []struct {
		b []byte
		p *Platform
	}{{[]byte("{}"), &Platform{OS: "unknown", Architecture: "unknown"}}, {other.root, platform("m68k")}, {mine.root, platform(Platform{}.orHost().Architecture)}} {
		d := mine.add(e.b, typeOCIManifest)
		d.Platform = e.p
		list.Manifests = append(list.Manifests, d)
	}
	root := marshal(t, list)
	outer := mine.add(root, typeOCIIndex)
	nested := &made{blobs: mine.blobs, root: marshal(t, index{SchemaVersion: 2, Manifests: []Descriptor{outer}})}
	flat := &made{blobs: mine.blobs, root: root}
	for name, src := range map[string]*made{"flat": flat, "nested": nested} {
		s := newStore(t)
		if info := mustAdd(t, s, src, "x"); info.Digest != digestOf(mine.root) {
			t.Errorf("%s: %+v", name, info)
		}
		info, err := s.Add(t.Context(), src, AddOptions{Name: "y", Platform: *platform("m68k")})
		if err != nil || info.Digest != digestOf(other.root) {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
		var refused *tranca.RefusalError
		if _, _, err := s.Open(t.Context(), "y"); !errors.As(err, &refused) || !strings.Contains(refused.Problems[0].Mend, "--platform") {
			t.Errorf("opened what this machine can't run: %v", err)
		}
		_, err = s.Add(t.Context(), src, AddOptions{Name: "z", Platform: *platform("vax")})
		if !errors.Is(err, tranca.ErrNotFound) || !strings.Contains(err.Error(), "linux/m68k") || strings.Contains(err.Error(), "unknown") {
			t.Errorf("%s: %v", name, err)
		}
	}
	deep := flat.root
	for range maxIndexes + 1 {
		deep = marshal(t, index{SchemaVersion: 2, Manifests: []Descriptor{mine.add(deep, typeOCIIndex)}})
	}
	if _, err := newStore(t).Add(t.Context(), &made{blobs: mine.blobs, root: deep}, AddOptions{Name: "x"}); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("indexes in indexes: %v", err)
	}
}

func TestMissing(t *testing.T) {
	s := newStore(t)
	for name, mend := range map[string]string{
		"code": "tranca image build code", "minimal:latest": "tranca image build minimal", "python:3": "tranca image pull python:3",
		"sha256:abcdef": "tranca image list",
	} {
		_, _, err := s.Open(t.Context(), name)
		var refused *tranca.RefusalError
		if !errors.As(err, &refused) || !errors.Is(err, tranca.ErrRefused) || !errors.Is(err, tranca.ErrNotFound) || refused.Problems[0].Mend != mend {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking made a store: %v", err)
	}
	mustAdd(t, s, makeImage(t, config{}), "empty")
	if _, _, err := s.Open(t.Context(), "code"); err == nil || !strings.Contains(err.Error(), "there is: empty") {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"", "host", "../x"} {
		if _, _, err := s.Open(t.Context(), name); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestExportAndImport(t *testing.T) {
	gz, z := gzipOf(t, layerOf(t, file("a"), file("b"))), zstdOf(t, layerOf(t, file(".wh.b"), file("c")))
	s := newStore(t)
	src := makeImage(t, config{Config: runConfig{Env: []string{"A=b"}}}, gz, z, gz)
	mustAdd(t, s, src, "x")
	img := mustOpen(t, s, "x")
	var saved bytes.Buffer
	if err := img.Export(t.Context(), &saved); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	r := tar.NewReader(bytes.NewReader(saved.Bytes()))
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil || names[h.Name] != "" {
			t.Fatal(h.Name, err)
		}
		names[h.Name] = string(b)
	}
	if names[layoutBlobs+hexOf(digestOf(gz))] != string(gz) || names[layoutBlobs+hexOf(img.Digest)] != string(src.root) || !strings.Contains(names[manifestFile], "tranca.local/image:"+hexOf(img.Digest)) {
		t.Errorf("%d files: %s", len(names), names[manifestFile])
	}
	// As a layout it is the same image; as docker save has it, the same tree and
	// the same configuration.
	again := newStore(t)
	info, err := again.ImportStream(t.Context(), bytes.NewReader(saved.Bytes()), AddOptions{Name: "y"})
	if err != nil || info.Digest != img.Digest {
		t.Errorf("%+v, %v", info, err)
	}
	var old bytes.Buffer
	w := tar.NewWriter(&old)
	for name, content := range names {
		if name == layoutFile || name == indexFile {
			continue
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err = again.ImportStream(t.Context(), &old, AddOptions{Name: "old"}); err != nil {
		t.Fatal(err)
	}
	d, err := again.Inspect(t.Context(), "old")
	if err != nil || d.Config != digestOf(src.blobs[d.Config]) {
		t.Errorf("%+v, %v", d, err)
	}
	if diff := cmp.Diff(ofImage(t, img.Root), ofImage(t, mustOpen(t, again, "old").Root)); diff != "" {
		t.Error(diff)
	}
}

func TestTwoAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	src := makeImage(t, config{}, gzipOf(t, layerOf(t, entry{Name: "a", Size: 1 << 20}, file("b"))), layerOf(t, file("c")))
	var mu sync.Mutex
	opened := map[string]int{}
	src.opened = func(d string) { mu.Lock(); opened[d]++; mu.Unlock() }
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			s := New(Options{Dir: dir}) // as another process has it
			name := []string{"x", "y"}[i%2]
			if _, err := s.Add(context.Background(), src, AddOptions{Name: name}); err != nil {
				t.Error(err)
				return
			}
			img, release, err := s.Open(context.Background(), name)
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if _, err := os.Stat(filepath.Join(img.Root, "c")); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for d, n := range opened {
		if n > 1 && d != digestOf(src.blobs[d]) || n > 6 {
			t.Errorf("%s was read %d times", d, n)
		}
	}
	s := New(Options{Dir: dir})
	if all, err := s.List(t.Context()); err != nil || len(all) != 1 || !slices.Equal(all[0].Names, []string{"x", "y"}) {
		t.Errorf("%+v, %v", all, err)
	}
	if list, err := os.ReadDir(s.path(tempDir)); err != nil || len(list) != 0 {
		t.Errorf("left: %v, %v", list, err)
	}
}

func TestRemoveAndPrune(t *testing.T) {
	s := newStore(t)
	both := layerOf(t, file("both"))
	one, two := makeImage(t, config{}, both, layerOf(t, file("one"))), makeImage(t, config{}, both, layerOf(t, file("two")))
	mustAdd(t, s, one, "one")
	mustAdd(t, s, one, "uno")
	mustAdd(t, s, two, "two")
	img, release, err := s.Open(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := s.Remove(t.Context(), "uno"); err != nil || len(out.Images) != 0 || !slices.Equal(out.Names, []string{"uno"}) {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := s.Remove(t.Context(), "one"); !errors.Is(err, tranca.ErrBusy) {
		t.Errorf("removed what is in use: %v", err)
	}
	out, err := s.Prune(t.Context(), true, func(i Info) bool { return slices.Contains(i.Names, "two") })
	if err != nil || len(out.Images) != 0 || len(out.Kept) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(img.Root, "one")); err != nil {
		t.Error(err)
	}
	release()
	if out, err := s.Remove(t.Context(), "one"); err != nil || !slices.Equal(out.Images, []string{img.Digest}) || out.Bytes == 0 {
		t.Errorf("%+v, %v", out, err)
	}
	var blobs []string
	list, err := os.ReadDir(s.path(blobsDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		blobs = append(blobs, "sha256:"+e.Name())
	}
	if len(blobs) != 4 || !slices.Contains(blobs, digestOf(both)) {
		t.Errorf("blobs %q", blobs)
	}
	if ofImage(t, mustOpen(t, s, "two").Root)[0] != "both = of both" {
		t.Error("the other image lost a layer")
	}
	// A name that moves on leaves an image without one, which prune removes.
	mustAdd(t, s, one, "moves")
	mustAdd(t, s, makeImage(t, config{}, layerOf(t, file("three"))), "moves")
	out, err = s.Prune(t.Context(), false, nil)
	if err != nil || !slices.Equal(out.Images, []string{img.Digest}) {
		t.Errorf("%+v, %v", out, err)
	}
	if all, err := s.List(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestOpenIsCheap opens a cached image often: what it costs is a figure, and that
// it reads no layer is a test.
func TestOpenIsCheap(t *testing.T) {
	s := newStore(t)
	info := mustAdd(t, s, makeImage(t, config{}, layerOf(t, file("a"))), "x")
	for _, d := range []string{blobsDir} {
		if err := os.RemoveAll(s.path(d)); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	for range 100 {
		img, release, err := s.Open(t.Context(), "x")
		if err != nil || img.Digest != info.Digest {
			t.Fatal(err)
		}
		release()
	}
	t.Logf("%v each", time.Since(began)/100)
}
