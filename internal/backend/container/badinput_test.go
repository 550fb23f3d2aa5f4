package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/internal/policy"
	"tranca/internal/require"
)

// fake plays an engine that does what a real one can't be made to do. What a
// test does not say is answered as Docker would.
type fake struct {
	handlers map[string]http.HandlerFunc // by "METHOD /path", the version cut off
	removed  chan string
}

const containerID = "0123456789abcdef0123456789abcdef"

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/v1.41")
	if h, ok := f.handlers[r.Method+" "+path]; ok {
		h(w, r)
		return
	}
	switch r.Method + " " + path {
	case "GET /_ping":
		w.Header().Set("Server", "Docker/24.0.7 (linux)")
		w.Header().Set("Api-Version", "1.43")
	case "GET /info":
		io.WriteString(w, `{"OSType":"linux","NCPU":2,"MemoryLimit":true,"PidsLimit":true,"CpuCfsQuota":true,"CgroupVersion":"2","DefaultRuntime":"runc","Runtimes":{"runc":{}},"SecurityOptions":["name=userns"]}`)
	case "GET /version":
		io.WriteString(w, `{"Version":"24.0.7"}`)
	case "GET /containers/json":
		io.WriteString(w, `[]`)
	case "GET /images/image/json":
		fmt.Fprintf(w, `{"Id":"sha256:aa","Os":"linux","Architecture":%q,"Config":{}}`, runtime.GOARCH)
	case "POST /containers/create":
		w.WriteHeader(201)
		fmt.Fprintf(w, `{"Id":%q}`, containerID)
	default:
		if r.Method == http.MethodDelete {
			select {
			case f.removed <- path:
			default:
			}
		}
		w.WriteHeader(404)
		io.WriteString(w, `{"message":"no such thing"}`)
	}
}

