package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"tranca"
	"tranca/internal/api"
	"tranca/internal/engine"
	"tranca/internal/policy"
)

func TestSandboxLife(t *testing.T) {
	w := start(t)
	r := w.want(201, "POST", "/v1/sandboxes", api.CreateRequest{
		TTLMS: 60_000, IdleTimeoutMS: 30_000, Metadata: map[string]string{"who": "me"},
	})
	made := into[tranca.SandboxInfo](t, r)
	path := "/v1/sandboxes/" + string(made.ID)
	if r.Header.Get("Location") != path || made.IdleTimeoutMS != 30_000 || made.Metadata["who"] != "me" || made.Profile != "default" {
		t.Errorf("%s at %s", r.body, r.Header.Get("Location"))
	}
	if got := into[tranca.SandboxInfo](t, w.want(200, "GET", path, nil)); got.ID != made.ID {
		t.Errorf("%+v", got)
	}
	kept := into[tranca.SandboxInfo](t, w.want(200, "POST", path+"/keepalive", api.KeepAliveRequest{TTLMS: 3_600_000}))
	if !kept.Expires.After(made.Expires) {
		t.Errorf("it ends at %s, before at %s", kept.Expires, made.Expires)
	}
	w.want(200, "POST", path+"/keepalive", nil)
	w.want(204, "PATCH", path+"/environment", api.EnvironmentRequest{Set: map[string]string{"A": "1", "B": "2"}})
	w.want(204, "PATCH", path+"/environment", api.EnvironmentRequest{Unset: []string{"B"}})
	out := into[tranca.Result](t, w.want(200, "POST", path+"/run", api.RunRequest{Command: []string{"env"}})).Stdout
	if !strings.Contains(string(out), "A=1") || strings.Contains(string(out), "B=2") {
		t.Errorf("environment: %q", out)
	}
	w.want(204, "DELETE", path, nil)
	for _, method := range []string{"GET", "DELETE"} {
		if p := w.want(410, method, path, nil).problem(t); p.Code != api.CodeGone || !strings.Contains(p.Detail, "destroyed") {
			t.Errorf("%+v", p)
		}
	}
}

func TestList(t *testing.T) {
	w := start(t)
	var want []string
	for i := range 7 {
		meta := map[string]string{"n": fmt.Sprint(i % 2), "all": "=x"}
		path := w.create(api.CreateRequest{Metadata: meta})
		want = append(want, strings.TrimPrefix(path, "/v1/sandboxes/"))
	}
	walk := func(query string) (got []string) {
		t.Helper()
		for cursor := ""; ; {
			l := into[api.SandboxList](t, w.want(200, "GET", "/v1/sandboxes?"+query+cursor, nil))
			for _, s := range l.Sandboxes {
				got = append(got, string(s.ID))
			}
			if l.Next == "" {
				return got
			}
			if len(l.Sandboxes) == 0 {
				t.Fatal("an empty page that is not the last")
			}
			cursor = "&cursor=" + url.QueryEscape(l.Next)
		}
	}
	for _, limit := range []string{"1", "3", "7", "100"} {
		if got := walk("limit=" + limit); !slices.Equal(got, want) {
			t.Errorf("pages of %s: %v, want %v", limit, got, want)
		}
	}
	if got := walk("limit=2&metadata=n%3D1&metadata=all%3D%3Dx"); !slices.Equal(got, []string{want[1], want[3], want[5]}) {
		t.Errorf("by metadata: %v", got)
	}
	if got := walk("metadata=n%3D2"); len(got) != 0 {
		t.Errorf("by a value that none has: %v", got)
	}
	// A page goes on where it was, also where sandboxes have gone meanwhile.
	first := into[api.SandboxList](t, w.want(200, "GET", "/v1/sandboxes?limit=3", nil))
	w.want(204, "DELETE", "/v1/sandboxes/"+want[2], nil)
	w.want(204, "DELETE", "/v1/sandboxes/"+want[4], nil)
	second := into[api.SandboxList](t, w.want(200, "GET", "/v1/sandboxes?cursor="+first.Next, nil))
	if len(second.Sandboxes) != 3 || string(second.Sandboxes[0].ID) != want[3] {
		t.Errorf("after two have gone: %+v", second)
	}
}

