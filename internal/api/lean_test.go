package api

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tranca"
)

func TestLeanEventsAreTheSameInJSON(t *testing.T) {
	for _, ev := range []Event{
		{Type: EventStarted, ID: "i1"}, {Type: EventStarted}, {Type: EventKeepAlive},
		{Type: EventResult, Result: &tranca.Result{ID: "i1", Exit: tranca.Exit{Reason: tranca.EndExited}}, StdoutBytes: 1, StderrBytes: 2, Limits: &Limits{WallMS: 3}},
		{Type: EventResult},
		{Type: EventDropped, Stream: "stdout", Bytes: 4},
		{Type: EventExit, Process: &tranca.ProcessInfo{ID: "p1", Exit: &tranca.Exit{}}},
	} {
		want, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		got, err := marshalEvent(ev)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s, want %s: %v", got, want, err)
		}
		var lean, full Event
		if err := unmarshalEvent(want, &lean); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(want, &full); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(full, lean); diff != "" {
			t.Errorf("%s: %s", want, diff)
		}
	}
}