// against makes a backend on a fake engine.
func against(t *testing.T, handlers map[string]http.HandlerFunc) (*Backend, *fake) {
	t.Helper()
	f := &fake{handlers: handlers, removed: make(chan string, 16)}
	socket := filepath.Join(t.TempDir(), "engine.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: f, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	return at(t, socket), f
}

func at(t *testing.T, socket string) *Backend {
	t.Helper()
	b, err := New(Options{Engine: "unix://" + socket, Image: "image", CacheFolder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func header(server string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Server", server)
		w.Header().Set("Api-Version", "1.40")
	}
}

func testSpec() tranca.Spec {
	p := policy.Default()
	p.Floor, p.Backend = tranca.LevelContainer, Name
	return tranca.Spec{ID: tranca.NewID(), Policy: p}
}

// refused looks for a refusal that says all of the words, and that nothing runs.
func refused(t *testing.T, b *Backend, words ...string) {
	t.Helper()
	spec := testSpec()
	sb, err := b.Create(t.Context(), spec)
	var r *tranca.RefusalError
	if sb != nil || !errors.As(err, &r) {
		t.Fatalf("%v, %v", sb, err)
	}
	text := fmt.Sprintf("%+v", r.Problems)
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("it does not say %q: %s", w, text)
		}
	}
	if strings.ContainsAny(text, "\x1b\x00") {
		t.Errorf("control characters of the engine: %q", text)
	}
}

func TestEnginesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(dir, "dead.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	refused(t, at(t, filepath.Join(dir, "absent.sock")), "none answers", "TRANCA_CONTAINER_ENGINE")
	refused(t, at(t, plain), "no socket")
	refused(t, at(t, dead), "connection refused", "start it anew")
}

func TestAnEngineElsewhereIsRefused(t *testing.T) {
	for _, value := range []string{"tcp://10.0.0.1:2375", "ssh://host", "relative.sock"} {
		b, err := New(Options{Engine: value, Image: "image", CacheFolder: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		refused(t, b, "no local socket", "unix:///PATH")
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestASocketOfSomebodyElseIsRefused(t *testing.T) {
	require.Root(t)
	b, _ := against(t, nil)
	socket := strings.TrimPrefix(b.options.Engine, "unix://")
	if err := os.Chown(socket, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	refused(t, b, "belongs to user id 12345", "run tranca as that user")
}

func TestASocketWithoutPermission(t *testing.T) {
	require.Unprivileged(t)
	b, _ := against(t, nil)
	if err := os.Chmod(strings.TrimPrefix(b.options.Engine, "unix://"), 0); err != nil {
		t.Fatal(err)
	}
	refused(t, b, "may not use the engine's socket", "rootless")
}

// What an engine answers before anything is made.
func TestEnginesThatAnswerBadly(t *testing.T) {
	for name, c := range map[string]struct {
		handlers map[string]http.HandlerFunc
		words    []string
	}{
		"too old":            {map[string]http.HandlerFunc{"GET /_ping": header("Docker/19.03.15 (linux)")}, []string{"Docker 20.10 or later", "19.03.15", "update Docker"}},
		"Podman, too old":    {map[string]http.HandlerFunc{"GET /_ping": header("Libpod/3.4.4 (linux)")}, []string{"Podman 4.0 or later", "3.4.4"}},
		"something else":     {map[string]http.HandlerFunc{"GET /_ping": header("nginx")}, []string{"no Docker and no Podman"}},
		"500":                {map[string]http.HandlerFunc{"GET /_ping": says(500, "\x1b[31mbroken")}, []string{"status 500"}},
		"garbage":            {map[string]http.HandlerFunc{"GET /info": says(200, "<html>\x00")}, []string{"not of the Docker Engine API"}},
		"Windows":            {map[string]http.HandlerFunc{"GET /info": says(200, `{"OSType":"windows"}`)}, []string{"Linux containers"}},
		"no image":           {map[string]http.HandlerFunc{"GET /images/image/json": says(404, `{"message":"no such image"}`)}, []string{"TRANCA_CONTAINER_IMAGE", "tranca image build code"}},
		"of another kind":    {map[string]http.HandlerFunc{"GET /images/image/json": says(200, `{"Id":"sha256:aa","Os":"linux","Architecture":"s390x"}`)}, []string{"s390x", "this platform"}},
		"an empty image":     {map[string]http.HandlerFunc{"GET /images/image/json": says(200, `{}`)}, []string{"not of the Docker Engine API"}},
		"a volume at /proc":  {map[string]http.HandlerFunc{"GET /images/image/json": says(200, fmt.Sprintf(`{"Id":"sha256:aa","Os":"linux","Architecture":%q,"Config":{"Volumes":{"/proc/x":{}}}}`, runtime.GOARCH))}, []string{"volume", "/proc/x"}},
		"no memory limit":    {map[string]http.HandlerFunc{"GET /info": says(200, `{"OSType":"linux","NCPU":2,"PidsLimit":true,"CpuCfsQuota":true,"CgroupVersion":"2"}`)}, []string{"limits.memory", "waive"}},
		"disk full":          {map[string]http.HandlerFunc{"POST /containers/create": says(500, `{"message":"write /var/lib/docker: no space left on device"}`)}, []string{"no space left", "make room"}},
		"no such runtime":    {map[string]http.HandlerFunc{"POST /containers/create": says(400, `{"message":"Unknown runtime specified nope"}`)}, []string{"nope"}},
		"an id that is none": {map[string]http.HandlerFunc{"POST /containers/create": says(201, `{"Id":"../../x"}`)}, []string{"not of the Docker Engine API"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := against(t, c.handlers)
			refused(t, b, c.words...)
		})
	}
}

// A container that the engine made otherwise never gets to run, and is removed.
func TestAContainerThatIsNotWhatWasAsked(t *testing.T) {
	for name, c := range map[string]struct{ inspect, word string }{
		"privileged":       {`{"Config":{},"HostConfig":{"Privileged":true}}`, "privileged"},
		"network":          {`{"Config":{},"HostConfig":{"NetworkMode":"bridge"},"NetworkSettings":{"Networks":{"bridge":{}}}}`, "network mode none"},
		"a writable root":  {`{"Config":{},"HostConfig":{"ReadonlyRootfs":false}}`, "read-only root"},
		"capabilities":     {`{"Config":{},"HostConfig":{"CapAdd":["SYS_ADMIN"]}}`, "SYS_ADMIN"},
		"without a filter": {`{"Config":{},"HostConfig":{"SecurityOpt":["seccomp=unconfined"]}}`, "seccomp=unconfined"},
		"host's processes": {`{"Config":{},"HostConfig":{"PidMode":"host"}}`, "pid mode"},
		"host's ipc":       {`{"Config":{},"HostConfig":{"IpcMode":"host"}}`, "ipc mode"},
		"host's users":     {`{"Config":{},"HostConfig":{"UsernsMode":"host"}}`, "user namespace"},
		"no memory limit":  {`{"Config":{},"HostConfig":{"Memory":0}}`, "memory"},
		"a log":            {`{"Config":{},"HostConfig":{"LogConfig":{"Type":"json-file"}}}`, "json-file"},
		"restarts":         {`{"Config":{},"HostConfig":{"RestartPolicy":{"Name":"always"}}}`, "always"},
		"its entrypoint":   {`{"Config":{"Entrypoint":["/evil"]},"HostConfig":{}}`, "/evil"},
		"another image":    {`{"Image":"sha256:bb","Config":{},"HostConfig":{}}`, "image aa"},
		"a volume":         {`{"Config":{},"HostConfig":{},"Mounts":[{"Type":"volume","Destination":"/data","RW":true}]}`, "volume at /data"},
		"a device":         {`{"Config":{},"HostConfig":{"Devices":[{}]}}`, "devices"},
	} {
		t.Run(name, func(t *testing.T) {
			started := false
			b, f := against(t, map[string]http.HandlerFunc{
				"GET /containers/" + containerID + "/json": says(200, c.inspect),
				"POST /containers/" + containerID + "/start": func(w http.ResponseWriter, _ *http.Request) {
					started = true
					w.WriteHeader(204)
				},
				"POST /containers/" + containerID + "/attach": hijacked,
			})
			refused(t, b, c.word)
			if started {
				t.Error("it was started")
			}
			if path := <-f.removed; !strings.Contains(path, "/containers/tranca-i") {
				t.Errorf("removed was %s", path)
			}
		})
	}
}

// hijacked gives the connection itself, and closes it.
func hijacked(w http.ResponseWriter, _ *http.Request) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	io.WriteString(c, "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
	c.Close()
}

func TestAnEngineThatHangs(t *testing.T) {
	enough := make(chan struct{})
	b, _ := against(t, map[string]http.HandlerFunc{
		"POST /containers/create": func(http.ResponseWriter, *http.Request) {
			<-enough
			panic(http.ErrAbortHandler)
		},
	})
	defer close(enough) // or closing the backend waits as long as an engine may take
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	sb, err := b.Create(ctx, testSpec())
	if sb != nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, tranca.ErrUnavailable) {
		t.Errorf("%v, %v", sb, err)
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("it took %s", d)
	}
}

func TestAReportOfNoEngineIsOneReason(t *testing.T) {
	b := at(t, "/nonexistent/engine.sock")
	r := b.Report()
	if g := r.Find(tranca.ItemIsolation); g.Held || !strings.Contains(g.Missing, "/nonexistent/engine.sock") || g.Mend == "" {
		t.Errorf("%+v", r)
	}
	if _, err := b.Probe(t.Context()); !errors.Is(err, tranca.ErrUnavailable) {
		t.Errorf("probe: %v", err)
	}
}
