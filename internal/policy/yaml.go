package policy

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// readYAML reads the small part of YAML that a policy needs: one document of
// maps, lists and scalars. Anchors, aliases, merge keys, tags, directives and
// keys that are no plain names are refused by their tokens, before the parser
// sees them.
func (r *reader) readYAML(data []byte) (n *node, e *Error) {
	// The parser is not ours and the file may be hostile. A panic in it is a
	// file that was not understood.
	defer func() {
		if p := recover(); p != nil {
			n, e = nil, r.fail(1, 1, "not understood as YAML (%v)", p)
		}
	}()
	tokens := lexer.Tokenize(string(data))
	scalars, e := r.checkTokens(tokens)
	if e != nil {
		return nil, e
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, r.yamlError(err)
	}
	y := yamlReader{reader: r}
	switch {
	case len(file.Docs) > 1:
		return nil, r.failToken(file.Docs[1].GetToken(), "a second document: a policy is one")
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		return nil, r.fail(1, 1, "the file is empty: want at least \"version: 1\"")
	}
	if n, e = y.value(file.Docs[0].Body, 1); e != nil {
		return nil, e
	}
	// Every scalar of the text must have found its place. Otherwise the
	// parser skipped something, and the policy is not what it looks like.
	if y.scalars != scalars {
		return nil, r.fail(1, 1, "not understood: %d of %d values were read; write it more plainly", y.scalars, scalars)
	}
	return n, nil
}

// refusedTokens are the parts of YAML by which a file can mean something else
// than it seems to.
var refusedTokens = map[token.Type]string{
	token.AnchorType:      "an anchor (&): write the value out where it is needed",
	token.AliasType:       "an alias (*): write the value out where it is needed",
	token.TagType:         "a tag (!): write the value plainly",
	token.MergeKeyType:    "a merge key (<<): write the fields out where they are needed",
	token.DirectiveType:   "a directive (%): a policy needs none",
	token.MappingKeyType:  "a complex key (?): write \"name: value\"",
	token.DocumentEndType: "an end of document (...): a policy is one document",
}

// checkTokens refuses what a policy may not hold and counts scalars.
func (r *reader) checkTokens(tokens token.Tokens) (scalars int, e *Error) {
	if len(tokens) > maxTokens {
		return 0, r.fail(1, 1, "the file has more than %d parts", maxTokens)
	}
	var d depth
	fields := 0
	for i, t := range tokens {
		if why, bad := refusedTokens[t.Type]; bad {
			return 0, r.failToken(t, "%s", why)
		}
		switch {
		case t.Type == token.InvalidType:
			return 0, r.failToken(t, "not understood as YAML: %s", t.Error)
		case t.Type == token.DocumentHeaderType && i > 0 && !onlyComments(tokens[:i]):
			return 0, r.failToken(t, "a second document: a policy is one")
		case t.Type == token.MappingValueType:
			if fields++; fields > maxFields {
				return 0, r.failToken(t, "the file has more than %d fields", maxFields)
			}
		case scalarToken(t.Type):
			scalars++
		}
		if d.see(t) > maxDepth {
			return 0, r.failToken(t, "nested deeper than %d", maxDepth)
		}
	}
	return scalars, nil
}

func onlyComments(tokens token.Tokens) bool {
	for _, t := range tokens {
		if t.Type != token.CommentType {
			return false
		}
	}
	return true
}

func scalarToken(t token.Type) bool {
	switch t {
	case token.StringType, token.SingleQuoteType, token.DoubleQuoteType, token.NullType,
		token.InfinityType, token.NanType, token.IntegerType, token.BinaryIntegerType,
		token.OctetIntegerType, token.HexIntegerType, token.FloatType, token.BoolType:
		return true
	}
	return false
}

// depth estimates from tokens how deeply they nest, never too low, so that
// the parser's recursion is bounded before it starts.
type depth struct {
	flow    int
	columns []int // where the block collections that are open began
}

func (d *depth) see(t *token.Token) int {
	switch t.Type {
	case token.MappingStartType, token.SequenceStartType:
		d.flow++
	case token.MappingEndType, token.SequenceEndType:
		d.flow = max(0, d.flow-1)
	case token.SequenceEntryType:
		d.open(t.Position.Column)
	case token.MappingValueType:
		if d.flow == 0 && t.Prev != nil {
			d.open(t.Prev.Position.Column)
		}
	}
	return d.flow + len(d.columns)
}

