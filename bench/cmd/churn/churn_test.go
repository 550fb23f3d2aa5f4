package main

import (
	"math/rand/v2"
	"testing"

	"tranca"
)

func TestAThirdIsKilled(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	killed, seen := 0, map[string]bool{}
	for n := range 300 {
		j := pick(n, rnd)
		seen[j.name] = true
		if j.name == "killed" {
			killed++
		}
		if j.right == nil || j.code == "" {
			t.Fatalf("job %+v can't be wrong", j)
		}
	}
	if killed != 100 || len(seen) != len(whole)+1 {
		t.Errorf("%d of 300 killed, %d kinds of %d", killed, len(seen), len(whole)+1)
	}
}

func TestWrongEndsAreSeen(t *testing.T) {
	wall := &tranca.Result{Exit: tranca.Exit{Reason: tranca.EndWall, Code: -1}}
	if prints("42\n")(wall) == nil || ends(tranca.EndMemory, 0)(wall) == nil {
		t.Error("a run that the clock ended is taken for another end")
	}
	three := &tranca.Result{Exit: tranca.Exit{Reason: tranca.EndExited, Code: 3}}
	if ends(tranca.EndExited, 3)(three) != nil || ends(tranca.EndExited, 0)(three) == nil {
		t.Error("codes are not told apart")
	}
}
