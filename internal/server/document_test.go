package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"tranca/internal/api"
)

// openDoc is the OpenAPI document, against which every answer of the tests is
// held.
type openDoc struct {
	mu      sync.Mutex
	defs    map[string]any
	schemas map[string]*jsonschema.Resolved
	paths   []pathDoc
}

type pathDoc struct {
	pattern *regexp.Regexp
	path    string
	methods map[string]operationDoc
}

type operationDoc struct {
	Responses map[string]struct {
		Headers map[string]struct{ Required bool }
		Content map[string]struct {
			Schema map[string]any
		}
	}
}

var loadDocument = func() func(*testing.T) *openDoc {
	var once sync.Once
	var doc *openDoc
	return func(t *testing.T) *openDoc {
		t.Helper()
		once.Do(func() { doc = parseDocument(t) })
		return doc
	}
}()

func parseDocument(t *testing.T) *openDoc {
	t.Helper()
	// References lead into the document; a schema of its own has them in $defs.
	text := bytes.ReplaceAll(openAPI, []byte("#/components/schemas/"), []byte("#/$defs/"))
	var in struct {
		Paths      map[string]map[string]operationDoc
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(text, &in); err != nil {
		t.Fatal(err)
	}
	d := &openDoc{defs: in.Components.Schemas, schemas: map[string]*jsonschema.Resolved{}}
	for _, s := range d.defs {
		// A server of this version says no more than the document does.
		if o := s.(map[string]any); o["additionalProperties"] == nil && o["properties"] != nil {
			o["additionalProperties"] = false
		}
	}
	hole := regexp.MustCompile(`\\\{[a-z]+\\\}`)
	for path, methods := range in.Paths {
		pattern := "^" + hole.ReplaceAllString(regexp.QuoteMeta(path), "[^/]*") + "$"
		d.paths = append(d.paths, pathDoc{regexp.MustCompile(pattern), path, methods})
	}
	return d
}

// schema returns the schema with that JSON text.
func (d *openDoc) schema(t *testing.T, schema map[string]any) *jsonschema.Resolved {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	text, _ := json.Marshal(schema)
	if s := d.schemas[string(text)]; s != nil {
		return s
	}
	whole := map[string]any{"$defs": d.defs}
	for k, v := range schema {
		whole[k] = v
	}
	var s jsonschema.Schema
	b, _ := json.Marshal(whole)
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	d.schemas[string(text)] = resolved
	return resolved
}

// validate holds a JSON text against a schema.
func (d *openDoc) validate(t *testing.T, what string, schema map[string]any, text []byte) {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Errorf("%s: %v: %.200s", what, err, text)
		return
	}
	if err := d.schema(t, schema).Validate(v); err != nil {
		t.Errorf("%s: the document says otherwise: %v: %.300s", what, err, text)
	}
}

// check holds an answer against the document.
func (d *openDoc) check(t *testing.T, method, path string, r *reply) {
	t.Helper()
	what := method + " " + path
	path, _, _ = strings.Cut(path, "?")
	if r.Header.Get(api.HeaderRequestID) == "" {
		t.Errorf("%s: no request id", what)
	}
	media := r.Header.Get("Content-Type")
	op := d.operation(method, path)
	if method == http.MethodHead {
		return // an answer without a body
	}
	if op == nil || r.StatusCode == http.StatusMethodNotAllowed {
		d.validate(t, what, map[string]any{"$ref": "#/$defs/Problem"}, r.body)
		return
	}
	answer, ok := op.Responses[strconv.Itoa(r.StatusCode)]
	if !ok {
		t.Errorf("%s: status %d is not in the document: %.300s", what, r.StatusCode, r.body)
		return
	}
	for name, h := range answer.Headers {
		if h.Required && r.Header.Get(name) == "" {
			t.Errorf("%s: no header %s", what, name)
		}
	}
	if len(answer.Content) == 0 {
		if len(r.body) > 0 && r.StatusCode != http.StatusSwitchingProtocols {
			t.Errorf("%s: %d with a body: %.100q", what, r.StatusCode, r.body)
		}
		return
	}
	content, ok := answer.Content[media]
	switch {
	case !ok:
		t.Errorf("%s: %d with %q is not in the document", what, r.StatusCode, media)
	case media == api.TypeJSON || media == api.TypeProblem:
		d.validate(t, what, content.Schema, r.body)
	case media == api.TypeEvents:
		for line := range bytes.Lines(r.body) {
			d.validate(t, what, map[string]any{"$ref": "#/$defs/Event"}, line)
		}
	}
}

func (d *openDoc) operation(method, path string) *operationDoc {
	var found *operationDoc
	for i := range d.paths {
		if op, ok := d.paths[i].methods[strings.ToLower(method)]; ok && d.paths[i].pattern.MatchString(path) {
			if found == nil || !strings.Contains(d.paths[i].path, "{") {
				found = &op
			}
		}
	}
	return found
}
