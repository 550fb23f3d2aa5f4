package tranca_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tranca"
)

func TestResultJSONShape(t *testing.T) {
	got, err := json.MarshalIndent(tranca.Result{
		ID: "i0123456789abcdefghij", Backend: "process", Isolation: tranca.LevelProcess,
		Exit:            tranca.Exit{Code: -1, Signal: 9, Reason: tranca.EndWall},
		Stdout:          []byte("<ü>&\x00"),
		Stderr:          []byte{0xff},
		StderrTruncated: true,
		LimitsHit:       []tranca.LimitHit{tranca.HitPIDs},
		Usage:           tranca.RunUsage{WallMS: 1, CPUMS: 2, MemoryPeakBytes: 3, ProcessesPeak: -1},
		Enforcement:     []tranca.Enforcement{{Item: tranca.ItemWall, Mechanism: "clock", Status: tranca.StatusEnforced}},
		Denials:         []tranca.Denial{{What: "connect", Rule: "network: none"}},
		Changes: []tranca.Change{
			{Path: "/data/\xff", Kind: tranca.ChangeCreated, Size: 4},
			{Path: "/data/.envrc", Kind: tranca.ChangeModified, HostExecutable: true},
		},
		Policy: tranca.PolicyRef{Source: "default", Digest: "sha256:00"},
		Limits: tranca.Limits{Wall: 1},
		Notes:  []string{"a note"},
	}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(`
{
 "id": "i0123456789abcdefghij",
 "backend": "process",
 "isolation": "process",
 "exit": {
  "code": -1,
  "signal": 9,
  "reason": "limit:wall"
 },
 "stdout": "\u003cü\u003e\u0026\u0000",
 "stderr": "/w==",
 "encoding": {
  "stdout": "utf-8",
  "stderr": "base64"
 },
 "truncated": {
  "stdout": false,
  "stderr": true
 },
 "limits_hit": [
  "pids"
 ],
 "usage": {
  "wall_ms": 1,
  "cpu_ms": 2,
  "memory_peak_bytes": 3,
  "processes_peak": -1
 },
 "enforcement": [
  {
   "item": "limits.wall",
   "mechanism": "clock",
   "status": "enforced"
  }
 ],
 "denials": [
  {
   "what": "connect",
   "rule": "network: none"
  }
 ],
 "changes": [
  {
   "path": "/data/�",
   "path_base64": "L2RhdGEv/w==",
   "kind": "created",
   "size": 4
  },
  {
   "path": "/data/.envrc",
   "kind": "modified",
   "size": 0,
   "host_executable": true
  }
 ],
 "policy": {
  "source": "default",
  "digest": "sha256:00"
 },
 "notes": [
  "a note"
 ]
}`)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestEmptyResultHasNoNull(t *testing.T) {
	got, err := json.Marshal(tranca.Result{})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(got), "null") {
		t.Errorf("%s", got)
	}
}

func TestBadResultJSON(t *testing.T) {
	for _, text := range []string{
		`{"stdout":"x"}`, `[]`, `{"isolation":"fortress","encoding":{"stdout":"utf-8","stderr":"utf-8"}}`,
		`{"stdout":"!","encoding":{"stdout":"base64","stderr":"utf-8"}}`,
		`{"encoding":{"stdout":"utf-16","stderr":"utf-8"}}`,
		`{"changes":[{"path_base64":"!"}],"encoding":{"stdout":"utf-8","stderr":"utf-8"}}`,
	} {
		var r tranca.Result
		if err := json.Unmarshal([]byte(text), &r); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestMarshalOfNoLevel(t *testing.T) {
	if _, err := json.Marshal(tranca.Result{Isolation: 99}); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("level 99: %v", err)
	}
}

// results generates results with output and names of any bytes.
func results() *rapid.Generator[tranca.Result] {
	text := rapid.StringN(0, 20, -1).Filter(utf8.ValidString)
	raw := rapid.SliceOfN(rapid.Byte(), 1, 40)
	output := rapid.OneOf(raw, rapid.Map(text, func(s string) []byte {
		if s == "" {
			return nil
		}
		return []byte(s)
	}))
	return rapid.Custom(func(t *rapid.T) tranca.Result {
		r := tranca.Result{
			ID: tranca.ID(text.Draw(t, "id")), Backend: text.Draw(t, "backend"),
			Isolation: rapid.SampledFrom(append(tranca.Levels(), 0)).Draw(t, "level"),
			Exit: tranca.Exit{
				Code:   rapid.IntRange(-1, 255).Draw(t, "code"),
				Signal: tranca.Signal(rapid.IntRange(0, 64).Draw(t, "signal")),
				Reason: rapid.SampledFrom([]tranca.Reason{tranca.EndExited, tranca.EndWall, tranca.EndError}).Draw(t, "reason"),
			},
			Stdout: output.Draw(t, "stdout"), Stderr: output.Draw(t, "stderr"),
			StdoutTruncated: rapid.Bool().Draw(t, "truncated"),
			Usage:           tranca.RunUsage{WallMS: rapid.Int64().Draw(t, "wall"), MemoryPeakBytes: -1},
			Policy:          tranca.PolicyRef{Source: text.Draw(t, "source"), Digest: text.Draw(t, "digest")},
		}
		for range rapid.IntRange(0, 3).Draw(t, "lists") {
			r.LimitsHit = append(r.LimitsHit, tranca.HitDisk)
			r.Notes = append(r.Notes, text.Draw(t, "note"))
			r.Denials = append(r.Denials, tranca.Denial{What: text.Draw(t, "what"), Rule: text.Draw(t, "rule")})
			r.Changes = append(r.Changes, tranca.Change{
				Path: string(raw.Draw(t, "path")), Kind: tranca.ChangeRemoved, Size: rapid.Int64().Draw(t, "size"),
			})
			r.Enforcement = append(r.Enforcement, tranca.Enforcement{
				Item: tranca.ItemDisk, Mechanism: text.Draw(t, "mechanism"), Status: tranca.StatusWaived,
			})
		}
		return r
	})
}

func TestResultRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := results().Draw(t, "result")
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got tranca.Result
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s\n%s", text, diff)
		}
	})
}

// FuzzResult reads hostile JSON, and writes hostile output.
func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"encoding":{"stdout":"utf-8","stderr":"base64"},"stderr":"/w=="}`))
	f.Add([]byte("\xff\x00 a cut rune \xc3"))
	f.Add([]byte(`{"isolation":"process","encoding":{"stdout":"utf-8","stderr":"utf-8"},"changes":[{"path_base64":"/w=="}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r tranca.Result
		if err := json.Unmarshal(data, &r); err == nil {
			again(t, r)
		} else if !errors.Is(err, tranca.ErrInvalid) && json.Valid(data) {
			t.Errorf("an error of no class: %v", err)
		}
		r = tranca.Result{Stdout: data, Stderr: data, Changes: []tranca.Change{{Path: string(data)}}}
		got := again(t, r)
		if string(got.Stdout) != string(data) || got.Changes[0].Path != string(data) {
			t.Errorf("%q came back as %q and %q", data, got.Stdout, got.Changes[0].Path)
		}
		r.AgentView()
	})
}

// again writes and reads a result, and fails where the second writing differs.
func again(t *testing.T, r tranca.Result) tranca.Result {
	t.Helper()
	first, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got tranca.Result
	if err := json.Unmarshal(first, &got); err != nil {
		t.Fatalf("%s: %v", first, err)
	}
	second, err := json.Marshal(got)
	if err != nil || string(second) != string(first) {
		t.Fatalf("%s\nbecame\n%s (%v)", first, second, err)
	}
	return got
}
