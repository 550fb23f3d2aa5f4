package archtest

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Doc is one Markdown file, with its path from the root of the tree.
type Doc struct{ Name, Text string }

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	inlineCode   = regexp.MustCompile("`([^`\n]+)`")
	treePath     = regexp.MustCompile(`^(backendtest|bench|cmd|docs|examples|internal|local|scripts)/[A-Za-z0-9_./-]+$`)
	namedTest    = regexp.MustCompile(`\b([a-z][a-z0-9_]*)\.((?:Test|Fuzz)[A-Za-z0-9]+)((?:/[A-Z][A-Za-z]*)*)`)
	makeTarget   = regexp.MustCompile(`(?m)\bmake ([a-z][a-z-]*)`)
	hostileTest  = regexp.MustCompile(`\b(process|hostiletest)\.TestHostile`)
	rowID        = regexp.MustCompile(`\b[A-Z]{2,3}-[0-9]{2}\b`)
	subcommand   = regexp.MustCompile(`^[a-z]+$`)
	notInSlug    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// CheckLinks returns a line for each link within the tree that leads nowhere,
// and for each path in backquotes that is not there. exists judges a path from
// the root; headings returns those of a Markdown file.
func CheckLinks(d Doc, exists func(string) bool, headings func(string) []string) []string {
	var bad []string
	for _, m := range markdownLink.FindAllStringSubmatch(d.Text, -1) {
		if strings.Contains(m[1], "://") {
			continue
		}
		file, anchor, _ := strings.Cut(m[1], "#")
		target := d.Name
		if file != "" {
			target = path.Join(path.Dir(d.Name), file)
		}
		if !exists(target) {
			bad = append(bad, fmt.Sprintf("%s links to %s, which is not there", d.Name, m[1]))
		} else if anchor != "" && !slices.Contains(headings(target), anchor) {
			bad = append(bad, fmt.Sprintf("%s links to %s, and there is no such heading", d.Name, m[1]))
		}
	}
	for _, m := range inlineCode.FindAllStringSubmatch(d.Text, -1) {
		name := strings.TrimSuffix(strings.TrimSuffix(m[1], "/..."), "/")
		placeholder := strings.HasSuffix(name, "/NAME")
		if treePath.MatchString(name) && !placeholder && !exists(name) {
			bad = append(bad, fmt.Sprintf("%s names %s, which is not there", d.Name, m[1]))
		}
	}
	return bad
}

// Headings returns the anchors of a Markdown text.
func Headings(text string) []string {
	var all []string
	for _, line := range strings.Split(withoutFences(text), "\n") {
		if title := strings.TrimLeft(line, "#"); title != line {
			title = notInSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			all = append(all, strings.ReplaceAll(title, " ", "-"))
		}
	}
	return all
}

// Tests is what the tree's tests are: functions by package and name, and the
// whole text of the files.
type Tests struct {
	Funcs map[string]bool // "process.TestHostileFiles"
	Text  string
}

// CheckNamedTests returns a line for each test that a document names and that
// there is not. A name after a slash is a case of the backend suite.
func CheckNamedTests(d Doc, tests Tests) []string {
	var bad []string
	for _, m := range namedTest.FindAllStringSubmatch(d.Text, -1) {
		if name := m[1] + "." + m[2]; !tests.Funcs[name] {
			bad = append(bad, fmt.Sprintf("%s names the test %s: there is none", d.Name, name))
		}
		if m[3] != "" && !strings.Contains(tests.Text, `{"`+m[3][1:]+`", `) {
			bad = append(bad, fmt.Sprintf("%s names the case %s of %s: there is none", d.Name, m[3][1:], m[2]))
		}
	}
	return bad
}

// CheckRows returns a line for each row of the catalogue that a document says
// a hostile test shows, and that no test mentions.
func CheckRows(d Doc, tests Tests) []string {
	var bad []string
	for _, line := range strings.Split(d.Text, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !hostileTest.MatchString(line) {
			continue
		}
		for _, id := range rowID.FindAllString(cells[1], -1) {
			if !strings.Contains(tests.Text, id) {
				bad = append(bad, fmt.Sprintf("%s says that a test shows %s: none mentions it", d.Name, id))
			}
		}
	}
	return bad
}

