package message

// StartResponse is one event of a process. E2B's ConnectResponse is the same.
type StartResponse struct {
	Event ProcessEvent // 1
}

// ProcessEvent is a oneof: exactly one of its members is set.
type ProcessEvent struct {
	Start     *StartEvent // 1
	Data      *DataEvent  // 2
	End       *EndEvent   // 3
	KeepAlive bool        // 4: an empty message
	// Ended is 1000, an empty message: the program has ended, and the end event
	// follows when its output was taken. It is sent only where that takes a
	// while, and at most once.
	Ended bool
}

// StartEvent is the first event.
type StartEvent struct {
	PID uint32 // 1
}

// DataEvent is a oneof: exactly one of its members is not nil.
type DataEvent struct {
	Stdout []byte // 1
	Stderr []byte // 2
	PTY    []byte // 3
}

// EndEvent is the last event.
type EndEvent struct {
	ExitCode int32  // 1: sint32, -1 if a signal ended it
	Exited   bool   // 2: false if a signal ended it
	Status   string // 3: "exit status 1", "signal 9"
	Error    string // 4: as Status, where it is not success
	// Signal is the Linux number of the signal that ended it, or 0.
	Signal uint32 // 1000
}

// Append appends the message to b.
func (m *StartResponse) Append(b []byte) []byte { return appendMessage(b, 1, m.Event.append) }

func (e *ProcessEvent) append(b []byte) []byte {
	switch {
	case e.Start != nil:
		return appendMessage(b, 1, func(b []byte) []byte { return appendUint(b, 1, uint64(e.Start.PID)) })
	case e.Data != nil:
		return appendMessage(b, 2, e.Data.append)
	case e.End != nil:
		return appendMessage(b, 3, e.End.append)
	case e.KeepAlive:
		return appendMessage(b, 4, func(b []byte) []byte { return b })
	case e.Ended:
		return appendMessage(b, 1000, func(b []byte) []byte { return b })
	}
	return b
}

func (d *DataEvent) append(b []byte) []byte {
	switch {
	case d.Stderr != nil:
		return appendBytes(b, uint32(Stderr), d.Stderr)
	case d.PTY != nil:
		return appendBytes(b, uint32(Terminal), d.PTY)
	}
	return appendBytes(b, uint32(Stdout), d.Stdout)
}

func (e *EndEvent) append(b []byte) []byte {
	b = appendSint32(b, 1, e.ExitCode)
	b = appendBool(b, 2, e.Exited)
	b = appendString(b, 3, e.Status)
	b = appendString(b, 4, e.Error)
	return appendUint(b, 1000, uint64(e.Signal))
}

// MaxDataPrefix bounds what DataPrefix, ChunkPrefix and InputPrefix return: three
// tags with their lengths.
const MaxDataPrefix = 15

// Output is the number of a member of DataEvent.
type Output uint32

// The outputs of a program.
const (
	Stdout   Output = 1
	Stderr   Output = 2
	Terminal Output = 3
)

// Of returns the event's data if it is of that output, else nil.
func (o Output) Of(d *DataEvent) []byte {
	switch o {
	case Stdout:
		return d.Stdout
	case Stderr:
		return d.Stderr
	case Terminal:
		return d.PTY
	}
	return nil
}

// DataPrefix returns what stands before n bytes of output in a StartResponse
// that holds a data event, so that the bytes need not be copied to put them
// into one.
func DataPrefix(store *[MaxDataPrefix]byte, out Output, n int) []byte {
	return nested(store[:0], n, 1, 2, uint32(out))
}

// Unmarshal reads the message from b. Data events hold slices of b. It fails
// unless exactly one event is set.
func (m *StartResponse) Unmarshal(b []byte) error {
	seen := 0
	err := eachField(b, func(f field) error {
		if f.num != 1 {
			return nil
		}
		return f.message(func(f field) error {
			if f.num <= 4 || f.num == 1000 {
				seen++
			}
			return m.Event.field(f)
		})
	})
	if err != nil || seen != 1 {
		return ErrMalformed
	}
	return nil
}

func (e *ProcessEvent) field(f field) error {
	switch f.num {
	case 1:
		e.Start = new(StartEvent)
		return f.message(func(f field) error {
			if f.num == 1 {
				return f.setUint32(&e.Start.PID)
			}
			return nil
		})
	case 2:
		e.Data = new(DataEvent)
		if err := f.message(e.Data.field); err != nil {
			return err
		}
		if !e.Data.one() {
			return ErrMalformed
		}
	case 3:
		e.End = new(EndEvent)
		return f.message(e.End.field)
	case 4:
		e.KeepAlive = true
		return f.message(func(field) error { return nil })
	case 1000:
		e.Ended = true
		return f.message(func(field) error { return nil })
	}
	return nil
}

func (d *DataEvent) field(f field) error {
	switch f.num {
	case 1:
		return f.setBytes(&d.Stdout)
	case 2:
		return f.setBytes(&d.Stderr)
	case 3:
		return f.setBytes(&d.PTY)
	}
	return nil
}

// one reports whether exactly one member is set.
func (d *DataEvent) one() bool {
	n := 0
	for _, b := range [][]byte{d.Stdout, d.Stderr, d.PTY} {
		if b != nil {
			n++
		}
	}
	return n == 1
}

func (e *EndEvent) field(f field) error {
	switch f.num {
	case 1:
		return f.setSint32(&e.ExitCode)
	case 2:
		return f.setBool(&e.Exited)
	case 3:
		return f.setString(&e.Status, MaxText)
	case 4:
		return f.setString(&e.Error, MaxText)
	case 1000:
		return f.setUint32(&e.Signal)
	}
	return nil
}
