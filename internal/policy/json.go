package policy

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// readJSON reads a file that is valid JSON. It does not go through the YAML
// reader, since the two differ in escapes and in tabs.
func (r *reader) readJSON(data []byte) (*node, *Error) {
	j := jsonReader{reader: r, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	j.dec.UseNumber()
	return j.value(1)
}

type jsonReader struct {
	*reader
	data []byte
	dec  *json.Decoder
}

// value reads one value. The file is valid, so a token can't fail.
func (j *jsonReader) value(depth int) (*node, *Error) {
	n := j.place()
	if depth > maxDepth {
		return nil, j.failAt(n, "nested deeper than %d", maxDepth)
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

// place returns a node where the next token begins.
func (j *jsonReader) place() *node {
	at := int(j.dec.InputOffset())
	for at < len(j.data) && bytes.IndexByte([]byte(" \t\r\n,:"), j.data[at]) >= 0 {
		at++
	}
	line, column := position(j.data, at)
	return &node{line: line, column: column}
}
