package policyfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tranca"
	"tranca/internal/policy"
)

func named(host string) string { return "version: 1\nhostname: " + host + "\n" }

// TestFindOrder shows which file is in force.
func TestFindOrder(t *testing.T) {
	dir := folder(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	o := Options{SystemDir: at("system"), UserDir: at("user")}

	p, found, err := Find(o)
	if found || err != nil {
		t.Fatalf("nothing there: %v, %v", found, err)
	}
	if diff := cmp.Diff(policy.Default(), p); diff != "" {
		t.Error(diff)
	}
	want := func(o Options, host, source string) {
		t.Helper()
		p, found, err := Find(o)
		if err != nil || !found || p.Hostname != host || p.Source != source {
			t.Errorf("got %q from %q, %v, %v; want %q from %q", p.Hostname, p.Source, found, err, host, source)
		}
	}
	write(t, at("user/policy.yaml"), named("user"))
	want(o, "user", at("user/policy.yaml"))
	write(t, at("system/policy.yaml"), named("system"))
	want(o, "system", at("system/policy.yaml"))
	write(t, at("mine.yaml"), named("mine"))
	o.Path = at("mine.yaml")
	want(o, "mine", at("mine.yaml"))
	o.Path = at("none.yaml")
	if _, found, err := Find(o); found || !errors.Is(err, tranca.ErrNotFound) {
		t.Errorf("a named file that is not there: %v, %v", found, err)
	}
}

// TestFindSkipsNothing shows that a spoiled file is an error also where a
// good one would come after it.
func TestFindSkipsNothing(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"wrong":    func(t *testing.T, path string) { write(t, path, "version: 2\n") },
		"empty":    func(t *testing.T, path string) { write(t, path, "") },
		"writable": func(t *testing.T, path string) { chmod(t, write(t, path, valid), 0o666) },
		"folder":   func(t *testing.T, path string) { mkdir(t, path) },
		"link": func(t *testing.T, path string) {
			mkdir(t, filepath.Dir(path))
			if err := os.Symlink("/nowhere", path); err != nil {
				t.Fatal(err)
			}
		},
		"yml":  func(t *testing.T, path string) { write(t, strings.TrimSuffix(path, "yaml")+"yml", valid) },
		"json": func(t *testing.T, path string) { write(t, strings.TrimSuffix(path, "yaml")+"json", "{}") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			o := Options{SystemDir: filepath.Join(dir, "system"), UserDir: filepath.Join(dir, "user")}
			write(t, filepath.Join(o.UserDir, Name), named("user"))
			spoil(t, filepath.Join(o.SystemDir, Name))
			p, found, err := Find(o)
			if err == nil || found {
				t.Errorf("skipped: got %q", p.Hostname)
			}
			if !errors.Is(err, tranca.ErrInvalid) && !errors.Is(err, tranca.ErrRefused) {
				t.Errorf("%v has no class", err)
			}
		})
	}
}

// TestFindNeverHere shows that the working directory is not searched.
func TestFindNeverHere(t *testing.T) {
	dir := folder(t)
	for _, name := range []string{"policy.yaml", "tranca/policy.yaml", ".config/tranca/policy.yaml", "tranca.yaml", ".tranca/policy.yaml"} {
		write(t, filepath.Join(dir, "here", name), named("here"))
	}
	t.Chdir(filepath.Join(dir, "here"))
	if _, found, err := Find(Options{SystemDir: filepath.Join(dir, "s"), UserDir: filepath.Join(dir, "u")}); found || err != nil {
		t.Errorf("got %v, %v", found, err)
	}
	// Named, it is the operator's word.
	p, found, err := Find(Options{Path: "policy.yaml"})
	if err != nil || !found || p.Source != filepath.Join(dir, "here", "policy.yaml") {
		t.Errorf("got %q, %v, %v", p.Source, found, err)
	}
}

func TestFindUserFolder(t *testing.T) {
	dir := folder(t)
	write(t, filepath.Join(dir, "xdg", "tranca", Name), named("xdg"))
	write(t, filepath.Join(dir, "home", ".config", "tranca", Name), named("home"))
	o := Options{SystemDir: filepath.Join(dir, "none")}
	for _, c := range []struct {
		xdg, home string
		want      string // host name; "" is not found, "!" an error
	}{
		{filepath.Join(dir, "xdg"), filepath.Join(dir, "home"), "xdg"},
		{"", filepath.Join(dir, "home"), "home"},
		{"", "", ""},
		{"relative", filepath.Join(dir, "home"), "!"},
		{"relative", "", "!"},
	} {
		t.Setenv("XDG_CONFIG_HOME", c.xdg)
		t.Setenv("HOME", c.home)
		p, found, err := Find(o)
		switch {
		case c.want == "!":
			if !errors.Is(err, tranca.ErrInvalid) {
				t.Errorf("%+v: got %v, %v", c, found, err)
			}
		case err != nil, found != (c.want != ""), found && p.Hostname != c.want:
			t.Errorf("%+v: got %q, %v, %v", c, p.Hostname, found, err)
		}
	}
}
