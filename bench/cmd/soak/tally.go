package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"tranca"
)

// tally counts what was done. Safe for concurrent use.
type tally struct {
	mu      sync.Mutex
	booting int
	ended   map[string]int
	failed  map[string]int
}

func (t *tally) end(what string) {
	t.mu.Lock()
	t.ended[what]++
	t.mu.Unlock()
}

func (t *tally) fail(err error) {
	kind := "other"
	for _, class := range []error{tranca.ErrGone, tranca.ErrClosed, tranca.ErrBusy, tranca.ErrProtocol, tranca.ErrUnavailable, errDisturbed} {
		if errors.Is(err, class) {
			kind = class.Error()
			break
		}
	}
	t.mu.Lock()
	t.failed[kind]++
	t.mu.Unlock()
}

// diedBooting counts a guest agent that died while its sandbox was made, and
// reports whether so many were killed.
func (t *tally) diedBooting() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.booting++
	return t.booting <= t.ended["sandbox killed"]
}

// String lists what was done, and how often somebody heard of a kill.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	for _, m := range []map[string]int{t.ended, t.failed} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			parts = append(parts, fmt.Sprintf("%d %s", m[k], k))
		}
	}
	return strings.Join(parts, ", ")
}

// enough says what never came to its end: then the soak has shown nothing.
func (t *tally) enough() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, what := range []string{"run", "session", "abandoned session", "output", "files", "port", "terminal", "killed client", "sandbox killed"} {
		if t.ended[what] == 0 {
			return fmt.Errorf("no %s came to its end: soak longer", what)
		}
	}
	return nil
}
