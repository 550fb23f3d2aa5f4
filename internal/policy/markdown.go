package policy

import (
	_ "embed"
	"fmt"
	"strings"

	"tranca"
)

//go:embed policy.md.txt
var markdownText string

// Markdown returns docs/POLICY.md. Its text is in policy.md.txt; the tables
// are made from what the parser itself uses.
func Markdown() []byte {
	return []byte(strings.NewReplacer(
		"{{fields}}", fieldRows(table()),
		"{{mounts}}", fieldRows(mountTable()),
		"{{limits}}", limitRows(),
		"{{items}}", itemRows(),
		"{{protect}}", protectRows(),
		"{{waivable}}", "`"+strings.Join(itemWords(tranca.Waivable()), "`, `")+"`",
		"{{subprocess}}", "`"+strings.Join(itemWords(Required(tranca.LevelSubprocess)), "`, `")+"`",
		"{{starter}}", string(Starter()),
		"{{reserved}}", "`"+strings.Join(reserved, "`, `")+"`",
		"{{maxMounts}}", fmt.Sprint(maxMounts),
		"{{maxEntries}}", fmt.Sprint(maxEntries),
		"{{maxEnv}}", fmt.Sprint(maxEnv),
		"{{maxEnvValue}}", FormatSize(maxEnvValue),
		"{{maxDepth}}", fmt.Sprint(maxDepth),
		"{{maxFile}}", FormatSize(maxFile),
	).Replace(markdownText))
}

// fieldRows are the rows of fields that are no limits.
func fieldRows(fields []field) string {
	var b strings.Builder
	b.WriteString("| field | form | default | meaning |\n|---|---|---|---|\n")
	for _, f := range fields {
		if strings.HasPrefix(f.path, "limits.") && f.numeric() {
			continue
		}
		standard := ""
		if s := f.standard(); s != "" {
			standard = "`" + s + "`"
		}
		form := unitNames[f.kind]
		if f.kind == kindWord {
			form = "`" + strings.Join(f.words, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.path, form, standard, f.doc)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func limitRows() string {
	var b strings.Builder
	b.WriteString("| limit | flag | form | default | least | most | meaning |\n|---|---|---|---|---|---|---|\n")
	for _, f := range limitFields() {
		if f.numeric() {
			fmt.Fprintf(&b, "| `%s` | `%s` | %s | `%s` | `%s` | `%s` | %s |\n",
				f.path, f.flag, unitNames[f.kind], f.standard(), f.format(f.min), f.format(f.max), f.doc)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func itemRows() string {
	var b strings.Builder
	b.WriteString("| item | what it is | process | subprocess | waivable |\n|---|---|---|---|---|\n")
	yes := func(items []tranca.Item, item tranca.Item) string {
		for _, i := range items {
			if i == item {
				return "yes"
			}
		}
		return "no"
	}
	for _, t := range itemTexts() {
		process, subprocess := yes(Required(tranca.LevelProcess), t.item), yes(Required(tranca.LevelSubprocess), t.item)
		switch t.item {
		case tranca.ItemMounts:
			subprocess = "with mounts"
		case tranca.ItemMountDisk, tranca.ItemProtect:
			process, subprocess = "with writable mounts", "with writable mounts"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", t.item, t.short, process, subprocess, yes(tranca.Waivable(), t.item))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func protectRows() string {
	var b strings.Builder
	b.WriteString("| entry | who executes it |\n|---|---|\n")
	for _, p := range protectTable {
		fmt.Fprintf(&b, "| `%s` | %s |\n", p.entry, p.why)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
