package report

import (
	"cmp"
	"fmt"
	"strings"

	"tranca/internal/bench"
)

const pageStyle = `
:root{color-scheme:light dark;--bg:#ffffff;--fg:#1f2328;--dim:#59636e;--edge:#d1d9e0;--bad:#a40e26;--badbg:#ffebe9}
@media (prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--dim:#9198a1;--edge:#3d444d;--bad:#f85149;--badbg:#2d1214}}
body{background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.2rem}p.dim,figcaption{color:var(--dim)}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.87rem}
th,td{padding:.3rem .7rem;border-bottom:1px solid var(--edge);text-align:left;white-space:nowrap}
td.wrap{white-space:normal}figure{margin:1rem 0}svg{max-width:100%;height:auto;border:1px solid var(--edge);border-radius:6px}
.bad{border:1px solid var(--bad);background:var(--badbg);border-radius:6px;padding:.2rem 1rem}.bad strong{color:var(--bad)}
code{font:.85rem ui-monospace,monospace;overflow-wrap:anywhere}
`

// HTML returns the result as one page: tables and plots, with nothing from
// elsewhere. It is well-formed XML, too.
func HTML(r *bench.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"+
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"+
		"<title>tranca bench, %s</title><style>%s</style></head><body>\n<h1>tranca bench</h1>\n<p class=\"dim\">%s</p>\n",
		escape(r.Started.Format("2006-01-02")), pageStyle, escape(headline(r)))
	if bad := r.Sound(); len(bad) > 0 {
		b.WriteString("<div class=\"bad\" role=\"alert\"><p><strong>This result doesn't stand as it is.</strong></p>")
		list(&b, bad)
		b.WriteString("</div>\n")
	}
	if r.Partial {
		b.WriteString("<div class=\"bad\" role=\"alert\"><p><strong>The run was stopped before its end: this is a part of it.</strong></p></div>\n")
	}
	for _, p := range Plots(r) {
		fmt.Fprintf(&b, "<figure>%s<figcaption>%s</figcaption></figure>\n", inline(p.SVG), escape(p.What))
	}
	for _, t := range tables() {
		if rows := t.rows(r); len(rows) > 1 {
			fmt.Fprintf(&b, "<h2>%s</h2>\n", escape(t.title))
			grid(&b, rows)
		}
	}
	for _, n := range remarks(r) {
		fmt.Fprintf(&b, "<h2>%s</h2>\n", escape(n.title))
		list(&b, n.lines)
	}
	subjects(&b, r)
	b.WriteString("<h2>What is measured</h2>\n")
	rows := [][]string{{"measure", "unit", "what"}}
	for _, m := range bench.Measures() {
		rows = append(rows, []string{m.Title, string(m.Unit), m.What})
	}
	grid(&b, rows)
	b.WriteString("</body></html>\n")
	return b.String()
}

// inline takes out of a drawing what only a file needs: in a page it would read
// as the address of something outside.
func inline(svg string) string {
	return strings.Replace(svg, ` xmlns="http://www.w3.org/2000/svg"`, "", 1)
}

func list(b *strings.Builder, lines []string) {
	b.WriteString("<ul>")
	for _, l := range lines {
		fmt.Fprintf(b, "<li>%s</li>", escape(l))
	}
	b.WriteString("</ul>\n")
}

// grid writes a table whose first row is its head.
func grid(b *strings.Builder, rows [][]string) {
	b.WriteString("<div class=\"scroll\"><table>")
	for i, row := range rows {
		b.WriteString("<tr>")
		for j, cell := range row {
			switch {
			case i == 0:
				fmt.Fprintf(b, "<th scope=\"col\">%s</th>", escape(cell))
			case j == 0:
				fmt.Fprintf(b, "<th scope=\"row\">%s</th>", escape(cell))
			default:
				fmt.Fprintf(b, "<td>%s</td>", escape(cell))
			}
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table></div>\n")
}

// subjects says what stood behind each name.
func subjects(b *strings.Builder, r *bench.Result) {
	b.WriteString("<h2>What was run</h2>\n<ul>")
	for i := range r.Subjects {
		s := &r.Subjects[i]
		fmt.Fprintf(b, "<li><strong>%s</strong>, %s", escape(s.Name), escape(string(s.Kind)))
		for _, f := range []struct{ what, text string }{
			{"isolation level", s.Isolation}, {"runtime", s.Runtime}, {"version", s.Version}, {"image", s.Image},
		} {
			if f.text != "" {
				fmt.Fprintf(b, ", %s %s", f.what, escape(f.text))
			}
		}
		if len(s.Command) > 0 {
			fmt.Fprintf(b, "<br/><code>%s</code>", escape(strings.Join(s.Command, " ")))
		}
		b.WriteString("</li>")
	}
	fmt.Fprintf(b, "</ul>\n<p class=\"dim\">Interpreter outside of containers: %s</p>\n", escape(cmp.Or(r.Host.Python, "unknown")))
}