// TestTurnedAway has a case for each problem of a sandbox's calls that a
// request alone can bring about.
func TestTurnedAway(t *testing.T) {
	w := start(t, func(s *settings) { s.engine.MaxTTL = 1 << 40 })
	box := w.create()
	other := "/v1/sandboxes/" + string(tranca.NewID())
	for _, tc := range []struct {
		method, path string
		body         any
		status       int
		code         api.Code
		words        string
	}{
		{"GET", other, nil, 410, api.CodeGone, ""},
		{"GET", "/v1/sandboxes/x", nil, 404, api.CodeNotFound, ""},
		{"GET", "/v1/sandboxes/" + strings.Repeat("i", 5000), nil, 404, api.CodeNotFound, ""},
		{"GET", "/v1/sandboxes/%00", nil, 404, api.CodeNotFound, ""},
		{"GET", "/v1/sandboxes/..%2f..%2fetc", nil, 404, api.CodeNotFound, ""},
		{"GET", "/v1/sandboxes/../info", nil, 404, api.CodeNotFound, "no call"},
		{"GET", "/v1//sandboxes", nil, 404, api.CodeNotFound, "no call"},
		{"GET", "/v1/sandboxes/", nil, 404, api.CodeNotFound, ""},
		{"GET", "/v2/info", nil, 404, api.CodeNotFound, "openapi.json"},
		{"GET", "/", nil, 404, api.CodeNotFound, ""},
		{"PUT", box, nil, 405, api.CodeMethod, "DELETE, GET"},
		{"HEAD", "/healthz", nil, 405, "", ""},
		{"OPTIONS", "/v1/run", nil, 405, api.CodeMethod, "DELETE, POST"},
		{"GET", "/v1/sandboxes?limit=0", nil, 400, api.CodeInvalid, "limit"},
		{"GET", "/v1/sandboxes?limit=1001", nil, 400, api.CodeInvalid, "1000"},
		{"GET", "/v1/sandboxes?limit=1&limit=2", nil, 400, api.CodeInvalid, "2 times"},
		{"GET", "/v1/sandboxes?limits=1", nil, 400, api.CodeInvalid, `did you mean "limit"`},
		{"GET", "/v1/sandboxes?cursor=***", nil, 400, api.CodeInvalid, "cursor"},
		{"GET", "/v1/sandboxes?metadata=x", nil, 400, api.CodeInvalid, "NAME=VALUE"},
		{"GET", "/v1/sandboxes?limit=%zz", nil, 400, api.CodeInvalid, "query"},
		{"GET", "/v1/sandboxes?a;b", nil, 400, api.CodeInvalid, "query"},
		{"GET", "/v1/info?x=1", nil, 400, api.CodeInvalid, "takes none"},
		{"GET", "/v1/info", "{}", 400, api.CodeInvalid, "no body"},
		{"POST", "/v1/sandboxes", `{"ttl":1}`, 400, api.CodeInvalid, `did you mean "ttl_ms"`},
		{"POST", "/v1/sandboxes", `{"ttl_ms":-1}`, 400, api.CodeInvalid, "ttl_ms"},
		{"POST", "/v1/sandboxes", `{"ttl_ms":9000000000000}`, 400, api.CodeInvalid, ""},
		{"POST", "/v1/sandboxes", `{"ttl_ms":1e3}`, 400, api.CodeInvalid, "whole number"},
		{"POST", "/v1/sandboxes", `{"profile":"none"}`, 404, api.CodeNotFound, "default"},
		{"POST", "/v1/sandboxes", `{"narrow":{"floor":"high"}}`, 400, api.CodeInvalid, "microvm"},
		{"POST", "/v1/sandboxes", `{"narrow":{"memory_bytes":1099511627776}}`, 403, api.CodeRefused, "memory"},
		{"POST", "/v1/sandboxes", `{"policy":{}}`, 400, api.CodeInvalid, "no field"},
		{"POST", "/v1/sandboxes", `{"metadata":{"a":1}}`, 400, api.CodeInvalid, "metadata.a"},
		{"POST", "/v1/sandboxes", `{"metadata":{"":"x"}}`, 400, api.CodeInvalid, "metadata"},
		{"POST", "/v1/sandboxes", `[]`, 400, api.CodeInvalid, "object"},
		{"POST", "/v1/sandboxes", `null`, 400, api.CodeInvalid, "null"},
		{"POST", "/v1/sandboxes", `{"profile":null}`, 400, api.CodeInvalid, "null"},
		{"POST", "/v1/sandboxes", `{"profile":"a","profile":"b"}`, 400, api.CodeInvalid, "twice"},
		{"POST", "/v1/sandboxes", `{"Profile":"a"}`, 400, api.CodeInvalid, `did you mean "profile"`},
		{"POST", "/v1/sandboxes", `{} {}`, 400, api.CodeInvalid, "goes on"},
		{"POST", "/v1/sandboxes", `{"profile":"\ud800"}`, 400, api.CodeInvalid, "surrogate"},
		{"POST", "/v1/sandboxes", "{\"profile\":\"\xff\"}", 400, api.CodeInvalid, "UTF-8"},
		{"POST", "/v1/sandboxes", `{"profile"`, 400, api.CodeInvalid, ""},
		{"PATCH", box + "/environment", `{"set":{"A=B":"1"}}`, 403, api.CodeRefused, "A=B"},
		{"POST", box + "/run", `{"command":["exit"],"profile":"default"}`, 400, api.CodeInvalid, "profile"},
		{"POST", box + "/run", `{"command":["exit"],"narrow":{"memory_bytes":33554432}}`, 400, api.CodeInvalid, "opened"},
		{"POST", "/v1/run", `{"command":["exit"],"code":"x"}`, 400, api.CodeInvalid, "both"},
		{"POST", "/v1/run", `{"code":"x","language":"cobol"}`, 400, api.CodeInvalid, "cobol"},
		{"POST", "/v1/run", `{"command":["exit"],"code_bytes":1}`, 400, api.CodeInvalid, "code_bytes"},
		{"POST", "/v1/run", ``, 415, api.CodeMediaType, "application/json"},
		{"DELETE", "/v1/run", nil, 400, api.CodeInvalid, "Idempotency-Key"},
	} {
		t.Run(tc.method+" "+tc.path[:min(len(tc.path), 60)]+fmt.Sprintf(" %.60s", tc.body), func(t *testing.T) {
			var header []string
			if tc.status == 415 {
				header = []string{"Content-Type", "text/plain"}
			}
			r := w.do(tc.method, tc.path, tc.body, header...)
			if r.StatusCode != tc.status {
				t.Fatalf("status %d, want %d: %s", r.StatusCode, tc.status, r.body)
			}
			if tc.method == http.MethodHead {
				return
			}
			p := r.problem(t)
			if p.Code != tc.code || !strings.Contains(p.Detail, tc.words) || p.RequestID != r.Header.Get(api.HeaderRequestID) {
				t.Errorf("%+v: want %s with %q", p, tc.code, tc.words)
			}
			if tc.status == 405 && r.Header.Get("Allow") != tc.words {
				t.Errorf("Allow: %q", r.Header.Get("Allow"))
			}
		})
	}
}