// CheckCommands returns a line for each command of tranca in a document whose
// subcommand or flag there is not. help returns the help of a subcommand, which
// may be of two words, or false.
func CheckCommands(d Doc, help func(sub string) (string, bool)) []string {
	var bad []string
	for _, command := range Commands(d.Text) {
		words := shellWords(command)
		if len(words) < 2 || !subcommand.MatchString(words[1]) {
			continue // "tranca" alone, or a placeholder
		}
		text, ok := help(words[1])
		if !ok {
			bad = append(bad, fmt.Sprintf("%s: %q: there is no command %s", d.Name, command, words[1]))
			continue
		}
		if len(words) > 2 && subcommand.MatchString(words[2]) {
			if below, ok := help(words[1] + " " + words[2]); ok {
				text = below
			}
		}
		for _, w := range words[2:] {
			if w == "--" || w == "|" || w == ">" || w == "&&" {
				break
			}
			flag, _, _ := strings.Cut(w, "=")
			if strings.HasPrefix(flag, "-") && len(flag) > 1 && !hasFlag(text, flag) {
				bad = append(bad, fmt.Sprintf("%s: %q: there is no flag %s", d.Name, command, flag))
			}
		}
	}
	return bad
}

func hasFlag(help, flag string) bool {
	return slices.ContainsFunc(strings.Fields(help), func(w string) bool { return strings.Trim(w, ",") == flag })
}

// Commands returns the command lines of tranca in a document: lines of shell
// blocks, and words in backquotes.
func Commands(text string) []string {
	var all []string
	for _, block := range Fences(text, "sh", "console") {
		for _, line := range strings.Split(block, "\n") {
			line = strings.TrimPrefix(line, "$ ")
			if strings.HasPrefix(line, "tranca ") {
				all = append(all, line)
			}
		}
	}
	for _, m := range inlineCode.FindAllStringSubmatch(withoutFences(text), -1) {
		if strings.HasPrefix(m[1], "tranca ") {
			all = append(all, m[1])
		}
	}
	return all
}

// Fences returns the blocks of code in some languages.
func Fences(text string, languages ...string) []string {
	var all []string
	open, block := "", []string{}
	for _, line := range strings.Split(text, "\n") {
		fence, ok := strings.CutPrefix(line, "```")
		switch {
		case ok && open == "":
			open, block = "+"+fence, nil
		case ok:
			if slices.Contains(languages, open[1:]) {
				all = append(all, strings.Join(block, "\n"))
			}
			open = ""
		case open != "":
			block = append(block, line)
		}
	}
	return all
}

func withoutFences(text string) string {
	parts := strings.Split(text, "```")
	var kept []string
	for i := 0; i < len(parts); i += 2 {
		kept = append(kept, parts[i])
	}
	return strings.Join(kept, "\n")
}

// shellWords splits at blanks outside of quotes.
func shellWords(line string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	for _, c := range line + " " {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
			word.WriteByte('x') // a quoted word is no flag
		case c == ' ':
			if word.Len() > 0 {
				words = append(words, word.String())
			}
			word.Reset()
		default:
			word.WriteRune(c)
		}
	}
	return words
}

// CheckTargets returns a line for each target of make that a document names
// and the Makefile lacks.
func CheckTargets(d Doc, makefile string) []string {
	var bad []string
	code := strings.Join(Fences(d.Text, "sh"), "\n")
	for _, m := range inlineCode.FindAllStringSubmatch(withoutFences(d.Text), -1) {
		code += "\n" + m[1]
	}
	for _, m := range makeTarget.FindAllStringSubmatch(code, -1) {
		if !regexp.MustCompile(`(?m)^` + m[1] + `:`).MatchString(makefile) {
			bad = append(bad, fmt.Sprintf("%s names make %s: the Makefile has no such target", d.Name, m[1]))
		}
	}
	return bad
}
