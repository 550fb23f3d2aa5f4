package server

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"tranca"
	"tranca/internal/engine"
	"tranca/internal/server/route"
)

// requests counts requests by call and status. Safe for concurrent use.
type requests struct {
	mu  sync.Mutex
	all map[counted]int64
	sum map[string]time.Duration
}

type counted struct {
	call   string
	status int
}

func newRequests() *requests {
	return &requests{all: map[counted]int64{}, sum: map[string]time.Duration{}}
}

func (r *requests) add(call string, status int, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[counted{call, status}]++
	r.sum[call] += took
}

// metrics answers in Prometheus' text format. Every label is one of a fixed
// set, so that no client makes the answer grow.
//
// The format is written here and not by Prometheus' own library, which counts
// once more what the engine counts already, and costs every start of the
// command 4 ms of CPU time and its file 4 MiB.
func metrics(c *call) error {
	var b exposition
	c.s.counted.write(&b)
	b.engine(c.s.cfg.Engine.Stats())
	c.bytes(http.StatusOK, route.TypeMetrics, b.Bytes())
	return nil
}

func (r *requests) write(b *exposition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b.head("tranca_http_requests_total", "counter", "Requests that were answered, by call and status.")
	keys := slices.SortedFunc(maps.Keys(r.all), func(x, y counted) int {
		return cmp.Or(cmp.Compare(x.call, y.call), cmp.Compare(x.status, y.status))
	})
	for _, k := range keys {
		fmt.Fprintf(b, "tranca_http_requests_total{call=%q,status=\"%d\"} %d\n", k.call, k.status, r.all[k])
	}
	b.head("tranca_http_request_seconds_total", "counter", "Time that requests took, by call.")
	for _, call := range slices.Sorted(maps.Keys(r.sum)) {
		fmt.Fprintf(b, "tranca_http_request_seconds_total{call=%q} %s\n", call, seconds(r.sum[call]))
	}
}

// exposition is text in Prometheus' format.
type exposition struct{ bytes.Buffer }

func (b *exposition) head(name, kind, help string) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func (b *exposition) one(name, kind, help string, value int64) {
	b.head(name, kind, help)
	fmt.Fprintf(b, "%s %d\n", name, value)
}

func (b *exposition) reasons(name, help string, all map[tranca.Reason]int64) {
	b.head(name, "counter", help)
	for _, reason := range []tranca.Reason{
		tranca.EndExited, tranca.EndSignaled, tranca.EndWall, tranca.EndCPU,
		tranca.EndMemory, tranca.EndOutput, tranca.EndClosed, tranca.EndError,
	} {
		fmt.Fprintf(b, "%s{reason=%q} %d\n", name, reason, all[reason])
	}
}

func (b *exposition) histogram(name, help string, h engine.Histogram) {
	b.head(name, "histogram", help)
	var sum int64
	for i, n := range h.Counts {
		sum += n
		bound := "+Inf"
		if i < len(h.Bounds) {
			bound = seconds(h.Bounds[i])
		}
		fmt.Fprintf(b, "%s_bucket{le=%q} %d\n", name, bound, sum)
	}
	fmt.Fprintf(b, "%s_sum %s\n%s_count %d\n", name, seconds(h.Sum), name, sum)
}

func (b *exposition) engine(s engine.Stats) {
	b.reasons("tranca_runs_total", "Runs that have a result, by how they ended.", s.Runs)
	b.one("tranca_refused_total", "counter", "Requests that policy or host did not allow.", s.Refused)
	b.one("tranca_busy_total", "counter", "Requests that were turned away because too many waited.", s.Busy)
	b.one("tranca_failed_total", "counter", "Requests that ended with another error.", s.Failed)
	b.one("tranca_sandboxes", "gauge", "Sandboxes that there are, with those that are being made.", s.Sandboxes)
	b.one("tranca_memory_limit_bytes", "gauge", "What all sandboxes together may use of memory.", s.Memory)
	b.one("tranca_cpu_limit_millis", "gauge", "What all sandboxes together may use of CPUs, in thousandths.", s.MilliCPUs)
	b.one("tranca_in_flight", "gauge", "What is started or run now.", s.InFlight)
	b.one("tranca_queued", "gauge", "What waits for a sandbox or for its turn.", s.Queued)
	b.one("tranca_sessions", "gauge", "Sandboxes that live for several runs.", s.Sessions)
	b.one("tranca_sessions_opened_total", "counter", "Sandboxes that were made to live.", s.SessionsOpened)
	b.one("tranca_sessions_ended_total", "counter", "Sandboxes that lived and have ended.", s.SessionsEnded)
	b.one("tranca_processes", "gauge", "Programs that outlive their call and run.", s.Processes)
	b.reasons("tranca_processes_ended_total", "Programs that outlived their call and have ended, by how.", s.ProcessesEnded)
	b.histogram("tranca_wait_seconds", "How long sandboxes waited for their share.", s.Waited)
	b.histogram("tranca_create_seconds", "How long it took to make a sandbox.", s.Created)
	b.histogram("tranca_run_seconds", "How long runs took.", s.RunTime)
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'g', -1, 64)
}
