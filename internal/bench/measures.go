package bench

import (
	"fmt"
	"strconv"
	"time"
)

// MeasureName names what is measured.
type MeasureName string

// The measures.
const (
	FirstByte    MeasureName = "first_byte"
	Whole        MeasureName = "whole"
	Create       MeasureName = "create"
	Second       MeasureName = "second_command"
	Destroy      MeasureName = "destroy"
	Throughput1  MeasureName = "throughput_1"
	Throughput8  MeasureName = "throughput_8"
	Throughput64 MeasureName = "throughput_64"
	IdleMemory   MeasureName = "idle_memory"
	Output       MeasureName = "output"
	FileData     MeasureName = "file_data"
	Compute      MeasureName = "compute"
	Syscalls     MeasureName = "syscalls"
	Forks        MeasureName = "forks"
	Files        MeasureName = "files"
)

// Unit is what a measure's figures count.
type Unit string

// The units.
const (
	Nanoseconds    Unit = "ns"
	PerSecond      Unit = "1/s"
	Bytes          Unit = "bytes"
	BytesPerSecond Unit = "bytes/s"
)

// Meaning says what a measure is.
type Meaning struct {
	Name  MeasureName
	Title string
	Unit  Unit
	// More says that larger figures are better.
	More bool
	// Base is the measure of bare that its ratio is to; empty for none.
	Base MeasureName
	// What says it in a sentence.
	What string
}

// Measures lists all measures in the order in which they are shown.
func Measures() []Meaning {
	return []Meaning{
		{FirstByte, "first byte", Nanoseconds, false, FirstByte, "from asking for a fresh sandbox to the first byte of output of `print(6*7)`"},
		{Whole, "whole run", Nanoseconds, false, Whole, "from asking for it until nothing of it is left"},
		{Create, "create", Nanoseconds, false, "", "making a sandbox that stays"},
		{Second, "second command", Nanoseconds, false, Whole, "`print(6*7)` as the second command in a sandbox that stays, held against a bare start"},
		{Destroy, "destroy", Nanoseconds, false, "", "ending such a sandbox until nothing of it is left"},
		{Throughput1, "1 caller", PerSecond, true, Throughput1, "whole runs in a second, one after the other"},
		{Throughput8, "8 callers", PerSecond, true, Throughput8, "the same by 8 callers at once"},
		{Throughput64, "64 callers", PerSecond, true, Throughput64, "the same by 64 callers at once"},
		{IdleMemory, "idle memory", Bytes, false, "", "memory that the processes of one idle sandbox alone have written"},
		{Output, "output", BytesPerSecond, true, Output, "what a program writes to standard output, until it has arrived"},
		{FileData, "file data", BytesPerSecond, true, FileData, "what a program writes to a file of the sandbox's own space and reads back, counted once"},
		{Compute, "compute", Nanoseconds, false, Compute, "a loop of integer arithmetic"},
		{Syscalls, "system calls", Nanoseconds, false, Syscalls, "a loop of getppid, the least that a kernel can be asked"},
		{Forks, "forks", Nanoseconds, false, Forks, "children that are forked and waited for, one after the other"},
		{Files, "small files", Nanoseconds, false, Files, "small files that are made, written, read, renamed and removed"},
	}
}

// MeaningOf returns what a measure means; false for one that there isn't.
func MeaningOf(name MeasureName) (Meaning, bool) {
	for _, m := range Measures() {
		if m.Name == name {
			return m, true
		}
	}
	return Meaning{}, false
}

// Format writes a figure for people: "21.4 ms", "3.2 MiB".
func (u Unit) Format(v float64) string {
	switch u {
	case Nanoseconds:
		return formatTime(v)
	case PerSecond:
		return digits(v) + "/s"
	case Bytes:
		return digits(v/(1<<20)) + " MiB"
	case BytesPerSecond:
		return digits(v/(1<<20)) + " MiB/s"
	}
	return digits(v)
}

func formatTime(ns float64) string {
	switch {
	case ns < 1e3:
		return digits(ns) + " ns"
	case ns < 1e6:
		return digits(ns/1e3) + " us"
	case ns < float64(10*time.Second):
		return digits(ns/1e6) + " ms"
	}
	return digits(ns/1e9) + " s"
}

// digits writes three significant digits, and no fewer before the point.
func digits(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// Times writes a ratio: "1.52x".
func Times(v float64) string { return digits(v) + "x" }

// String writes the ratio and its bounds: "1.52x (1.47 to 1.58)".
func (i *Interval) String() string {
	return fmt.Sprintf("%s (%s to %s)", Times(i.Value), digits(i.Low), digits(i.High))
}

// String says how far the baselines are apart.
func (t Trust) String() string {
	if t.FirstNS == 0 || t.LastNS == 0 {
		return "the baseline was not measured both first and last"
	}
	return fmt.Sprintf("a bare start took %s first and %s last, %.1f %% apart, of %.0f %% allowed",
		formatTime(t.FirstNS), formatTime(t.LastNS), 100*t.Drift, 100*t.Bound)
}

// String says what the harness costs.
func (h Harness) String() string {
	text := fmt.Sprintf("it takes %s for a subject that does nothing, %.2f %% of a bare start, of %.0f %% allowed",
		formatTime(h.EmptyNS), 100*h.Added, 100*h.Bound)
	if h.Ratio != nil {
		text += fmt.Sprintf("; bare starts by it against a plain loop: %.3fx (%.3f to %.3f)",
			h.Ratio.Value, h.Ratio.Low, h.Ratio.High)
	}
	return text
}
