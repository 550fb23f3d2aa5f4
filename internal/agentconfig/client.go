package agentconfig

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tranca"
)

// Name is what tranca is called in every configuration.
const Name = "tranca"

// Scope says for whom a configuration counts.
type Scope string

// The scopes.
const (
	// ScopeUser is everything that the user does.
	ScopeUser Scope = "user"
	// ScopeProject is the folder that the user is in. Whoever can write there
	// can change the configuration too, and so can the agent.
	ScopeProject Scope = "project"
)

// Server is the command that a client starts. Its path is absolute: a client
// that was started by a desktop has another PATH than the user's shell.
type Server struct {
	Command string
	Args    []string
}

// Host is what is known of the user and the system.
type Host struct {
	// Home and Folder are absolute: the user's home, and where he is.
	Home, Folder string
	// OS is [runtime.GOOS].
	OS string
	// Getenv is [os.Getenv].
	Getenv func(string) string
}

// Plan is one entry in one file.
type Plan struct {
	Client string
	// Base is the folder that is the user's word, Path the file below it.
	Base, Path string
	// Snippet is the whole file where there is none yet, to be pasted by hand.
	Snippet string
	// Command does the same by the client's own command, where it has one.
	Command []string

	edit func(text string) (string, error)
}

// File is the absolute path of the file.
func (p Plan) File() string { return filepath.Join(p.Base, p.Path) }

// client is where a program keeps its servers.
type client struct {
	name string
	// place returns the base folder and the file below it.
	place func(Host, Scope) (base, path string)
	// key is the JSON object that holds the servers; empty is Codex's TOML.
	key string
	// typed says that an entry names its transport.
	typed   bool
	command func(Scope, Server) []string
}

// clients are those that are known, in the order in which they are listed.
var clients = []client{
	{name: "claude-code", place: claudeCode, key: "mcpServers", typed: true, command: func(scope Scope, s Server) []string {
		return append([]string{"claude", "mcp", "add", "--scope", string(scope), Name, "--", s.Command}, s.Args...)
	}},
	{name: "cursor", place: within(".cursor/mcp.json"), key: "mcpServers"},
	{name: "vscode", place: vscode, key: "servers", typed: true, command: func(scope Scope, s Server) []string {
		if scope != ScopeUser {
			return nil
		}
		entry, err := json.Marshal(map[string]any{"name": Name, "command": s.Command, "args": s.Args})
		if err != nil {
			return nil
		}
		return []string{"code", "--add-mcp", string(entry)}
	}},
	{name: "codex", place: codex, command: func(scope Scope, s Server) []string {
		if scope != ScopeUser {
			return nil
		}
		return append([]string{"codex", "mcp", "add", Name, "--", s.Command}, s.Args...)
	}},
}

// Clients returns the names of the clients.
func Clients() []string {
	names := make([]string, len(clients))
	for i, c := range clients {
		names[i] = c.name
	}
	return names
}

// NewPlan says what is to be written where. The error wraps
// [tranca.ErrInvalid].
func NewPlan(name string, scope Scope, h Host, s Server) (Plan, error) {
	at := slices.IndexFunc(clients, func(c client) bool { return c.name == name })
	if at < 0 {
		return Plan{}, fmt.Errorf("%w: no client is called %q; these are known: %s", tranca.ErrInvalid, name, strings.Join(Clients(), ", "))
	}
	if scope != ScopeUser && scope != ScopeProject {
		return Plan{}, fmt.Errorf("%w: scope %q: want user or project", tranca.ErrInvalid, scope)
	}
	c := clients[at]
	base, path := c.place(h, scope)
	if !filepath.IsAbs(base) {
		return Plan{}, fmt.Errorf("%w: the folder %q of %s's configuration is not absolute: is HOME set?", tranca.ErrInvalid, base, name)
	}
	p := Plan{Client: name, Base: base, Path: path}
	if c.command != nil {
		p.Command = c.command(scope, s)
	}
	p.edit = func(text string) (string, error) { return setTOML(text, s) }
	if c.key != "" {
		p.edit = func(text string) (string, error) { return setJSON(text, c.key, c.fields(s)) }
	}
	var err error
	p.Snippet, err = p.edit("")
	return p, err
}

func (c client) fields(s Server) []field {
	all := []field{{"command", s.Command}, {"args", s.Args}}
	if c.typed {
		all = append([]field{{"type", "stdio"}}, all...)
	}
	return all
}

// within is a client that keeps the same file below the home and the project.
func within(path string) func(Host, Scope) (string, string) {
	return func(h Host, scope Scope) (string, string) {
		if scope == ScopeProject {
			return h.Folder, filepath.FromSlash(path)
		}
		return h.Home, filepath.FromSlash(path)
	}
}

func claudeCode(h Host, scope Scope) (base, path string) {
	if scope == ScopeProject {
		return h.Folder, ".mcp.json"
	}
	if dir := h.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir, ".claude.json"
	}
	return h.Home, ".claude.json"
}

func codex(h Host, scope Scope) (base, path string) {
	if dir := h.Getenv("CODEX_HOME"); dir != "" && scope == ScopeUser {
		return dir, "config.toml"
	}
	return within(".codex/config.toml")(h, scope)
}

func vscode(h Host, scope Scope) (base, path string) {
	const file = "Code/User/mcp.json"
	switch config := h.Getenv("XDG_CONFIG_HOME"); {
	case scope == ScopeProject:
		return h.Folder, filepath.FromSlash(".vscode/mcp.json")
	case h.OS == "darwin":
		return h.Home, filepath.FromSlash("Library/Application Support/" + file)
	case h.OS == "windows":
		return h.Getenv("APPDATA"), filepath.FromSlash(file)
	case config != "":
		return config, filepath.FromSlash(file)
	}
	return h.Home, filepath.FromSlash(".config/" + file)
}
