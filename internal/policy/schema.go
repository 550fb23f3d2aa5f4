package policy

import (
	"encoding/json"
	"fmt"
	"strings"

	"tranca"
)

// Schema returns the JSON Schema (draft 2020-12) of a policy file, for
// editors. It refers to nothing outside itself. A schema can't say all that
// [Parse] checks: bounds of sizes and what concerns several fields are only
// in its descriptions.
func Schema() []byte {
	root := object("A policy of tranca: what one sandbox may do.")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["required"] = []string{"version"}
	for _, f := range table() {
		place := root
		names := strings.Split(f.path, ".")
		for _, name := range names[:len(names)-1] {
			inner := place["properties"].(map[string]any)
			if inner[name] == nil {
				inner[name] = object("")
			}
			place = inner[name].(map[string]any)
		}
		place["properties"].(map[string]any)[names[len(names)-1]] = f.schema()
	}
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("policy: schema: " + err.Error()) // it is made of maps and text
	}
	return append(text, '\n')
}

// object is a group of fields that allows no other.
func object(description string) map[string]any {
	o := map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{}}
	if description != "" {
		o["description"] = description
	}
	return o
}

// schema describes one field.
func (f *field) schema() map[string]any {
	s := map[string]any{"description": f.doc}
	if f.numeric() {
		s["description"] = fmt.Sprintf("%s From %s to %s.", f.doc, f.format(f.min), f.format(f.max))
	}
	if v := f.schemaDefault(); v != nil {
		s["default"] = v
	}
	switch f.kind {
	case kindVersion:
		s["const"] = version
	case kindSize:
		s["type"], s["pattern"] = "string", `^[0-9]+(B|KiB|MiB|GiB|TiB)$`
	case kindDuration:
		s["type"], s["pattern"] = "string", `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	case kindCPUs:
		s["type"], s["minimum"], s["maximum"] = "number", float64(f.min)/1000, float64(f.max)/1000
	case kindCount:
		s["type"], s["minimum"], s["maximum"] = "integer", f.min, f.max
	case kindWord:
		s["type"], s["enum"] = "string", f.words
	case kindName:
		s["type"], s["minLength"] = "string", 1
		if f.pattern != "" {
			s["pattern"] = f.pattern
		}
	case kindBool:
		s["type"] = "boolean"
	case kindUser:
		s["anyOf"] = []any{
			map[string]any{"type": "integer", "minimum": 1, "maximum": maxID},
			map[string]any{"type": "string", "pattern": `^(user|nobody|[1-9][0-9]*(:[1-9][0-9]*)?)$`},
		}
	default:
		f.schemaList(s)
	}
	return s
}

// schemaList describes what holds more than one value.
func (f *field) schemaList(s map[string]any) {
	switch f.kind {
	case kindEnv:
		s["type"] = "object"
		s["propertyNames"] = map[string]any{"pattern": envNamePattern}
		s["additionalProperties"] = map[string]any{"type": "string"}
		s["maxProperties"] = maxEnv
	case kindItems:
		s["type"], s["uniqueItems"] = "array", true
		s["items"] = map[string]any{"type": "string", "enum": f.words}
	case kindPaths:
		s["type"], s["maxItems"] = "array", maxEntries
		s["items"] = map[string]any{"type": "string", "minLength": 1}
	case kindMounts:
		mount := object("")
		mount["required"] = []string{"source", "target"}
		for _, m := range mountTable() {
			mount["properties"].(map[string]any)[m.path] = m.schema()
		}
		s["type"], s["maxItems"], s["items"] = "array", maxMounts, mount
	}
}

func (f *field) schemaDefault() any {
	switch {
	case f.kind == kindVersion:
		return nil // it must be written
	case f.kind == kindCPUs:
		return float64(f.def) / 1000
	case f.kind == kindCount:
		return f.def
	case f.kind == kindBool:
		return f.def != 0
	case f.standard() != "":
		return f.standard()
	}
	return nil
}

// waivers says for documents which items may be waived.
func waivers() string { return either(itemWords(tranca.Waivable())) }
