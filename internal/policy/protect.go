package policy

import (
	"path"
	"slices"
	"strings"
)

// protected is one entry of the default protect list, with the reason why the
// host may execute it.
type protected struct {
	entry string
	why   string
}

// protectTable is the default protect list: what programs on the host execute
// or obey by themselves, only because it lies in a folder. What a person
// starts on purpose (Makefile, package.json, setup.py) is not in it, because
// changing such files is what the code is there for; nor is .gitmodules, from
// which git takes no commands.
var protectTable = []protected{
	{".git/hooks", "git runs them at commit, checkout, merge, push"},
	{".git/config", "git runs commands named in it (core.fsmonitor, core.hooksPath, filters)"},
	{".git/config.worktree", "as .git/config"},
	{".git/modules", "hooks and configuration of submodules"},
	{".git/worktrees", "configuration of further work trees"},
	{".gitconfig", "git's configuration of a whole user"},
	{".config/git", "git's configuration of a whole user"},
	{".githooks", "where core.hooksPath often points"},
	{".husky", "where core.hooksPath often points"},
	{".pre-commit-config.yaml", "an installed pre-commit hook runs what it names"},
	{".github/hooks", "coding agents run them"},
	{".envrc", "direnv sources it"},
	{".vscode", "the editor's tasks and settings run programs"},
	{".idea", "the editor's run configurations and settings run programs"},
	{".zed", "the editor's tasks and settings run programs"},
	{".devcontainer", "initializeCommand runs on the host"},
	{".exrc", "vim sources it"},
	{".nvim.lua", "neovim runs it"},
	{".dir-locals.el", "emacs evaluates it"},
	{".mcp.json", "coding agents start the servers that it names"},
	{".claude", "a coding agent's hooks, settings and commands"},
	{".cursor", "a coding agent's hooks, settings and rules"},
	{".codex", "a coding agent's settings"},
	{".gemini", "a coding agent's settings"},
	{".windsurf", "a coding agent's settings"},
	{".opencode", "a coding agent's plugins and settings"},
	{".agents", "skills and settings of coding agents"},
	{".bashrc", "bash sources it"},
	{".bash_profile", "bash sources it"},
	{".bash_login", "bash sources it"},
	{".bash_logout", "bash sources it"},
	{".bash_aliases", "bash sources it"},
	{".profile", "shells and desktop sessions source it"},
	{".zshrc", "zsh sources it"},
	{".zshenv", "zsh sources it"},
	{".zprofile", "zsh sources it"},
	{".zlogin", "zsh sources it"},
	{".zlogout", "zsh sources it"},
	{".config/fish", "fish sources it"},
	{".config/autostart", "the desktop starts what it names"},
	{".config/systemd", "the user's service manager starts what it names"},
	{".ssh", "keys that let in, and commands in the configuration"},
}

// DefaultProtect returns the protect list of a writable mount that names none
// of its own.
func DefaultProtect() []string {
	list := make([]string, len(protectTable))
	for i, p := range protectTable {
		list[i] = p.entry
	}
	return list
}

// HostExecutable reports whether a path, relative to a mount's target, is one
// that a protect list names, or lies below one. An entry without a slash
// matches that base name at any depth; an entry with one matches at any depth
// as the end of a path, so ".git/hooks" covers "vendor/x/.git/hooks/update".
// Letters match in either case, because the host's file system may not tell
// them apart.
func HostExecutable(name string, protect []string) bool {
	name = strings.ToLower(path.Clean("/" + name))
	for at := name; at != "/"; at = path.Dir(at) {
		if slices.ContainsFunc(protect, func(entry string) bool {
			return entry != "" && strings.HasSuffix(at, "/"+strings.ToLower(entry))
		}) {
			return true
		}
	}
	return false
}
