package policy

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// readJSON reads a file that is valid JSON. It does not go through the YAML
// reader, since the two differ in escapes and in tabs.
func (r *reader) readJSON(data []byte) (*node, *Error) {
	j := jsonReader{reader: r, data: data, dec: json.NewDecoder(bytes.NewReader(data)), line: 1}
	j.dec.UseNumber()
	return j.value(1)
}

type jsonReader struct {
	*reader
	data []byte
	dec  *json.Decoder
	// line and start say which line the offset seen is in, and where it begins.
	line, start, seen int
	nodes             int
}

// value reads one value. The file is valid, so a token can't fail.
func (j *jsonReader) value(depth int) (*node, *Error) {
	n := j.place()
	if depth > maxDepth {
		return nil, j.failAt(n, "nested deeper than %d", maxDepth)
	}
	if j.nodes++; j.nodes > maxTokens {
		return nil, j.failAt(n, "the file has more than %d parts", maxTokens)
	}
	token, err := j.dec.Token()
	if err != nil {
		return nil, j.failAt(n, "%v", err)
	}
	switch t := token.(type) {
	case json.Delim:
		return j.collection(n, t, depth)
	case string:
		n.kind, n.text = nodeText, t
	case json.Number:
		n.kind, n.text = nodeNumber, t.String()
	case bool:
		n.kind, n.text = nodeBool, strconv.FormatBool(t)
	default:
		n.kind = nodeNull
	}
	return n, nil
}

// collection reads a list or a map up to its end.
func (j *jsonReader) collection(n *node, open json.Delim, depth int) (*node, *Error) {
	n.kind = nodeList
	if open == '{' {
		n.kind = nodeMap
	}
	for j.dec.More() {
		v, e := j.value(depth + 1)
		if e != nil {
			return nil, e
		}
		if open == '{' {
			n.keys = append(n.keys, v)
			if v, e = j.value(depth + 1); e != nil {
				return nil, e
			}
		}
		n.values = append(n.values, v)
	}
	if _, err := j.dec.Token(); err != nil {
		return nil, j.failAt(n, "%v", err)
	}
	return n, nil
}

// place returns a node where the next token begins. It goes on from the last
// place, so that all places together cost one pass over the file.
func (j *jsonReader) place() *node {
	at := int(j.dec.InputOffset())
	for at < len(j.data) && bytes.IndexByte([]byte(" \t\r\n,:"), j.data[at]) >= 0 {
		at++
	}
	if n := bytes.Count(j.data[j.seen:at], []byte{'\n'}); n > 0 {
		j.line += n
		j.start = bytes.LastIndexByte(j.data[:at], '\n') + 1
	}
	j.seen = at
	// A line that is all of the file would be counted again for each token.
	const longest = 1000
	column := 1 + utf8.RuneCount(j.data[max(j.start, at-longest):at]) + max(0, at-longest-j.start)
	return &node{line: j.line, column: column}
}
