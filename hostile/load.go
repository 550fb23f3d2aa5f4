package hostile

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"tranca"
	"tranca/hostile/attempt"
	"tranca/hostile/report"
	"tranca/internal/policy"
)

//go:embed probes
var embedded embed.FS

// maxProbe bounds a probe's file.
const maxProbe = 64 << 10

// Probes returns the probes of this build, in the order of their ids.
func Probes() ([]*Probe, error) {
	sub, err := fs.Sub(embedded, "probes")
	if err != nil {
		return nil, err
	}
	return Load(sub)
}

// Load reads the probes of a folder: each of its folders is one. An error names
// every file that is wrong, with line and field; it wraps [tranca.ErrInvalid].
func Load(dir fs.FS) ([]*Probe, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, err
	}
	var all []*Probe
	var errs []error
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		p, err := read(dir, e.Name())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, p)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: there is no probe: want folders with a file probe.yaml in each", tranca.ErrInvalid)
	}
	return all, nil
}

func read(dir fs.FS, id string) (*Probe, error) {
	name := path.Join(id, "probe.yaml")
	f, err := dir.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", tranca.ErrInvalid, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxProbe+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxProbe {
		return nil, fmt.Errorf("%w: %s: more than %d bytes", tranca.ErrInvalid, name, maxProbe)
	}
	return Parse(id, text)
}

// Parse reads one probe. The error is [policy.Errors], or wraps
// [tranca.ErrInvalid].
func Parse(id string, text []byte) (*Probe, error) {
	name := path.Join(id, "probe.yaml")
	p := &Probe{ID: id, Text: string(text)}
	if err := policy.Decode(name, text, p); err != nil {
		return nil, err
	}
	var errs []error
	for _, e := range p.check() {
		errs = append(errs, fmt.Errorf("%w: %s: %w", tranca.ErrInvalid, name, e))
	}
	return p, errors.Join(errs...)
}

// Words that fields may have.
var (
	backendNames = []string{"none", "subprocess", "process", "container", "gvisor", "microvm"}
	needs        = []string{"root", "user", "ipv6", "lan", "amd64", "ia32"}
	mounts       = []string{"ro", "rw", "cow"}
)

// validID reports whether a folder's name is an id: words of lower case letters
// and numbers, joined by '-'.
func validID(id string) bool {
	for word := range strings.SplitSeq(id, "-") {
		if word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return false
		}
	}
	return true
}

func (p *Probe) check() []error {
	errs := p.checkWords()
	errs = append(errs, p.checkPlaceholders()...)
	for _, part := range []struct {
		name  string
		steps []attempt.Step
	}{{"attempt", p.Attempt}, {"again", p.Again}, {"next", p.Next}, {"beside", p.Beside}, {"twin", p.Twin}} {
		for _, e := range attempt.Check(part.steps) {
			errs = append(errs, fmt.Errorf("%s: %w", part.name, e))
		}
	}
	if _, err := p.Policy.Apply(policy.Default(), nil); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// placeholders are those of docs/PROBES.md, without their braces.
var placeholders = strings.Fields(`
	canary.home canary.ssh canary.aws canary.kube canary.docker canary.netrc canary.history canary.unwritable
	canary.tmp canary.vartmp canary.shm dir.home dir.tmp dir.vartmp dir.shm ro rw cow space tmp mark victim
	shm.key tcp4 tcp4.port udp4 udp4.port tcp6 tcp6.port udp6 udp6.port lan.tcp4 lan.tcp4.port unix abstract
	unix.rw dns dns.port docker metadata metadata.port uid gid hostname fd`)

// checkPlaceholders refuses names that nothing answers to: a misspelt one would
// look like something that a host lacks.
func (p *Probe) checkPlaceholders() (errs []error) {
	for line := range strings.Lines(p.Text) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, name := range Placeholders(line) {
			if !slices.Contains(placeholders, name) {
				errs = append(errs, fmt.Errorf("there is no placeholder {%s}: docs/PROBES.md lists them", name))
			}
		}
	}
	return errs
}

// Placeholders returns what stands between braces in a text as placeholders do:
// lower case letters, numbers and dots.
func Placeholders(text string) (names []string) {
	for {
		_, after, found := strings.Cut(text, "{")
		if !found {
			return names
		}
		name, _, closed := strings.Cut(after, "}")
		if closed && name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.") == "" {
			names = append(names, name)
		}
		text = after
	}
}

func (p *Probe) checkWords() (errs []error) {
	want := func(so bool, format string, args ...any) {
		if !so {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	want(validID(p.ID),
		"the folder's name is the id: want lower case words and numbers joined by -, such as fs-01-ssh-key")
	want(p.Try != "" && p.Why != "", "try and why say in a sentence each what is tried and what it is worth")
	want(slices.Contains(tranca.Items(), p.Guarantee), "guarantee: there is no item %q", p.Guarantee)
	want(slices.Contains(Severities(), p.Severity), "severity: there is no %q: want one of %v", p.Severity, Severities())
	want(len(p.Rows) > 0 && p.Rows[0] != "", "rows: want one or more")
	want(len(p.Attempt) > 0, "attempt: want one step or more")
	want(len(p.Twin) > 0, "twin: want one step or more: without an allowed act on the same path, denied means nothing")
	if _, ok := limits[p.Limit]; p.Limit != "" {
		want(ok, "limit: there is no %q", p.Limit)
	}
	for _, n := range p.Needs {
		want(slices.Contains(needs, n) || strings.HasPrefix(n, "host: "), "needs: there is no %q: want one of %v, or \"host: \" and words", n, needs)
	}
	for _, m := range p.Policy.Mounts {
		want(slices.Contains(mounts, m), "policy.mounts: there is no %q: want one of %v", m, mounts)
	}
	for name, e := range p.Expect {
		want(slices.Contains(backendNames, name), "expect: there is no backend %q: want one of %v", name, backendNames)
		want(slices.Contains(report.Verdicts(), e.Verdict), "expect.%s: there is no verdict %q", name, e.Verdict)
		want(e.Why != "", "expect.%s: why is it so?", name)
	}
	want(p.SaidInPython() || p.PythonWhy != "", "python_why: why can't it be said in Python?")
	return errs
}
