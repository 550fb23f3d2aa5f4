package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tranca/internal/api"
	"tranca/internal/server/route"
)

const pageHead = `# The HTTP API

` + "`tranca serve`" + ` answers HTTP/1.1 at a unix socket, and at TCP where it is told to. This page is made from the [OpenAPI 3.1 document](../internal/server/openapi.json), which a running server gives at ` + "`GET /v1/openapi.json`" + `; a test fails where page, document and code differ.

` + "```sh" + `
curl --unix-socket /run/tranca/tranca.sock -H 'Content-Type: application/json' -d '{"code":"print(6*7)"}' http://tranca/v1/run
` + "```" + `

## Who may call

By the unix socket the server's own user and root, as the kernel tells; no key is needed there. By TCP who sends ` + "`Authorization: Bearer KEY`" + `. A key in the address is refused, because addresses are kept in logs. TCP is not encrypted: put a proxy with TLS in front where others share the network.

A request never carries a policy. It names one of the operator's profiles and may narrow it; what asks for more is ` + "`refused`" + `.

## Requests

Bodies are JSON unless a call says otherwise. They are read strictly: unknown, repeated and missing fields, null, text that is no Unicode, and unknown parameters are ` + "`invalid`" + `, and the answer names the nearest right name. A body has at most 1 MiB, that of a run 80 MiB; files and archives have no bound but that of the sandbox's space. Times are in milliseconds, sizes in bytes.

With the header ` + "`Idempotency-Key`" + ` a run or a creation is done once: the same key with the same body answers within 10 minutes what the first one did, also while it is under way (the last 2,048 keys are remembered, and 4 MiB of answers; where the answer was forgotten, it is told that the request was done); with another body it is a ` + "`conflict`" + `. A request that failed may be tried again with its key. A body of frames whose standard input comes with it is never the same as another.

Each answer has a header ` + "`X-Request-Id`" + `, which the server's log has too.

## Streams of events

Runs, output and watches come as events: lines of JSON (` + "`application/x-ndjson`" + `), or frames (` + "`application/vnd.tranca.frames`" + `), as the header Accept asks. Each line is an [Event](#event). A frame is one byte that says what it is, a big-endian length of 32 bits, and so many bytes: ` + "`o`" + ` output, ` + "`e`" + ` error output, ` + "`j`" + ` any other event as JSON. After 15 seconds of silence comes a ` + "`keepalive`" + `. The output of a process, followed as frames over the unix socket, comes in no chunks and ends with the connection: its last frame, ` + "`exit`" + ` or ` + "`error`" + `, says that all of it came.

A body of frames carries a run's input too: ` + "`j`" + ` the request, then ` + "`c`" + ` its code where the request has ` + "`code_bytes`" + `, then ` + "`i`" + ` standard input, which an empty one or the end of the body ends.

A client that takes nothing for a minute has gone.

`

// Page returns docs/API.md, made from the document.
func Page(document []byte) []byte {
	var doc struct {
		Components struct {
			Schemas map[string]schemaDoc `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		panic(err) // it was made a moment ago
	}
	var b strings.Builder
	b.WriteString(pageHead)
	problems(&b)
	group := ""
	for _, r := range route.All() {
		if r.Group != group {
			group = r.Group
			fmt.Fprintf(&b, "## %s\n\n", group)
		}
		call(&b, &r)
	}
	b.WriteString("## Bodies\n\nFields in bold are always there.\n\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		s := doc.Components.Schemas[name]
		s.write(&b, name)
	}
	return []byte(strings.TrimRight(b.String(), "\n") + "\n")
}

func problems(b *strings.Builder) {
	b.WriteString("## Errors\n\nAn error is `application/problem+json` (RFC 9457), a [Problem](#problem): `code` is stable, `detail` says what was wrong, `fix` what to do.\n\n| code | status | |\n|---|---|---|\n")
	for _, c := range api.Codes() {
		p := api.NewProblem(c, "")
		words := p.Title
		if p.Fix != "" {
			words += ": " + p.Fix
		}
		fmt.Fprintf(b, "| `%s` | %d | %s |\n", c, p.Status, words)
	}
	b.WriteString("\n")
}

func call(b *strings.Builder, r *route.Route) {
	fmt.Fprintf(b, "### %s\n\n`%s`\n\n", r.Summary, r.Pattern)
	if r.About != "" {
		fmt.Fprintf(b, "%s\n\n", r.About)
	}
	if len(r.Query) > 0 {
		b.WriteString("| parameter | |\n|---|---|\n")
		for _, p := range r.Query {
			words := p.About
			switch {
			case p.Required:
				words += " Required."
			case p.Default != "":
				words += fmt.Sprintf(" Default: `%s`.", p.Default)
			}
			fmt.Fprintf(b, "| `%s` | %s |\n", p.Name, words)
		}
		b.WriteString("\n")
	}
	if r.Body != nil {
		var kinds []string
		if r.Body.JSON != nil {
			kinds = append(kinds, link(r.Body.JSON.Name()))
		}
		for _, m := range r.Body.Media {
			kinds = append(kinds, "`"+m+"`")
		}
		optional := ""
		if r.Body.Optional {
			optional = ", or nothing"
		}
		fmt.Fprintf(b, "Body: %s%s.\n\n", strings.Join(kinds, " or "), optional)
	}
	for _, a := range r.Answers {
		var kinds []string
		if a.JSON != nil && a.JSON.Name() != "" {
			kinds = append(kinds, link(a.JSON.Name()))
		}
		for _, m := range a.Media {
			kinds = append(kinds, "`"+m+"`")
		}
		with := ""
		if len(kinds) > 0 {
			with = " " + strings.Join(kinds, " or ")
		}
		fmt.Fprintf(b, "Answer: %d%s. %s\n\n", a.Status, with, a.About)
	}
}

func link(name string) string { return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name)) }

// schemaDoc is what the page tells of a schema.
type schemaDoc struct {
	Description string               `json:"description"`
	Type        string               `json:"type"`
	Ref         string               `json:"$ref"`
	AllOf       []schemaDoc          `json:"allOf"`
	Enum        []string             `json:"enum"`
	Items       *schemaDoc           `json:"items"`
	Format      string               `json:"format"`
	Encoding    string               `json:"contentEncoding"`
	Properties  map[string]schemaDoc `json:"properties"`
	Required    []string             `json:"required"`
	Additional  json.RawMessage      `json:"additionalProperties"`
}

func (s *schemaDoc) write(b *strings.Builder, name string) {
	fmt.Fprintf(b, "### %s\n\n%s\n\n| field | type | |\n|---|---|---|\n", name, s.Description)
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[field]
		words := "`" + field + "`"
		if slices.Contains(s.Required, field) {
			words = "**" + words + "**"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", words, p.kind(), strings.ReplaceAll(p.Description, "|", "\\|"))
	}
	b.WriteString("\n")
}

func (s *schemaDoc) kind() string {
	switch {
	case len(s.AllOf) > 0:
		return s.AllOf[0].kind()
	case s.Ref != "":
		return link(s.Ref[strings.LastIndex(s.Ref, "/")+1:])
	case len(s.Enum) > 12:
		return "a word"
	case len(s.Enum) > 0:
		return "`" + strings.Join(s.Enum, "`, `") + "`"
	case s.Items != nil:
		return "array of " + s.Items.kind()
	case s.Encoding != "":
		return s.Encoding
	case s.Format == "date-time":
		return "time"
	case s.Type == "object":
		return "object of names and values"
	}
	return s.Type
}
