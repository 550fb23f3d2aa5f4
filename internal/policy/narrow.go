package policy

import (
	"fmt"
	"maps"
	"slices"

	"tranca"
)

// Narrow returns what is left of a policy when a request asks for less: the
// meet of both. It never widens anything, whatever is asked. Each ask that
// goes beyond the policy, or makes no sense, is a [tranca.Problem], in a fixed
// order, and is left out of the result; an engine refuses the request when
// there is one. p must be valid; then the result is valid too.
//
// Narrowing twice by the same request gives the same policy. Two requests
// give the same policy in either order, but for the working directory, which
// the last one sets, and for two requests that name different backends or
// give one variable different values: there the second is a problem.
//
// A space in memory is lowered to half of the memory that is left.
func Narrow(p tranca.Policy, n tranca.Narrowing) (tranca.Policy, []tranca.Problem) {
	w := narrower{out: p.Clone()}
	w.floor(n.Floor)
	w.backend(n.Backend)
	w.mounts(n.DropMounts, n.ReadOnly)
	w.env(n.Env)
	w.workdir(n.Workdir)
	for _, f := range table() {
		if f.ask != nil {
			w.limit(&f, number(f.ask(&n)))
		}
	}
	fitDisk(&w.out)
	return w.out, w.problems
}

// narrower holds a narrowing that is under way.
type narrower struct {
	out      tranca.Policy
	problems []tranca.Problem
}

func (w *narrower) problem(item tranca.Item, asked, missing, mend string) {
	w.problems = append(w.problems, tranca.Problem{Item: item, Asked: asked, Missing: missing, Mend: mend})
}

func (w *narrower) floor(level tranca.Level) {
	if level == 0 {
		return
	}
	asked := "isolation " + level.String()
	switch {
	case !slices.Contains(tranca.Levels(), level):
		w.problem(tranca.ItemIsolation, asked, "there is no such level", "")
	case level < w.out.Floor:
		w.problem(tranca.ItemIsolation, asked, "the policy's floor is "+w.out.Floor.String(), "floor: "+level.String())
	case below(w.out.Backend, level):
		w.problem(tranca.ItemIsolation, asked, "the policy's backend is "+w.out.Backend+", which is below it", "leave backend out of the policy")
	default:
		w.out.Floor = level
	}
}

func (w *narrower) backend(name string) {
	if name == "" || name == w.out.Backend {
		return
	}
	asked := "backend " + clip(name)
	switch {
	case !isBackendName(name):
		w.problem(tranca.ItemIsolation, asked, "that is no name of a backend", "")
	case w.out.Backend != "":
		w.problem(tranca.ItemIsolation, asked, "the policy's backend is "+w.out.Backend, "backend: "+name)
	case below(name, w.out.Floor):
		w.problem(tranca.ItemIsolation, asked, "the policy's floor is "+w.out.Floor.String()+", and "+name+" is below it", "floor: "+levels[name].String())
	default:
		w.out.Backend = name
	}
}

func (w *narrower) limit(f *field, asked int64) {
	if asked == 0 {
		return
	}
	ref := f.ref(&w.out)
	have := number(ref)
	words := f.path + " " + f.format(asked)
	switch {
	case asked < 0:
		w.problem(f.item, words, "a limit is more than 0", "")
	case asked > have:
		mend := f.path + ": " + f.format(asked)
		if asked > f.max {
			mend = ""
		}
		w.problem(f.item, words, "the policy gives "+f.format(have), mend)
	case asked < f.min:
		w.problem(f.item, words, "the least that works is "+f.format(f.min), "")
	default:
		setNumber(ref, asked)
	}
}

// mounts takes mounts away and makes others read-only. A target that the
// policy does not have is a problem: a misspelt one would leave a mount open.
func (w *narrower) mounts(drop, readOnly []string) {
	if n := max(len(drop), len(readOnly)); n > maxMounts {
		w.problem(tranca.ItemMounts, fmt.Sprintf("%d mounts less", n), fmt.Sprintf("a policy has at most %d", maxMounts), "")
		return
	}
	for i, target := range readOnly {
		at := slices.IndexFunc(w.out.Mounts, func(m tranca.Mount) bool { return m.Target == target })
		switch {
		case at < 0 && !slices.Contains(readOnly[:i], target):
			w.noMount("mount "+clip(target)+" read-only", target)
		case at >= 0:
			m := &w.out.Mounts[at]
			m.Writable, m.Cow, m.DiskUnbounded, m.Protect = false, false, false, nil
		}
	}
	for i, target := range drop {
		before := len(w.out.Mounts)
		w.out.Mounts = slices.DeleteFunc(w.out.Mounts, func(m tranca.Mount) bool { return m.Target == target })
		if len(w.out.Mounts) == before && !slices.Contains(drop[:i], target) {
			w.noMount("no mount "+clip(target), target)
		}
	}
}

func (w *narrower) noMount(asked, target string) {
	w.problem(tranca.ItemMounts, asked, "the policy has no mount at "+clip(target), "")
}

func (w *narrower) env(env map[string]string) {
	if len(env) > maxEnv {
		w.problem(tranca.ItemEnvironment, fmt.Sprintf("%d variables", len(env)), fmt.Sprintf("at most %d are allowed", maxEnv), "")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		asked := "variable " + clip(name)
		have, there := w.out.Env[name]
		switch {
		case there && have == env[name]:
		case there:
			w.problem(tranca.ItemEnvironment, asked, "the policy sets it to another value", "leave "+name+" out of environment in the policy")
		default:
			joined := joinEnv(w.out.Env, map[string]string{name: env[name]})
			if found := checkEnv("environment", joined); len(found) > 0 {
				w.problem(tranca.ItemEnvironment, asked, found[0].Message, "")
				continue
			}
			w.out.Env = joined
		}
	}
}

func (w *narrower) workdir(dir string) {
	if dir == "" {
		return
	}
	if e := checkAbsolute("workdir", dir); e != nil {
		w.problem(tranca.ItemFiles, fmt.Sprintf("workdir %s", clip(dir)), e.Message, "")
		return
	}
	w.out.Workdir = dir
}

// clip makes the text of a request fit for one line, in quotes only where it
// needs them.
func clip(s string) string {
	if q := quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}
