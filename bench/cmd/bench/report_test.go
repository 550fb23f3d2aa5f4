package main

import (
	"strings"
	"testing"

	"tranca"
)

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		r    row
		want string
	}{
		{row{Value: 1.2, Target: 1.5}, "met"},
		{row{Value: 1.6, Target: 1.5}, "MISSED"},
		{row{Value: 0.5, Target: 0.45, AtLeast: true}, "met"},
		{row{Value: 0.4, Target: 0.45, AtLeast: true}, "MISSED"},
		{row{Value: 9}, ""},
	} {
		if got := c.r.met(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.r, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	err := printRows(&b, []row{
		{Name: "bare", Figure: "p50 17.0 ms", Value: 1, Unit: "x bare"},
		{Name: "engine", Figure: "p50 34.0 ms", Value: 2, Target: 1.5, Unit: "x bare"},
	})
	want := `what    measured     ratio or size  target          
bare    p50 17.0 ms  1.00 x bare                    
engine  p50 34.0 ms  2.00 x bare    <= 1.50 x bare  MISSED
`
	if err != nil || b.String() != want {
		t.Errorf("%v, table\n%s want\n%s", err, b.String(), want)
	}
}

func TestAWrongAnswerIsNotFast(t *testing.T) {
	if err := runs("/bin/echo", "41")(t.Context()); err == nil {
		t.Error("41 is taken for 42")
	}
	if err := runs("/bin/echo", "42")(t.Context()); err != nil {
		t.Error(err)
	}
	r := &tranca.Result{Exit: tranca.Exit{Reason: tranca.EndWall, Code: -1}, Stdout: []byte(answer)}
	if checkAnswer(r) == nil {
		t.Error("a run that a limit ended is taken for an answer")
	}
}
