package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tranca"
)

func TestReadFlat(t *testing.T) {
	for _, text := range []string{"code: own # a word\nrate: 5\nmemory: \"1 GiB\"\n", "{\"code\": \"own\",\n\"rate\": 5,\n\"memory\": \"1 GiB\"}"} {
		all, err := ReadFlat("f", []byte(text))
		if err != nil || len(all) != 3 || all[0].Text != "own" || all[1].Name != "rate" || all[1].Text != "5" || all[1].Line != 2 || all[2].Text != "1 GiB" {
			t.Errorf("%q: %+v, %v", text, all, err)
		}
	}
	for text, want := range map[string]string{
		"":                       "f:1:1",
		"[a]":                    "f:1:1: got a list",
		"code: own\ncode: own\n": `f:2:1: "code" is there twice`,
		"code: [own]\n":          "f:1:7: code: got a list: want one value",
		"code: &a own\n":         "an anchor",
		"code:\n":                "want one value",
		"a: b\n---\nc: d\n":      "a second document",
	} {
		if _, err := ReadFlat("f", []byte(text)); !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// FuzzFlat shows of any bytes: no panic, and no name twice.
func FuzzFlat(f *testing.F) {
	f.Add([]byte("code: own\nrate: 5\n"))
	f.Add([]byte(`{"code": "own", "x": {"y": 1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := ReadFlat("f", data)
		if err != nil {
			if !errors.Is(err, tranca.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		seen := map[string]bool{}
		for _, s := range all {
			if seen[s.Name] || s.Line < 1 {
				t.Fatalf("%+v", all)
			}
			seen[s.Name] = true
		}
	})
}
