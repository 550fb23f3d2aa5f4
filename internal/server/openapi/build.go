package openapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tranca"
	"tranca/internal/api"
	"tranca/internal/server/route"
)

// object is a JSON object; encoding/json writes its keys in order.
type object = map[string]any

// builder makes the document.
type builder struct {
	comments Comments
	schemas  object
}

// Build returns the OpenAPI 3.1 document.
func Build(c Comments) ([]byte, error) {
	b := &builder{comments: c, schemas: object{}}
	b.schema(reflect.TypeFor[api.Problem]())
	b.schema(reflect.TypeFor[api.Event]())
	paths := object{}
	for _, r := range route.All() {
		item, ok := paths[r.Path()].(object)
		if !ok {
			item = object{}
			paths[r.Path()] = item
		}
		item[strings.ToLower(r.Method())] = b.operation(&r)
	}
	doc := object{
		"openapi": "3.1.1",
		"info": object{
			"title": "tranca", "version": "1",
			"description": "Runs code behind a boundary that the operator chose. A request names one of the operator's profiles and may only narrow it; it never carries a policy.",
			"license":     object{"name": "see the repository"},
		},
		"servers":  []any{object{"url": "/"}},
		"security": []any{object{"key": []any{}}},
		"paths":    paths,
		"tags":     tags(),
		"components": object{
			"securitySchemes": object{"key": object{
				"type": "http", "scheme": "bearer",
				"description": "The server's key. By the unix socket none is needed: there the kernel says who calls.",
			}},
			"schemas": b.schemas,
		},
	}
	out, err := json.MarshalIndent(doc, "", " ")
	return append(out, '\n'), err
}

func tags() []any {
	var all []any
	var seen []string
	for _, r := range route.All() {
		if !slices.Contains(seen, r.Group) {
			seen = append(seen, r.Group)
			all = append(all, object{"name": r.Group})
		}
	}
	return all
}

func (b *builder) operation(r *route.Route) object {
	op := object{
		"operationId": r.Name, "summary": r.Summary, "tags": []any{r.Group},
		"parameters": b.params(r), "responses": b.responses(r),
	}
	if r.About != "" {
		op["description"] = r.About
	}
	if r.Open {
		op["security"] = []any{}
	}
	if r.Body != nil {
		op["requestBody"] = b.body(r.Body)
	}
	return op
}

func (b *builder) params(r *route.Route) []any {
	all := []any{}
	for _, name := range r.PathParams() {
		all = append(all, object{"name": name, "in": "path", "required": true, "schema": pathSchemas[name].schema, "description": pathSchemas[name].about})
	}
	for i := range r.Query {
		p := &r.Query[i]
		all = append(all, object{"name": p.Name, "in": "query", "required": p.Required, "description": p.About, "schema": paramSchema(p)})
	}
	if r.Idempotent || r.NeedsKey {
		about := "A repeated request with the same key and body answers what the first one did, for 10 minutes; it waits while that is under way."
		if r.NeedsKey {
			about = "The key that the run was begun with."
		}
		all = append(all, object{
			"name": api.HeaderIdempotencyKey, "in": "header", "required": r.NeedsKey, "description": about,
			"schema": object{"type": "string", "pattern": "^[!-~]{1,255}$"},
		})
	}
	return all
}

var pathSchemas = map[string]struct {
	schema object
	about  string
}{
	"id":      {object{"type": "string", "pattern": idPattern}, "The sandbox."},
	"process": {object{"type": "string", "pattern": "^(p[1-9][0-9]{0,8}|[1-9][0-9]{0,8}|tag=[a-zA-Z0-9_.-]{1,64})$"}, "The program: its id, its pid while it runs, or tag= and its tag, of which the oldest that runs is meant."},
	"port":    {object{"type": "integer", "minimum": 1, "maximum": 65535}, "The port."},
}

func paramSchema(p *route.Param) object {
	var s object
	switch p.Kind {
	case route.Number:
		s = object{"type": "integer", "format": "int64", "minimum": p.Min, "maximum": p.Max}
		if n, err := strconv.ParseInt(p.Default, 10, 64); err == nil {
			s["default"] = n
		}
	case route.Flag:
		s = object{"type": "boolean", "default": p.Default == "true"}
	case route.Octal:
		s = object{"type": "string", "pattern": "^0?[0-7]{1,3}$", "default": p.Default}
	case route.Pair:
		s = object{"type": "string", "pattern": "^[^=]+=.*$"}
	default:
		s = object{"type": "string", "minLength": 1}
		if p.MaxBytes > 0 {
			s["maxLength"] = p.MaxBytes
		}
	}
	if p.Repeat {
		return object{"type": "array", "items": s}
	}
	return s
}

