package changeset

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"tranca"
)

// The list of a set is a line of JSON for the set, one for each entry, and a
// last one that says how many there are, so that a list that was cut short is
// known as such.

const (
	// version is that of the list's form.
	version = 1
	// maxLine has room for two paths, each byte of them escaped.
	maxLine = 64 << 10
	// mostEntries bounds a list that is read.
	mostEntries = 1_000_000
)

type headLine struct {
	Version int       `json:"tranca_changes"`
	ID      tranca.ID `json:"id"`
	Created time.Time `json:"created"`
	Mounts  []Mount   `json:"mounts"`
	// Changes counts the entries that are changes.
	Changes int `json:"changes"`
}

type entryLine struct {
	Mount      int             `json:"mount"`
	Path       string          `json:"path"`
	PathBase64 string          `json:"path_base64,omitempty"`
	Kind       Kind            `json:"kind"`
	Type       tranca.FileType `json:"type,omitempty"`
	Mode       uint32          `json:"mode,omitempty"`
	Size       int64           `json:"size,omitempty"`
	Offset     int64           `json:"offset,omitempty"`
	Digest     string          `json:"sha256,omitempty"`
	Link       string          `json:"link,omitempty"`
	LinkBase64 string          `json:"link_base64,omitempty"`
	Modified   int64           `json:"modified,omitempty"`
	Base       *State          `json:"base,omitempty"`
	Protected  bool            `json:"protected,omitempty"`
	Omitted    string          `json:"omitted,omitempty"`
	Conflict   string          `json:"conflict,omitempty"`
	// End is of the last line alone.
	End *int `json:"end,omitempty"`
}

// text splits a name into its readable form and, where that is not all of it,
// its bytes.
func text(name string) (plain, bytes string) {
	if utf8.ValidString(name) {
		return name, ""
	}
	return strings.ToValidUTF8(name, "\uFFFD"), base64.StdEncoding.EncodeToString([]byte(name))
}

func untext(plain, bytes string) (string, error) {
	if bytes == "" {
		return plain, nil
	}
	b, err := base64.StdEncoding.DecodeString(bytes)
	if err == nil && utf8.Valid(b) {
		err = errors.New("bytes beside a name that is text")
	}
	return string(b), err
}

// MarshalJSON writes the entry as the list has it.
func (e Entry) MarshalJSON() ([]byte, error) {
	line := entryLine{
		Mount: e.Mount, Kind: e.Kind, Type: e.Type, Mode: e.Mode, Size: e.Size,
		Offset: e.Offset, Digest: e.Digest, Modified: e.Modified, Base: e.Base,
		Protected: e.Protected, Omitted: e.Omitted, Conflict: e.Conflict,
	}
	line.Path, line.PathBase64 = text(e.Path)
	line.Link, line.LinkBase64 = text(e.Link)
	return json.Marshal(line)
}

func (l *entryLine) entry() (Entry, error) {
	e := Entry{
		Mount: l.Mount, Kind: l.Kind, Type: l.Type, Mode: l.Mode, Size: l.Size,
		Offset: l.Offset, Digest: l.Digest, Modified: l.Modified, Base: l.Base,
		Protected: l.Protected, Omitted: l.Omitted, Conflict: l.Conflict,
	}
	var err, err2 error
	e.Path, err = untext(l.Path, l.PathBase64)
	e.Link, err2 = untext(l.Link, l.LinkBase64)
	return e, errors.Join(err, err2)
}

// encode writes the list of a set.
func encode(w io.Writer, s *Set) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(headLine{version, s.ID, s.Created, s.Mounts, s.count()}); err != nil {
		return err
	}
	for i := range s.Entries {
		if err := enc.Encode(&s.Entries[i]); err != nil {
			return err
		}
	}
	return enc.Encode(struct {
		End int `json:"end"`
	}{len(s.Entries)})
}

// decode reads a list and checks it. Errors wrap [tranca.ErrInvalid].
func decode(r io.Reader) (*Set, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	s, _, err := decodeHead(lines)
	if err != nil {
		return nil, err
	}
	ended := false
	for lines.Scan() {
		if ended {
			return nil, invalid("a line after the last one")
		}
		var l entryLine
		if err := strict(lines.Bytes(), &l); err != nil {
			return nil, invalid("line %d: %v", len(s.Entries)+2, err)
		}
		if l.End != nil {
			if ended = true; *l.End != len(s.Entries) {
				return nil, invalid("%d entries where %d are said", len(s.Entries), *l.End)
			}
			continue
		}
		if len(s.Entries) == mostEntries {
			return nil, invalid("more than %d entries", mostEntries)
		}
		e, err := l.entry()
		if err != nil {
			return nil, invalid("line %d: %v", len(s.Entries)+2, err)
		}
		s.Entries = append(s.Entries, e)
	}
	switch {
	case lines.Err() != nil:
		return nil, invalid("%v", lines.Err())
	case !ended:
		return nil, invalid("it is cut short")
	}
	return s, s.check()
}

func decodeHead(lines *bufio.Scanner) (s *Set, changes int, err error) {
	if !lines.Scan() {
		return nil, 0, invalid("it is empty")
	}
	var h headLine
	if err := strict(lines.Bytes(), &h); err != nil {
		return nil, 0, invalid("line 1: %v", err)
	}
	switch {
	case h.Version != version:
		return nil, 0, invalid("its form is %d, and this tranca knows %d", h.Version, version)
	case !validID(h.ID):
		return nil, 0, invalid("id %.40q", h.ID)
	case len(h.Mounts) == 0 || len(h.Mounts) > maxMounts:
		return nil, 0, invalid("%d mounts", len(h.Mounts))
	}
	for _, m := range h.Mounts {
		if !validPath(strings.TrimPrefix(m.Source, "/")) || m.Source[0] != '/' ||
			!validPath(strings.TrimPrefix(m.Target, "/")) || m.Target[0] != '/' {
			return nil, 0, invalid("mount %.100q at %.100q", m.Source, m.Target)
		}
	}
	return &Set{ID: h.ID, Created: h.Created, Mounts: h.Mounts}, h.Changes, nil
}

// strict decodes a line that holds nothing but what is known.
func strict(line []byte, v any) error {
	dec := json.NewDecoder(strings.NewReader(string(line)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if dec.More() {
		return errors.New("more than one value")
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: list of changes: %s", tranca.ErrInvalid, fmt.Sprintf(format, args...))
}

// validID reports whether an id can be a name in the store.
func validID(id tranca.ID) bool {
	if len(id) == 0 || len(id) > 64 {
		return false
	}
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
