package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tranca"
)

// waitFor waits until so many stand in the line.
func waitFor(t *testing.T, q *queue, n int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		q.mu.Lock()
		have := q.waiting.Len()
		q.mu.Unlock()
		if have == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d wait, want %d", have, n)
		}
	}
}

func TestQueueIsFair(t *testing.T) {
	q := newQueue(onePlace, 10)
	if err := q.enter(t.Context(), onePlace); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var order []int
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			if err := q.enter(t.Context(), onePlace); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			q.leave(onePlace)
		})
		waitFor(t, q, i+1)
	}
	if err := q.enter(t.Context(), onePlace); !errors.Is(err, tranca.ErrBusy) {
		t.Errorf("a full queue: %v", err)
	}
	q.leave(onePlace)
	all.Wait()
	if !slices.IsSorted(order) || len(order) != 10 {
		t.Errorf("order %v", order)
	}
}

func TestQueueCancelAndClose(t *testing.T) {
	q := newQueue(onePlace, 10)
	if err := q.enter(t.Context(), onePlace); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone, closed := make(chan error, 1), make(chan error, 1)
	go func() { gone <- q.enter(ctx, onePlace) }()
	waitFor(t, q, 1)
	go func() { closed <- q.enter(t.Context(), onePlace) }()
	waitFor(t, q, 2)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	waitFor(t, q, 1)
	q.close()
	if err := <-closed; !errors.Is(err, tranca.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	q.leave(onePlace)
	if err := q.enter(t.Context(), onePlace); !errors.Is(err, tranca.ErrClosed) {
		t.Errorf("after it was closed: %v", err)
	}
}

// TestQueueNeverLosesAPlace lets many come, give up and leave at random.
func TestQueueNeverLosesAPlace(t *testing.T) {
	const places = 3
	q := newQueue(need{places: places}, 1000)
	var mu sync.Mutex
	inside := 0
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7)*time.Millisecond)
			defer cancel()
			if q.enter(ctx, onePlace) != nil {
				return
			}
			mu.Lock()
			inside++
			if inside > places {
				t.Errorf("%d at once", inside)
			}
			mu.Unlock()
			time.Sleep(time.Duration(i%3) * time.Millisecond)
			mu.Lock()
			inside--
			mu.Unlock()
			q.leave(onePlace)
		})
	}
	all.Wait()
	if used, waiting := q.state(); used != (need{}) || waiting != 0 {
		t.Errorf("%+v are held, %d wait", used, waiting)
	}
}

func TestWholeRunes(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "abc": "abc", "ab\xc3": "ab", "ab\xe2\x82": "ab", "ab\xf0\x9f\x98": "ab", "ü": "ü",
		"\xff\xc3": "\xff\xc3", "ab\xff": "ab\xff", "\x80\x80\x80\x80": "\x80\x80\x80\x80", "a\xc3\xc3": "a\xc3\xc3",
	} {
		if got := string(wholeRunes([]byte(in))); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		cut := rapid.IntRange(0, len(text)).Draw(t, "cut")
		got := string(wholeRunes([]byte(text[:cut])))
		if got != text[:len(got)] || cut-len(got) > 3 {
			t.Fatalf("%q cut at %d became %q", text, cut, got)
		}
	})
}
