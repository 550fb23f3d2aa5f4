package bench

import (
	"time"

	"tranca"
)

// Schema is the version of a result's JSON form. It changes where a field
// changes its meaning or goes; fields are added without that.
const Schema = "tranca.bench/1"

// Result is one run of the benchmark. Its JSON form is described in
// docs/BENCH.md.
type Result struct {
	Schema string `json:"schema"`
	// Partial says that the run was stopped before its end.
	Partial bool `json:"partial"`
	// Quick says that it was a short run: fewer rounds, wider intervals.
	Quick bool `json:"quick"`
	// Only lists the subjects that were asked for; empty is all.
	Only    []string  `json:"only"`
	Tranca  string    `json:"tranca"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	// Rounds is how often fast subjects were started at most.
	Rounds   int       `json:"rounds"`
	Seed     uint64    `json:"seed"`
	Host     Host      `json:"host"`
	Trust    Trust     `json:"trust"`
	Harness  Harness   `json:"harness"`
	Subjects []Subject `json:"subjects"`
}

// Host is what figures mean nothing without.
type Host struct {
	System string `json:"system"`
	Kernel string `json:"kernel"`
	Arch   string `json:"arch"`
	CPU    string `json:"cpu"`
	CPUs   int    `json:"cpus"`
	// Memory is in bytes.
	Memory int64 `json:"memory_bytes"`
	UserID int   `json:"user_id"`
	Cgroup int   `json:"cgroup_version"`
	// LoadBefore is the load average over a minute when the run began.
	LoadBefore float64 `json:"load_before"`
	Python     string  `json:"python"`
}

// TrustBound is by how much the two medians of the bare baseline, first and
// last, may differ until a result isn't trusted.
const TrustBound = 0.15

// Trust says whether the host was the same at the end as at the beginning.
type Trust struct {
	// FirstNS and LastNS are medians of a bare start in nanoseconds; 0 where it
	// was not measured.
	FirstNS float64 `json:"first_ns"`
	LastNS  float64 `json:"last_ns"`
	// Drift is how much larger the larger one is, as a share of the smaller.
	Drift float64 `json:"drift"`
	Bound float64 `json:"bound"`
	// Trusted is false where both were measured and differ too much, and where
	// the last one is missing.
	Trusted bool `json:"trusted"`
}

// NewTrust compares the two medians.
func NewTrust(first, last float64) Trust {
	t := Trust{FirstNS: first, LastNS: last, Bound: TrustBound}
	if first > 0 && last > 0 {
		t.Drift = max(first, last)/min(first, last) - 1
		t.Trusted = t.Drift <= TrustBound
	}
	return t
}

// HarnessBound is what the harness may add to what it measures.
const HarnessBound = 0.02

// Harness says what the harness itself costs.
type Harness struct {
	// EmptyNS is the median time of a subject that does nothing.
	EmptyNS float64 `json:"empty_ns"`
	// Added is that as a share of a bare start's median.
	Added float64 `json:"added"`
	// Ratio holds bare starts by the harness against the same in a plain loop,
	// by turns.
	Ratio *Interval `json:"ratio,omitempty"`
	Bound float64   `json:"bound"`
}

// Held reports whether the harness adds no more than it may: by the empty
// subject, and by the loop as far as its interval can tell.
func (h Harness) Held() bool {
	return h.Added <= h.Bound && (h.Ratio == nil || h.Ratio.Low <= 1+h.Bound)
}

// Kind says what a subject is.
type Kind string

// The kinds.
const (
	// KindBare is the program without a sandbox.
	KindBare Kind = "bare"
	// KindBackend is a backend of tranca, through its engine.
	KindBackend Kind = "backend"
	// KindBaseline is somebody else's sandbox, by its command.
	KindBaseline Kind = "baseline"
)

// Subject is what was measured, with its figures.
type Subject struct {
	// Name is unique: "process", "container:runc", "bubblewrap".
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Isolation is the level of a backend as found here; for others' sandboxes
	// the level of ours that is built alike; empty for none.
	Isolation string `json:"isolation,omitempty"`
	Runtime   string `json:"runtime,omitempty"`
	// Version is what a baseline says of itself.
	Version string `json:"version,omitempty"`
	// Command is a baseline's command line; the program's text stands for itself
	// as CODE.
	Command []string `json:"command,omitempty"`
	Image   string   `json:"image,omitempty"`
	// Waived lists items that were not enforced: those that --waive named, and
	// what a level as weak as subprocess never has.
	Waived []tranca.Item `json:"waived,omitempty"`
	// Unavailable says why it could not be measured here at all.
	Unavailable string `json:"unavailable,omitempty"`
	// Failed says what went wrong after it had run once. What was measured
	// before that stands.
	Failed   string    `json:"failed,omitempty"`
	Measures []Measure `json:"measures"`
	// LeftChecked says that the host was looked at after its end, and Left what
	// was still there. It must be empty.
	LeftChecked bool     `json:"left_checked"`
	Left        []string `json:"left,omitempty"`
}

// Measure is the figures of one measure of one subject. Times are in
// nanoseconds; see [Measures] for the units.
type Measure struct {
	Name MeasureName `json:"name"`
	// N is the number of samples; where it is 0, Missing says why.
	N       int     `json:"n"`
	Missing string  `json:"missing,omitempty"`
	Min     float64 `json:"min"`
	P50     float64 `json:"p50"`
	P90     float64 `json:"p90"`
	P99     float64 `json:"p99"`
	Max     float64 `json:"max"`
	// Interval is the 95 % interval of the median; nil below 2 samples.
	Interval *Interval `json:"interval,omitempty"`
	// Ratio is the median as a multiple of bare's, with its 95 % interval; nil
	// where bare has no such figure.
	Ratio *Interval `json:"ratio,omitempty"`
	// Histogram is the distribution of a time in three significant digits: pairs
	// of a value, not exceeded by its samples, and their number, in ascending
	// order.
	Histogram [][2]int64 `json:"histogram,omitempty"`
}

// Interval is a figure with the bounds between which it lies by a chance of
// 95 %.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Find returns the subject of a name, or nil.
func (r *Result) Find(name string) *Subject {
	for i := range r.Subjects {
		if r.Subjects[i].Name == name {
			return &r.Subjects[i]
		}
	}
	return nil
}

// Measure returns the figures of a measure, or nil where there are none.
func (s *Subject) Measure(name MeasureName) *Measure {
	for i := range s.Measures {
		if s.Measures[i].Name == name && s.Measures[i].N > 0 {
			return &s.Measures[i]
		}
	}
	return nil
}

// Sound lists what keeps the result from being taken as it stands; empty is a
// sound one.
func (r *Result) Sound() []string {
	var bad []string
	if !r.Trust.Trusted {
		bad = append(bad, "it can't be trusted: "+r.Trust.String())
	}
	if !r.Harness.Held() {
		bad = append(bad, "the harness adds more than it may: "+r.Harness.String())
	}
	for i := range r.Subjects {
		s := &r.Subjects[i]
		if s.Failed != "" {
			bad = append(bad, s.Name+" failed: "+s.Failed)
		}
		for _, left := range s.Left {
			bad = append(bad, s.Name+" left something: "+left)
		}
	}
	return bad
}
