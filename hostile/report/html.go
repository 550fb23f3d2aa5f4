package report

import (
	"crypto/sha256"
	_ "embed" // the page's style
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"time"

	"tranca"
)

//go:embed page.css
var style string

// WriteHTML writes the report as one page. It loads nothing, runs no script, and
// everything in it that came from a run is text: the page's own policy forbids all
// but its one style.
func WriteHTML(w io.Writer, r *Report) error {
	m := newMarkup(w)
	p := page{m, r, r.Matrix(), r.Tallies()}
	p.head()
	p.summary()
	p.wrong()
	p.matrix()
	p.columns()
	p.about()
	m.put("</body>\n</html>\n")
	if err := m.w.Flush(); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// page is a report on its way into HTML.
type page struct {
	*markup
	report  *Report
	cells   Matrix
	tallies map[string]Tally
}

func (p *page) head() {
	sum := sha256.Sum256([]byte(style))
	p.put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>tranca hostile, %s</title>
<style>%s</style>
</head>
<body>
`, trusted(base64.StdEncoding.EncodeToString(sum[:])), p.report.Began.UTC().Format(time.DateOnly), trusted(style))
}

// summary says in a few lines what came out, and where.
func (p *page) summary() {
	r := p.report
	p.put("<header>\n<h1>tranca hostile</h1>\n<p class=\"verdict %s\" role=\"status\">%s</p>\n", p.mood(), r.Conclusion())
	if r.Partial {
		p.put("<p class=\"partial\"><strong>Partial.</strong> This run was stopped%s before its end. A blank cell was not run: it shows nothing, neither good nor bad, and a partial report never counts as a pass.</p>\n", r.StoppedBy())
	}
	p.put("<dl class=\"facts\">\n")
	p.fact("Run", fmt.Sprintf("%s, for %s, by tranca %s", r.Began.UTC().Format("2006-01-02 15:04:05 UTC"),
		time.Duration(r.Seconds*float64(time.Second)).Round(100*time.Millisecond), r.Version))
	who := "root"
	if r.Host.UserID != 0 {
		who = fmt.Sprintf("user %d", r.Host.UserID)
	}
	p.fact("Host", fmt.Sprintf("%s, kernel %s, %s, %s, as %s", r.Host.System, r.Host.Kernel, r.Host.Arch, count(r.Host.CPUs, "CPU"), who))
	p.fact("Tried", fmt.Sprintf("%s against %s", count(len(r.Probes), "probe"), count(len(r.Ran()), "column")))
	p.put("</dl>\n</header>\n")
}

func (p *page) mood() trusted {
	switch {
	case len(p.report.BadCells()) > 0:
		return "is-bad"
	case p.report.Status() != 0:
		return "is-open"
	}
	return "is-good"
}

// wrong says of each cell that makes the run fail what happened.
func (p *page) wrong() {
	bad := p.report.BadCells()
	if len(bad) == 0 {
		return
	}
	p.put("<section aria-labelledby=\"wrong\">\n<h2 id=\"wrong\">What is wrong</h2>\n")
	for i, c := range bad {
		if i == longestList {
			p.put("<p>%d more are in the matrix.</p>\n", len(bad)-i)
			break
		}
		probe := p.report.Probe(c.Probe)
		p.put("<details class=\"wrong\"><summary><span class=\"sign v-%s\" aria-hidden=\"true\">%s</span> %s in %s: %s <small>%s</small></summary>\n<div>\n",
			class(c.Verdict), sign(c.Verdict), c.Probe, c.Column, c.Verdict, short(c.Why, 160))
		if probe != nil {
			p.put("<p>%s %s</p>\n", probe.Try, probe.Why)
		}
		p.cell(c, probe)
		p.put("</div></details>\n")
	}
	p.put("</section>\n")
}

// columns says of each column what it promises, and what not.
func (p *page) columns() {
	p.put("<section aria-labelledby=\"columns\">\n<h2 id=\"columns\">Columns</h2>\n")
	for i := range p.report.Columns {
		c := &p.report.Columns[i]
		// The fragment leads to what is inside: browsers open it then.
		p.put("<details class=\"column\"><summary>%s <small>%s</small></summary>\n<div id=\"column-%d\">\n<p>%s</p>\n<dl>\n", c.Name, kindWords(c), i, kindSentence(c))
		p.fact("Not run", c.Missing)
		if c.Level != 0 {
			p.fact("Isolation level", c.Level.String())
		}
		p.fact("Tool", c.Tool)
		p.fact("Command", c.Command)
		if len(c.Waived) > 0 {
			p.fact("Waived in this run", items(c.Waived))
		}
		p.put("</dl>\n")
		if c.Kind == ColumnBackend && c.Missing == "" {
			p.guarantees(i, c)
		}
		p.put("</div></details>\n")
	}
	p.put("</section>\n")
}

func items(all []tranca.Item) string {
	words := make([]string, len(all))
	for i, item := range all {
		words[i] = string(item)
	}
	return strings.Join(words, ", ")
}

func kindWords(c *Column) string {
	if c.Missing != "" {
		return "not run"
	}
	return string(c.Kind)
}

func kindSentence(c *Column) trusted {
	switch c.Kind {
	case ColumnControl:
		return "The bare program in a disposable place. It promises nothing: here each probe must escape, else it proves nothing elsewhere."
	case ColumnReference:
		return "What has no boundary, or a weak one, in a disposable place. Its escapes are expected: they show what a boundary is for."
	case ColumnAgainst:
		return "Somebody else's sandbox. What it promises is not known to tranca, so no cell of it counts as wrong."
	}
	return "One of tranca's own backends. A cell is wrong where it promises the probe's guarantee and something escaped, failed or is unknown."
}

func (p *page) guarantees(i int, c *Column) {
	r := tranca.Report{Backend: c.Name, Guarantees: c.Guarantees}
	p.put("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Promises of %s\">\n<table class=\"promises\">\n", c.Name)
	p.put("<caption>Promises of %s</caption>\n<thead><tr><th scope=\"col\">Item</th><th scope=\"col\">Promised</th><th scope=\"col\">By, or why not</th></tr></thead>\n<tbody>\n", c.Name)
	for _, item := range tranca.Items() {
		why := c.WhyNot(item)
		promised, text := "yes", r.Find(item).Mechanism
		if why != "" {
			promised, text = "no", why
		}
		p.put("<tr><th scope=\"row\">%s</th><td>%s</td><td>%s</td></tr>\n", item, promised, text)
	}
	p.put("</tbody>\n</table>\n</div>\n")
}

// about says how to read the page.
func (p *page) about() {
	p.put(`<section aria-labelledby="about">
<h2 id="about">How to read this</h2>
<dl>
`)
	for _, v := range Verdicts() {
		p.put("<dt><span class=\"sign v-%s\" aria-hidden=\"true\">%s</span> %s</dt><dd>%s</dd>\n", class(v), sign(v), v, meaning(v))
	}
	p.put(`</dl>
<p>A verdict is found from the host: by secrets, listeners, files and processes that stand there, not by what a program says. Behind each cell stands a control, the same program without a boundary, which must escape; and a benign twin, which does the same with what is allowed and must succeed.</p>
<p>A framed cell is wrong: what is promised did not hold or is not shown, or the verdict is not the one that the probe expects. It makes the run fail.</p>
</section>
`)
}

// meaning says a verdict in words.
func meaning(v Verdict) trusted {
	switch v {
	case Escaped:
		return "The program got what the guarantee forbids."
	case Failed:
		return "It did not, but the result lied, it hung, or something was left."
	case Unknown:
		return "Nothing is shown, for the reason that the cell gives."
	case Limited:
		return "A limit stopped it, and the result says so."
	case Contained:
		return "It was denied, where its control escaped and its twin was allowed."
	}
	return "There is nothing to hold here, for the reason that the cell gives."
}

// class is a verdict as a part of a name in the style.
func class(v Verdict) trusted {
	switch v {
	case Escaped, Failed, Unknown, Limited, Contained:
		return trusted(v)
	}
	return "none"
}

func sign(v Verdict) trusted {
	switch v {
	case Escaped:
		return "✗"
	case Failed:
		return "!"
	case Unknown:
		return "?"
	case Limited:
		return "≤"
	case Contained:
		return "✓"
	}
	return "·"
}
