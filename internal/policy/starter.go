package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Starter returns a commented policy file that says the same as [Default].
func Starter() []byte {
	s := starter{}
	s.WriteString("# What code may do in a sandbox of tranca. docs/POLICY.md explains each line.\n" +
		"# Every value here is the default: a line that is left out changes nothing.\n" +
		"# \"tranca policy check FILE\" finds mistakes, \"tranca policy explain FILE\" says\n" +
		"# what it means on this host. Requests and flags can only narrow it.\n")
	for _, f := range table() {
		s.field(&f)
	}
	return []byte(s.String())
}

type starter struct {
	strings.Builder
	group []string
}

// field writes one field with its sentence before it, below the headings of
// its groups.
func (s *starter) field(f *field) {
	names := strings.Split(f.path, ".")
	last := len(names) - 1
	if last == 0 {
		s.WriteByte('\n')
	}
	for i := range last {
		if i < len(s.group) && slices.Equal(s.group[:i+1], names[:i+1]) {
			continue
		}
		if i == 0 {
			s.WriteByte('\n')
		}
		fmt.Fprintf(s, "%s%s:\n", indent(i), names[i])
	}
	s.group = names[:last]
	for _, line := range wrap(f.comment(), 76-2*last) {
		fmt.Fprintf(s, "%s# %s\n", indent(last), line)
	}
	fmt.Fprintf(s, "%s%s\n", indent(last), f.line(names[last]))
}

// line is the field with its default, or as a comment where it has none.
func (f *field) line(name string) string {
	switch f.kind {
	case kindMounts:
		return "mounts: []"
	case kindEnv:
		return "environment: {}"
	case kindItems:
		return "waive: []"
	}
	if f.standard() == "" {
		examples := map[string]string{"backend": "process", "runtime": "runsc", "chroot": "/srv/root"}
		return "# " + name + ": " + examples[f.path]
	}
	return name + ": " + f.standard()
}

// comment is the sentence of a field with its bounds.
func (f *field) comment() string {
	switch {
	case f.numeric():
		return fmt.Sprintf("%s %s to %s.", f.doc, f.format(f.min), f.format(f.max))
	case f.kind == kindMounts:
		return f.doc + " \"disk: unbounded\" must be said for a writable one where the host has no quota. For example:" +
			" [{source: /home/me/project, target: /project, mode: rw, disk: unbounded, deny: [secrets]}]"
	case f.kind == kindEnv:
		return f.doc + " For example: {LANG: C.UTF-8}"
	case f.kind == kindItems:
		return f.doc + " May hold " + waivers() + "."
	case f.kind == kindWord && len(f.words) > 1:
		return f.doc + " One of " + either(f.words) + "."
	}
	return f.doc
}

func indent(depth int) string { return strings.Repeat("  ", depth) }

// wrap breaks a sentence into lines of at most width characters, where its
// words allow.
func wrap(s string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
