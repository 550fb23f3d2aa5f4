package container

import (
	"os"
	"path/filepath"
	"strings"

	"tranca"
	"tranca/internal/advisory"
)

// folders are where distributions put the programs of an engine, in the order
// in which an engine finds them.
var folders = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// part is a program that takes part in making containers.
type part struct{ component, version, program string }

// partsOf lists the programs whose version the engine tells, by a runtime; the
// empty name is the engine's own choice. An engine tells the version of no
// other runtime than that.
func (e *engine) partsOf(runtime string) []part {
	parts := []part{{advisory.Docker, e.Version, "dockerd"}}
	if e.podman() {
		parts[0] = part{advisory.Podman, e.Version, "podman"}
	}
	if c, ok := e.parts.Component("containerd"); ok {
		parts = append(parts, part{advisory.Containerd, c.Version, "containerd"})
	}
	if runtime != "" && runtime != e.info.DefaultRuntime {
		return parts
	}
	for _, name := range []string{advisory.Runc, advisory.Crun} {
		if c, ok := e.parts.Component(name); ok {
			parts = append(parts, part{name, c.Version, name})
		}
		if c, ok := e.parts.Component("OCI Runtime (" + name + ")"); ok {
			parts = append(parts, part{name, spoken(c.Version), name})
		}
	}
	return parts
}

// spoken takes the number out of "runc version 1.1.5+ds1" and what follows it.
func spoken(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	words := strings.Fields(line)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// advisories returns the known holes of what makes containers by a runtime. A
// version that can't be read says nothing, and stands in the facts.
func (e *engine) advisories(runtime string) []tranca.Advisory {
	var all []tranca.Advisory
	for _, p := range e.partsOf(runtime) {
		found, err := e.known.Table().Known(p.component, p.version, e.changelog(p))
		if err == nil {
			all = append(all, found...)
		}
	}
	return all
}

// versions says what there is, for people.
func (e *engine) versions(runtime string) string {
	var all []string
	for _, p := range e.partsOf(runtime) {
		all = append(all, p.component+" "+p.version)
	}
	return strings.Join(all, ", ")
}

// changelog is what the distribution of this host says of a part. It is read
// once, as the engine was asked once for the versions: a report is made for
// each sandbox.
func (e *engine) changelog(p part) advisory.Changelog {
	e.mu.Lock()
	defer e.mu.Unlock()
	if log, known := e.logs[p.component]; known {
		return log
	}
	if e.logs == nil {
		e.logs = map[string]advisory.Changelog{}
	}
	log := readChangelog(p)
	e.logs[p.component] = log
	return log
}

// readChangelog reads it, where this host has the program. An engine in a
// virtual machine has another version, and so is told apart.
func readChangelog(p part) advisory.Changelog {
	for _, folder := range folders {
		path := filepath.Join(folder, p.program)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return advisory.InstalledLog("/", p.component, path)
		}
	}
	return advisory.Changelog{}
}
