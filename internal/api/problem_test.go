package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"tranca"
)

// TestClassesComeBack shows that an error of each class is one of that class
// on the other side too.
func TestClassesComeBack(t *testing.T) {
	for _, class := range []error{
		tranca.ErrInvalid, tranca.ErrRefused, tranca.ErrUnavailable, tranca.ErrNotFound, tranca.ErrExists, tranca.ErrGone,
		tranca.ErrBusy, tranca.ErrClosed, tranca.ErrUnsupported, tranca.ErrProtocol, tranca.ErrNoSpace,
	} {
		p := ProblemOf(fmt.Errorf("it: %w", class))
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var other Problem
		if err := json.Unmarshal(b, &other); err != nil {
			t.Fatal(err)
		}
		if err := error(&Error{other}); !errors.Is(err, class) || p.Status < 400 || p.Title == "" || p.Type != "urn:tranca:problem:"+string(p.Code) {
			t.Errorf("%v became %s", class, b)
		}
	}
}

func TestRefusalComesBack(t *testing.T) {
	refusal := &tranca.RefusalError{Unavailable: true, Problems: []tranca.Problem{{Item: tranca.ItemMemory, Missing: "m", Mend: "mend it"}}}
	p := ProblemOf(fmt.Errorf("it: %w", refusal))
	if p.Code != CodeUnavailable || p.Fix != "mend it" {
		t.Errorf("%+v", p)
	}
	var got *tranca.RefusalError
	if err := error(&Error{p}); !errors.As(err, &got) || !errors.Is(err, tranca.ErrUnavailable) || !errors.Is(err, tranca.ErrRefused) || got.Problems[0].Item != tranca.ItemMemory {
		t.Errorf("%v", got)
	}
}

func TestProblemOfOthers(t *testing.T) {
	for want, err := range map[Code]error{
		CodeTimeout:     context.DeadlineExceeded,
		CodeInternal:    errors.New("x"),
		CodeConflict:    fmt.Errorf("it: %w", Errorf(CodeConflict, "c")),
		CodeUnavailable: errors.Join(context.DeadlineExceeded, tranca.ErrUnavailable),
	} {
		if got := ProblemOf(err); got.Code != want {
			t.Errorf("%v is %+v, want %s", err, got, want)
		}
	}
	if p := NewProblem("from another time", ""); p.Code != CodeInternal {
		t.Errorf("%+v", p)
	}
	if len(Codes()) != len(classes) {
		t.Error("a code is missing")
	}
}

func TestDefaultSocket(t *testing.T) {
	for _, tc := range []struct {
		runtime string
		uid     int
		want    string
	}{
		{"/run/user/5", 5, "/run/user/5/tranca/tranca.sock"},
		{"/run/user/0", 0, "/run/user/0/tranca/tranca.sock"},
		{"", 0, "/run/tranca/tranca.sock"},
		{"relative", 0, "/run/tranca/tranca.sock"},
		{"", 5, "/tmp/tranca-5/tranca.sock"},
	} {
		if got := defaultSocket(tc.runtime, tc.uid, "/tmp"); got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
}

func TestNarrowingComesBack(t *testing.T) {
	want := tranca.Narrowing{
		Floor: tranca.LevelProcess, Backend: "b", Wall: time.Second, CPUTime: time.Millisecond, MilliCPUs: 1, Memory: 2,
		Processes: 3, OpenFiles: 4, FileSize: 5, DiskSize: 6, DiskInodes: 7, Output: 8, Workdir: "/w",
	}
	got, err := NarrowingOf(want).Narrowing()
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, %v", got, err)
	}
	if NarrowingOf(tranca.Narrowing{Wall: 1}).WallMS != 1 {
		t.Error("a short time became none")
	}
	for _, n := range []Narrowing{{Floor: "x"}, {WallMS: -1}, {CPUTimeMS: 1 << 62}} {
		if _, err := n.Narrowing(); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%+v: %v", n, err)
		}
	}
}
