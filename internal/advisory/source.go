package advisory

import (
	"sync"

	"tranca/internal/listfile"
)

// InForce finds the table that counts on this host when it is first asked for:
// an operator's, where it is valid and newer than the one that is built in. A
// nil *InForce is the built-in table. Safe for concurrent use.
type InForce struct {
	once  sync.Once
	find  func() *Table
	table *Table
}

// Installed looks for an operator's table at the path.
func Installed(path string, read listfile.Reader) *InForce {
	return &InForce{find: func() *Table {
		return tableOf(tables.Installed(path, read))
	}}
}

// Named takes the table that an operator named just now. One that can't be used
// is an error; one that is no newer than the built-in table leaves that in
// force, with a note.
func Named(path string, read listfile.Reader) (*InForce, error) {
	l, err := tables.Named(path, read)
	if err != nil {
		return nil, err
	}
	return &InForce{find: func() *Table { return tableOf(l) }}, nil
}

// Table returns the table in force.
func (f *InForce) Table() *Table {
	if f == nil {
		return BuiltIn()
	}
	f.once.Do(func() { f.table = f.find() })
	return f.table
}

// String says which table that is.
func (f *InForce) String() string {
	t := f.Table()
	s := t.Date + ", " + t.Source
	if t.Note != "" {
		s += "; " + t.Note
	}
	return s
}
