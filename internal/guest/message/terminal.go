package message

// MethodUpdate changes a process's terminal.
const MethodUpdate = "/process.Process/Update"

// PTY is a terminal of a size in characters. A size of 0 by 0 is none given.
type PTY struct {
	Cols, Rows uint32 // 1.1, 1.2
}

func (p *PTY) append(b []byte) []byte {
	return appendMessage(b, 1, func(b []byte) []byte {
		return appendUint(appendUint(b, 1, uint64(p.Cols)), 2, uint64(p.Rows))
	})
}

func (p *PTY) field(f field) error {
	if f.num != 1 {
		return nil
	}
	return f.message(func(f field) error {
		switch f.num {
		case 1:
			return f.setUint32(&p.Cols)
		case 2:
			return f.setUint32(&p.Rows)
		}
		return nil
	})
}

// UpdateRequest gives a process's terminal another size.
type UpdateRequest struct {
	Process ProcessSelector // 1
	PTY     *PTY            // 2
}

// Append appends the message to b.
func (m *UpdateRequest) Append(b []byte) []byte {
	b = appendMessage(b, 1, m.Process.append)
	if m.PTY != nil {
		b = appendMessage(b, 2, m.PTY.append)
	}
	return b
}

// Unmarshal reads the message from b. It keeps nothing of b.
func (m *UpdateRequest) Unmarshal(b []byte) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.message(m.Process.field)
		case 2:
			m.PTY = new(PTY)
			return f.message(m.PTY.field)
		}
		return nil
	})
}
