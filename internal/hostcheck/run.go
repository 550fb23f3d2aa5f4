package hostcheck

import (
	"context"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"tranca"
	"tranca/internal/advisory"
)

// Host is what is looked at.
type Host struct {
	// FS is the root of the host's files.
	FS fs.FS
	// Root is the same as a path, "/" but in tests, for what has to be found by
	// one: the logs of packages.
	Root string
	// UID is whose view it is.
	UID int
	// Trials are what is done, by the names of [Trials].
	Trials map[string]Trial
	// Version runs a program of the distribution with the flag --version and
	// returns its path and the beginning of what it said; the path is empty where
	// there is none.
	Version func(ctx context.Context, program string) (path, text string, err error)
	// Holes are the known ones.
	Holes *advisory.Table
	// Reports are those of the backends that can be used here.
	Reports []tranca.Report
}

// Trial does something and says in one word what came of it, and for people
// what was seen. An error means that nothing was seen.
type Trial func(ctx context.Context, h *Host) (word, seen string, err error)

// Result is what became of one check.
type Result struct {
	ID    string `json:"id"`
	Group string `json:"group"`
	// Looks says what was looked at, Seen what was there.
	Looks  string   `json:"looks"`
	Result Verdict  `json:"result"`
	Seen   string   `json:"seen"`
	Probes []string `json:"probes"`
	Risk   string   `json:"risk"`
	Mend   string   `json:"mend,omitempty"`
	// Advisories are what the version of a program says; each with what was
	// tried beside it.
	Advisories []Advisory `json:"advisories,omitempty"`
}

// Advisory is a known hole, with what was tried beside what the version says.
type Advisory struct {
	tranca.Advisory
	// Behaviour is what was tried, in words.
	Behaviour string `json:"behaviour"`
	// Probes are the hostile probes that try it from inside.
	Probes []string `json:"probes,omitempty"`
}

// patience is how long one check may take.
const patience = 5 * time.Second

// together is how many checks run at once: most wait for nothing.
const together = 4

// Run makes all checks of a list, and returns their results in its order. One
// that fails or takes too long is [Unknown]. It returns when all have ended, or
// ctx has.
func Run(ctx context.Context, l *List, h *Host) []Result {
	all := make([]Result, len(l.Rows))
	turns := make(chan struct{}, together)
	var running sync.WaitGroup
	for i := range l.Rows {
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			all[i] = l.Rows[i].run(ctx, h)
		})
	}
	running.Wait()
	h.addBehaviour(all)
	return all
}

// run makes one check.
func (c *Check) run(ctx context.Context, h *Host) Result {
	r := Result{ID: c.ID, Group: c.Group, Looks: c.Looks, Probes: c.Probes, Risk: c.Risk, Mend: c.Mend}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	type outcome struct {
		verdict    Verdict
		seen       string
		advisories []Advisory
	}
	done := make(chan outcome, 1)
	go func() {
		if c.Kind == KindEach {
			v, seen := c.each(h)
			done <- outcome{v, seen, nil}
			return
		}
		f, holes := c.look(ctx, h)
		v, seen := c.judge(f)
		done <- outcome{v, seen, holes}
	}()
	select {
	case o := <-done:
		r.Result, r.Seen, r.Advisories = o.verdict, o.seen, o.advisories
	case <-ctx.Done():
		r.Result, r.Seen = Unknown, fmt.Sprintf("no answer within %v", patience)
	}
	return r
}

// look finds what the rules judge.
func (c *Check) look(ctx context.Context, h *Host) (finding, []Advisory) {
	switch c.Kind {
	case KindFile:
		return c.file(h), nil
	case KindMount:
		return c.mount(h), nil
	case KindModule:
		return h.module(c.Module), nil
	case KindVersion:
		return c.version(ctx, h)
	case KindItem:
		return c.item(h), nil
	}
	try := h.Trials[c.Trial]
	if try == nil {
		return finding{unknown: "this program can't try it here"}, nil
	}
	value, seen, err := try(ctx, h)
	if err != nil {
		return finding{unknown: err.Error()}, nil
	}
	return finding{value: value, seen: seen}, nil
}

// item says what trial sandboxes have shown.
func (c *Check) item(h *Host) finding {
	for _, r := range h.Reports {
		if r.Backend != c.Backend {
			continue
		}
		held, seen := 0, ""
		for _, item := range c.Items {
			g := r.Find(item)
			text := g.Mechanism
			if g.Held {
				held++
			} else {
				text = "not held: " + g.Missing
			}
			seen = join(seen, "; ", string(item)+": "+text)
		}
		word := "part"
		if held == len(c.Items) {
			word = "held"
		} else if held == 0 {
			word = "none"
		}
		return finding{value: word, seen: seen}
	}
	return finding{value: "unusable", seen: "backend " + c.Backend + " can't be used here"}
}

func join(a, separator, b string) string {
	if a == "" {
		return b
	}
	return a + separator + b
}
