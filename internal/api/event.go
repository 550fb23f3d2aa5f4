package api

import (
	"encoding/base64"
	"fmt"

	"tranca"
)

// EventType is the kind of an [Event].
type EventType string

// The events. A run has: started, output, one result or error. A process has:
// process, output and dropped, one exit or error. A watch has: watching, file,
// one error. A keepalive may come at any time.
const (
	EventStarted   EventType = "started"
	EventStdout    EventType = "stdout"
	EventStderr    EventType = "stderr"
	EventDropped   EventType = "dropped"
	EventResult    EventType = "result"
	EventProcess   EventType = "process"
	EventExit      EventType = "exit"
	EventWatching  EventType = "watching"
	EventFile      EventType = "file"
	EventError     EventType = "error"
	EventKeepAlive EventType = "keepalive"
)

// Event is one element of a stream. Which fields are set goes by its type.
type Event struct {
	Type EventType `json:"type"`
	// ID is the sandbox: started.
	ID tranca.ID `json:"id,omitempty"`
	// Data is output: stdout, stderr. As a line of JSON it is text where it is
	// valid UTF-8, else base64; Encoding says which.
	Data     string          `json:"data,omitempty"`
	Encoding tranca.Encoding `json:"encoding,omitempty"`
	// Stream and Bytes say what is not kept any more: dropped.
	Stream string `json:"stream,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	// Result is set with result. All output went before it as events, so its
	// stdout and stderr are empty; StdoutBytes and StderrBytes say how many
	// bytes of those events belong to the result.
	Result      *tranca.Result `json:"result,omitempty"`
	StdoutBytes int64          `json:"stdout_bytes,omitempty"`
	StderrBytes int64          `json:"stderr_bytes,omitempty"`
	// Limits were in force: result.
	Limits *Limits `json:"limits,omitempty"`
	// Process is set with process and exit.
	Process *tranca.ProcessInfo `json:"process,omitempty"`
	// File is set with file.
	File *tranca.FileEvent `json:"file,omitempty"`
	// Error is set with error, and is the last event.
	Error *Problem `json:"error,omitempty"`
}

// Output returns the bytes that an event of output as a line of JSON carries.
// The error wraps [tranca.ErrProtocol].
func (e *Event) Output() ([]byte, error) {
	switch e.Encoding {
	case tranca.EncodingUTF8:
		return []byte(e.Data), nil
	case tranca.EncodingBase64:
		b, err := base64.StdEncoding.DecodeString(e.Data)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", tranca.ErrProtocol, e.Type, err)
		}
		return b, nil
	}
	return nil, fmt.Errorf("%w: %s in encoding %q", tranca.ErrProtocol, e.Type, e.Encoding)
}
