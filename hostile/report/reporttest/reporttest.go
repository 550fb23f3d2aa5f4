// Package reporttest makes reports of the hostile suite for tests: small, the
// same each time, and with evidence that tries to get out of what shows it.
package reporttest

import (
	"fmt"
	"strings"
	"time"

	"tranca"
	"tranca/hostile/report"
)

// Markup is evidence that would act in a page or on a terminal that shows it as it
// is: elements, an attribute's end, a script, reordering and control characters.
const Markup = `</code></details></td></tr></table><script>document.title="pwned"</script>` +
	`<img src=http://192.0.2.1/x onerror=alert(1)>" onmouseover="alert(1)' &lt;b&gt; ` +
	"\u202egnp.exe\u202c \x1b]0;pwned\x07\x1b[2J\x00\u009b31m \u2028\xff\xfe"

// Began is when each of these runs began.
func Began() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// Good is a run in which nothing is wrong: a control, two backends and one that is
// not there, a reference, and somebody else's sandbox.
func Good() *report.Report {
	r := &report.Report{
		Schema: report.Schema, Began: Began(), Seconds: 83.5, Version: "v1.2.3",
		Host:    report.Host{System: "Debian GNU/Linux 12 (bookworm)", Kernel: "6.18.5", Arch: "x86_64", UserID: 0, CPUs: 2},
		Columns: columns(), Probes: Probes(),
	}
	for _, p := range r.Probes {
		r.Cells = append(r.Cells,
			cell(p, "none", report.Escaped, report.Escaped, "the host saw it", "a secret of this run stands in the output"),
			cell(p, "docker run", report.Escaped, report.Escaped, "the host saw it", "a secret of this run stands in the output"),
			subprocess(p), process(p),
			cell(p, "bwrap", report.Contained, "", "every step was denied", "open: permission denied"),
		)
	}
	return r
}

// Bad is the same run with a cell of each verdict that is wrong, and evidence that
// is Markup.
func Bad() *report.Report {
	r := Good()
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Column != "process" {
			continue
		}
		switch c.Probe {
		case "fs-01-ssh-key":
			c.Verdict, c.Why = report.Escaped, "the secret of the key stands in the output "+Markup
			c.Evidence = []string{"read /root/.ssh/id_ed25519: " + Markup, "exit 0", strings.Repeat("A", 5000)}
		case "cpu-01-spin":
			c.Verdict, c.Why = report.Failed, "the result says exited, and 3.1 s of CPU time were used"
		case "net-05-dns":
			c.Verdict, c.Why = report.Unknown, "the benign twin failed: echo: no such address"
		}
	}
	return r
}

// Partial is a run that was stopped after the first probe.
func Partial() *report.Report {
	r := Good()
	r.Partial, r.Stopped = true, "SIGINT"
	first := r.Probes[0].ID
	all := r.Cells
	r.Cells = nil
	for _, c := range all {
		if c.Probe == first {
			r.Cells = append(r.Cells, c)
		}
	}
	return r
}

// Large is a run of so many probes, each against six columns, with long evidence.
func Large(probes int) *report.Report {
	r := Good()
	r.Probes, r.Cells = nil, nil
	for i := range probes {
		p := Probes()[i%4]
		p.ID = fmt.Sprintf("%s-%04d", p.ID, i)
		r.Probes = append(r.Probes, p)
		for _, c := range r.Columns {
			if c.Missing == "" {
				r.Cells = append(r.Cells, cell(p, c.Name, report.Contained, "", "every step was denied", strings.Repeat(Markup+"\n", 8)))
			}
		}
	}
	return r
}

