package hostsetup

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"tranca"
)

// Host is the host to change and for whom.
type Host struct {
	// Root is the folder that holds the host's tree: "/", or a copy in tests.
	Root string
	// Program is the absolute path at which tranca is installed, below Root.
	Program string
	// User is the login name of who will run tranca.
	User string
	// UID is the numeric id of User.
	UID int
}

// Step is one change. Do and Undo are lines for a POSIX shell that runs as
// root; both may be run again at any time.
type Step struct {
	// Title names the change in a few words.
	Title string
	// Why says what it is needed for, and what it costs.
	Why string
	// Done says that the host has it already.
	Done bool
	// Blocked says why the step can't be made; Do is empty then.
	Blocked string
	Do      []string
	Undo    []string
}

// loginName is what user names may be here. They end up in shell text, so
// nothing else is let through.
const loginName = `^[a-z_][a-z0-9_.-]{0,31}$`

// plainPath is what paths may be here, for the same reason; AppArmor would
// take more than that for patterns.
const plainPath = `^/[A-Za-z0-9_./+-]*$`

// Plan lists the steps for a host, done ones included. The error wraps
// [tranca.ErrInvalid].
func Plan(h Host) ([]Step, error) {
	if !matches(loginName, h.User) {
		return nil, fmt.Errorf("%w: %q is no plain login name", tranca.ErrInvalid, h.User)
	}
	for what, path := range map[string]string{"root": h.Root, "program": h.Program} {
		if !matches(plainPath, path) || filepath.Clean(path) != path {
			return nil, fmt.Errorf("%w: the path %q of the %s is not absolute and plain", tranca.ErrInvalid, path, what)
		}
	}
	if h.UID == 0 {
		return nil, nil
	}
	return []Step{apparmor(h), subids(h), delegation(h)}, nil
}

// path returns a path of the host.
func (h Host) path(name string) string { return filepath.Join(h.Root, name) }

// Print writes the steps as a shell script, with the reasons as comments.
// With undo it writes how to take them back.
func Print(w io.Writer, steps []Step, undo bool) error {
	var b strings.Builder
	b.WriteString("# Run this as root; every step may be run again.\nset -eu\n")
	for _, s := range steps {
		b.WriteString("\n# " + s.Title + "\n")
		comment(&b, s.Why)
		switch {
		case undo:
			lines(&b, s.Undo)
			continue
		case s.Done:
			b.WriteString("# Nothing to do: this host has it.\n")
		case s.Blocked != "":
			comment(&b, "Left out: "+s.Blocked)
		default:
			lines(&b, s.Do)
		}
		b.WriteString("# To undo it:\n")
		for _, line := range s.Undo {
			comment(&b, "  "+line)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func comment(b *strings.Builder, text string) {
	for line := range strings.Lines(text) {
		b.WriteString("# " + strings.TrimRight(line, "\n") + "\n")
	}
}

func lines(b *strings.Builder, all []string) {
	for _, line := range all {
		b.WriteString(line + "\n")
	}
}

// Apply makes the steps, or with undo takes them back, showing each line on w
// before it is run. It stops at the first that fails. The caller is root.
func Apply(w io.Writer, steps []Step, undo bool) error {
	blocked := false
	for _, s := range steps {
		script := s.Do
		switch {
		case undo:
			script = s.Undo
		case s.Done:
			fmt.Fprintf(w, "= %s: nothing to do\n", s.Title)
			continue
		case s.Blocked != "":
			fmt.Fprintf(w, "! %s: left out: %s\n", s.Title, s.Blocked)
			blocked = true
			continue
		}
		fmt.Fprintf(w, "+ %s\n", s.Title)
		if err := runShell(w, script); err != nil {
			return fmt.Errorf("%s: %w; what was done before stays", s.Title, err)
		}
	}
	if blocked {
		return errors.New("not every step could be made; see above")
	}
	return nil
}

func runShell(w io.Writer, script []string) error {
	for _, line := range script {
		for part := range strings.Lines(line) {
			fmt.Fprintf(w, "    %s\n", strings.TrimRight(part, "\n"))
		}
	}
	cmd := exec.Command("/bin/sh", "-eu")
	cmd.Stdin = strings.NewReader(strings.Join(script, "\n") + "\n")
	cmd.Stdout, cmd.Stderr = w, w
	return cmd.Run()
}

// matches compiles when it is asked: every start of tranca would pay for a
// compiled pattern in a variable.
func matches(pattern, s string) bool { return regexp.MustCompile(pattern).MatchString(s) }
