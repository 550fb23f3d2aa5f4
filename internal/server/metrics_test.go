package server

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tranca/internal/api"
	"tranca/internal/server/route"
)

var (
	headLine   = regexp.MustCompile(`^# (HELP|TYPE) (tranca_[a-z_]+) (.+)$`)
	sampleLine = regexp.MustCompile(`^(tranca_[a-z_]+?)(_bucket|_sum|_count)?(\{[a-z]+="[^"\\\n]*"(,[a-z]+="[^"\\\n]*")*\})? (-?[0-9.e+-]+)$`)
)

// TestMetrics holds the answer against Prometheus' text format, and against
// what was done.
func TestMetrics(t *testing.T) {
	w := start(t)
	w.want(200, "POST", "/v1/run", script("print x"))
	w.want(404, "GET", "/v9", nil)
	w.launch(w.create(), api.StartRequest{Args: []string{"sleep", "3600"}})
	r := w.want(200, "GET", "/metrics", nil)
	if r.Header.Get("Content-Type") != route.TypeMetrics {
		t.Error(r.Header)
	}
	kinds := map[string]string{}
	var last float64
	for line := range strings.Lines(string(r.body)) {
		line = strings.TrimSuffix(line, "\n")
		if m := headLine.FindStringSubmatch(line); m != nil {
			if m[1] == "TYPE" {
				if kinds[m[2]] != "" {
					t.Errorf("%s has two types", m[2])
				}
				kinds[m[2]], last = m[3], 0
			}
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("no line of the format: %q", line)
			continue
		}
		kind := kinds[m[1]]
		if kind == "" || (m[2] != "") != (kind == "histogram") {
			t.Errorf("%q is of a %q", line, kind)
		}
		v, err := strconv.ParseFloat(m[5], 64)
		if err != nil {
			t.Errorf("%q: %v", line, err)
		}
		if m[2] == "_bucket" || m[2] == "_count" {
			if v < last {
				t.Errorf("%q: a bucket that holds less than the one before", line)
			}
			last = v
		}
	}
	for _, want := range []string{
		`tranca_http_requests_total{call="run",status="200"} 1`, `tranca_http_requests_total{call="none",status="404"} 1`,
		`tranca_runs_total{reason="exited"} 1`, "tranca_sessions 1", "tranca_processes 1", "tranca_sandboxes 1",
		`tranca_run_seconds_bucket{le="+Inf"} 1`, "tranca_run_seconds_count 1",
	} {
		if !strings.Contains(string(r.body), want+"\n") {
			t.Errorf("no line %s", want)
		}
	}
}
