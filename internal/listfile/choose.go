package listfile

import (
	"errors"
	"fmt"

	"tranca"
)

// BuiltIn is the source of a list that came with the program.
const BuiltIn = "built in"

// Reader reads the file at a path that an operator wrote; its errors have the
// classes of package ownfile.
type Reader func(path string) ([]byte, error)

// Choose returns which of two lists is in force: the operator's at the path,
// where it is valid and its date is newer, else the one that is built in. note
// says why a file that is there is not used, and is empty where there is none.
func Choose[R any](builtIn List[R], path string, read Reader, parse func(name string, data []byte) (List[R], error)) (l List[R], note string) {
	l, err := named(builtIn, path, read, parse)
	switch {
	case errors.Is(err, tranca.ErrNotFound):
		return builtIn, ""
	case err != nil:
		return builtIn, fmt.Sprintf("not used: %v", err)
	case l.Source == BuiltIn:
		return builtIn, older(path, builtIn.Date)
	}
	return l, ""
}

// ChooseNamed is Choose for a file that the operator named just now: one that
// can't be used is an error.
func ChooseNamed[R any](builtIn List[R], path string, read Reader, parse func(name string, data []byte) (List[R], error)) (l List[R], note string, err error) {
	l, err = named(builtIn, path, read, parse)
	if err == nil && l.Source == BuiltIn {
		note = older(path, builtIn.Date)
	}
	return l, note, err
}

func older(path, date string) string {
	return fmt.Sprintf("not used: %s is no newer than the list that is built in, of %s", path, date)
}

func named[R any](builtIn List[R], path string, read Reader, parse func(name string, data []byte) (List[R], error)) (List[R], error) {
	data, err := read(path)
	if err != nil {
		return List[R]{}, err
	}
	l, err := parse(path, data)
	if err != nil {
		return List[R]{}, err
	}
	if l.Date <= builtIn.Date {
		return builtIn, nil
	}
	return l, nil
}