func (d *depth) open(column int) {
	if d.flow > 0 {
		return
	}
	for len(d.columns) > 0 && d.columns[len(d.columns)-1] > column {
		d.columns = d.columns[:len(d.columns)-1]
	}
	d.columns = append(d.columns, column)
	if n := len(d.columns); n > 1 && d.columns[n-2] == column {
		d.columns = d.columns[:n-1]
	}
}

// yamlReader turns the parser's tree into nodes.
type yamlReader struct {
	*reader
	scalars int
}

func (y *yamlReader) value(from ast.Node, depth int) (*node, *Error) {
	n := placeOf(from)
	if depth > maxDepth {
		return nil, y.failAt(n, "nested deeper than %d", maxDepth)
	}
	switch v := from.(type) {
	case *ast.MappingNode:
		return y.mapping(n, v.Values, depth)
	case *ast.MappingValueNode:
		return y.mapping(n, []*ast.MappingValueNode{v}, depth)
	case *ast.SequenceNode:
		n.kind = nodeList
		for _, entry := range v.Values {
			one, e := y.value(entry, depth+1)
			if e != nil {
				return nil, e
			}
			n.values = append(n.values, one)
		}
		return n, nil
	}
	return y.scalar(n, from)
}

func (y *yamlReader) mapping(n *node, pairs []*ast.MappingValueNode, depth int) (*node, *Error) {
	n.kind = nodeMap
	for _, pair := range pairs {
		key, e := y.scalar(placeOf(pair.Key), pair.Key)
		if e != nil {
			return nil, e
		}
		value, e := y.value(pair.Value, depth+1)
		if e != nil {
			return nil, e
		}
		n.keys = append(n.keys, key)
		n.values = append(n.values, value)
	}
	return n, nil
}

func (y *yamlReader) scalar(n *node, from ast.Node) (*node, *Error) {
	y.scalars++
	switch v := from.(type) {
	case *ast.StringNode:
		n.kind, n.text = nodeText, v.Value
	case *ast.LiteralNode:
		n.kind, n.text = nodeText, v.Value.Value
		if n.text == "" {
			// The parser takes what follows an empty block for a part of it.
			return nil, y.failAt(n, "an empty block (| or >): write \"\"")
		}
	case *ast.IntegerNode:
		n.kind, n.text = nodeNumber, v.Token.Value
	case *ast.FloatNode:
		n.kind, n.text = nodeNumber, v.Token.Value
	case *ast.InfinityNode:
		n.kind, n.text = nodeNumber, v.Token.Value
	case *ast.NanNode:
		n.kind, n.text = nodeNumber, v.Token.Value
	case *ast.BoolNode:
		n.kind, n.text = nodeBool, v.Token.Value
	case *ast.NullNode:
		n.kind = nodeNull
		if v.Token.Type == token.ImplicitNullType {
			y.scalars-- // it stands nowhere in the text
		}
	default:
		return nil, y.failAt(n, "not understood: a policy has only names, values and lists")
	}
	return n, nil
}

func placeOf(from ast.Node) *node {
	n := &node{line: 1, column: 1}
	t := from.GetToken()
	switch v := from.(type) {
	case *ast.MappingNode:
		if len(v.Values) > 0 && !v.IsFlowStyle {
			t = v.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		t = v.Key.GetToken()
	}
	if t != nil && t.Position != nil {
		n.line, n.column = t.Position.Line, t.Position.Column
	}
	return n
}

func (r *reader) failToken(t *token.Token, format string, args ...any) *Error {
	if t == nil || t.Position == nil {
		return r.fail(1, 1, format, args...)
	}
	return r.fail(t.Position.Line, t.Position.Column, format, args...)
}

func (r *reader) yamlError(err error) *Error {
	var e yaml.Error
	if errors.As(err, &e) {
		return r.failToken(e.GetToken(), "not understood as YAML: %s", e.GetMessage())
	}
	return r.fail(1, 1, "%s", fmt.Sprintf("not understood as YAML: %v", err))
}
