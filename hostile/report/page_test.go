package report_test

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"tranca/hostile/report"
	"tranca/hostile/report/reporttest"
	"tranca/internal/browsertest"
)

func page(t *testing.T, r *report.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := report.WriteHTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// open opens the page of a report and fails the test if the page asks for anything
// or the browser complains.
func open(t *testing.T, r *report.Report, view browsertest.View) *browsertest.Page {
	t.Helper()
	p := browsertest.Open(t, page(t, r), view)
	quiet(t, p)
	return p
}

func quiet(t *testing.T, p *browsertest.Page) {
	t.Helper()
	if all := p.Requests(); len(all) > 0 {
		t.Errorf("the page asks for %q", all)
	}
	if all := p.Console(); len(all) > 0 {
		t.Errorf("the console says %q", all)
	}
}

// number evaluates an expression to a number.
func number(p *browsertest.Page, expression string) int {
	var n float64
	p.Eval(expression, &n)
	return int(n)
}

// TestPage opens a page once for all that can be looked at in one.
func TestPage(t *testing.T) {
	r := reporttest.Bad()
	r.Partial = true
	p := open(t, r, browsertest.Desk)
	t.Run("Cells", func(t *testing.T) { showsAllCells(t, r, p) })
	t.Run("Filters", func(t *testing.T) { filters(t, p) })
	t.Run("Links", func(t *testing.T) { linksOpenColumns(t, p) })
	t.Run("LightAndDark", func(t *testing.T) { lightAndDark(t, p) })
	quiet(t, p)
}

func showsAllCells(t *testing.T, r *report.Report, p *browsertest.Page) {
	for selector, want := range map[string]int{
		".matrix tbody tr:not(.group)":         len(r.Probes),
		".matrix tbody td details":             len(r.Cells),
		".matrix td .sheet dl":                 len(r.Cells),
		".matrix td.wrong":                     3,
		".matrix tr:not(.group) th .sheet pre": len(r.Probes),
		".matrix thead th[scope=col]":          1 + 5 + 1,
		"details.column":                       len(r.Columns),
		"script, img, iframe, link":            0,
		"[id='']":                              0,
	} {
		if got := number(p, fmt.Sprintf("document.querySelectorAll(%q).length", selector)); got != want {
			t.Errorf("%s: %d, want %d", selector, got, want)
		}
	}
	for _, v := range report.Verdicts() {
		want := 0
		for _, c := range r.Cells {
			if c.Verdict == v {
				want++
			}
		}
		name := string(v)
		if v == report.NotApplicable {
			name = "none"
		}
		if got := number(p, `document.querySelectorAll(".matrix tbody td.v-`+name+`").length`); got != want {
			t.Errorf("%d cells are %s, want %d", got, v, want)
		}
	}
}

func filters(t *testing.T, p *browsertest.Page) {
	rows := `[...document.querySelectorAll(".matrix tbody tr:not(.group)")].filter(e => e.getClientRects().length > 0).length`
	// Of the control and the reference every cell is escaped: filters go by others.
	for filter, want := range map[string]int{
		"f-all": 4, "f-wrong": 3, "f-escaped": 2, "f-failed": 1, "f-unknown": 1, "f-limited": 1, "f-contained": 4, "f-none": 1,
	} {
		p.Eval(`document.getElementById("`+filter+`").click()`, nil)
		if got := number(p, rows); got != want {
			t.Errorf("%s shows %d probes, want %d", filter, got, want)
		}
	}
	groups := `[...document.querySelectorAll(".matrix tr.group")].filter(e => e.getClientRects().length > 0).length`
	p.Eval(`document.getElementById("f-failed").click()`, nil)
	if got := number(p, groups); got != 1 {
		t.Errorf("a filter that leaves one group shows the heads of %d", got)
	}
	p.Eval(`document.getElementById("f-all").click()`, nil)
}

// TestLargePage is one that is larger than its screen, on a desk and on a phone.
func TestLargePage(t *testing.T) {
	r := reporttest.Large(60)
	for i := range 10 {
		r.Columns = append(r.Columns, report.Column{Name: fmt.Sprintf("a sandbox with quite a long name %d", i), Kind: report.ColumnAgainst})
	}
	p := open(t, r, browsertest.Desk)
	t.Run("Evidence", func(t *testing.T) { opensEvidence(t, p) })
	t.Run("Phone", func(t *testing.T) { onAPhone(t, p) })
	quiet(t, p)
}

// A cell and a probe open a sheet that nothing covers, one at a time.
func opensEvidence(t *testing.T, p *browsertest.Page) {
	for _, selector := range []string{".matrix tbody th summary", ".matrix tbody td summary", ".matrix tr:nth-child(9) td:nth-child(3) summary"} {
		p.Eval(fmt.Sprintf("document.querySelector(%q).click()", selector), nil)
		if n := number(p, `document.querySelectorAll(".matrix details[open]").length`); n != 1 {
			t.Fatalf("%s: %d sheets are open", selector, n)
		}
		// Everywhere in the sheet, what lies on top is the sheet's own.
		hidden := number(p, `(() => {
			const open = document.querySelector(".matrix details[open]"), box = open.querySelector(".sheet").getBoundingClientRect();
			let hidden = box.bottom > innerHeight + 1 || box.height < 100 ? 1 : 0;
			for (let x = box.left + 5; x < box.right; x += 40)
				for (let y = box.top + 5; y < box.bottom; y += 20)
					if (!open.contains(document.elementFromPoint(x, y))) hidden++;
			return hidden;
		})()`)
		keep(t, "evidence.png", p.Picture())
		if hidden > 0 {
			t.Errorf("%s: the sheet is covered or out of sight at %d points", selector, hidden)
		}
	}
	// The word that closes it is a part of the summary.
	p.Eval(`(() => {
		const after = document.elementFromPoint(innerWidth - 30, innerHeight * 0.55 + 20);
		after.click();
	})()`, nil)
	if n := number(p, `document.querySelectorAll(".matrix details[open]").length`); n != 0 {
		t.Error("what says close does not close the sheet")
	}
}

func linksOpenColumns(t *testing.T, p *browsertest.Page) {
	p.Eval(`document.querySelectorAll(".matrix thead a")[3].click()`, nil)
	p.Eval("new Promise(done => setTimeout(done, 200))", nil)
	var name string
	p.Eval(`[...document.querySelectorAll("details.column[open] > summary")].map(e => e.textContent).join()`, &name)
	if !strings.HasPrefix(name, "process ") {
		t.Errorf("the link of process opens %q", name)
	}
}

// The head of the matrix and the names of probes stay where one looks, on a phone
// too, and the page itself never scrolls sideways.
func onAPhone(t *testing.T, p *browsertest.Page) {
	p.Show(browsertest.Phone)
	p.Eval(`document.querySelectorAll("details.column").forEach(d => d.open = true)`, nil)
	if wide := number(p, "Math.max(document.documentElement.scrollWidth, innerWidth)"); wide > browsertest.Phone.Width {
		t.Errorf("on a phone of %d pixels the page is %d wide", browsertest.Phone.Width, wide)
	}
	p.Eval(`document.querySelector(".matrix").scrollTo(200, 500)`, nil)
	moved := number(p, `(() => {
		const box = document.querySelector(".matrix").getBoundingClientRect();
		const head = document.querySelector(".matrix thead th:nth-child(8)").getBoundingClientRect();
		const names = document.querySelector(".matrix tbody tr:nth-child(20) th").getBoundingClientRect();
		return Math.abs(head.top - box.top) + Math.abs(names.left - box.left);
	})()`)
	if moved > 4 {
		t.Errorf("head and names moved by %d pixels when the matrix was scrolled", moved)
	}
	p.Eval(`document.querySelector(".matrix").scrollIntoView()`, nil)
	keep(t, "phone.png", p.Picture())
}

// contrast finds the worst contrast of a text with what is behind it, as WCAG
// counts it, times 100.
const contrast = `(() => {
	const parse = c => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m };
	const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b };
	let worst = 2100;
	for (const e of document.querySelectorAll("body *")) {
		if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
		let back = e;
		while (back && parse(getComputedStyle(back).backgroundColor)[3] === 0) back = back.parentElement;
		if (!back) continue;
		const a = light(parse(getComputedStyle(e).color)), b = light(parse(getComputedStyle(back).backgroundColor));
		worst = Math.min(worst, 100 * (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
	}
	return worst;
})()`

func lightAndDark(t *testing.T, p *browsertest.Page) {
	p.Eval("scrollTo(0, 0)", nil)
	p.Eval(`document.querySelectorAll("details.column, details.wrong").forEach(d => d.open = true)`, nil)
	for _, view := range []browsertest.View{{Width: 1280, Height: 1000}, {Width: 1280, Height: 1000, Dark: true}} {
		p.Show(view)
		if worst := number(p, contrast); worst < 450 {
			t.Errorf("dark %t: a text has the contrast %d/100 only, want 4.5", view.Dark, worst)
		}
		shot := p.Picture()
		keep(t, fmt.Sprintf("dark-%t.png", view.Dark), shot)
		p.Eval(`document.querySelector(".matrix").scrollIntoView()`, nil)
		keep(t, fmt.Sprintf("matrix-dark-%t.png", view.Dark), p.Picture())
		p.Eval("scrollTo(0, 0)", nil)
		img, err := png.Decode(bytes.NewReader(shot))
		if err != nil {
			t.Fatal(err)
		}
		corner := color.GrayModel.Convert(img.At(2, 2)).(color.Gray).Y
		if (corner < 64) != view.Dark || (corner > 192) == view.Dark {
			t.Errorf("dark %t: the page's corner has the brightness %d", view.Dark, corner)
		}
	}
}

// keep leaves a picture for a person where TRANCA_TEST_PICTURES names a folder.
func keep(t *testing.T, name string, shot []byte) {
	t.Helper()
	if dir := os.Getenv("TRANCA_TEST_PICTURES"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name), shot, 0o644); err != nil {
			t.Error(err)
		}
	}
}

