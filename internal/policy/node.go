package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	maxFile  = 1 << 20
	maxDepth = 16
	// maxTokens bounds the work that a file can ask of a parser. A policy
	// with every list full stays below it.
	maxTokens = 100_000
	// maxFields bounds names with values: the YAML parser's time grows with
	// the square of them. A full policy has less than half.
	maxFields = 2_000
)

// nodeKind is what a node is.
type nodeKind int

const (
	nodeMap nodeKind = iota
	nodeList
	nodeText   // a string
	nodeNumber // as it was written
	nodeBool
	nodeNull
)

var nodeNames = map[nodeKind]string{
	nodeMap: "a group of fields", nodeList: "a list", nodeText: "text",
	nodeNumber: "a number", nodeBool: "true or false", nodeNull: "nothing",
}

// node is one value of a file, whether it was YAML or JSON. The decoder sees
// only nodes, so that both forms mean the same.
type node struct {
	kind nodeKind
	// text is the value of a scalar.
	text         string
	line, column int
	// keys and values of a map, or values of a list.
	keys   []*node
	values []*node
}

// isTrue is what a node of true or false says: YAML writes True and TRUE, too.
func (n *node) isTrue() bool { return strings.EqualFold(n.text, "true") }

// reader turns bytes into a node.
type reader struct {
	file string
}

// read checks the bytes by themselves and reads them as JSON where they are
// JSON, else as YAML.
func (r *reader) read(data []byte) (*node, *Error) {
	if len(data) > maxFile {
		return nil, r.fail(0, 0, "the file has %d bytes: at most %d", len(data), maxFile)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // some editors write one
	if at := badByte(data); at >= 0 {
		line, column := position(data, at)
		if data[at] == 0 {
			return nil, r.fail(line, column, "a NUL byte: this is no text")
		}
		return nil, r.fail(line, column, "not valid UTF-8")
	}
	if json.Valid(data) {
		return r.readJSON(data)
	}
	return r.readYAML(data)
}

// badByte returns where the first NUL or invalid UTF-8 is, or -1.
func badByte(data []byte) int {
	nul := bytes.IndexByte(data, 0)
	if utf8.Valid(data) {
		return nul
	}
	for at := 0; at < len(data); {
		c, size := utf8.DecodeRune(data[at:])
		if c == 0 || (c == utf8.RuneError && size == 1) {
			return at
		}
		at += size
	}
	return nul
}

// position returns the line and column, in characters, of an offset.
func position(data []byte, offset int) (line, column int) {
	before := data[:offset]
	line = 1 + bytes.Count(before, []byte{'\n'})
	return line, 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}

func (r *reader) fail(line, column int, format string, args ...any) *Error {
	return &Error{File: r.file, Line: line, Column: column, Message: fmt.Sprintf(format, args...)}
}

func (r *reader) failAt(n *node, format string, args ...any) *Error {
	return r.fail(n.line, n.column, format, args...)
}
