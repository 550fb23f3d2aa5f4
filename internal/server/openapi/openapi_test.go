package openapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"tranca/internal/api"
	"tranca/internal/server/route"
)

var update = flag.Bool("update", false, "write the OpenAPI document and docs/API.md")

const (
	documentFile = "../openapi.json"
	pageFile     = "../../../docs/API.md"
)

func comments(t *testing.T) Comments {
	t.Helper()
	c, err := ReadComments("../../..", "../../api", "../route", ".")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWritten compares what is written with what the code says.
func TestWritten(t *testing.T) {
	c := comments(t)
	document, err := Build(c)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][]byte{documentFile: document, pageFile: Page(document)} {
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the code says (%v): go test ./internal/server/openapi -update", file, err)
		}
	}
}

// TestEveryRouteOnce shows that the document has every pattern of package api
// and no other.
func TestEveryRouteOnce(t *testing.T) {
	text, err := os.ReadFile("../../api/path.go")
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Responses   map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, m := range regexp.MustCompile(`= "([A-Z]+ /[^"]*)"`).FindAllStringSubmatch(string(text), -1) {
		want[m[1]] = true
	}
	if len(want) != len(route.All()) || len(want) < 30 {
		t.Errorf("package api has %d patterns, package route %d", len(want), len(route.All()))
	}
	names := map[string]bool{}
	for path, item := range doc.Paths {
		for method, op := range item {
			pattern := strings.ToUpper(method) + " " + path
			if !want[pattern] {
				t.Errorf("the document has %s, package api does not", pattern)
			}
			delete(want, pattern)
			if names[op.OperationID] {
				t.Errorf("two operations are called %s", op.OperationID)
			}
			names[op.OperationID] = true
		}
	}
	for pattern := range want {
		t.Errorf("the document lacks %s", pattern)
	}
}

// TestCodesAreDocumented shows that each code of a problem may come of some
// call, but for that of a wrong method, which no call has.
func TestCodesAreDocumented(t *testing.T) {
	seen := map[api.Code]bool{api.CodeMethod: true}
	for _, r := range route.All() {
		for _, c := range r.Problems() {
			seen[c] = true
		}
	}
	for _, c := range api.Codes() {
		if !seen[c] {
			t.Errorf("no call answers %s", c)
		}
	}
}
