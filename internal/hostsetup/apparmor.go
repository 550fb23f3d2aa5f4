package hostsetup

import (
	"fmt"
	"os"
	"strings"
)

const (
	userNamespaceSwitch = "proc/sys/kernel/apparmor_restrict_unprivileged_userns"
	profileFile         = "etc/apparmor.d/tranca"
)

// apparmor allows user namespaces to tranca where the host allows them only
// to programs with a profile.
func apparmor(h Host) Step {
	file := h.path(profileFile)
	s := Step{
		Title: "AppArmor: let tranca make user namespaces",
		Why: "This host lets only programs with a profile use user namespaces in full. The\n" +
			"profile names one program and confines nothing else; other programs stay\n" +
			"restricted. Whoever could replace that program would get its right too.",
		Undo: []string{
			fmt.Sprintf("if [ -e %s ]; then", file),
			fmt.Sprintf("  apparmor_parser -R %s || true", file),
			fmt.Sprintf("  rm %s", file),
			"fi",
		},
	}
	value, err := os.ReadFile(h.path(userNamespaceSwitch))
	if err != nil || strings.TrimSpace(string(value)) != "1" {
		s.Why = "This host does not restrict user namespaces by AppArmor."
		s.Done = true
		return s
	}
	profile := profileText(h.Program)
	if have, err := os.ReadFile(file); err == nil && string(have) == profile {
		s.Done = true
		return s
	}
	if why := replaceable(h.path(h.Program)); why != "" {
		s.Blocked = why + ".\nInstall tranca as root first: install -m 755 tranca /usr/local/bin/tranca"
		return s
	}
	s.Do = []string{
		fmt.Sprintf("cat > %s <<'END'\n%sEND", file, profile),
		"apparmor_parser -r " + file,
	}
	return s
}

func profileText(program string) string {
	return "# Made by tranca setup. Lets tranca make user namespaces; confines nothing.\n" +
		"abi <abi/4.0>,\n" +
		"include <tunables/global>\n\n" +
		"profile tranca " + program + " flags=(unconfined) {\n" +
		"  userns,\n" +
		"  include if exists <local/tranca>\n" +
		"}\n"
}

// replaceable says why somebody else than root could replace a program, or
// "". Its folders count: who may rename in them may replace it.
func replaceable(path string) string {
	for at := path; ; {
		info, err := os.Lstat(at)
		if err != nil {
			return fmt.Sprintf("%s can't be looked at: %v", at, err)
		}
		owner := ownerOf(info)
		mode := info.Mode()
		switch {
		case mode&os.ModeSymlink != 0:
			return at + " is a symbolic link"
		case owner != 0:
			return fmt.Sprintf("%s belongs to user %d, who could replace the program", at, owner)
		case mode&0o022 != 0 && !(mode.IsDir() && mode&os.ModeSticky != 0):
			return at + " may be written by others, who could replace the program"
		}
		parent := at[:strings.LastIndexByte(at, '/')]
		if parent == "" || at == "/" {
			return ""
		}
		at = parent
	}
}
