package changeset

import (
	"fmt"
	"path"
	"strings"

	"tranca"
)

// ApplyOptions say what of a set is applied.
type ApplyOptions struct {
	// Only lists paths, as the sandbox saw them or relative to the mount: these
	// and what is below them. Empty is all.
	Only []string
	// IncludeProtected lists paths that are written although the host may
	// execute them by itself, with what is below them.
	IncludeProtected []string
	// DryRun looks at everything and writes nothing.
	DryRun bool
}

// Outcome is what became of a path.
type Outcome string

// The outcomes.
const (
	// Written: the host has it now; after a dry run, it would have.
	Written Outcome = "written"
	// Already: the host had it.
	Already Outcome = "already"
	// LeftOut: it is never applied, or not without being named.
	LeftOut Outcome = "left_out"
	// Refused: the host has changed it. Nothing was written then.
	Refused Outcome = "conflict"
	// NotWritten: an error before it ended the application.
	NotWritten Outcome = "not_written"
)

// Step is one path of an application.
type Step struct {
	// Change is the path as the sandbox saw it, and what happened to it.
	tranca.Change
	Outcome Outcome
	// Why is set where the outcome needs a reason.
	Why string
}

// Report says what became of each path that was asked for.
type Report struct {
	ID    tranca.ID
	Steps []Step
}

// Count returns how many paths had an outcome.
func (r *Report) Count(o Outcome) int {
	n := 0
	for i := range r.Steps {
		if r.Steps[i].Outcome == o {
			n++
		}
	}
	return n
}

// node is an entry in the tree of a set.
type node struct {
	*Entry
	parent   *node
	children []*node // in order
	selected bool
	// leftOut says why it is left out; empty where it is not.
	leftOut string
	step    int // in the report, or -1
}

// plan is what is to be done with a set.
type plan struct {
	set  *Set
	all  []*node // in the order of the set
	opts ApplyOptions
}

func newPlan(s *Set, opts ApplyOptions) (*plan, error) {
	p := &plan{set: s, opts: opts}
	at := map[place]*node{}
	for i := range s.Entries {
		e := &s.Entries[i]
		n := &node{Entry: e, step: -1, parent: at[place{e.Mount, path.Dir(e.Path)}]}
		if n.parent != nil {
			n.parent.children = append(n.parent.children, n)
		}
		at[place{e.Mount, e.Path}] = n
		p.all = append(p.all, n)
	}
	if err := p.choose(); err != nil {
		return nil, err
	}
	p.leaveOut()
	return p, nil
}

// like is the path of an entry in the form in which want is one: as the sandbox
// saw it, or relative to its mount.
func (p *plan) like(want string, e *Entry) string {
	if strings.HasPrefix(want, "/") {
		return p.set.Place(e)
	}
	return e.Path
}

// names reports whether an entry is named by one of the paths, or below one.
func (p *plan) names(paths []string, e *Entry) bool {
	for _, want := range paths {
		have := p.like(want, e)
		want = path.Clean(want)
		if want == "." || have == want || strings.HasPrefix(have, strings.TrimSuffix(want, "/")+"/") {
			return true
		}
	}
	return false
}

// leadsToNamed reports whether an entry is a folder above a protected path that
// is named.
func (p *plan) leadsToNamed(e *Entry) bool {
	for _, want := range p.opts.IncludeProtected {
		if e.Type == tranca.FileDirectory && strings.HasPrefix(path.Clean(want), p.like(want, e)+"/") {
			return true
		}
	}
	return false
}

// choose selects what was asked for, with the folders that it needs. A path
// that names nothing is an error.
func (p *plan) choose() error {
	for _, want := range append(p.opts.Only[:len(p.opts.Only):len(p.opts.Only)], p.opts.IncludeProtected...) {
		found := false
		for _, n := range p.all {
			found = found || n.Kind != Folder && p.names([]string{want}, n.Entry)
		}
		if !found {
			return fmt.Errorf("%w: nothing changed at %q; see: tranca diff --stat %s", tranca.ErrNotFound, want, p.set.ID)
		}
	}
	for _, n := range p.all {
		if len(p.opts.Only) > 0 && !p.names(p.opts.Only, n.Entry) {
			continue
		}
		n.selected = true
		for up := n.parent; up != nil && !up.selected && n.Type != ""; up = up.parent {
			// A folder whose mode alone changed is there already.
			up.selected = up.Kind == Created || up.Kind == Replaced
		}
	}
	return nil
}

// leaveOut finds what can't be applied, or not without being named, and what
// that takes with it: a folder stays while something in it does, and nothing
// is put into a folder that is not made.
func (p *plan) leaveOut() {
	for _, n := range p.all {
		switch {
		case n.Kind == Folder:
		case n.Omitted != "":
			n.leftOut = n.Omitted
		case n.Protected && !p.names(p.opts.IncludeProtected, n.Entry) && !p.leadsToNamed(n.Entry):
			n.leftOut = "the host may execute it by itself; name it with --include-protected to write it"
		}
	}
	for i := len(p.all) - 1; i >= 0; i-- {
		n := p.all[i]
		stays := n.leftOut != "" || !n.selected
		if up := n.parent; up != nil && up.leftOut == "" && n.Base != nil && stays && !up.keepsChildren() {
			up.leftOut = fmt.Sprintf("%s, which is in it, stays", path.Base(n.Path))
		}
	}
	for _, n := range p.all {
		up := n.parent
		if up == nil || up.leftOut == "" || n.leftOut != "" {
			continue
		}
		switch up.Kind {
		case Created, Replaced:
			n.leftOut = "its folder is left out"
		}
	}
}

// keepsChildren reports whether what the host has in a folder can stay there.
func (n *node) keepsChildren() bool { return !n.baseFolder() || n.Type == tranca.FileDirectory }

// does reports whether a node is to be applied.
func (n *node) does() bool { return n.selected && n.leftOut == "" && n.Kind != Folder }

// order returns what is to be applied, in an order in which each step can be
// taken: folders before what is in them, what is in the way before what comes
// in its place, and removals last and from the inside out.
func (p *plan) order() []*node {
	var first, last []*node
	done := map[*node]bool{}
	for _, n := range p.all {
		if !n.does() || n.Kind == Removed {
			continue
		}
		if n.Kind == Replaced && n.baseFolder() {
			first = n.removals(first, done)
		}
		first = append(first, n)
	}
	for i := len(p.all) - 1; i >= 0; i-- {
		if n := p.all[i]; n.does() && n.Kind == Removed && !done[n] {
			last = append(last, n)
		}
	}
	return append(first, last...)
}

// removals appends what is removed below a node, from the inside out.
func (n *node) removals(to []*node, done map[*node]bool) []*node {
	for i := len(n.children) - 1; i >= 0; i-- {
		c := n.children[i]
		to = c.removals(to, done)
		if c.does() && c.Kind == Removed {
			done[c] = true
			to = append(to, c)
		}
	}
	return to
}