// Whatever stands in a report, in whatever field: the page shows it as text. What
// it would fetch or run is seen to be fetched and run where nothing is escaped.
func TestPageEscapes(t *testing.T) {
	e := listener(t)
	evil := func(at string) string {
		return `"></summary></details></td></table></style></title><script>document.title="pwned"</script>` +
			`<img src="` + at + `/img"><link rel=stylesheet href=` + at + `/css><iframe src=` + at + `></iframe>` +
			`<meta http-equiv=refresh content="9;url=` + at + `"><style>@import "` + at + `"; body{display:none}</style>` + reporttest.Markup
	}
	p := browsertest.Open(t, []byte(`<!DOCTYPE html><title>x</title><body><p title="`+evil(e.at)+`">`), browsertest.Desk)
	if e.asked.Load() == 0 || len(p.Requests()) == 0 {
		t.Fatal("unescaped, the text fetches nothing: it proves nothing where it is escaped")
	}
	e = listener(t)
	p = open(t, everywhere(evil(e.at)), browsertest.Desk)
	var title string
	p.Eval("document.title", &title)
	if n := e.connected.Load(); n != 0 || strings.Contains(title, "pwned") {
		t.Errorf("the page connected %d times; its title is %q", n, title)
	}
	if n := number(p, `document.querySelectorAll("script, img, iframe, link, meta[http-equiv=refresh], body style").length`); n != 0 {
		t.Errorf("%d elements came out of a text", n)
	}
	if n := number(p, `[...document.querySelectorAll("*")].filter(e => [...e.attributes].some(a => a.name.startsWith("on"))).length`); n != 0 {
		t.Errorf("%d elements have a handler", n)
	}
	var text string
	p.Eval("document.body.textContent", &text)
	for _, want := range []string{"<U+202E>", "<U+009B>", "^[[2J", "<FF>", `document.title="pwned"`, "<U+2028>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	if i := strings.IndexFunc(text, func(r rune) bool {
		return r == 0x202e || r == 0x200f || (r < 0x20 && r != '\n') || (r >= 0x7f && r < 0xa0)
	}); i >= 0 {
		t.Errorf("the page holds a character that acts: %q", text[max(0, i-20):i+20])
	}
}

