package report_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"tranca"
	"tranca/hostile/report"
)

func TestParseCommand(t *testing.T) {
	for text, want := range map[string][]string{
		"bwrap python3 -":                         {"bwrap", "bwrap", "python3", "-"},
		"  /usr/bin/firejail \t --quiet\npython3": {"firejail", "/usr/bin/firejail", "--quiet", "python3"},
		"docker=docker run -i --rm img python -":  {"docker", "docker", "run", "-i", "--rm", "img", "python", "-"},
		"runsc(kvm)=runsc do":                     {"runsc(kvm)", "runsc", "do"},
		"bwrap --setenv=A=b x":                    {"bwrap", "bwrap", "--setenv=A=b", "x"},
		"./a=b c":                                 {"a=b", "./a=b", "c"},
		`sh -c 'cd /; exec "$0"' a\ b ""`:         {"sh", "sh", "-c", `cd /; exec "$0"`, "a b", ""},
		`x "a\"b\\c\d" 'e\'f`:                     {"x", "x", `a"b\c\d`, `e\f`},
		`x $HOME * ~ | > & ; #`:                   {"x", "x", "$HOME", "*", "~", "|", ">", "&", ";", "#"},
		"n='quoted prog' x":                       {"n", "quoted prog", "x"},
		"ä 'ö'ü":                                  {"ä", "ä", "öü"},
	} {
		name, args, err := report.ParseCommand(text)
		if got := append([]string{name}, args...); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "names no program", "name=": "names no program", " \t": "names no program", "''": "names no program",
		"x 'a": "a ' is not closed", `x "a`: `a " is not closed`, `x a\`: "ends in a backslash", "x a\x00b": "NUL",
	} {
		if _, _, err := report.ParseCommand(text); err == nil || !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseCommand(f *testing.F) {
	for _, text := range []string{"a b", `n=a 'b c' "d\"e" f\ g`, "'", `\`, "a=b=c d"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, args, err := report.ParseCommand(text)
		if err != nil {
			return
		}
		if name == "" || len(args) == 0 || args[0] == "" || strings.ContainsRune(strings.Join(args, ""), 0) {
			t.Errorf("%q: %q, %q", text, name, args)
		}
		// Quoted, the words come back as they are.
		var quoted []string
		for _, arg := range args {
			quoted = append(quoted, "'"+strings.ReplaceAll(arg, "'", `'\''`)+"'")
		}
		_, again, err := report.ParseCommand("n=" + strings.Join(quoted, " "))
		if err != nil || !slices.Equal(again, args) {
			t.Errorf("%q: %q, quoted %q, %v", text, args, again, err)
		}
	})
}

func TestNoSuch(t *testing.T) {
	known := []string{"cpu-01-spin", "fs-01-ssh-key", "net-05-dns"}
	for name, want := range map[string]string{
		"fs-01-ssh-kye":           `there is no probe "fs-01-ssh-kye"; did you mean fs-01-ssh-key?`,
		"ssh":                     "did you mean fs-01-ssh-key?",
		"zzz":                     "there are cpu-01-spin, fs-01-ssh-key, net-05-dns",
		"":                        "there are cpu-01-spin",
		"\x1b[2J\u202e":           `"\x1b[2J\u202e"`,
		strings.Repeat("x", 5000): `x..."`,
	} {
		err := report.NoSuch("probe", name, known)
		if !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", name, err, want)
		}
	}
	if err := report.NoSuch("backend", "proces", []string{"subprocess", "process", "container", "gvisor"}); !strings.Contains(err.Error(), "did you mean process?") {
		t.Error(err)
	}
}

func TestSelects(t *testing.T) {
	for _, c := range []struct {
		patterns []string
		id       string
		want     bool
	}{
		{nil, "fs-01-ssh-key", true},
		{[]string{"fs-*"}, "fs-01-ssh-key", true},
		{[]string{"net-*", "*-ssh-key"}, "fs-01-ssh-key", true},
		{[]string{"fs-01"}, "fs-01-ssh-key", false},
		{[]string{"fs-0[2-9]-*"}, "fs-01-ssh-key", false},
	} {
		if got, err := report.Selects(c.patterns, c.id); err != nil || got != c.want {
			t.Errorf("%q of %q: %t, %v", c.patterns, c.id, got, err)
		}
	}
	if _, err := report.Selects([]string{"ok", "fs-["}, "ok"); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("a pattern that is none: %v", err)
	}
}
