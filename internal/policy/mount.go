package policy

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tranca"
)

const (
	maxPath    = 4095 // PATH_MAX without its NUL
	maxMounts  = 64
	maxEntries = 128 // of one deny or protect list
)

// reserved are the places that tranca makes itself, the system folders of the
// image among them. Nothing is mounted on them or below them.
var reserved = []string{
	"/bin", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libexec", "/libx32",
	"/proc", "/sbin", "/sys", "/tmp", "/usr", "/.tranca",
}

// workPlace is made by tranca too; a mount may lie below it but not on it.
const workPlace = "/work"

// ParseMount reads a mount as a command line has it: "SRC:DST", "SRC:DST:ro",
// "SRC:DST:rw" or "SRC:DST:cow". It is read-only unless it says otherwise. The
// explicit rw also accepts that the mount has no bound on its bytes. With rw
// and cow the mount gets the default protect list. Source and target are
// absolute and clean. The error is an [*Error] without file or path.
func ParseMount(s string) (tranca.Mount, error) {
	parts := strings.Split(s, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return tranca.Mount{}, errorf("", "mount %s: want SRC:DST, SRC:DST:ro, SRC:DST:rw or SRC:DST:cow; a path with a colon can only stand in a policy file", quote(s))
	}
	m := tranca.Mount{Source: parts[0], Target: parts[1]}
	if len(parts) == 3 {
		switch parts[2] {
		case "ro":
		case "rw":
			m.Writable, m.DiskUnbounded, m.Protect = true, true, DefaultProtect()
		case "cow":
			m.Cow, m.Protect = true, DefaultProtect()
		default:
			return tranca.Mount{}, &Error{
				Message:    "mount " + quote(s) + ": mode " + quote(parts[2]) + ": want " + either(mountModes),
				Suggestion: nearest(parts[2], mountModes),
			}
		}
	}
	if found := checkMount("", &m); len(found) > 0 {
		e := *found[0]
		e.Path, e.Message = "", "mount "+quote(s)+": "+strings.TrimPrefix(e.Path, ".")+": "+e.Message
		return tranca.Mount{}, &e
	}
	return m, nil
}

// checkMount checks one mount by itself. at is its place: "mounts[0]".
func checkMount(at string, m *tranca.Mount) []*Error {
	var found []*Error
	add := func(e *Error) {
		if e != nil {
			found = append(found, e)
		}
	}
	add(checkAbsolute(at+".source", m.Source))
	if m.Source == "/" {
		add(errorf(at+".source", "the host's whole tree can't be mounted: name the folder that is needed"))
	}
	add(checkTarget(at+".target", m.Target))
	found = append(found, checkEntries(at+".deny", m.Deny)...)
	found = append(found, checkEntries(at+".protect", m.Protect)...)
	switch {
	case m.Writable && m.Cow:
		add(errorf(at+".mode", "a mount is rw or cow, not both"))
	case m.DiskUnbounded && m.Cow:
		add(errorf(at+".disk", "what is written to a mount of mode cow is in the sandbox's own space, which limits.disk bounds: leave disk out"))
	case m.DiskUnbounded && !m.Writable:
		add(errorf(at+".disk", "only a writable mount takes space: write mode: rw too, or leave disk out"))
	}
	if len(m.Protect) > 0 && !m.Writable && !m.Cow {
		add(errorf(at+".protect", "all of a read-only mount is protected: write mode: rw too, or leave protect out"))
	}
	return found
}

func checkAbsolute(at, p string) *Error {
	if e := checkText(at, p); e != nil {
		return e
	}
	switch {
	case len(p) > maxPath:
		return errorf(at, "path is longer than %d bytes", maxPath)
	case !strings.HasPrefix(p, "/"):
		return errorf(at, "path %s is not absolute", quote(p))
	case slices.Contains(strings.Split(p, "/"), ".."):
		return errorf(at, "path %s goes up by \"..\"", quote(p))
	case path.Clean(p) != p:
		return &Error{Path: at, Message: "path " + quote(p) + " is not in its shortest form", Suggestion: path.Clean(p)}
	}
	return nil
}

