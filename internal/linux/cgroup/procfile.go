package cgroup

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// membership is one line of /proc/PID/cgroup.
type membership struct {
	// controllers is empty for v2. A named v1 hierarchy has "name=...".
	controllers []string
	path        string
}

func (m membership) v2() bool { return len(m.controllers) == 0 }

// parseMemberships reads /proc/PID/cgroup: "ID:CONTROLLERS:PATH" in each
// line. A path has no line break, the kernel sees to that; it may have colons.
func parseMemberships(text string) ([]membership, error) {
	var all []membership
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		id, rest, ok := strings.Cut(line, ":")
		controllers, where, ok2 := strings.Cut(rest, ":")
		if _, err := strconv.ParseUint(id, 10, 31); err != nil || !ok || !ok2 || !strings.HasPrefix(where, "/") {
			return nil, fmt.Errorf("cgroup membership %q: want ID:CONTROLLERS:/PATH", line)
		}
		m := membership{path: where}
		if controllers != "" {
			m.controllers = strings.Split(controllers, ",")
		}
		all = append(all, m)
	}
	return all, nil
}

// mount is one cgroup mount of /proc/PID/mountinfo.
type mount struct {
	root  string // the folder of the hierarchy that is mounted
	point string // where it is mounted
	v2    bool
	// controllers are those of a v1 hierarchy.
	controllers []string
	readOnly    bool
}

// parseMounts finds the cgroup mounts in the text of /proc/PID/mountinfo, in
// its order. Lines of other file systems only need the right form.
func parseMounts(text string) ([]mount, error) {
	var all []mount
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		// ID PARENT DEV ROOT POINT OPTIONS [TAGS...] - TYPE SOURCE SUPER
		left, right, ok := strings.Cut(line, " - ")
		f, s := strings.Split(left, " "), strings.Split(right, " ")
		if !ok || len(f) < 6 || len(s) < 3 {
			return nil, fmt.Errorf("mountinfo line %q: too few fields", line)
		}
		if s[0] != "cgroup" && s[0] != "cgroup2" {
			continue
		}
		super := strings.Split(s[len(s)-1], ",")
		m := mount{
			root:     unescape(f[3]),
			point:    unescape(f[4]),
			v2:       s[0] == "cgroup2",
			readOnly: slices.Contains(strings.Split(f[5], ","), "ro") || slices.Contains(super, "ro"),
		}
		if !path.IsAbs(m.root) || !path.IsAbs(m.point) {
			return nil, fmt.Errorf("mountinfo line %q: paths are not absolute", line)
		}
		if !m.v2 {
			m.controllers = super
		}
		all = append(all, m)
	}
	return all, nil
}

// unescape undoes the kernel's octal escapes: \040 for a blank.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// folder returns where a path of the hierarchy is found through this mount,
// or false if the mount does not reach it: it shows another part, or the path
// lies outside of the cgroup namespace ("/..").
func (m mount) folder(where string) (string, bool) {
	if !path.IsAbs(where) || where != path.Clean(where) || strings.HasPrefix(where, "/..") || strings.HasPrefix(m.root, "/..") {
		return "", false
	}
	if m.root == "/" {
		return path.Join(m.point, where), true
	}
	rest, ok := strings.CutPrefix(where, m.root)
	if !ok || (rest != "" && rest[0] != '/') {
		return "", false
	}
	return path.Join(m.point, rest), true
}

// within reports whether p is dir or below it. Both are clean.
func within(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// keyed finds "KEY VALUE" in a flat keyed file such as memory.events.
func keyed(text, key string) (int64, bool) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, key+" "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// parsePIDs reads cgroup.procs. A process that this pid namespace can't see
// is 0 there; it is left out, and reported by the second result.
func parsePIDs(text string) (pids []int, unseen bool, err error) {
	for line := range strings.Lines(text) {
		n, err := strconv.ParseInt(strings.TrimSuffix(line, "\n"), 10, 32)
		if err != nil || n < 0 {
			return nil, false, fmt.Errorf("cgroup.procs: line %q is no process id", line)
		}
		if n == 0 {
			unseen = true
			continue
		}
		pids = append(pids, int(n))
	}
	return pids, unseen, nil
}
