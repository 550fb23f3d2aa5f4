package policy

// Scalar is one name with its value, as it was written, and where it stands.
type Scalar struct {
	Name, Text   string
	Line, Column int
}

// ReadFlat reads a file of names and plain values, in YAML or JSON, by the same
// strict rules as a policy: no anchors, tags, second documents, and no name
// twice. The error is an [Errors].
func ReadFlat(name string, data []byte) ([]Scalar, error) {
	r := reader{file: name}
	root, e := r.read(data)
	if e != nil {
		return nil, Errors{e}
	}
	if root.kind != nodeMap {
		return nil, Errors{r.failAt(root, "got %s: want lines of \"name: value\"", nodeNames[root.kind])}
	}
	var all []Scalar
	seen := map[string]bool{}
	for i, key := range root.keys {
		value := root.values[i]
		switch {
		case seen[key.text]:
			return nil, Errors{r.failAt(key, "%.60q is there twice", key.text)}
		case value.kind == nodeMap || value.kind == nodeList || value.kind == nodeNull:
			return nil, Errors{r.failAt(value, "%.60s: got %s: want one value", key.text, nodeNames[value.kind])}
		}
		seen[key.text] = true
		all = append(all, Scalar{key.text, value.text, value.line, value.column})
	}
	return all, nil
}