// Probes are those of these runs.
func Probes() []report.Probe {
	return []report.Probe{
		{
			ID: "cpu-01-spin", Group: "CPU and lifetime", Try: "Use three seconds of CPU time where one is allowed.",
			Why: "Whoever shares the host waits.", Guarantee: tranca.ItemCPUTime, Severity: "HostDoS", Rows: []string{"CPU-01"},
			Program: "try: Use three seconds of CPU time where one is allowed.\nattempt:\n  - {do: spin, for: 3s}\n",
		},
		{
			ID: "fs-01-ssh-key", Group: "Files", Try: "Read the private key in the operator's home folder.",
			Why: "Code that reads it can log in wherever the operator can.", Guarantee: tranca.ItemFiles, Severity: "HostLeak", Rows: []string{"FS-01"},
			Program: "try: Read the private key in the operator's home folder.\nattempt:\n  - {do: read, path: \"{canary.ssh}\", setup: true}\n",
		},
		{
			ID: "fs-02-write-host", Group: "Files", Try: "Write to a file of the operator's.",
			Why: "What the operator runs next is the attacker's.", Guarantee: tranca.ItemFiles, Severity: "Integrity", Rows: []string{"FS-02", "FS-03"},
			Program: "try: Write to a file of the operator's.\nattempt:\n  - {do: write, path: \"{canary.home}\", data: mine}\n",
		},
		{
			ID: "net-05-dns", Group: "Network", Try: "Carry a secret out in the name of a DNS query.",
			Why: "It leaves the host where nothing else does.", Guarantee: tranca.ItemNetwork, Severity: "Exfil", Rows: []string{"NET-05"},
			Program: "try: Carry a secret out in the name of a DNS query.\nattempt:\n  - {do: resolve, name: \"{mark}.example\", address: \"{dns}\", setup: true}\n",
		},
	}
}

func columns() []report.Column {
	return []report.Column{
		{Name: "none", Kind: report.ColumnControl},
		{Name: "docker run", Kind: report.ColumnReference, Tool: "Docker version 20.10.24", Command: "docker run -i --rm python:3.12-slim python -"},
		{Name: "subprocess", Kind: report.ColumnBackend, Level: tranca.LevelSubprocess, Guarantees: guarantees(tranca.ItemNetwork, tranca.ItemCPUTime)},
		{Name: "process", Kind: report.ColumnBackend, Level: tranca.LevelProcess, Guarantees: guarantees(tranca.Items()...), Waived: []tranca.Item{tranca.ItemLandlock}},
		{Name: "container (runc)", Kind: report.ColumnBackend, Level: tranca.LevelContainer, Missing: "no engine answers at /run/docker.sock"},
		{Name: "bwrap", Kind: report.ColumnAgainst, Tool: "bubblewrap 0.8.0", Command: "bwrap --ro-bind / / --unshare-all python3 -"},
	}
}

// guarantees holds these items and no other.
func guarantees(held ...tranca.Item) []tranca.Guarantee {
	var all []tranca.Guarantee
	for _, item := range tranca.Items() {
		g := tranca.Guarantee{Item: item, Missing: "this rung has nothing for it"}
		for _, h := range held {
			if h == item {
				g = tranca.Guarantee{Item: item, Held: true, Mechanism: "the mechanism of " + string(item)}
			}
		}
		all = append(all, g)
	}
	return all
}

func cell(p report.Probe, column string, v, expected report.Verdict, why string, evidence ...string) report.Cell {
	c := report.Cell{Probe: p.ID, Column: column, Verdict: v, Expected: expected, Why: why, Evidence: evidence, Seconds: 0.25}
	if column != "none" {
		c.Control = "none: escaped"
	}
	return c
}

func subprocess(p report.Probe) report.Cell {
	switch p.Guarantee {
	case tranca.ItemFiles:
		c := cell(p, "subprocess", report.Escaped, report.Escaped, "the host saw it", "a secret of this run stands in the output")
		c.Because = "it hides no files"
		return c
	case tranca.ItemCPUTime:
		c := cell(p, "subprocess", report.Limited, report.Limited, "the result says limit:cpu", "limit:cpu after 1.02 s")
		c.Promised = true
		return c
	}
	c := cell(p, "subprocess", report.NotApplicable, "", "this host has no resolver", "")
	c.Promised, c.Evidence = true, nil
	return c
}

func process(p report.Probe) report.Cell {
	c := cell(p, "process", report.Contained, report.Contained, "every step was denied", "open: no such file or directory", "exit 0")
	if p.Guarantee == tranca.ItemCPUTime {
		c = cell(p, "process", report.Limited, report.Limited, "the result says limit:cpu", "limit:cpu after 1.02 s")
	}
	c.Promised = true
	return c
}
