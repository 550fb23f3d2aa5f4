package bootspec

// Writable is a mount that programs may write to.
type Writable struct {
	Path string
	// Size and Inodes are the most that its file system may hold; 0 is a
	// mount that the operator lets be unbounded.
	Size, Inodes uint64
}

// Same says which file or folder a path must show, by the host's numbers.
type Same struct {
	Path     string
	Dev, Ino uint64
}

func (s *Spec) marshalContained(e *encoder) {
	e.flag(26, s.Insulate)
	e.num(27, uint64(s.InsideUID))
	e.num(28, uint64(s.InsideGID))
	e.flag(29, s.Audit)
	for _, w := range s.Writable {
		e.msg(30, func(e *encoder) { e.str(1, w.Path); e.num(2, w.Size); e.num(3, w.Inodes) })
	}
	for _, m := range s.Same {
		e.msg(31, func(e *encoder) { e.str(1, m.Path); e.num(2, m.Dev); e.num(3, m.Ino) })
	}
	e.num(32, uint64(s.Tasks))
	e.flag(33, s.Filtered)
	for _, p := range s.Hidden {
		e.str(34, p)
	}
}

func (s *Spec) contained(field int, v uint64, data []byte) error {
	switch field {
	case 26:
		s.Insulate = v != 0
	case 27:
		s.InsideUID = uint32(v)
	case 28:
		s.InsideGID = uint32(v)
	case 29:
		s.Audit = v != 0
	case 30:
		path, a, b, err := named(data)
		s.Writable = append(s.Writable, Writable{path, a, b})
		return err
	case 31:
		path, a, b, err := named(data)
		s.Same = append(s.Same, Same{path, a, b})
		return err
	case 32:
		s.Tasks = int(v)
	case 33:
		s.Filtered = v != 0
	case 34:
		s.Hidden = append(s.Hidden, string(data))
	default:
		return errMalformed
	}
	return nil
}

// named reads a path and two numbers.
func named(data []byte) (path string, a, b uint64, err error) {
	err = walk(data, func(n int, v uint64, d []byte) error {
		switch n {
		case 1:
			path = string(d)
		case 2:
			a = v
		case 3:
			b = v
		}
		return nil
	})
	return path, a, b, err
}
