package listfile

import (
	"errors"
	"fmt"
	"sync"

	"tranca"
)

// BuiltIn is the source of a list that came with the program.
const BuiltIn = "built in"

// Reader reads the file at a path that an operator wrote; its errors have the
// classes of package ownfile.
type Reader func(path string) ([]byte, error)

// Kind is one kind of list: what its files say they are, how a row is checked,
// and the list of the kind that came with the program.
type Kind[R any] struct {
	schema  string
	checker func() func(*R) error
	builtIn func() *List[R]
}

// New returns a kind of list. checker returns what looks at each row of one
// list, in their order. The list that is built in is read once, when it is first
// needed; one that can't be read is a fault of the program, and a panic.
func New[R any](schema string, builtIn []byte, checker func() func(*R) error) *Kind[R] {
	k := &Kind[R]{schema: schema, checker: checker}
	k.builtIn = sync.OnceValue(func() *List[R] {
		l, err := k.Parse(BuiltIn, builtIn)
		if err != nil {
			panic(schema + ": " + err.Error()) // a test of each kind reads it
		}
		return l
	})
	return k
}

// BuiltIn returns the list that came with the program.
func (k *Kind[R]) BuiltIn() *List[R] { return k.builtIn() }

// Parse reads a list of the kind; see [Parse].
func (k *Kind[R]) Parse(name string, data []byte) (*List[R], error) {
	return Parse(name, k.schema, data, k.checker())
}

// Installed returns the list that is in force: the operator's at the path, where
// it is valid and its date is newer, else the one that is built in, with a note
// where there is a file.
func (k *Kind[R]) Installed(path string, read Reader) *List[R] {
	l, err := k.Named(path, read)
	switch {
	case errors.Is(err, tranca.ErrNotFound):
		return k.builtIn()
	case err != nil:
		return k.noted(fmt.Sprintf("not used: %v", err))
	}
	return l
}

// Named is Installed for a file that the operator named just now: one that
// can't be used is an error.
func (k *Kind[R]) Named(path string, read Reader) (*List[R], error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	l, err := k.Parse(path, data)
	if err != nil {
		return nil, err
	}
	if date := k.builtIn().Date; l.Date <= date {
		return k.noted(fmt.Sprintf("not used: %s is no newer than the list that is built in, of %s", path, date)), nil
	}
	return l, nil
}

// noted is the list that is built in, with a note.
func (k *Kind[R]) noted(note string) *List[R] {
	l := *k.builtIn()
	l.Note = note
	return &l
}