func TestMediaTypes(t *testing.T) {
	w := start(t)
	body := `{"command":["exit"]}`
	for media, status := range map[string]int{
		"application/json": 200, "Application/JSON; charset=UTF-8": 200, "application/json; charset=latin1": 415,
		"text/plain": 415, "application/x-www-form-urlencoded": 415, ";": 415, "application/octet-stream": 415,
	} {
		w.want(status, "POST", "/v1/run", body, "Content-Type", media)
	}
}

// TestProfiles shows that a request chooses among the operator's policies.
func TestProfiles(t *testing.T) {
	strict := policy.Default()
	strict.Limits.Memory, strict.Limits.Disk.Size = 64<<20, 16<<20
	w := start(t, func(s *settings) {
		s.engine.Profiles = []engine.Profile{{Name: "strict", Policy: strict}}
	})
	in := into[api.Info](t, w.want(200, "GET", "/v1/info", nil))
	if len(in.Profiles) != 2 || in.Profiles[0].Name != "default" || in.Profiles[1].Limits.Memory != 64<<20 || in.Version != "test" {
		t.Errorf("%+v", in)
	}
	made := into[tranca.SandboxInfo](t, w.want(201, "POST", "/v1/sandboxes", api.CreateRequest{Profile: "strict"}))
	if made.Profile != "strict" || made.Policy.Digest != in.Profiles[1].Digest {
		t.Errorf("%+v", made)
	}
}

func TestOpenCalls(t *testing.T) {
	w := start(t)
	if r := w.want(200, "GET", "/healthz", nil); string(r.body) != "{\"status\":\"ok\"}\n" {
		t.Errorf("%s", r.body)
	}
	if r := w.want(200, "GET", "/v1/openapi.json", nil); string(r.body) != string(openAPI) {
		t.Error("the document is another one")
	}
}