// Were something not escaped, the page's own policy would still stop what it does.
func TestPagePolicy(t *testing.T) {
	e := listener(t)
	hole := `<script>document.title="pwned"</script><img src="` + e.at + `/img" onerror="document.title='pwned'">` +
		`<style>h1 { color: rgb(1, 2, 3) } body { background: url(` + e.at + `/css) }</style><h2 id="styled" style="color: rgb(4, 5, 6)">x</h2>` +
		`<link rel="stylesheet" href="` + e.at + `/link"><iframe src="` + e.at + `/frame"></iframe><object data="` + e.at + `/object"></object>`
	text := strings.Replace(string(page(t, reporttest.Good())), "<section", hole+"<section", 1)
	p := browsertest.Open(t, []byte(text), browsertest.Desk)
	var title, colours string
	p.Eval("document.title", &title)
	p.Eval("getComputedStyle(document.querySelector('h1')).color + getComputedStyle(document.getElementById('styled')).color", &colours)
	if n := e.asked.Load(); n != 0 || strings.Contains(title, "pwned") || strings.Contains(colours, "1, 2, 3") || strings.Contains(colours, "4, 5, 6") {
		t.Errorf("it asked %d times; the title is %q, the colours are %s", n, title, colours)
	}
	if all := strings.Join(p.Console(), "\n"); strings.Count(all, "Content Security Policy") < 6 {
		t.Errorf("the browser does not say that the policy forbade all of it:\n%s", all)
	}
}

