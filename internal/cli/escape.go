package cli

// escapes finds the sequences that mean tranca in what a person types: a tilde
// at the beginning of a line and one more key.
type escapes struct {
	midline bool
	tilde   bool // one is held back
}

const escapeHelp = "\r\n~.  leave; the program goes on\r\n~?  this text\r\n~~  a tilde\r\n"

// filter returns what is meant for the program, and the key of the first
// sequence in p, or 0. What follows that of leaving is dropped.
func (e *escapes) filter(p []byte) (typed []byte, command byte) {
	for _, b := range p {
		switch {
		case e.tilde:
			e.tilde = false
			switch b {
			case '.':
				return typed, b
			case '?':
				command = b
				continue
			case '~':
			default:
				typed = append(typed, '~')
			}
		case b == '~' && !e.midline:
			e.tilde = true
			continue
		}
		typed = append(typed, b)
		e.midline = b != '\r' && b != '\n'
	}
	return typed, command
}
