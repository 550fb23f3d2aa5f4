package api

import (
	"bytes"
	"encoding/json"

	"tranca"
)

// The events of every run have types of their own. They are the same in JSON,
// but encoding/json spares itself the rest of [Event], which a process that
// does one run has no other use for: that costs it a millisecond.

type briefEvent struct {
	Type EventType `json:"type"`
	ID   tranca.ID `json:"id,omitempty"`
}

type resultEvent struct {
	Type        EventType      `json:"type"`
	Result      *tranca.Result `json:"result,omitempty"`
	StdoutBytes int64          `json:"stdout_bytes,omitempty"`
	StderrBytes int64          `json:"stderr_bytes,omitempty"`
	Limits      *Limits        `json:"limits,omitempty"`
}

func marshalEvent(ev Event) ([]byte, error) {
	switch ev.Type {
	case EventStarted, EventKeepAlive:
		return json.Marshal(briefEvent{ev.Type, ev.ID})
	case EventResult:
		return json.Marshal(resultEvent{ev.Type, ev.Result, ev.StdoutBytes, ev.StderrBytes, ev.Limits})
	}
	return json.Marshal(ev)
}

func unmarshalEvent(b []byte, ev *Event) error {
	is := func(t EventType) bool { return bytes.HasPrefix(b, []byte(`{"type":"`+t+`"`)) }
	switch {
	case is(EventStarted), is(EventKeepAlive):
		var brief briefEvent
		err := json.Unmarshal(b, &brief)
		ev.Type, ev.ID = brief.Type, brief.ID
		return err
	case is(EventResult):
		var r resultEvent
		err := json.Unmarshal(b, &r)
		*ev = Event{Type: r.Type, Result: r.Result, StdoutBytes: r.StdoutBytes, StderrBytes: r.StderrBytes, Limits: r.Limits}
		return err
	}
	return json.Unmarshal(b, ev)
}