func checkTarget(at, p string) *Error {
	if e := checkAbsolute(at, p); e != nil {
		return e
	}
	if p == "/" {
		return errorf(at, "a mount can't replace the whole root: name a place below it, such as /project")
	}
	if p == workPlace {
		return &Error{Path: at, Message: "tranca makes " + workPlace + " itself", Suggestion: workPlace + "/project"}
	}
	for _, r := range reserved {
		if within(p, r) {
			return errorf(at, "%s is in %s, which tranca makes itself: choose a place such as /project", quote(p), r)
		}
	}
	return nil
}

func checkEntries(at string, entries []string) []*Error {
	if len(entries) > maxEntries {
		return []*Error{errorf(at, "%d entries: at most %d", len(entries), maxEntries)}
	}
	var found []*Error
	for i, entry := range entries {
		if e := checkEntry(index(at, i), entry); e != nil {
			found = append(found, e)
		}
	}
	return found
}

// checkEntry checks one path of a deny or protect list. Patterns are refused
// since they would be taken as names, and so silently hide nothing.
func checkEntry(at, p string) *Error {
	if e := checkText(at, p); e != nil {
		return e
	}
	switch {
	case len(p) > maxPath:
		return errorf(at, "path is longer than %d bytes", maxPath)
	case strings.HasPrefix(p, "/"):
		return &Error{
			Path: at, Message: "path " + quote(p) + " is not relative to the mount's target",
			Suggestion: strings.TrimPrefix(path.Clean(p), "/"),
		}
	case slices.Contains(strings.Split(p, "/"), ".."):
		return errorf(at, "path %s goes up by \"..\"", quote(p))
	case p == ".":
		return errorf(at, "\".\" is the mount itself: leave the mount out, or make it read-only")
	case path.Clean(p) != p:
		return &Error{Path: at, Message: "path " + quote(p) + " is not in its shortest form", Suggestion: path.Clean(p)}
	case strings.ContainsAny(p, "*?["):
		return errorf(at, "%s looks like a pattern, and patterns are not understood: name the file or a folder above it", quote(p))
	}
	return nil
}

// checkText refuses text that no name or path may hold.
func checkText(at, s string) *Error {
	switch {
	case s == "":
		return errorf(at, "it is empty")
	case strings.IndexByte(s, 0) >= 0:
		return errorf(at, "%s holds a NUL", quote(s))
	case !utf8.ValidString(s):
		return errorf(at, "%s is not valid UTF-8", quote(s))
	case strings.ContainsFunc(s, unicode.IsControl):
		return errorf(at, "%s holds a control character", quote(s))
	}
	return nil
}

// checkOverlap refuses mounts that show one host path twice, or that lie in
// one another. Either would make it a matter of order which of two modes,
// deny lists or protect lists holds.
func checkOverlap(mounts []tranca.Mount) []*Error {
	var found []*Error
	for i := range mounts {
		for j := range mounts[:i] {
			a, b := &mounts[i], &mounts[j]
			at := index("mounts", i)
			switch {
			case a.Target == b.Target:
				found = append(found, errorf(at+".target", "%s is already the target of mounts[%d]", quote(a.Target), j))
			case within(a.Target, b.Target) || within(b.Target, a.Target):
				found = append(found, errorf(at+".target", "%s and %s, the target of mounts[%d], lie in one another: choose places side by side", quote(a.Target), quote(b.Target), j))
			}
			if within(a.Source, b.Source) || within(b.Source, a.Source) {
				found = append(found, errorf(at+".source", "%s and %s, the source of mounts[%d], lie in one another: mount one of them", quote(a.Source), quote(b.Source), j))
			}
		}
	}
	return found
}

// within reports whether the clean path p is dir or below it.
func within(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}
