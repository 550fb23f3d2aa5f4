package changeset

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tranca"
)

func sample() *Set {
	digest := strings.Repeat("ab", 32)
	folder := &State{Type: tranca.FileDirectory, Mode: 0o755, Inode: 7}
	return &Set{
		ID: testID, Created: time.Unix(1e9, 5).UTC(),
		Mounts: []Mount{{Source: "/srv/p", Target: "/project", Inode: 3, FileSystem: "ef53-1-2", Owner: 5, Group: 6}},
		Entries: []Entry{
			{Path: "a\nb", Kind: Created, Type: tranca.FileRegular, Mode: 0o644, Size: 3, Digest: digest, Modified: -5},
			{Path: "d", Kind: Folder, Type: tranca.FileDirectory, Mode: 0o755, Base: folder},
			{Path: "d/gone", Kind: Removed, Base: &State{Type: tranca.FileRegular, Size: 9, Changed: 8}},
			{Path: "d/\xff", Kind: Created, Type: tranca.FileSymlink, Link: "../\xfe"},
			{Path: "dev", Kind: Created, Type: tranca.FileOther, Omitted: "it is a device", Protected: true},
		},
	}
}

func encoded(t testing.TB, s *Set) string {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCodec(t *testing.T) {
	want := sample()
	got, err := decode(strings.NewReader(encoded(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	whole := encoded(t, sample())
	lines := strings.SplitAfter(whole, "\n")
	edit := func(f func(s *Set)) string {
		s := sample()
		f(s)
		return encoded(t, s)
	}
	for name, text := range map[string]string{
		"empty":               "",
		"cut":                 strings.Join(lines[:len(lines)-2], ""),
		"a line less":         strings.Join(append(lines[:2:2], lines[3:]...), ""),
		"more":                whole + lines[1],
		"version":             strings.Replace(whole, `"tranca_changes":1`, `"tranca_changes":2`, 1),
		"unknown":             strings.Replace(whole, `"mount":0`, `"mouse":0`, 1),
		"id":                  edit(func(s *Set) { s.ID = "../x" }),
		"no mount":            edit(func(s *Set) { s.Mounts = nil }),
		"source":              edit(func(s *Set) { s.Mounts[0].Source = "/srv/../etc" }),
		"relative source":     edit(func(s *Set) { s.Mounts[0].Source = "srv" }),
		"target":              edit(func(s *Set) { s.Mounts[0].Target = "" }),
		"another mount":       edit(func(s *Set) { s.Entries[0].Mount = 1 }),
		"up":                  edit(func(s *Set) { s.Entries[0].Path = "../a" }),
		"up within":           edit(func(s *Set) { s.Entries[0].Path = "a/../../b" }),
		"absolute":            edit(func(s *Set) { s.Entries[0].Path = "/a" }),
		"itself":              edit(func(s *Set) { s.Entries[0].Path = "." }),
		"nul":                 edit(func(s *Set) { s.Entries[0].Path = "a\x00b" }),
		"twice":               edit(func(s *Set) { s.Entries[1].Path = s.Entries[0].Path }),
		"no order":            edit(func(s *Set) { s.Entries[0].Path = "z" }),
		"no folder":           edit(func(s *Set) { s.Entries[3].Path = "e/x" }),
		"in a file":           edit(func(s *Set) { s.Entries[3].Path = "a\nb/x" }),
		"set-id":              edit(func(s *Set) { s.Entries[0].Mode = 0o4755 }),
		"size":                edit(func(s *Set) { s.Entries[0].Size = -1 }),
		"digest":              edit(func(s *Set) { s.Entries[0].Digest = "ab" }),
		"kind":                edit(func(s *Set) { s.Entries[0].Kind = "renamed" }),
		"created over":        edit(func(s *Set) { s.Entries[0].Base = &State{Type: tranca.FileRegular} }),
		"removed what wasn't": edit(func(s *Set) { s.Entries[2].Base = nil }),
		"type":                edit(func(s *Set) { s.Entries[0].Type = "socket" }),
		"device":              edit(func(s *Set) { s.Entries[4].Omitted = "" }),
		"link out":            edit(func(s *Set) { s.Entries[3].Link = "../../x" }),
		"link to root":        edit(func(s *Set) { s.Entries[3].Link = "/etc" }),
		"long":                edit(func(s *Set) { s.Entries[0].Omitted = strings.Repeat("x", maxLine) }),
	} {
		if _, err := decode(strings.NewReader(text)); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestSafeLink(t *testing.T) {
	for _, c := range []struct {
		folder, target string
		want           bool
	}{
		{".", "a", true}, {".", "a/b/c", true}, {"d", "../a", true}, {"d/e", "../../a", true}, {"d", "./../a", true},
		{".", "..", false}, {".", "../a", false}, {"d", "../../a", false}, {".", "/a", false}, {".", "", false},
		// Each alone would stay inside; two such links together would not.
		{".", "d/../a", false}, {"d/e", "../x/../a", false}, {".", "a\x00", false}, {"d", "..", true},
		{".", strings.Repeat("a", maxPath+1), false},
	} {
		if got := safeLink(c.folder, c.target); got != c.want {
			t.Errorf("%q in %q: %v", c.target, c.folder, got)
		}
	}
}

// FuzzDecode never accepts a list by which a path leads out of its mount, and
// what it accepts it writes the same again.
func FuzzDecode(f *testing.F) {
	f.Add(encoded(f, sample()))
	f.Add("{\"tranca_changes\":1}\n{\"end\":0}\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := decode(strings.NewReader(text))
		if err != nil {
			if !errors.Is(err, tranca.ErrInvalid) {
				t.Fatalf("error of no class: %v", err)
			}
			return
		}
		for _, e := range s.Entries {
			if strings.HasPrefix(e.Path, "/") || strings.Contains("/"+e.Path+"/", "/../") || e.Mode&^0o777 != 0 {
				t.Fatalf("accepted %+v", e)
			}
			if e.Type == tranca.FileSymlink && e.Omitted == "" && strings.HasPrefix(e.Link, "/") {
				t.Fatalf("accepted a link to %q", e.Link)
			}
		}
		if _, err := newPlan(s, ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
		again, err := decode(strings.NewReader(encoded(t, s)))
		if err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(s.Entries)
		b, _ := json.Marshal(again.Entries)
		if !bytes.Equal(a, b) {
			t.Fatalf("read %s\nwrote %s", a, b)
		}
	})
}
