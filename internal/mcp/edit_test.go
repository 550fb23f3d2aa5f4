package mcp

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEdit(t *testing.T) {
	for _, c := range []struct {
		name, text, old, new string
		all                  bool
		after, diff          string
	}{
		{
			"one line", "a\nb\nc\nd\ne\nf\n", "d", "D", false, "a\nb\nc\nD\ne\nf\n",
			"@@ line 4\n b\n c\n-d\n+D\n e\n f",
		},
		{"within a line", "x = 1 + 1", "1 + 1", "2", false, "x = 2", "@@ line 1\n-x = 1 + 1\n+x = 2"},
		{"a whole line goes", "a\nb\nc\n", "b\n", "", false, "a\nc\n", "@@ line 2\n a\n-b\n c"},
		{"two on a line", "a a\nb\n", "a", "c", true, "c c\nb\n", "@@ line 1\n-a a\n+c c\n b"},
		{
			"many", "1\n\n\n\n\n\n1\n\n\n\n\n\n1\n\n\n\n\n\n1\n", "1", "2", true, "2\n\n\n\n\n\n2\n\n\n\n\n\n2\n\n\n\n\n\n2\n",
			"@@ line 1\n-1\n+2\n \n \n@@ line 7\n \n \n-1\n+2\n \n \n@@ line 13\n \n \n-1\n+2\n \n \nand 1 more places",
		},
		{"no text", "a\xffb", "b", "c", false, "a\xffc", "@@ line 1\n-a\uFFFDb\n+a\uFFFDc"},
		{"longer", "a\n", "a", strings.Repeat("b\n", 30), false, strings.Repeat("b\n", 30) + "\n", "@@ line 1\n-a\n" + strings.Repeat("+b\n", 20) + "+(11 more lines)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := edit(c.text, c.old, c.new, c.all)
			if err != nil || e.after != c.after || e.diff() != c.diff {
				t.Errorf("%v\nafter %q, want %q\ndiff\n%s\nwant\n%s", err, e.after, c.after, e.diff(), c.diff)
			}
		})
	}
}

func TestEditRefuses(t *testing.T) {
	for _, c := range []struct {
		name, text, old, new string
		all                  bool
		want                 string
	}{
		{"nothing", "a", "", "b", false, "write_file"},
		{"the same", "a", "a", "a", false, "the same"},
		{"not there", "a", "b", "c", true, "not in the file"},
		{"twice", "aa", "a", "c", false, "2 times"},
		{"too often", strings.Repeat("a", maxReplaced+1), "a", "b", true, "too much"},
		{"too large", strings.Repeat("a", 40), "a", strings.Repeat("b", 1<<20), true, "too much"},
	} {
		if e, err := edit(c.text, c.old, c.new, c.all); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %d bytes", c.name, err, len(e.after))
		}
	}
}

// TestDiffOfAnything has the diff of drawn texts agree with the edit: the lines
// with - are in the text, those with + in what came of it.
func TestDiffOfAnything(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		word := rapid.StringMatching(`[ab\n]{0,12}`)
		text, old, with := word.Draw(rt, "text"), rapid.StringMatching(`[ab\n]{1,3}`).Draw(rt, "old"), word.Draw(rt, "new")
		e, err := edit(text, old, with, true)
		if err != nil {
			return
		}
		if e.after != strings.ReplaceAll(text, old, with) {
			rt.Fatalf("after %q", e.after)
		}
		var b strings.Builder
		from := 0
		for _, h := range e.hunks() {
			b.WriteString(text[from:h.start] + e.replaced(h))
			from = h.end
		}
		if b.String()+text[from:] != e.after {
			rt.Fatalf("the hunks of %q give %q, want %q", text, b.String()+text[from:], e.after)
		}
		e.diff()
	})
}

// TestDiffOfOneLongLine is about time: every place stands on the same line.
func TestDiffOfOneLongLine(t *testing.T) {
	text := strings.Repeat("a", maxReplaced) + strings.Repeat("b", maxEdited-maxReplaced)
	began := time.Now()
	e, err := edit(text, "a", "c", true)
	if err != nil || len(e.diff()) > 2*lineLength+100 {
		t.Fatalf("%v, %d bytes", err, len(e.diff()))
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}
