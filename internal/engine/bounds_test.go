package engine

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestQueueKeepsItsBounds lets many needs come, give up at any moment and
// leave: the sums are never above their bounds, nothing is lost, and whoever
// does not give up gets his turn.
func TestQueueKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := need{
			places: rapid.Int64Range(1, 5).Draw(t, "places"),
			memory: rapid.SampledFrom([]int64{0, 100, 1000}).Draw(t, "memory"),
			cpus:   rapid.SampledFrom([]int64{0, 50}).Draw(t, "cpus"),
		}
		q := newQueue(bound, 1000)
		var mu sync.Mutex
		var held need
		var all sync.WaitGroup
		for range rapid.IntRange(1, 60).Draw(t, "callers") {
			n := need{1, rapid.Int64Range(1, 100).Draw(t, "need"), rapid.Int64Range(1, 50).Draw(t, "cpu")}
			patience := time.Duration(rapid.IntRange(-1, 400).Draw(t, "patience")) * time.Microsecond
			all.Go(func() {
				ctx := context.Background()
				if patience >= 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, patience)
					defer cancel()
				}
				if err := q.enter(ctx, n); err != nil {
					if patience < 0 {
						t.Errorf("one that waits without end got %v", err)
					}
					return
				}
				mu.Lock()
				held = held.plus(n)
				if !(need{}).within(bound, held) {
					t.Errorf("%+v held, bound %+v", held, bound)
				}
				mu.Unlock()
				time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
				mu.Lock()
				held = held.minus(n)
				mu.Unlock()
				q.leave(n)
			})
		}
		all.Wait()
		if used, waiting := q.state(); used != (need{}) || waiting != 0 {
			t.Fatalf("%+v is held and %d wait when all have gone", used, waiting)
		}
	})
}

// TestQueueIsNotOvertaken: small needs that would fit wait behind a large one,
// and go on at once when it gives up.
func TestQueueIsNotOvertaken(t *testing.T) {
	q := newQueue(need{places: 10, memory: 100}, 10)
	some := need{places: 1, memory: 60}
	if err := q.enter(t.Context(), some); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	large, small := make(chan error, 1), make(chan error, 1)
	go func() { large <- q.enter(ctx, need{1, 80, 0}) }()
	waitFor(t, q, 1)
	go func() { small <- q.enter(t.Context(), need{1, 10, 0}) }()
	waitFor(t, q, 2)
	select {
	case err := <-small:
		t.Fatalf("it was overtaken: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	cancel()
	if err := <-large; err == nil {
		t.Error("the large one got in")
	}
	if err := <-small; err != nil {
		t.Error(err)
	}
	if used, _ := q.state(); used != (need{2, 70, 0}) {
		t.Errorf("%+v is held", used)
	}
}

// TestRing compares a ring with all that was written.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := ring{max: rapid.IntRange(1, 9000).Draw(t, "max")}
		var all []byte
		for i := range rapid.IntRange(0, 30).Draw(t, "writes") {
			p := make([]byte, rapid.IntRange(0, 5000).Draw(t, "size"))
			for k := range p {
				p[k] = byte(i*31 + k)
			}
			all = append(all, p...)
			r.add(p)
			check(t, &r, all)
		}
		r.seal()
		check(t, &r, all)
		if len(r.buf) != int(r.end-r.start) {
			t.Fatalf("a buffer of %d for %d bytes", len(r.buf), r.end-r.start)
		}
		r.drop()
		if r.from(r.start) != nil || r.start != r.end || r.buf != nil {
			t.Fatal("something is left")
		}
	})
}

func check(t *rapid.T, r *ring, all []byte) {
	if r.end != int64(len(all)) || r.end-r.start != int64(min(len(all), r.max)) {
		t.Fatalf("offsets %d to %d after %d bytes, bound %d", r.start, r.end, len(all), r.max)
	}
	var got []byte
	for at := r.start; at < r.end; at = r.start + int64(len(got)) {
		piece := r.from(at)
		if len(piece) == 0 {
			t.Fatalf("nothing at %d", at)
		}
		got = append(got, piece...)
	}
	if string(got) != string(all[r.start:]) {
		t.Fatal("other bytes are kept")
	}
	if len(r.buf) > r.max {
		t.Fatalf("%d bytes of memory, bound %d", len(r.buf), r.max)
	}
}
