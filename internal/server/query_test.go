package server

import (
	"net/http"
	"strings"
	"testing"

	"tranca/internal/api"
	"tranca/internal/server/route"
)

// TestEveryRouteIsAnswered shows that no call is without a handler, and no
// handler without a call.
func TestEveryRouteIsAnswered(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range route.All() {
		if handlers[r.Pattern] == nil {
			t.Errorf("%s has no handler", r.Pattern)
		}
		seen[r.Pattern] = true
	}
	for pattern := range handlers {
		if !seen[pattern] {
			t.Errorf("%s is no call", pattern)
		}
	}
}

func TestEventMedia(t *testing.T) {
	for accept, want := range map[string]string{
		"": "", "*/*": "", "application/json": "", api.TypeEvents: api.TypeEvents, api.TypeFrames: api.TypeFrames,
		"application/json, " + api.TypeEvents:        api.TypeEvents,
		api.TypeEvents + ";q=0.5, " + api.TypeFrames: api.TypeFrames,
		api.TypeEvents + ";q=0":                      "",
		api.TypeEvents + ";q=x":                      "",
		api.TypeFrames + ", " + api.TypeEvents:       api.TypeFrames,
		"APPLICATION/X-NDJSON":                       api.TypeEvents,
		";;;, " + api.TypeEvents:                     api.TypeEvents,
	} {
		if got := eventMedia([]string{accept}); got != want {
			t.Errorf("%q: %q, want %q", accept, got, want)
		}
	}
}

// FuzzQuery reads hostile queries for every call.
func FuzzQuery(f *testing.F) {
	for _, q := range []string{"", "path=a&offset=1", "limit=5&metadata=a%3Db&metadata=c%3D", "%", "a;b", "path=%00", "mode=0644&path=x", "depth=1&path=%ff"} {
		f.Add(q)
	}
	all := route.All()
	f.Fuzz(func(t *testing.T, raw string) {
		for i := range all {
			q, err := parseQuery(raw, all[i].Query)
			if err != nil {
				if api.ProblemOf(err).Status != http.StatusBadRequest {
					t.Errorf("%v", err)
				}
				continue
			}
			for j := range all[i].Query {
				p := &all[i].Query[j]
				switch v := q.text(p.Name); {
				case p.Required && v == "":
					t.Errorf("%s is empty", p.Name)
				case p.Kind == route.Number && (q.number(p.Name) < p.Min || q.number(p.Name) > p.Max):
					t.Errorf("%s is %s", p.Name, v)
				case p.Kind == route.Octal && q.octal(p.Name) > 0o777:
					t.Errorf("%s is %s", p.Name, v)
				case strings.IndexByte(v, 0) >= 0 && p.Kind == route.Text:
					t.Errorf("%s holds a NUL", p.Name)
				}
			}
		}
	})
}

// FuzzCursor reads hostile cursors.
func FuzzCursor(f *testing.F) {
	f.Add(position{5, "i0123456789abcdefghij"}.String())
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseCursor(text)
		if err != nil {
			return
		}
		if again, err := parseCursor(p.String()); err != nil || again != p {
			t.Errorf("%+v became %+v, %v", p, again, err)
		}
	})
}
