package report

import (
	"fmt"
	"strings"
)

// matrix is the table of probes and columns, with the filters before it. What a
// cell or a probe says stands in its place, in a sheet that its summary opens.
func (p *page) matrix() {
	ran := p.report.Ran()
	p.put("<section aria-labelledby=\"matrix\">\n<h2 id=\"matrix\">Matrix</h2>\n")
	p.filters()
	p.put("<div class=\"scroll matrix\" tabindex=\"0\" role=\"region\" aria-labelledby=\"matrix\">\n<table>\n")
	p.put("<caption class=\"hidden\">Verdict for each probe and column. A probe and a cell open what is behind them.</caption>\n<thead>\n<tr><th scope=\"col\" class=\"corner\">Probe</th>")
	for i := range p.report.Columns {
		c := &p.report.Columns[i]
		if c.Missing == "" {
			p.put("<th scope=\"col\" class=\"k-%s\"><a href=\"#column-%d\"><span>%s</span></a></th>", kindClass(c.Kind), i, shown(c))
		}
	}
	p.put("<th scope=\"col\" class=\"try\">What is tried</th></tr>\n</thead>\n")
	for _, g := range Groups(p.report.Probes) {
		p.group(g, ran)
	}
	p.counts(ran)
	p.put("</table>\n</div>\n</section>\n")
}

func shown(c *Column) string {
	if c.Kind == ColumnBackend {
		return c.Name
	}
	return c.Name + " (" + string(c.Kind) + ")"
}

func kindClass(k ColumnKind) trusted {
	if k == ColumnBackend || k == ColumnAgainst {
		return "judged"
	}
	return "shown"
}

// filters are radio buttons whose state the style looks at, so that they need no
// script.
func (p *page) filters() {
	p.put("<input class=\"filter\" type=\"radio\" name=\"filter\" id=\"f-all\" checked><label for=\"f-all\">all</label>\n")
	p.put("<input class=\"filter\" type=\"radio\" name=\"filter\" id=\"f-wrong\"><label for=\"f-wrong\">wrong</label>\n")
	for _, v := range Verdicts() {
		p.put("<input class=\"filter\" type=\"radio\" name=\"filter\" id=\"f-%s\"><label for=\"f-%s\"><span class=\"sign v-%s\" aria-hidden=\"true\">%s</span> %s</label>\n",
			class(v), class(v), class(v), sign(v), v)
	}
}

// has is the classes of what holds cells of some probes: which verdicts columns
// have that are judged, and whether one is wrong. The filters go by it.
func (p *page) has(probes []Probe, ran []*Column) trusted {
	found := map[Verdict]bool{}
	wrong := false
	for _, probe := range probes {
		for _, c := range ran {
			cell := p.cells.Cell(probe.ID, c.Name)
			if cell == nil {
				continue
			}
			wrong = wrong || cell.Bad()
			if kindClass(c.Kind) == "judged" {
				found[cell.Verdict] = true
			}
		}
	}
	var classes []string
	for _, v := range Verdicts() {
		if found[v] {
			classes = append(classes, "has-"+string(class(v)))
		}
	}
	if wrong {
		classes = append(classes, "has-wrong")
	}
	return trusted(strings.Join(classes, " "))
}

func (p *page) group(g Group, ran []*Column) {
	p.put("<tbody class=\"%s\">\n<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"%d\"><span>%s</span></th></tr>\n",
		p.has(g.Probes, ran), len(ran)+2, g.Name)
	for i := range g.Probes {
		probe := &g.Probes[i]
		p.put("<tr class=\"%s\"><th scope=\"row\">", p.has(g.Probes[i:i+1], ran))
		p.probe(probe)
		p.put("</th>")
		for _, c := range ran {
			cell := p.cells.Cell(probe.ID, c.Name)
			if cell == nil {
				p.put("<td><span class=\"hidden\">not run</span></td>")
				continue
			}
			p.matrixCell(cell, probe)
		}
		p.put("<td class=\"try\">%s</td></tr>\n", probe.Try)
	}
	p.put("</tbody>\n")
}

// probe is the probe's name, which opens what it tries, and how.
func (p *page) probe(probe *Probe) {
	p.put("<details name=\"sheet\"><summary>%s</summary><div class=\"sheet\">\n<h3>%s</h3>\n<p>%s %s</p>\n<dl>\n", probe.ID, probe.ID, probe.Try, probe.Why)
	p.fact("Must be stopped by", string(probe.Guarantee))
	p.fact("Severity", probe.Severity)
	p.fact("Rows of the catalogue", some(probe.Rows, longestList))
	p.put("</dl>\n")
	p.program("program of the probe", probe.Program)
	p.put("</div></details>")
}

func (p *page) matrixCell(c *Cell, probe *Probe) {
	wrong, word := trusted(""), ""
	if c.Bad() {
		wrong, word = " wrong", ", wrong"
	}
	p.put("<td class=\"v-%s%s\"><details name=\"sheet\"><summary aria-label=\"%s in %s: %s%s\">%s</summary><div class=\"sheet\">\n<h3>%s in %s: %s</h3>\n",
		class(c.Verdict), wrong, c.Probe, c.Column, c.Verdict, word, sign(c.Verdict), c.Probe, c.Column, c.Verdict)
	p.cell(c, probe)
	p.put("</div></details></td>")
}

// cell is what stands behind a verdict.
func (p *page) cell(c *Cell, probe *Probe) {
	p.put("<dl>\n")
	p.fact("Why", c.Why)
	if probe != nil {
		promised := "not promised here"
		if c.Promised {
			promised = "promised here"
		}
		p.fact("Guarantee", string(probe.Guarantee)+", "+promised)
	}
	switch {
	case c.Expected == "":
		p.fact("Expected", "any verdict")
	case c.Because != "":
		p.fact("Expected", string(c.Expected)+": "+c.Because)
	default:
		p.fact("Expected", string(c.Expected))
	}
	p.fact("Control", c.Control)
	if len(c.Unproven) > 0 {
		p.fact("Not shown", "these got through in the control neither, and stand for nothing here: "+strings.Join(c.Unproven, ", "))
	}
	p.fact("Took", fmt.Sprintf("%.2f s", c.Seconds))
	p.put("</dl>\n")
	p.block("evidence", c.Evidence)
}

// counts is a row for each verdict below the matrix.
func (p *page) counts(ran []*Column) {
	p.put("<tfoot>\n")
	row := func(title string, n func(Tally) int) {
		p.put("<tr><th scope=\"row\">%s</th>", title)
		for _, c := range ran {
			p.put("<td class=\"count\">%d</td>", n(p.tallies[c.Name]))
		}
		p.put("<td class=\"try\"></td></tr>\n")
	}
	for _, v := range Verdicts() {
		row(string(v), func(t Tally) int { return t.Verdicts[v] })
	}
	row("not run", func(t Tally) int { return t.NotRun })
	row("wrong", func(t Tally) int { return t.Bad })
	p.put("</tfoot>\n")
}
