package message

// The methods that E2B does not have.
const (
	MethodPing    = "/tranca.guest.Agent/Ping"
	MethodKillAll = "/tranca.guest.Agent/KillAll"
	MethodRead    = "/tranca.guest.Files/Read"
	MethodWrite   = "/tranca.guest.Files/Write"
	MethodSymlink = "/tranca.guest.Files/Symlink"
)

// Empty is every message without a field that anybody uses: PingRequest,
// PingResponse, ListRequest, and the answers to signals, input and removal.
type Empty struct{}

// Append appends the message to b.
func (m *Empty) Append(b []byte) []byte { return b }

// Unmarshal checks that b is a message.
func (m *Empty) Unmarshal(b []byte) error {
	return eachField(b, func(field) error { return nil })
}

// ReadRequest reads a regular file from an offset.
type ReadRequest struct {
	Path   string // 1
	Offset int64  // 2
}

// Append appends the message to b.
func (m *ReadRequest) Append(b []byte) []byte {
	return appendInt(appendString(b, 1, m.Path), 2, m.Offset)
}

// Unmarshal reads the message from b. It keeps nothing of b.
func (m *ReadRequest) Unmarshal(b []byte) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.setString(&m.Path, MaxPath)
		case 2:
			return f.setInt64(&m.Offset)
		}
		return nil
	})
}

// ReadResponse is first a message with the entry, then messages with data.
type ReadResponse struct {
	Entry *EntryInfo // 1
	Data  []byte     // 2
}

// Append appends the message to b.
func (m *ReadResponse) Append(b []byte) []byte {
	if m.Entry != nil {
		return appendMessage(b, 1, m.Entry.append)
	}
	return appendBytes(b, 2, m.Data)
}

// Unmarshal reads the message from b. Data is a slice of b. It fails unless
// exactly one member is set.
func (m *ReadResponse) Unmarshal(b []byte) error {
	err := eachField(b, func(f field) error {
		switch f.num {
		case 1:
			m.Entry = new(EntryInfo)
			return f.message(m.Entry.field)
		case 2:
			return f.setBytes(&m.Data)
		}
		return nil
	})
	if err != nil || (m.Entry == nil) == (m.Data == nil) {
		return ErrMalformed
	}
	return nil
}

// WriteRequest makes or replaces a regular file with the FileChunk messages
// that follow it up to the end of the sender's direction. With Resume it goes
// on at Offset, in a file that is there and that long, unless Offset is 0, and
// ends the file after what was written; a final link is not followed.
type WriteRequest struct {
	Path   string // 1
	Mode   uint32 // 2: permission bits of a new file
	Resume bool   // 3
	Offset int64  // 4
}

// Append appends the message to b.
func (m *WriteRequest) Append(b []byte) []byte {
	b = appendUint(appendString(b, 1, m.Path), 2, uint64(m.Mode))
	return appendInt(appendBool(b, 3, m.Resume), 4, m.Offset)
}

// Unmarshal reads the message from b. It keeps nothing of b.
func (m *WriteRequest) Unmarshal(b []byte) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.setString(&m.Path, MaxPath)
		case 2:
			return f.setUint32(&m.Mode)
		case 3:
			return f.setBool(&m.Resume)
		case 4:
			return f.setInt64(&m.Offset)
		}
		return nil
	})
}

// SymlinkRequest makes a symbolic link.
type SymlinkRequest struct {
	Target string // 1: any text, never looked at
	Path   string // 2
}

// Append appends the message to b.
func (m *SymlinkRequest) Append(b []byte) []byte {
	return appendString(appendString(b, 1, m.Target), 2, m.Path)
}

// Unmarshal reads the message from b. It keeps nothing of b.
func (m *SymlinkRequest) Unmarshal(b []byte) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.setString(&m.Target, MaxPath)
		case 2:
			return f.setString(&m.Path, MaxPath)
		}
		return nil
	})
}

// FileChunk is a piece of a file, or of what goes over a connection.
type FileChunk struct {
	Data []byte // 2, as in ReadResponse
}

// Append appends the message to b.
func (m *FileChunk) Append(b []byte) []byte { return appendBytes(b, 2, m.Data) }

// Unmarshal reads the message from b. Data is a slice of b.
func (m *FileChunk) Unmarshal(b []byte) error {
	return eachField(b, func(f field) error {
		if f.num == 2 {
			return f.setBytes(&m.Data)
		}
		return nil
	})
}

// ChunkPrefix returns what stands before n bytes in a FileChunk or a
// ReadResponse, so that the bytes need not be copied to put them into one.
func ChunkPrefix(store *[MaxDataPrefix]byte, n int) []byte {
	return appendLength(appendTag(store[:0], 2, typeBytes), n)
}

// InputPrefix returns what stands before n bytes in a StreamInputRequest, for
// stdin or a terminal.
func InputPrefix(store *[MaxDataPrefix]byte, pty bool, n int) []byte {
	if pty {
		return nested(store[:0], n, 2, 2, 2)
	}
	return nested(store[:0], n, 2, 2, 1)
}

// WriteResponse says how many bytes were written. Where a resumed write stopped
// before its end, Code and Reason say why, as a reset of the stream would.
type WriteResponse struct {
	Size   int64  // 1
	Code   uint32 // 2
	Reason string // 3
}

// Append appends the message to b.
func (m *WriteResponse) Append(b []byte) []byte {
	b = appendUint(appendInt(b, 1, m.Size), 2, uint64(m.Code))
	return appendString(b, 3, m.Reason[:min(len(m.Reason), MaxText)])
}

// Unmarshal reads the message from b. It keeps nothing of b.
func (m *WriteResponse) Unmarshal(b []byte) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.setInt64(&m.Size)
		case 2:
			return f.setUint32(&m.Code)
		case 3:
			return f.setString(&m.Reason, MaxText)
		}
		return nil
	})
}
