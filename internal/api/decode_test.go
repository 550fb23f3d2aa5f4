package api

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tranca"
)

func TestDecode(t *testing.T) {
	var got StartRequest
	err := Decode([]byte(` {"args":["a","\ud83d\ude00 \\ud800"],"env":{"A":"1"},"terminal":{"rows":1,"columns":65535},"stdin":true,"wall_ms":9} `), &got)
	want := StartRequest{
		Args: []string{"a", "\U0001F600 \\ud800"}, Env: map[string]string{"A": "1"},
		Terminal: &tranca.TerminalSize{Rows: 1, Columns: 65535}, Stdin: true, WallMS: 9,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for text, words := range map[string]string{
		``:                                       "ends",
		`{`:                                      "ends",
		`{"args"`:                                "",
		`{"args":["a"]`:                          "",
		`{"args":["a"]}}`:                        "goes on",
		`{"args":["a"]} 1`:                       "goes on",
		`[]`:                                     "the body is an array: want an object",
		`"x"`:                                    "a string",
		`null`:                                   "null",
		`{}`:                                     "args is missing",
		`{"args":null}`:                          "args is null",
		`{"args":"a"}`:                           "args is a string: want an array",
		`{"args":["a",1]}`:                       "args[1] is the number 1: want a string",
		`{"args":["a",null]}`:                    "args[1] is null",
		`{"args":["a"],"Args":["b"]}`:            `did you mean "args"`,
		`{"args":["a"],"args":["b"]}`:            "twice",
		`{"args":["a"],"env":{"A":1}}`:           "env.A is the number 1",
		`{"args":["a"],"env":{"A":"1","A":"2"}}`: "env.A stands there twice",
		`{"args":["a"],"env":[]}`:                "env is an array",
		`{"args":["a"],"terminal":{"rows":1}}`:   "terminal.columns is missing",
		`{"args":["a"],"terminal":{"rows":65536,"columns":1}}`: "terminal.rows is 65536: want a whole number from 0 to 65535",
		`{"args":["a"],"terminal":{"rows":-1,"columns":1}}`:    "terminal.rows",
		`{"args":["a"],"terminal":{"row":1,"columns":1}}`:      `did you mean "rows"`,
		`{"args":["a"],"stdin":1}`:                             "want true or false",
		`{"args":["a"],"wall_ms":1.5}`:                         "want a whole number",
		`{"args":["a"],"wall_ms":1e3}`:                         "want a whole number",
		`{"args":["a"],"wall_ms":"1"}`:                         "want a whole number",
		`{"args":["a"],"wall_ms":9223372036854775808}`:         "want a whole number",
		`{"args":["a"],"` + strings.Repeat("x", 500) + `":1}`:  "no field",
		`{"args":["\ud800"]}`:                                  "surrogate",
		`{"args":["\ud800\ud800"]}`:                            "surrogate",
		`{"args":["\ude00"]}`:                                  "surrogate",
		`{"args":["\ud800\\ude00"]}`:                           "surrogate",
		"{\"args\":[\"\xff\"]}":                                "UTF-8",
		"{\"args\":[\"\xed\xa0\x80\"]}":                        "UTF-8",
		strings.Repeat("[", 100_000):                           "an array",
		`{"args":` + strings.Repeat("[", 100_000):              "an array",
	} {
		var in StartRequest
		err := Decode([]byte(text), &in)
		if !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(err.Error(), words) {
			t.Errorf("%.100s: %v, want words of %q", text, err, words)
		}
		if err != nil && len(err.Error()) > 400 {
			t.Errorf("%.100s: an error of %d bytes", text, len(err.Error()))
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"code", "command", "stdin_base64", "ttl_ms"}
	for name, want := range map[string]string{
		"cod": "code", "Code": "code", "comand": "command", "ttl": "ttl_ms", "stdinbase64": "stdin_base64",
		"": "", "x": "", "policy": "", strings.Repeat("code", 100): "",
	} {
		if got := Nearest(name, words); got != want {
			t.Errorf("%.20q: %q, want %q", name, got, want)
		}
	}
}

// FuzzDecode shows that what is taken means the same to any other reader of
// JSON, and that nothing panics.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{"code":"x","args":["a"],"narrow":{"wall_ms":5,"env":{"A":"b"}}}`, `{"code":"\ud83d\ude00"}`, `{"stdin_base64":"/w=="}`, `{"a":[{}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, plain RunRequest
		if err := Decode(data, &got); err != nil {
			if !errors.Is(err, tranca.ErrInvalid) {
				t.Errorf("an error of no class: %v", err)
			}
			return
		}
		if err := json.Unmarshal(data, &plain); err != nil {
			t.Fatalf("%q is taken, and is no JSON: %v", data, err)
		}
		if diff := cmp.Diff(plain, got); diff != "" {
			t.Error(diff)
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var second RunRequest
		if err := Decode(again, &second); err != nil {
			t.Errorf("%s, made of %q, is not taken: %v", again, data, err)
		}
	})
}
