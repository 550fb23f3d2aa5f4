package suite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tranca"
	"tranca/hostile/attempt"
)

const maxLines = 4096

// readLines finds the lines that an interpreter told, in whatever else was
// printed. What it can't read is not one: the bytes are hostile.
func readLines(out []byte) (lines []attempt.Line, done bool) {
	for raw := range bytes.Lines(out) {
		text, ok := bytes.CutPrefix(raw, []byte(attempt.Prefix))
		if !ok || len(lines) >= maxLines {
			continue
		}
		var l attempt.Line
		if json.Unmarshal(text, &l) != nil {
			continue
		}
		if l.Step == -1 {
			done = true
			continue
		}
		lines = append(lines, l)
	}
	return lines, done
}

// name is what a step is called in lines.
func name(s *attempt.Step) string {
	if s.As != "" {
		return s.As
	}
	return s.Do
}

// lineOf finds what was told of a step, and not of a child's.
func lineOf(lines []attempt.Line, i int, s *attempt.Step) *attempt.Line {
	for n := range lines {
		if lines[n].Step == i && (lines[n].As == name(s) || lines[n].As == "" && s.As == "") {
			return &lines[n]
		}
	}
	return nil
}

// got tells of each step whose outcome is an escape.
func got(steps []attempt.Step, lines []attempt.Line) (found []string) {
	for i := range steps {
		s := &steps[i]
		l := lineOf(lines, i, s)
		if l == nil || s.Setup || s.Need {
			continue
		}
		switch {
		case l.OK:
			found = append(found, name(s)+" succeeded"+value(s.Do, l))
		case s.Reach && reached(l):
			found = append(found, name(s)+" reached the kernel: "+l.Errno)
		}
	}
	return found
}

// reached reports whether a step that failed came as far as the kernel's code.
func reached(l *attempt.Line) bool {
	return !l.Fault() && !denied(l.Errno) && l.Errno != attempt.Died && l.Errno != attempt.NotDone
}

func denied(errno string) bool {
	return errno == "EPERM" || errno == "EACCES" || errno == "ENOSYS" || errno == "SIGSYS"
}

// telling are the acts whose values are the program's own. What others bring is
// only counted: on a boundary that does not hold it is the host's, and may be a
// secret.
var telling = []string{"forks", "threads", "zombies", "fds", "pipes", "alloc", "spin", "hash", "sleep", "stat", "socket", "spawn", "repeat"}

// value is what an act brought, as far as a report may have it.
func value(do string, l *attempt.Line) string {
	switch {
	case l.Value == "":
		return ""
	case slices.Contains(telling, do):
		return ": " + clip(l.Value)
	}
	return fmt.Sprintf(", %d bytes came", len(l.Value))
}

func clip(s string) string {
	const most = 200
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// missed tells of each step that had to succeed and did not.
func missed(steps []attempt.Step, lines []attempt.Line, all bool) (found []string) {
	for i := range steps {
		s := &steps[i]
		if (!all && !s.Need) || s.Setup || s.Do == "exit" || s.Do == "raise" {
			continue
		}
		switch l := lineOf(lines, i, s); {
		case l == nil:
			found = append(found, name(s)+" was never done")
		case !l.OK:
			found = append(found, name(s)+" failed: "+l.Errno+value(s.Do, l))
		}
	}
	return found
}

// faults tells of each step that could not be tried.
func faults(steps []attempt.Step, lines []attempt.Line) (found []string) {
	for i := range steps {
		if l := lineOf(lines, i, &steps[i]); l != nil && l.Fault() {
			found = append(found, name(&steps[i])+" could not be tried: "+clip(l.Errno))
		}
	}
	return found
}

// unproven names the steps that did not get through without a boundary either, so
// that their failure behind one shows nothing.
func unproven(steps []attempt.Step, control []attempt.Line) (names []string) {
	for i := range steps {
		s := &steps[i]
		if s.Setup || s.Need {
			continue
		}
		if l := lineOf(control, i, s); l == nil || !l.OK && !(s.Reach && reached(l)) {
			names = append(names, what(s))
		}
	}
	return names
}

// what is a step by what it is about, where it has no name of its own.
func what(s *attempt.Step) string {
	if s.As != "" {
		return s.As
	}
	for _, about := range []string{s.Path, s.Address, s.Call, s.Key, s.Name} {
		if about != "" {
			return s.Do + " " + about
		}
	}
	return s.Do
}

// untold tells of each step of which there is no line, in a program that came to
// its end: what it did is not known.
func untold(steps []attempt.Step, ran *Ran) (found []string) {
	for i := range steps {
		s := &steps[i]
		if ran.Done && lineOf(ran.Lines, i, s) == nil {
			found = append(found, name(s)+" was done, and nothing of it was told")
		}
	}
	return found
}

// told are the outcomes of all steps, as evidence.
func told(what string, steps []attempt.Step, lines []attempt.Line) (all []string) {
	for i := range steps {
		s := &steps[i]
		outcome := "nothing was told"
		if l := lineOf(lines, i, s); l != nil && l.OK {
			outcome = "done" + value(s.Do, l)
		} else if l != nil {
			outcome = "denied: " + clip(l.Errno)
		}
		all = append(all, strings.TrimSpace(what+" "+name(s))+": "+outcome)
	}
	return all
}

// refusedFor are the items that a refusal names.
func refusedFor(err error) (items []tranca.Item) {
	var r *tranca.RefusalError
	if errors.As(err, &r) {
		for _, p := range r.Problems {
			items = append(items, p.Item)
		}
	}
	return items
}

// refused reports whether the boundary refused to run a program for what was asked
// of it. One that is not there, or is no more, has refused nothing.
func refused(err error) bool {
	return !errors.Is(err, tranca.ErrUnavailable) && (errors.Is(err, tranca.ErrRefused) || errors.Is(err, tranca.ErrUnsupported))
}
