package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tranca"
)

func TestEscapesAreFoundAtTheBeginningOfALine(t *testing.T) {
	for in, want := range map[string]struct {
		typed   string
		command byte
	}{
		"ls ~.\r":   {"ls ~.\r", 0},
		"~.":        {"", '.'},
		"a\r~.more": {"a\r", '.'},
		"a\n~?b":    {"a\nb", '?'},
		"~~.":       {"~.", 0},
		"~~~.":      {"~~.", 0},
		"~x~.":      {"~x~.", 0},
		"~\r~.":     {"~\r", '.'},
		"\r~":       {"\r", 0},
	} {
		e := &escapes{}
		typed, command := e.filter([]byte(in))
		if string(typed) != want.typed || command != want.command {
			t.Errorf("%q: %q %q, want %q %q", in, typed, command, want.typed, want.command)
		}
	}
}

func TestEscapesDoNotDependOnReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.StringMatching(`[~a\r\n]{0,12}`).Draw(t, "in")
		cut := rapid.IntRange(0, len(in)).Draw(t, "cut")
		whole, _ := (&escapes{}).filter([]byte(in))
		e := &escapes{}
		first, _ := e.filter([]byte(in[:cut]))
		second, _ := e.filter([]byte(in[cut:]))
		if got := string(first) + string(second); got != string(whole) {
			t.Fatalf("%q cut at %d: %q, else %q", in, cut, got, whole)
		}
	})
}

func TestPlacesOfACopy(t *testing.T) {
	for text, want := range map[string]place{
		"file":       {path: "file"},
		"-":          {path: "-"},
		"./a:b":      {path: "./a:b"},
		"/a:b":       {path: "/a:b"},
		`C:\file`:    {path: `C:\file`},
		"iab:":       {"iab", "/work/"},
		"iab:a/b":    {"iab", "/work/a/b"},
		"iab:/etc/a": {"iab", "/etc/a"},
		"iab:a:b":    {"iab", "/work/a:b"},
	} {
		if got := parsePlace(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

// TestAPartIsNoWayOut has a link where a file is made that was not whole yet, as
// an earlier copy out of a sandbox may have left it.
func TestAPartIsNoWayOut(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(dir, "inner")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(inner, "x.part")); err != nil {
		t.Fatal(err)
	}
	folder, err := os.OpenRoot(inner)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	info := tranca.FileInfo{Size: 10, Mode: 0o644}
	if _, _, err := (&download{resume: true}).openPart(folder, "x.part", info); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a link is gone on with: %v", err)
	}
	f, held, err := (&download{}).openPart(folder, "x.part", info)
	if err != nil || held != 0 {
		t.Fatalf("%d, %v", held, err)
	}
	f.WriteString("hostile")
	f.Close()
	if b, _ := os.ReadFile(victim); string(b) != "mine" {
		t.Errorf("the link was followed: %q", b)
	}
}

func TestWhatIsCompletedIsOneWordForAShell(t *testing.T) {
	q := &completion{word: "i:"}
	for _, name := range []string{"i:$(id)", "i:`id`", "i:a b", "i:a;b", "i:a'b", "i:a\nb", "i:a\x1b[2J", "i:~", "i:*", "i:a&", "i:a|b", "i:a\\b", "i:!x", "i:é"} {
		q.fit(name, "")
	}
	q.fit("other", "")
	q.fit("i:good-one_2.txt", "about\t\x1b]0;x\a")
	want := "i:good-one_2.txt\tabout^I^[]0;x^G"
	if got := q.lines(); len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSignalsByNameAndNumber(t *testing.T) {
	for text, want := range map[string]tranca.Signal{"TERM": 15, "sigkill": 9, "Stop": 19, "28": 28, "64": 64} {
		if got, err := parseSignal(text); got != want || err != nil {
			t.Errorf("%q: %d %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "65", "-9", "SIG", "NONE"} {
		if got, err := parseSignal(text); err == nil {
			t.Errorf("%q is signal %d", text, got)
		}
	}
}

func TestProgressInWords(t *testing.T) {
	for want, p := range map[string]*progress{
		"a\x1bb  3s":          {what: "a\x1bb"},
		"x  2.0MiB  1.0MiB/s": {what: "x"},
		"x   50%  2.0MiB of 4.0MiB  1.0MiB/s  2s left": {what: "x", total: 4 << 20},
	} {
		after := 2 * time.Second
		switch {
		case strings.Contains(want, "3s"):
			after = 3 * time.Second
		default:
			p.done.Store(2 << 20)
		}
		if got := p.line(after); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTimesAndCommandsInTables(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "0s", 59 * time.Second: "59s", time.Hour - 1: "59m", 47 * time.Hour: "47h", 50 * time.Hour: "2d"} {
		if got := span(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
	if got := commandText([]string{"sh", "-c", "it's; $x", ""}); got != `sh -c 'it'\''s; $x' ''` {
		t.Errorf("%s", got)
	}
	if got := cut("Grüße von weit her", 9); got != "Grüße ..." {
		t.Errorf("%q", got)
	}
}
