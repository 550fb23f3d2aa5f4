package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"tranca"
)

func TestARunArrivesByteForByte(t *testing.T) {
	for name, req := range map[string]tranca.Request{
		"code":      {Code: "print(1)", Language: "sh", Profile: "p", Args: []string{"a", ""}},
		"no text":   {Code: "\xff\x00<&>\u2028", Args: []string{"\xff", "é"}},
		"command":   {Command: []string{"ls", "\x80"}, Narrow: tranca.Narrowing{Wall: time.Second, Floor: tranca.LevelProcess}},
		"variables": {Code: "x", Narrow: tranca.Narrowing{Env: map[string]string{"A": "\xff", "B": "é"}}},
		"two parts": {Code: strings.Repeat("x", MaxFrame+1)},
	} {
		req.Stdin = strings.NewReader("in")
		body, size, err := RunBody(req)
		if err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(body())
		if err != nil || int64(len(all)) != size {
			t.Fatalf("%s: %d bytes, said to be %d: %v", name, len(all), size, err)
		}
		rest := strings.NewReader(stdinFrame("in") + stdinFrame(""))
		got, err := ReadRun(io.MultiReader(bytes.NewReader(all), rest))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Code != req.Code || !slices.Equal(got.Args, req.Args) || !slices.Equal(got.Command, req.Command) ||
			got.Language != req.Language || !maps.Equal(got.Narrow.Env, req.Narrow.Env) || got.Profile != req.Profile || got.Narrow.Wall != req.Narrow.Wall || got.Narrow.Floor != req.Narrow.Floor {
			t.Errorf("%s: got %.200s, want %.200s", name, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", req))
		}
		if in, err := io.ReadAll(got.Stdin); err != nil || string(in) != "in" {
			t.Errorf("%s: standard input %q, %v", name, in, err)
		}
	}
}

func TestARunWithoutInput(t *testing.T) {
	body, _, err := RunBody(tranca.Request{Code: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ReadRun(body()); err != nil || got.Stdin != nil || got.Code != "x" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestARunThatIsNone(t *testing.T) {
	frame := func(kind byte, payload string) string {
		return string(frameHead(kind, len(payload))) + payload
	}
	for name, body := range map[string]string{
		"no request":      frame(frameStdin, "x"),
		"no JSON":         frame(frameJSON, "{"),
		"code twice":      frame(frameJSON, `{"code":"x","code_bytes":1}`) + frame(frameCode, "x"),
		"negative":        frame(frameJSON, `{"code_bytes":-1}`),
		"too much":        frame(frameJSON, `{"code_bytes":67108865}`),
		"more than said":  frame(frameJSON, `{"code_bytes":1}`) + frame(frameCode, "xy"),
		"empty code":      frame(frameJSON, `{"code_bytes":1}`) + frame(frameCode, ""),
		"input for code":  frame(frameJSON, `{"code_bytes":1}`) + frame(frameStdin, "x"),
		"input in it":     frame(frameJSON, `{"stdin":"x"}`),
		"two kinds":       frame(frameJSON, `{"args":["x"],"args_base64":["eA=="]}`),
		"floor":           frame(frameJSON, `{"narrow":{"floor":"strong"}}`),
		"negative limits": frame(frameJSON, `{"narrow":{"wall_ms":-1}}`),
	} {
		if _, err := ReadRun(strings.NewReader(body)); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadRun(strings.NewReader("j\xff\xff\xff\xff")); err == nil {
		t.Error("a frame of 4 GiB")
	}
}

func FuzzReadRun(f *testing.F) {
	body, _, _ := RunBody(tranca.Request{Code: "x", Args: []string{"\xff"}})
	seed, _ := io.ReadAll(body())
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		req, err := ReadRun(bytes.NewReader(data))
		if err != nil {
			return
		}
		if len(req.Code) > len(data) {
			t.Errorf("%d bytes of code from %d", len(req.Code), len(data))
		}
		if req.Stdin == nil {
			return
		}
		n, _ := io.Copy(io.Discard, req.Stdin)
		if n > int64(len(data)) {
			t.Errorf("%d bytes of input from %d", n, len(data))
		}
	})
}
