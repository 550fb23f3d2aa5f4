package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tranca"
)

// TestMarkdown compares docs/POLICY.md with what it is made from.
func TestMarkdown(t *testing.T) {
	const path = "../../docs/POLICY.md"
	got := Markdown()
	if bytes.Contains(got, []byte("{{")) {
		t.Error("a part of the text was not filled in")
	}
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/POLICY.md is out of date: go test ./internal/policy -run TestMarkdown -update\n%s", diff)
	}
	for _, item := range tranca.Items() {
		if !bytes.Contains(got, []byte("| `"+string(item)+"` |")) {
			t.Errorf("item %s is not in it", item)
		}
	}
}

// TestItemTexts shows that every item has its text, in order.
func TestItemTexts(t *testing.T) {
	var items []tranca.Item
	p := rich()
	for _, text := range itemTexts() {
		items = append(items, text.item)
		s := text.sentence(&p)
		if text.short == "" || !strings.HasSuffix(s, ".") || strings.Contains(s, "%!") {
			t.Errorf("%s: %q, %q", text.item, text.short, s)
		}
	}
	if !slices.Equal(items, tranca.Items()) {
		t.Errorf("got %v, want %v", items, tranca.Items())
	}
}

// TestTable shows that the table is whole.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range slices.Concat(table(), mountTable()) {
		if seen[f.path] || f.doc == "" || !strings.HasSuffix(f.doc, ".") {
			t.Errorf("%s: there twice, or without a sentence: %q", f.path, f.doc)
		}
		seen[f.path] = true
		if f.numeric() && (f.def < f.min || f.def > f.max) {
			t.Errorf("%s: default %d is not within %d to %d", f.path, f.def, f.min, f.max)
		}
		if (f.ask == nil) != (f.over == nil) {
			t.Errorf("%s: what a flag sets and what a request asks differ", f.path)
		}
		if f.kind == kindWord && f.text != "" && !slices.Contains(f.words, f.text) {
			t.Errorf("%s: default %q is no word of it", f.path, f.text)
		}
	}
}

// TestSchema shows that the schema has every field, closes every group, and
// refers to nothing outside.
func TestSchema(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(Schema(), []byte("$ref")) {
		t.Error("it refers to something")
	}
	for _, f := range table() {
		at := root
		for name := range strings.SplitSeq(f.path, ".") {
			if at["additionalProperties"] != false {
				t.Errorf("the group above %s is open", f.path)
			}
			next, ok := at["properties"].(map[string]any)[name].(map[string]any)
			if !ok {
				t.Fatalf("%s is not in it", f.path)
			}
			at = next
		}
		if at["description"] == "" || (at["type"] == nil && at["const"] == nil && at["anyOf"] == nil) {
			t.Errorf("%s: %v", f.path, at)
		}
	}
	mount := root["properties"].(map[string]any)["mounts"].(map[string]any)["items"].(map[string]any)
	if len(mount["properties"].(map[string]any)) != len(mountTable()) || mount["additionalProperties"] != false {
		t.Errorf("mounts: %v", mount)
	}
}

// TestAsked shows what a refusal says was asked.
func TestAsked(t *testing.T) {
	for item, want := range map[tranca.Item]string{
		tranca.ItemMemory: "limits.memory 256MiB", tranca.ItemCPUs: "limits.cpus 1", tranca.ItemWall: "limits.wall 30s",
		tranca.ItemDisk: "limits.disk.size 64MiB", tranca.ItemInodes: "limits.disk.inodes 16384",
		tranca.ItemIsolation: "isolation process or stronger", tranca.ItemNetwork: "network none",
		tranca.ItemLandlock: "Landlock as a second layer", "other": "other",
	} {
		p := Default()
		p.Floor = tranca.LevelProcess
		if got := Asked(p, item); got != want {
			t.Errorf("Asked(%s) = %q, want %q", item, got, want)
		}
	}
}

// TestDecode shows another document than a policy: what each kind of field
// takes, and that errors say where and what is wanted.
func TestDecode(t *testing.T) {
	type part struct {
		Flag   bool           `json:"flag"`
		Maybe  *bool          `json:"maybe"`
		Count  int8           `json:"count"`
		Name   string         `json:"name"`
		List   []part         `json:"list"`
		ByName map[string]int `json:"by_name"`
	}
	yes, no := true, false
	for text, want := range map[string]part{
		"flag: true":                      {Flag: true},
		"flag: TRUE":                      {Flag: true},
		"flag: True\nmaybe: True":         {Flag: true, Maybe: &yes},
		"maybe: FALSE":                    {Maybe: &no},
		"{\"flag\": true, \"count\": -5}": {Flag: true, Count: -5},
		"name: 5\nlist: [{count: 1}, {}]": {Name: "5", List: []part{{Count: 1}, {}}},
		"by_name: {a: 1, b: 2}":           {ByName: map[string]int{"a": 1, "b": 2}},
	} {
		var got part
		if err := Decode("f", []byte(text), &got); err != nil {
			t.Errorf("%q: %v", text, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	for text, want := range map[string]string{
		"flag: 1":               "f:1:7: flag: want true or false, got the number 1",
		"count: x":              `f:1:8: count: want a whole number, got text "x"`,
		"count: 200":            `f:1:8: count: "200" is no whole number of that size`,
		"name: [a]":             "f:1:7: name: want one value, got a list",
		"list: {a: 1}":          "f:1:7: list: want a list, got a group of fields",
		"list: [1]":             "f:1:8: list[0]: want a group of fields, got the number 1",
		"list: [{nam: 1}]":      `list[0].nam: there is no such field; did you mean "name"?`,
		"name: a\nname: a":      "f:2:1: name: stands twice",
		"by_name: {a: 1, a: 2}": "by_name.a: stands twice",
	} {
		var got part
		if err := Decode("f", []byte(text), &got); !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
