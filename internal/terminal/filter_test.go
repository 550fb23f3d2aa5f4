package terminal

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func filtered(t *testing.T, chunks ...string) string {
	t.Helper()
	var out bytes.Buffer
	f := NewFilter(&out)
	for _, c := range chunks {
		n, err := f.Write([]byte(c))
		if n != len(c) || err != nil {
			t.Fatalf("Write(%q) = %d, %v", c, n, err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestFilterShowsControls(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "héllo\tworld\n", "héllo\tworld\n"},
		{"clear screen", "\x1b[2J", "^[[2J"},
		{"title", "\x1b]0;owned\x07", "^[]0;owned^G"},
		{"clipboard", "\x1b]52;c;AAAA\x1b\\", "^[]52;c;AAAA^[\\"},
		{"C1 in UTF-8", "\u009b2J", "<U+009B>2J"},
		{"C1 raw", "\x9b2J", "<9B>2J"},
		{"NEL", "a\u0085b", "a<U+0085>b"},
		{"DEL and backspace", "a\x7f\bb", "a^?^Hb"},
		{"NUL", "a\x00b", "a^@b"},
		{"overwriting", "safe\rEVIL\n", "safe^MEVIL\n"},
		{"line end of DOS", "a\r\nb", "a\r\nb"},
		{"two carriage returns", "a\r\r\nb", "a^M\r\nb"},
		{"carriage return at the end", "a\r", "a^M"},
		{"reordering", "a\u202eb\u2066c", "a<U+202E>b<U+2066>c"},
		{"invalid", "a\xff\xc3(", "a<FF><C3>("},
		{"overlong ESC", "\xc0\x9b", "<C0><9B>"},
		{"surrogate", "\xed\xa0\x80", "<ED><A0><80>"},
		{"cut at the end", "a\xe2\x82", "a<E2><82>"},
		{"replacement character itself", "\ufffd", "\ufffd"},
		{"wide", "日本 \U0001f40d", "日本 \U0001f40d"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := filtered(t, tt.in); got != tt.want {
				t.Errorf("whole: got %q, want %q", got, tt.want)
			}
			var bytewise []string
			for i := range len(tt.in) {
				bytewise = append(bytewise, tt.in[i:i+1])
			}
			if got := filtered(t, bytewise...); got != tt.want {
				t.Errorf("byte by byte: got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestFilterPassesOnTheWritersError(t *testing.T) {
	f := NewFilter(brokenWriter{})
	if n, err := f.Write([]byte("x")); n != 0 || !errors.Is(err, errBroken) {
		t.Errorf("Write = %d, %v; want 0, %v", n, err, errBroken)
	}
}

var errBroken = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestCleanIsOneLine(t *testing.T) {
	if got, want := Clean("a\nb\tc\r\n\x1b[0m"), "a^Jb^Ic^M^J^[[0m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// harmless reports why s is not fit for a terminal, or "".
func harmless(s string) string {
	if !utf8.ValidString(s) {
		return "invalid UTF-8"
	}
	for i, r := range s {
		switch {
		case r == '\n' || r == '\t':
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
		case r < 0x20, r == 0x7f, r >= 0x80 && r <= 0x9f, r >= 0x202a && r <= 0x202e:
			return "control character"
		}
	}
	return ""
}

func FuzzFilter(f *testing.F) {
	f.Add([]byte("\x1b[2J\r\n\xe2\x82"), 1)
	f.Add([]byte("a\u009b\x9b\xc2"), 2)
	f.Add([]byte("plain ünïcode\r"), 3)
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		whole := filtered(t, string(in))
		if why := harmless(whole); why != "" {
			t.Fatalf("%q became %q: %s", in, whole, why)
		}
		n := len(in) + 1
		cut = (cut%n + n) % n
		if filtered(t, string(in[:cut]), string(in[cut:])) != whole {
			t.Fatalf("%q cut at %d gives something else than whole", in, cut)
		}
		if harmless(string(in)) == "" && whole != string(in) && !strings.ContainsFunc(string(in), controls) {
			t.Fatalf("harmless %q was changed to %q", in, whole)
		}
	})
}

func BenchmarkFilter(b *testing.B) {
	f := NewFilter(&bytes.Buffer{})
	f.w = discard{}
	p := []byte(strings.Repeat("some ordinary line of output, as programs write it\n", 640))
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		if _, err := f.Write(p); err != nil {
			b.Fatal(err)
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
