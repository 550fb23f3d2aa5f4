package agentconfig

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tranca"
	"tranca/internal/require"
)

// planIn is a plan for Cursor's file in a home of the test.
func planIn(t *testing.T, home string) Plan {
	t.Helper()
	p, err := NewPlan("cursor", ScopeUser, Host{Home: home, Folder: home, OS: "linux", Getenv: func(string) string { return "" }}, Server{"/t", []string{"mcp"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func put(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func TestApplyKeepsModeAndCopy(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, ".cursor", "mcp.json")
	put(t, path, "{}\n", 0o640)
	c, err := planIn(t, home).Apply()
	if err != nil || c.File != path || c.Backup != path+backupSuffix || c.Unchanged {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, name := range []string{path, c.Backup} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if get(t, c.Backup) != "{}\n" || !strings.Contains(get(t, path), `"/t"`) {
		t.Errorf("file %s, copy %s", get(t, path), get(t, c.Backup))
	}
	all, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(all) != 2 {
		t.Errorf("left behind: %v, %v", all, err)
	}
}

func TestNewFilesArePrivate(t *testing.T) {
	home := t.TempDir()
	c, err := planIn(t, home).Apply()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(c.File); err != nil || info.Mode().Perm() != 0o600 || c.Backup != "" {
		t.Errorf("mode %v, %v, copy %q", info.Mode(), err, c.Backup)
	}
}

// TestOwnLinksAreFollowed is for those who keep their settings elsewhere in
// their home: the link stays one.
func TestOwnLinksAreFollowed(t *testing.T) {
	for name, target := range map[string]func(home string) (link, target string){
		"the file":   func(string) (string, string) { return ".cursor/mcp.json", "../dot/files/mcp.json" },
		"the folder": func(string) (string, string) { return ".cursor", "dot/files" },
		"absolute":   func(home string) (string, string) { return ".cursor", filepath.Join(home, "dot/files") },
		"two":        func(string) (string, string) { return ".cursor/mcp.json", "second" },
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			at, to := target(home)
			put(t, filepath.Join(home, "dot/files/mcp.json"), "{}", 0o600)
			link(t, to, filepath.Join(home, at))
			if to == "second" {
				link(t, "../dot/files/mcp.json", filepath.Join(home, ".cursor/second"))
			}
			c, err := planIn(t, home).Apply()
			if err != nil || c.File != filepath.Join(home, "dot/files/mcp.json") {
				t.Fatalf("%+v, %v", c, err)
			}
			if !strings.Contains(get(t, c.File), `"/t"`) {
				t.Error("it was not written")
			}
			if info, err := os.Lstat(filepath.Join(home, at)); err != nil || info.Mode()&fs.ModeSymlink == 0 {
				t.Errorf("the link is gone: %v, %v", info, err)
			}
		})
	}
}

func TestApplyRefuses(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, home, outside string){
		"a link out": func(t *testing.T, home, outside string) { link(t, outside, filepath.Join(home, ".cursor/mcp.json")) },
		"a folder's link out": func(t *testing.T, home, outside string) {
			link(t, filepath.Dir(outside), filepath.Join(home, ".cursor"))
		},
		"a relative link out":  func(t *testing.T, home, _ string) { link(t, "../../outside", filepath.Join(home, ".cursor/mcp.json")) },
		"a link to itself":     func(t *testing.T, home, _ string) { link(t, "mcp.json", filepath.Join(home, ".cursor/mcp.json")) },
		"a folder as the file": func(t *testing.T, home, _ string) { put(t, filepath.Join(home, ".cursor/mcp.json/x"), "", 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			home, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
			put(t, outside, "{}", 0o600)
			prepare(t, home, outside)
			if c, err := planIn(t, home).Apply(); !errors.Is(err, tranca.ErrRefused) {
				t.Errorf("%+v, %v", c, err)
			}
			if get(t, outside) != "{}" {
				t.Errorf("the file outside was written: %s", get(t, outside))
			}
		})
	}
}

// TestOthersDoNotChooseTheFile gives what is on the way to another user.
func TestOthersDoNotChooseTheFile(t *testing.T) {
	require.Root(t)
	const somebody = 1234
	for name, path := range map[string]string{"folder": ".cursor", "file": ".cursor/mcp.json", "home": "."} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			put(t, filepath.Join(home, ".cursor/mcp.json"), "{}", 0o600)
			if err := os.Lchown(filepath.Join(home, path), somebody, somebody); err != nil {
				t.Fatal(err)
			}
			refusedAndKept(t, home)
		})
	}
	t.Run("link", func(t *testing.T) {
		home := t.TempDir()
		put(t, filepath.Join(home, "mine"), "{}", 0o600)
		link(t, "../mine", filepath.Join(home, ".cursor/mcp.json"))
		if err := os.Lchown(filepath.Join(home, ".cursor/mcp.json"), somebody, somebody); err != nil {
			t.Fatal(err)
		}
		refusedAndKept(t, home)
	})
}

func refusedAndKept(t *testing.T, home string) {
	t.Helper()
	c, err := planIn(t, home).Apply()
	if !errors.Is(err, tranca.ErrRefused) || !strings.Contains(err.Error(), "another user") {
		t.Errorf("%+v, %v", c, err)
	}
	if text := get(t, filepath.Join(home, ".cursor/mcp.json")); text != "{}" {
		t.Errorf("it was written: %s", text)
	}
}

func TestPlaces(t *testing.T) {
	env := map[string]string{}
	h := Host{Home: "/home/a", Folder: "/src", OS: "linux", Getenv: func(name string) string { return env[name] }}
	for _, c := range []struct {
		client   string
		scope    Scope
		os       string
		variable string
		want     string
	}{
		{"claude-code", ScopeUser, "linux", "", "/home/a/.claude.json"},
		{"claude-code", ScopeUser, "linux", "CLAUDE_CONFIG_DIR=/c", "/c/.claude.json"},
		{"claude-code", ScopeProject, "linux", "CLAUDE_CONFIG_DIR=/c", "/src/.mcp.json"},
		{"cursor", ScopeUser, "linux", "", "/home/a/.cursor/mcp.json"},
		{"cursor", ScopeProject, "linux", "", "/src/.cursor/mcp.json"},
		{"vscode", ScopeUser, "linux", "", "/home/a/.config/Code/User/mcp.json"},
		{"vscode", ScopeUser, "linux", "XDG_CONFIG_HOME=/x", "/x/Code/User/mcp.json"},
		{"vscode", ScopeUser, "darwin", "XDG_CONFIG_HOME=/x", "/home/a/Library/Application Support/Code/User/mcp.json"},
		{"vscode", ScopeProject, "darwin", "", "/src/.vscode/mcp.json"},
		{"codex", ScopeUser, "linux", "", "/home/a/.codex/config.toml"},
		{"codex", ScopeUser, "linux", "CODEX_HOME=/k", "/k/config.toml"},
		{"codex", ScopeProject, "linux", "CODEX_HOME=/k", "/src/.codex/config.toml"},
	} {
		clear(env)
		name, value, _ := strings.Cut(c.variable, "=")
		env[name] = value
		h.OS = c.os
		p, err := NewPlan(c.client, c.scope, h, Server{"/t", nil})
		if err != nil || p.File() != c.want {
			t.Errorf("%+v: %q, %v", c, p.File(), err)
		}
	}
	h.Home = ""
	if _, err := NewPlan("cursor", ScopeUser, h, Server{"/t", nil}); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("without a home: %v", err)
	}
}