func (b *builder) body(body *route.Body) object {
	content := object{}
	if body.JSON != nil {
		content[api.TypeJSON] = object{"schema": b.schema(body.JSON)}
	}
	for _, m := range body.Media {
		content[m] = object{"schema": object{}}
	}
	return object{"required": !body.Optional, "content": content}
}

func (b *builder) responses(r *route.Route) object {
	id := object{"description": "Names the request in the server's log.", "schema": object{"type": "string"}, "required": true}
	all := object{}
	for _, a := range r.Answers {
		headers := object{api.HeaderRequestID: id}
		if a.Status == http.StatusCreated && r.Group != "Files" {
			headers["Location"] = object{"description": "Where it is.", "schema": object{"type": "string"}}
		}
		content := object{}
		if a.JSON != nil {
			content[api.TypeJSON] = object{"schema": b.schema(a.JSON)}
		}
		for _, m := range a.Media {
			content[m] = object{"schema": object{"type": "string"}}
			if m == api.TypeEvents {
				content[m] = object{"schema": object{"type": "string", "description": "One Event on each line."}}
			}
		}
		answer := object{"description": a.About, "headers": headers}
		if len(content) > 0 {
			answer["content"] = content
		}
		all[strconv.Itoa(a.Status)] = answer
	}
	byStatus := map[int][]string{}
	for _, code := range r.Problems() {
		status := api.NewProblem(code, "").Status
		byStatus[status] = append(byStatus[status], "`"+string(code)+"`")
	}
	for status, codes := range byStatus {
		all[strconv.Itoa(status)] = object{
			"description": http.StatusText(status) + ": " + strings.Join(codes, ", ") + ".",
			"headers":     object{api.HeaderRequestID: id},
			"content":     object{api.TypeProblem: object{"schema": ref("Problem")}},
		}
	}
	all["431"] = object{
		"description": "Address and headers are larger than 64 KiB together. It is said before the call is known: as plain text, and without a request id.",
		"content":     object{"text/plain; charset=utf-8": object{"schema": object{"type": "string"}}, "text/plain": object{"schema": object{"type": "string"}}},
	}
	return all
}

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// schema returns the schema of a type; structs become components.
func (b *builder) schema(t reflect.Type) object {
	if t.Kind() == reflect.Pointer {
		return b.schema(t.Elem())
	}
	if s, ok := shapes[t]; ok {
		t = s
	}
	if all, ok := enums[t]; ok {
		return object{"type": "string", "enum": all}
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[[]byte]():
		return object{"type": "string", "contentEncoding": "base64", "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"}
	case t.Kind() == reflect.Struct:
		b.component(t)
		return ref(nameOf(t))
	case t.Kind() == reflect.Slice:
		return object{"type": "array", "items": b.schema(t.Elem())}
	case t.Kind() == reflect.Map && t.Elem().Kind() != reflect.Interface:
		return object{"type": "object", "additionalProperties": b.schema(t.Elem())}
	case t.Kind() == reflect.Map:
		return object{"type": "object"}
	case t.Kind() == reflect.String:
		return object{"type": "string"}
	case t.Kind() == reflect.Bool:
		return object{"type": "boolean"}
	case t.Kind() == reflect.Int64:
		return object{"type": "integer", "format": "int64"}
	}
	return object{"type": "integer"}
}

// nameOf returns the name of a component. Two types may have one name.
func nameOf(t reflect.Type) string {
	if t == reflect.TypeFor[tranca.Problem]() {
		return "RefusalProblem"
	}
	return t.Name()
}

func (b *builder) component(t reflect.Type) {
	name := nameOf(t)
	if _, done := b.schemas[name]; done {
		return
	}
	b.schemas[name] = nil // it may hold itself
	properties, required := object{}, []string{}
	for f := range t.Fields() {
		field, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		s := b.schema(f.Type)
		for k, v := range bounds[name+"."+field] {
			s[k] = v
		}
		if about := b.comments[t.String()+"."+f.Name]; about != "" {
			s["description"] = inJSON(t, about)
		}
		properties[field] = s
		if !strings.Contains(options, "omit") {
			required = append(required, field)
		}
	}
	s := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	if about := b.comments[t.String()]; about != "" {
		s["description"] = inJSON(t, about)
	}
	if slices.Contains(requests, t) {
		s["additionalProperties"] = false
	}
	if name == "Event" {
		s["properties"].(object)["result"] = object{"allOf": []any{ref("Result")}, "description": b.comments["api.Event.Result"]}
	}
	b.schemas[name] = s
}

// inJSON writes the fields that a comment names as they are called in JSON.
func inJSON(t reflect.Type, about string) string {
	for f := range t.Fields() {
		field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		name := regexp.MustCompile(`([a-z,] |^It and )` + f.Name + `\b`)
		about = name.ReplaceAllString(about, "${1}`"+field+"`")
	}
	return about
}
