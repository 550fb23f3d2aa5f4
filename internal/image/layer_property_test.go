//go:build linux

package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestLayersAreAnOverlay compares trees of layers without links with the plainest
// way to say what they are: a map for each layer, put upon each other.
func TestLayersAreAnOverlay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var archives [][]byte
		want := map[string]string{} // "" is a folder
		for range rapid.IntRange(1, 4).Draw(rt, "layers") {
			entries, model := drawLayer(rt)
			archives = append(archives, layerOf(t, entries...))
			want = model.upon(want)
		}
		var lines []string
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if want[name] == "" {
				lines = append(lines, name+"/")
			} else {
				lines = append(lines, name+" = "+want[name])
			}
		}
		slices.Sort(lines)
		got, _, err := unpacked(t, Bounds{}, archives...)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(lines, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// overlay is one layer: what it has, and what it takes from below.
type overlay struct {
	has    map[string]string
	gone   map[string]bool // names
	opaque map[string]bool // folders
}

func drawLayer(rt *rapid.T) ([]entry, overlay) {
	o := overlay{map[string]string{}, map[string]bool{}, map[string]bool{}}
	var entries []entry
	names := rapid.SampledFrom([]string{"a", "b", "c"})
	for range rapid.IntRange(0, 8).Draw(rt, "entries") {
		var parts []string
		for range rapid.IntRange(1, 3).Draw(rt, "depth") {
			parts = append(parts, names.Draw(rt, "name"))
		}
		name := strings.Join(parts, "/")
		if o.room(name, true) || o.room(name, false) { // as all who make layers do
			for i := 1; i < len(parts); i++ {
				up := strings.Join(parts[:i], "/")
				entries = append(entries, dir(up))
				o.put(up, "")
			}
		}
		switch rapid.IntRange(0, 4).Draw(rt, "kind") {
		case 0, 1:
			if !o.room(name, false) {
				continue
			}
			content := fmt.Sprintf("of %s", name)
			entries = append(entries, file(name))
			o.put(name, content)
		case 2:
			if !o.room(name, true) {
				continue
			}
			entries = append(entries, dir(name))
			o.put(name, "")
		case 3:
			if !o.room(name, true) || o.has[name] != "" {
				continue
			}
			o.above(name)
			o.gone[name] = true
			entries = append(entries, file(path.Join(path.Dir(name), ".wh."+path.Base(name))))
		case 4:
			if !o.room(name, true) {
				continue
			}
			o.put(name, "")
			o.opaque[name] = true
			entries = append(entries, dir(name), file(name+"/.wh..wh..opq"))
		}
	}
	return entries, o
}

// room reports whether the layer so far lets an entry be: nothing above it is a
// file, and a file is no folder.
func (o overlay) room(name string, folder bool) bool {
	for up := path.Dir(name); up != "."; up = path.Dir(up) {
		if content, there := o.has[up]; there && content != "" {
			return false
		}
	}
	content, there := o.has[name]
	return !there || folder == (content == "")
}

func (o overlay) above(name string) {
	for up := path.Dir(name); up != "."; up = path.Dir(up) {
		o.has[up] = ""
	}
}

func (o overlay) put(name, content string) {
	o.above(name)
	o.has[name] = content
}

// upon returns what is seen of lower through the layer, and the layer.
func (o overlay) upon(lower map[string]string) map[string]string {
	out := map[string]string{}
	for name, content := range lower {
		if !o.hides(name) {
			out[name] = content
		}
	}
	maps.Copy(out, o.has)
	return out
}

func (o overlay) hides(name string) bool {
	if o.gone[name] {
		return true
	}
	for up := path.Dir(name); up != "."; up = path.Dir(up) {
		content, there := o.has[up]
		if o.gone[up] || o.opaque[up] || there && content != "" {
			return true
		}
	}
	return false
}

// TestAnyLayersStayInTheirTree draws entries of all kinds with names that want
// out. unpacked looks at the neighbours; the same layers make the same tree.
func TestAnyLayersStayInTheirTree(t *testing.T) {
	parts := rapid.SampledFrom([]string{"a", "b", "..", ".", "", "etc", "passwd", ".wh.a", ".wh..wh..opq", "\x00", "ü"})
	name := rapid.Custom(func(rt *rapid.T) string {
		text := strings.Join(rapid.SliceOfN(parts, 1, 5).Draw(rt, "parts"), "/")
		if rapid.IntRange(0, 5).Draw(rt, "absolute") == 0 {
			text = "/" + text
		}
		return text
	})
	types := rapid.SampledFrom([]byte{tar.TypeReg, tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeSymlink, tar.TypeLink, tar.TypeFifo, tar.TypeChar})
	rapid.Check(t, func(rt *rapid.T) {
		var archives [][]byte
		for range rapid.IntRange(1, 3).Draw(rt, "layers") {
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			for range rapid.IntRange(1, 12).Draw(rt, "entries") {
				h := &tar.Header{Name: name.Draw(rt, "name"), Typeflag: types.Draw(rt, "type"), Linkname: name.Draw(rt, "to"), Mode: 0o6777}
				if h.Typeflag != tar.TypeSymlink && h.Typeflag != tar.TypeLink {
					h.Linkname = ""
				}
				_ = w.WriteHeader(h) // what the format has no room for is left out
			}
			if err := w.Close(); err != nil {
				rt.Fatal(err)
			}
			archives = append(archives, b.Bytes())
		}
		first, _, err := unpacked(t, Bounds{}, archives...)
		again, _, err2 := unpacked(t, Bounds{}, archives...)
		if diff := cmp.Diff(first, again); diff != "" || (err == nil) != (err2 == nil) {
			rt.Fatal(diff, err, err2)
		}
	})
}
