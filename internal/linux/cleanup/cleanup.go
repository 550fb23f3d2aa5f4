// Package cleanup undoes the steps of something that was only half made.
package cleanup

// Stack holds what is to be undone, last first. The zero value is empty. Not
// safe for concurrent use.
type Stack struct{ undo []func() }

// Add puts a step on the stack.
func (s *Stack) Add(undo func()) { s.undo = append(s.undo, undo) }

// Clean undoes all steps and forgets them.
func (s *Stack) Clean() {
	for i := len(s.undo) - 1; i >= 0; i-- {
		s.undo[i]()
	}
	s.undo = nil
}

// Release forgets all steps: the whole is made.
func (s *Stack) Release() { s.undo = nil }
