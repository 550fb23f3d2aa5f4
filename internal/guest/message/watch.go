package message

// MethodWatchDir is filesystem.Filesystem's.
const MethodWatchDir = "/filesystem.Filesystem/WatchDir"

// EventType is what happened to a path.
type EventType uint32

// The types of event. A rename is a Rename with the old path, and a Create with
// the new one where that is watched too.
const (
	EventCreate EventType = 1
	EventWrite  EventType = 2
	EventRemove EventType = 3
	EventRename EventType = 4
	EventChmod  EventType = 5
)

// WatchDirRequest watches a folder and, where Recursive is set, all below it.
// What else E2B can ask for (the entry in each event, network mounts) is
// skipped.
type WatchDirRequest struct {
	Path      string // 1
	Recursive bool   // 2
}

// Append appends the message to b.
func (m *WatchDirRequest) Append(b []byte) []byte {
	return appendBool(appendString(b, 1, m.Path), 2, m.Recursive)
}

// Unmarshal reads the message from b. It keeps nothing of b.
func (m *WatchDirRequest) Unmarshal(b []byte) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.setString(&m.Path, MaxPath)
		case 2:
			return f.setBool(&m.Recursive)
		}
		return nil
	})
}

// FilesystemEvent is one change. Name is the path relative to the folder that
// is watched.
type FilesystemEvent struct {
	Name string    // 1
	Type EventType // 2
}

func (e *FilesystemEvent) append(b []byte) []byte {
	return appendUint(appendString(b, 1, e.Name), 2, uint64(e.Type))
}

func (e *FilesystemEvent) field(f field) error {
	switch f.num {
	case 1:
		return f.setString(&e.Name, MaxPath)
	case 2:
		return f.setUint32((*uint32)(&e.Type))
	}
	return nil
}

// WatchDirResponse is one of Start, an event, a keepalive, or Overflow. Start
// comes first and once: changes from then on are told. After Overflow some were
// not, and the folder has to be looked at again. A stream of them ends only
// with an error.
type WatchDirResponse struct {
	Start      bool             // 1: StartEvent, which is empty
	Filesystem *FilesystemEvent // 2
	Keepalive  bool             // 3: KeepAlive, which is empty
	Overflow   bool             // 1000: empty
}

// Append appends the message to b.
func (m *WatchDirResponse) Append(b []byte) []byte {
	switch {
	case m.Start:
		return appendElement(b, 1, "")
	case m.Filesystem != nil:
		return appendMessage(b, 2, m.Filesystem.append)
	case m.Keepalive:
		return appendElement(b, 3, "")
	case m.Overflow:
		return appendElement(b, 1000, "")
	}
	return b
}

// Unmarshal reads the message from b. It keeps nothing of b. Exactly one member
// is set.
func (m *WatchDirResponse) Unmarshal(b []byte) error {
	members := 0
	empty := func(f field, v *bool) error {
		*v = true
		members++
		return f.message(func(field) error { return nil })
	}
	err := eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return empty(f, &m.Start)
		case 2:
			members++
			m.Filesystem = &FilesystemEvent{}
			return f.message(m.Filesystem.field)
		case 3:
			return empty(f, &m.Keepalive)
		case 1000:
			return empty(f, &m.Overflow)
		}
		return nil
	})
	if err == nil && members != 1 {
		return ErrMalformed
	}
	return err
}
