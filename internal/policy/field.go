package policy

import (
	"strconv"
	"strings"
	"time"

	"tranca"
)

// kind is how a field is written.
type kind int

const (
	kindVersion  kind = iota // the number 1
	kindSize                 // 64MiB
	kindDuration             // 30s
	kindCPUs                 // 0.5, kept as thousandths
	kindCount                // 64
	kindWord                 // one of a few words
	kindName                 // free text that a rule of its own checks
	kindBool                 // true or false
	kindUser                 // user, nobody, UID or UID:GID
	kindEnv                  // NAME: value
	kindMounts               // a list of mounts
	kindItems                // a list of items
	kindPaths                // a list of relative paths
)

// unitNames say in documents how a field is written.
var unitNames = map[kind]string{
	kindVersion:  "number",
	kindSize:     "size (B, KiB, MiB, GiB, TiB)",
	kindDuration: "duration (ms, s, m, h)",
	kindCPUs:     "number of CPUs, at most three decimals",
	kindCount:    "number",
	kindWord:     "word",
	kindName:     "text",
	kindBool:     "true or false",
	kindUser:     "user, nobody, UID or UID:GID",
	kindEnv:      "names with values",
	kindMounts:   "list",
	kindItems:    "list of items",
	kindPaths:    "list of paths",
}

// field is one field of a policy file.
type field struct {
	path string
	kind kind
	// item is what the field's value bounds; empty where it bounds nothing.
	item tranca.Item
	// flag is the command line's name for it; empty where it has none.
	flag string
	// def, min and max are for sizes, durations (nanoseconds), CPUs
	// (thousandths) and counts.
	def, min, max int64
	// text is the default of words and names.
	text string
	// words are the allowed words.
	words []string
	// pattern is what the schema says of a name; the checks say more.
	pattern string
	// doc is one sentence.
	doc string
	// ref points at the value in a policy. It is a *int64, *int,
	// *time.Duration, *bool or a pointer to some kind of string; nil where a
	// kind has a place of its own.
	ref func(*tranca.Policy) any
	// ask points at the value in a narrowing; nil where a request can't ask.
	ask func(*tranca.Narrowing) any
	// over points at the value in overrides; nil where no flag sets it.
	over func(*Overrides) any
}

// numeric reports whether the field is a number with bounds.
func (f *field) numeric() bool {
	return f.kind == kindSize || f.kind == kindDuration || f.kind == kindCPUs || f.kind == kindCount
}

// format writes a number as the field's kind has it in a file.
func (f *field) format(n int64) string {
	switch f.kind {
	case kindSize:
		return FormatSize(n)
	case kindDuration:
		return FormatDuration(time.Duration(n))
	case kindCPUs:
		return FormatCPUs(n)
	}
	return strconv.FormatInt(n, 10)
}

// parse reads a number as format writes it.
func (f *field) parse(s string) (int64, error) {
	switch f.kind {
	case kindSize:
		return ParseSize(s)
	case kindDuration:
		d, err := ParseDuration(s)
		return int64(d), err
	case kindCPUs:
		return ParseCPUs(s)
	}
	return parseCount(s)
}

func parseCount(s string) (int64, error) {
	digits, rest := splitNumber(s)
	if err := refuseNumber("number", "64", s, digits); err != nil {
		return 0, err
	}
	if rest != "" || strings.Contains(digits, ".") {
		return 0, errorf("", "%s is not a whole number", quote(s))
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, errorf("", "number %s is too large", quote(s))
	}
	return n, nil
}

// standard is the default as a file has it.
func (f *field) standard() string {
	switch {
	case f.numeric():
		return f.format(f.def)
	case f.kind == kindVersion:
		return strconv.Itoa(version)
	case f.kind == kindBool:
		return strconv.FormatBool(f.def != 0)
	case f.kind == kindUser:
		return formatUser(defaultUser)
	}
	return f.text
}

// number reads the number behind a pointer from ref, ask or over.
func number(ref any) int64 {
	switch v := ref.(type) {
	case *int64:
		return *v
	case *time.Duration:
		return int64(*v)
	case *int:
		return int64(*v)
	}
	panic("policy: a field of the table refers to no number")
}

func setNumber(ref any, n int64) {
	switch v := ref.(type) {
	case *int64:
		*v = n
	case *time.Duration:
		*v = time.Duration(n)
	case *int:
		*v = int(n)
	default:
		panic("policy: a field of the table refers to no number")
	}
}

// word reads the text behind a pointer from ref.
func word(ref any) string {
	switch v := ref.(type) {
	case *string:
		return *v
	case *tranca.Level:
		return v.String()
	case *tranca.Backing:
		return string(*v)
	case *tranca.OnExceed:
		return string(*v)
	case *tranca.Network:
		return string(*v)
	case *tranca.Vulnerabilities:
		return string(*v)
	}
	panic("policy: a field of the table refers to no text")
}

// setWord sets the text. A word that is no level leaves no level, which
// validation refuses.
func setWord(ref any, s string) {
	switch v := ref.(type) {
	case *string:
		*v = s
	case *tranca.Level:
		*v, _ = tranca.ParseLevel(s)
	case *tranca.Backing:
		*v = tranca.Backing(s)
	case *tranca.OnExceed:
		*v = tranca.OnExceed(s)
	case *tranca.Network:
		*v = tranca.Network(s)
	case *tranca.Vulnerabilities:
		*v = tranca.Vulnerabilities(s)
	default:
		panic("policy: a field of the table refers to no text")
	}
}
