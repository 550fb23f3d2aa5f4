package message

// The bounds of the filesystem messages.
const (
	// MaxName bounds one file's name in bytes.
	MaxName = 255
	// MaxPage bounds the entries of one ListDirResponse, MaxPageBytes their
	// names and paths together.
	MaxPage      = 256
	MaxPageBytes = 64 << 10
	// MaxListed bounds the entries of a whole listing.
	MaxListed = 100_000
)

// The methods of filesystem.Filesystem.
const (
	MethodStat    = "/filesystem.Filesystem/Stat"
	MethodMakeDir = "/filesystem.Filesystem/MakeDir"
	MethodMove    = "/filesystem.Filesystem/Move"
	MethodListDir = "/filesystem.Filesystem/ListDir"
	MethodRemove  = "/filesystem.Filesystem/Remove"
)

// FileType is what an entry is.
type FileType uint32

// The file types. Unspecified is a device, FIFO or socket.
const (
	FileTypeUnspecified FileType = 0
	FileTypeFile        FileType = 1
	FileTypeDirectory   FileType = 2
	FileTypeSymlink     FileType = 3
)

// EntryInfo describes a path. Permissions (6), owner (7), group (8) and
// metadata (11) are names for people, which the agent doesn't know; they are
// skipped.
type EntryInfo struct {
	Name          string    // 1
	Type          FileType  // 2
	Path          string    // 3
	Size          int64     // 4
	Mode          uint32    // 5: permission bits
	ModifiedTime  Timestamp // 9
	SymlinkTarget string    // 10
	UID           uint32    // 1000
	GID           uint32    // 1001
}

// Timestamp is google.protobuf.Timestamp.
type Timestamp struct {
	Seconds int64 // 1
	Nanos   int32 // 2
}

func (t *Timestamp) append(b []byte) []byte {
	return appendInt(appendInt(b, 1, t.Seconds), 2, int64(t.Nanos))
}

func (t *Timestamp) field(f field) error {
	switch f.num {
	case 1:
		return f.setInt64(&t.Seconds)
	case 2:
		return f.setInt32(&t.Nanos)
	}
	return nil
}

func (e *EntryInfo) append(b []byte) []byte {
	b = appendString(b, 1, e.Name)
	b = appendUint(b, 2, uint64(e.Type))
	b = appendString(b, 3, e.Path)
	b = appendInt(b, 4, e.Size)
	b = appendUint(b, 5, uint64(e.Mode))
	b = appendMessage(b, 9, e.ModifiedTime.append)
	b = appendString(b, 10, e.SymlinkTarget)
	b = appendUint(b, 1000, uint64(e.UID))
	return appendUint(b, 1001, uint64(e.GID))
}

func (e *EntryInfo) field(f field) error {
	switch f.num {
	case 1:
		return f.setString(&e.Name, MaxName)
	case 2:
		return f.setUint32((*uint32)(&e.Type))
	case 3:
		return f.setString(&e.Path, MaxPath)
	case 4:
		return f.setInt64(&e.Size)
	case 5:
		return f.setUint32(&e.Mode)
	case 9:
		return f.message(e.ModifiedTime.field)
	case 10:
		return f.setString(&e.SymlinkTarget, MaxPath)
	case 1000:
		return f.setUint32(&e.UID)
	case 1001:
		return f.setUint32(&e.GID)
	}
	return nil
}

// PathRequest is StatRequest, MakeDirRequest and RemoveRequest: they are alike.
type PathRequest struct {
	Path string // 1
}

// Append appends the message to b.
func (m *PathRequest) Append(b []byte) []byte { return appendString(b, 1, m.Path) }

// Unmarshal reads the message from b. It keeps nothing of b.
func (m *PathRequest) Unmarshal(b []byte) error {
	return eachField(b, func(f field) error {
		if f.num == 1 {
			return f.setString(&m.Path, MaxPath)
		}
		return nil
	})
}

// MoveRequest renames a path.
type MoveRequest struct {
	Source      string // 1
	Destination string // 2
}

// Append appends the message to b.
func (m *MoveRequest) Append(b []byte) []byte {
	return appendString(appendString(b, 1, m.Source), 2, m.Destination)
}

// Unmarshal reads the message from b. It keeps nothing of b.
func (m *MoveRequest) Unmarshal(b []byte) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.setString(&m.Source, MaxPath)
		case 2:
			return f.setString(&m.Destination, MaxPath)
		}
		return nil
	})
}

// ListDirRequest lists a folder. A depth of 0 means 1.
type ListDirRequest struct {
	Path  string // 1
	Depth uint32 // 2
}

// Append appends the message to b.
func (m *ListDirRequest) Append(b []byte) []byte {
	return appendUint(appendString(b, 1, m.Path), 2, uint64(m.Depth))
}

// Unmarshal reads the message from b. It keeps nothing of b.
func (m *ListDirRequest) Unmarshal(b []byte) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.setString(&m.Path, MaxPath)
		case 2:
			return f.setUint32(&m.Depth)
		}
		return nil
	})
}

// EntryResponse is StatResponse, MakeDirResponse and MoveResponse: they are
// alike.
type EntryResponse struct {
	Entry EntryInfo // 1
}

// Append appends the message to b.
func (m *EntryResponse) Append(b []byte) []byte { return appendMessage(b, 1, m.Entry.append) }

// Unmarshal reads the message from b. It keeps nothing of b.
func (m *EntryResponse) Unmarshal(b []byte) error {
	return eachField(b, func(f field) error {
		if f.num == 1 {
			return f.message(m.Entry.field)
		}
		return nil
	})
}

// ListDirResponse is one page of a listing. Over package wire there are as
// many as it takes; over Connect there is one.
type ListDirResponse struct {
	Entries []EntryInfo // 1
}

// Append appends the message to b.
func (m *ListDirResponse) Append(b []byte) []byte {
	for i := range m.Entries {
		b = appendMessage(b, 1, m.Entries[i].append)
	}
	return b
}

// Unmarshal reads the message from b. It keeps nothing of b.
func (m *ListDirResponse) Unmarshal(b []byte) error {
	return eachField(b, func(f field) error {
		if f.num != 1 {
			return nil
		}
		if len(m.Entries) >= MaxPage {
			return ErrMalformed
		}
		m.Entries = append(m.Entries, EntryInfo{})
		return f.message(m.Entries[len(m.Entries)-1].field)
	})
}