// ear listens at an address of this machine.
type ear struct {
	at string
	// connected counts connections, asked those by which something came: a
	// browser connects ahead to what it reads of, whatever a policy says.
	connected, asked atomic.Int32
}

func listener(t *testing.T) *ear {
	e := &ear{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		e.asked.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			e.connected.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	e.at = s.URL
	return e
}

// everywhere is a report whose every text is the same, but for what tells names
// apart.
func everywhere(evil string) *report.Report {
	r := reporttest.Bad()
	r.Version, r.Stopped, r.Partial = evil, evil, true
	r.Host.System, r.Host.Kernel, r.Host.Arch = evil, evil, evil
	for i := range r.Columns {
		c := &r.Columns[i]
		c.Name, c.Tool, c.Command = c.Name+evil, evil, evil
		if c.Missing != "" {
			c.Missing = evil
		}
		c.Guarantees = slices.Clone(c.Guarantees)
		for k := range c.Guarantees {
			c.Guarantees[k].Mechanism, c.Guarantees[k].Missing = evil, evil
		}
	}
	for i := range r.Probes {
		p := &r.Probes[i]
		p.ID, p.Group, p.Try, p.Why, p.Program, p.Severity = p.ID+evil, evil, evil, evil, evil+"\n"+evil, evil
		p.Rows = []string{evil}
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		c.Probe, c.Column, c.Why, c.Because, c.Control = c.Probe+evil, c.Column+evil, evil, evil, evil
		c.Evidence = []string{evil, "\u200f\ufeff\u00ad\U000e0041"}
	}
	r.Cells[0].Evidence = append(r.Cells[0].Evidence, strings.Repeat(evil, 50))
	return r
}
