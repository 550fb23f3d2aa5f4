package terminal

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func guarded(pieces ...string) string {
	var out bytes.Buffer
	g := NewGuard(&out)
	for _, p := range pieces {
		g.Write([]byte(p))
	}
	return out.String()
}

func TestGuardPassesWhatDraws(t *testing.T) {
	for _, s := range []string{
		"plain\r\n\ttext\b\a\x0e\x0f\v\f", "é 世界 \u00a0",
		"\x1b[1;31mred\x1b[0m\x1b[38;2;1;2;3m\x1b[4:3m", "\x1b[H\x1b[2J\x1b[12;40H\x1b[K\x1b[3A",
		"\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1000;1006h\x1b[?1h\x1b=", "\x1b7\x1b8\x1bM\x1b(0lqk\x1b(B",
		"\x1b[5;20r\x1b[2 q\x1b[!p\x1bc\x1b[s\x1b[u", "\x1b[c\x1b[>c\x1b[6n\x1b[5n",
	} {
		if got := guarded(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestGuardDropsWhatReachesFurther(t *testing.T) {
	for name, s := range map[string]string{
		"title":             "\x1b]0;title\a",
		"title, by ST":      "\x1b]2;title\x1b\\",
		"clipboard":         "\x1b]52;c;cm0gLXJm\a",
		"clipboard, asked":  "\x1b]52;c;?\a",
		"colour, asked":     "\x1b]11;?\a",
		"link":              "\x1b]8;;http://x\x1b\\",
		"file of iTerm":     "\x1b]1337;File=name=eA==:AAAA\a",
		"answerback":        "\x05",
		"stop":              "\x13\x11",
		"title, asked":      "\x1b[21t",
		"window":            "\x1b[8;1;1t\x1b[2t",
		"print":             "\x1b[5i\x1b[?5i\x1b[0i",
		"settings, asked":   "\x1bP$qm\x1b\\",
		"terminfo, asked":   "\x1bP+q544e\x1b\\",
		"multiplexer":       "\x1bPtmux;\x1b\x1b]52;c;x\a\x1b\\",
		"picture":           "\x1b_Gf=100;AAAA\x1b\\",
		"title of screen":   "\x1bktitle\x1b\\",
		"out of UTF-8":      "\x1b%@",
		"controls of 8 bit": "\x1b G\x1b F",
		"who, the old way":  "\x1bZ",
		"parameters, asked": "\x1b[x\x1b[0x",
		"mode, asked":       "\x1b[?2004$p",
		"version, asked":    "\x1b[>q\x1b[>0q",
		"keyboard":          "\x1b[>1u\x1b[?u\x1b[=1u\x1b[>4;2m",
		"unknown mode":      "\x1b[?2031h\x1b[?2048h\x1b[?67h",
		"status, asked":     "\x1b[?996n\x1b[?6n\x1b[?15n",
		"too long":          "\x1b[" + strings.Repeat("1;", 100) + "m",
		"not whole":         "\x1b[31",
		"string, not whole": "\x1b]0;tit",
	} {
		got := guarded(s)
		if strings.Contains(name, "multiplexer") {
			got = strings.TrimSuffix(got, "\a")
		}
		if got != "" {
			t.Errorf("%s: %q became %q", name, s, got)
		}
	}
}

func TestGuardKeepsTheTextAround(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b]0;x\ab":            "ab",
		"a\x1b]0;x\x1b[31mb":      "a\x1b[31mb", // ESC ends a string
		"a\x1b]0;x\x18b":          "ab",
		"a\x1b[3\x1b[1mb":         "a\x1b[1mb",
		"a\x1b[3\nmb":             "a\n\x1b[3mb",
		"a\x1b[?25;2031hb":        "a\x1b[?25hb",
		"a\u009b31mb":             "a\uFFFD31mb",
		"a\x9b31m\xc3b":           "a\uFFFD31m\uFFFDb",
		"a\xe4\xb8\x1b[1mb":       "a\uFFFD\x1b[1mb",
		"a\xe2\xe4\xb8\x96":       "a\uFFFD世",
		"a\x1b\x1b]0;x\x1b\\b":    "ab",
		"a\x1b[\u009d52;c;x\x07b": "a\uFFFD52;c;x\ab",
	} {
		if got := guarded(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestGuardRestores(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                               "",
		"\x1b[?2004h\x1b[?1049h":              "\x1b[?1049l\x1b[?2004l",
		"\x1b[?1049h\x1b[?25l\x1b[?25h":       "\x1b[?1049l",
		"\x1b[?1000;1006h\x1b[?1000;1006l":    "",
		"\x1b[?25l\x1b[31m\x1b=\x0e\x1b[3;4r": "\x1b[?25h\x1b7\x1b[r\x1b8\x1b>\x0f\x1b(B\x1b[0m",
		"\x1b[4h\x1b[3 q":                     "\x1b[4l\x1b[20l\x1b[0 q",
	} {
		var out bytes.Buffer
		g := NewGuard(&out)
		g.Write([]byte(in))
		out.Reset()
		if err := g.Restore(); err != nil || out.String() != want {
			t.Errorf("after %q: %q %v, want %q", in, out.String(), err, want)
		}
		out.Reset()
		if g.Restore(); out.Len() > 0 {
			t.Errorf("after %q twice: %q", in, out.String())
		}
	}
}

// allowed is written apart from the guard: text, some controls, and sequences
// of which none is a string, a question that is answered with chosen text, or a
// change of the window.
var allowed = regexp.MustCompile(`^(?:[\x07-\x0f]|[^\x00-\x1f\x7f-\x{9f}]|` +
	`\x1b[0-9=>NOno|}~78DEHMc]|\x1b#8|\x1b[()*+\-./][ -/]?[0-~]|` +
	`\x1b\[\??[0-9:;]*[@-hlmnrsuJK` + "`" + `]|\x1b\[>0?c|\x1b\[!p|\x1b\[[0-9:;]* q)*$`)

func FuzzGuard(f *testing.F) {
	for _, s := range []string{"a\x1b]0;x\ab", "\x1b[?25;1049h", "\x1bP$qm\x1b\\", "\xe4\xb8\x96\xc2\x9b", "\x1b[31", "\x1b[>4;2m\x1b( B"} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, at uint8) {
		whole := guarded(string(in))
		cut := min(int(at), len(in))
		if parts := guarded(string(in[:cut]), string(in[cut:])); parts != whole {
			t.Fatalf("%q cut at %d: %q, else %q", in, cut, parts, whole)
		}
		if !utf8.ValidString(whole) || !allowed.MatchString(whole) {
			t.Fatalf("%q became %q", in, whole)
		}
		if again := guarded(whole); again != whole {
			t.Fatalf("%q became %q, and that %q", in, whole, again)
		}
	})
}
