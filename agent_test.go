package tranca_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"tranca"
)

// marked fills every string of a value with a mark and the path to it, every
// list with one element and every number with 7.
func marked(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("mark:" + path)
	case reflect.Struct:
		for i := range v.NumField() {
			marked(v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("mark:" + path))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		marked(v.Index(0), path)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	}
}

// TestAgentViewTellsNothing marks every field of a result, also such as come
// later, and looks for the marks in what the agent sees.
func TestAgentViewTellsNothing(t *testing.T) {
	allowed := []string{"Stdout", "Stderr", "Denials.What", "Denials.Rule", "Changes.Path", "Changes.Kind"}
	for _, reason := range []tranca.Reason{
		tranca.EndExited, tranca.EndSignaled, tranca.EndWall, tranca.EndCPU, tranca.EndMemory,
		tranca.EndOutput, tranca.EndClosed, tranca.EndError, "unheard of",
	} {
		var r tranca.Result
		marked(reflect.ValueOf(&r).Elem(), "")
		r.Exit.Reason = reason
		text, err := json.Marshal(r.AgentView())
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, part := range strings.Split(string(text), "mark:.")[1:] {
			name, _, _ := strings.Cut(part, `"`)
			seen[name] = true
		}
		for _, name := range allowed {
			if !seen[name] {
				t.Errorf("%s is missing in %s", name, text)
			}
			delete(seen, name)
		}
		if len(seen) > 0 {
			t.Errorf("the agent is told of %v in %s", seen, text)
		}
		for _, word := range []string{"backend", "sandbox", "isolation", "cgroup", "seccomp", "policy", "tranca"} {
			if strings.Contains(strings.ToLower(string(text)), word) {
				t.Errorf("%q in %s", word, text)
			}
		}
	}
}

func TestAgentViewWords(t *testing.T) {
	limits := tranca.Limits{
		Wall: 30 * time.Second, CPUTime: 1500 * time.Millisecond, Memory: 256 << 20, Processes: 64,
		OpenFiles: 256, FileSize: 64 << 20, Disk: tranca.Disk{Size: 64 << 20, Inodes: 16384, Backing: tranca.BackingMemory},
		Output: tranca.Output{Size: 1000},
	}
	for _, tc := range []struct {
		exit   tranca.Exit
		code   int
		limits tranca.Limits
		want   string
	}{
		{tranca.Exit{Reason: tranca.EndExited}, 0, limits, "it ended normally"},
		{tranca.Exit{Code: 137, Reason: tranca.EndExited}, 137, limits, "it ended by itself with exit code 137"},
		{tranca.Exit{Code: -1, Signal: 11, Reason: tranca.EndSignaled}, -1, limits, "it was ended by signal 11 (SIGSEGV, a bad memory access)"},
		{tranca.Exit{Code: -1, Signal: 40, Reason: tranca.EndSignaled}, -1, limits, "it was ended by signal 40"},
		{tranca.Exit{Code: -1, Signal: 9, Reason: tranca.EndWall}, -1, limits, "it ran longer than 30 s of wall-clock time and was stopped"},
		{tranca.Exit{Code: -1, Signal: 9, Reason: tranca.EndCPU}, -1, limits, "it used more than 1.5 s of CPU time and was stopped"},
		{tranca.Exit{Code: -1, Signal: 9, Reason: tranca.EndMemory}, -1, limits, "it needed more than 256 MiB of memory and was stopped; files in its own folders count as memory too"},
		{tranca.Exit{Code: -1, Signal: 9, Reason: tranca.EndOutput}, -1, limits, "it wrote more than 1000 bytes to one output stream and was stopped"},
		{tranca.Exit{Code: -1, Reason: tranca.EndWall}, -1, tranca.Limits{}, "it ran longer than the allowed amount of wall-clock time and was stopped"},
	} {
		r := tranca.Result{Exit: tc.exit, Limits: tc.limits}
		v := r.AgentView()
		if v.Ended != tc.want || v.Code != tc.code || v.Success != tc.exit.Success() {
			t.Errorf("%+v: %q, code %d, success %t; want %q", tc.exit, v.Ended, v.Code, v.Success, tc.want)
		}
	}
	r := tranca.Result{Limits: limits, LimitsHit: []tranca.LimitHit{
		tranca.HitPIDs, tranca.HitDisk, tranca.HitInodes, tranca.HitFiles, tranca.HitFileSize, tranca.HitOutput,
	}}
	want := []string{
		"no more than 64 processes and threads at once: starting another was refused",
		"no more than 64 MiB of files of its own: writing more was refused",
		"no more than 16384 files and folders of its own: making another was refused",
		"no more than 256 open files in one process: opening another was refused",
		"no file larger than 64 MiB in size: writing more was refused",
		"no more than 1000 bytes of each output stream is kept: the rest was dropped",
	}
	if got := r.AgentView().Limits; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

func TestAgentViewIsText(t *testing.T) {
	r := tranca.Result{Stdout: []byte("a\xffb"), Stderr: []byte("\xc3")}
	if v := r.AgentView(); v.Stdout != "a\uFFFDb" || v.Stderr != "\uFFFD" {
		t.Errorf("%q, %q", v.Stdout, v.Stderr)
	}
}
