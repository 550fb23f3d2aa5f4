//go:build linux

package registry

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tranca"
	"tranca/internal/image"
)

func TestMain(m *testing.M) {
	// Nobody's own login may reach the tests.
	dir, err := os.MkdirTemp("", "tranca-test")
	if err == nil {
		err = errors.Join(os.Setenv("HOME", dir), os.Setenv("DOCKER_CONFIG", dir), os.Setenv("XDG_RUNTIME_DIR", dir), os.Unsetenv("REGISTRY_AUTH_FILE"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// registry is one with one image, which may lie.
type registry struct {
	*httptest.Server
	manifest []byte
	layer    string // its digest
	blobs    map[string][]byte
	// answer, where set, may answer instead.
	answer func(w http.ResponseWriter, r *http.Request) bool
	// user and password are asked for, where set.
	user, password string

	mu   sync.Mutex
	seen []string
}

func newRegistry(t *testing.T, start func(http.Handler) *httptest.Server) *registry {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for name, size := range map[string]int64{"zeros": 1 << 20, "a": 0} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	diffID := digestOf(layer.Bytes())
	config := fmt.Appendf(nil, `{"os":"linux","architecture":%q,"config":{"Env":["A=b"]},"rootfs":{"type":"layers","diff_ids":[%q]}}`, runtime.GOARCH, diffID)
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": map[string]any{"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digestOf(config), "size": len(config)},
		"layers": []any{map[string]any{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": diffID, "size": layer.Len()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &registry{manifest: manifest, layer: diffID, blobs: map[string][]byte{diffID: layer.Bytes(), digestOf(config): config}}
	r.Server = start(r)
	t.Cleanup(r.Close)
	return r
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.seen = append(r.seen, req.URL.Path)
	r.mu.Unlock()
	if r.answer != nil && r.answer(w, req) {
		return
	}
	if user, password, _ := req.BasicAuth(); user != r.user || password != r.password {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_, name, blob := strings.Cut(req.URL.Path, "/blobs/")
	switch {
	case req.URL.Path == "/v2/":
	case blob && r.blobs[name] != nil:
		_, _ = w.Write(r.blobs[name])
	case strings.HasPrefix(req.URL.Path, "/v2/team/tool/manifests/") && (strings.HasSuffix(req.URL.Path, "/v1") || strings.HasSuffix(req.URL.Path, digestOf(r.manifest))):
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		_, _ = w.Write(r.manifest)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// host is where the registry is, with what it has.
func (r *registry) image(tag string) string {
	_, host, _ := strings.Cut(r.URL, "://")
	return host + "/team/tool" + tag
}

// pull gets an image into a new store.
func pull(t *testing.T, reference string, o Options) (image.Info, error) {
	t.Helper()
	src, err := New(reference, o)
	if err != nil {
		return image.Info{}, err
	}
	s := image.New(image.Options{Dir: filepath.Join(t.TempDir(), "c")})
	info, err := s.Add(t.Context(), src, image.AddOptions{Name: "tool"})
	if err == nil {
		img, release, err := s.Open(t.Context(), "tool")
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		if _, err := os.Stat(filepath.Join(img.Root, "zeros")); err != nil {
			t.Error(err)
		}
	} else if all, listErr := s.List(t.Context()); listErr != nil || len(all) != 0 {
		t.Errorf("after %v: %v, %v", err, all, listErr)
	}
	src.Close()
	return info, err
}

func TestPull(t *testing.T) {
	r := newRegistry(t, httptest.NewServer)
	for _, tag := range []string{":v1", "@" + digestOf(r.manifest)} {
		info, err := pull(t, r.image(tag), Options{})
		if err != nil || info.Digest != digestOf(r.manifest) {
			t.Errorf("%s: %+v, %v", tag, info, err)
		}
	}
	for _, reference := range []string{r.image(":none"), r.image("@" + r.layer)} {
		if _, err := pull(t, reference, Options{}); !errors.Is(err, tranca.ErrNotFound) || !strings.Contains(err.Error(), "has no image") {
			t.Errorf("%s: %v", reference, err)
		}
	}
	if _, err := New("UPPER/x", Options{}); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

func TestLogin(t *testing.T) {
	r := newRegistry(t, httptest.NewServer)
	r.user, r.password = "me", "secret-of-the-test"
	_, err := pull(t, r.image(":v1"), Options{})
	if !errors.Is(err, tranca.ErrRefused) || !strings.Contains(err.Error(), "docker login") {
		t.Errorf("%v", err)
	}
	_, host, _ := strings.Cut(r.URL, "://")
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	text := fmt.Sprintf(`{"auths":{%q:{"auth":"bWU6c2VjcmV0LW9mLXRoZS10ZXN0"}}}`, host)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pull(t, r.image(":v1"), Options{}); err != nil {
		t.Error(err)
	}
	r.password = "changed"
	if _, err := pull(t, r.image(":v1"), Options{}); err == nil || strings.Contains(err.Error(), "secret-of") {
		t.Errorf("%v", err)
	}
}

// TestLies has a registry that does not give what it promised.
func TestLies(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(r *registry) func(http.ResponseWriter, *http.Request) bool
		want   error
		say    string
	}{
		"another layer":   {blobIs(func(b []byte) []byte { b[5] ^= 1; return b }), tranca.ErrUnavailable, "sha256"},
		"a longer layer":  {blobIs(func(b []byte) []byte { return append(b, make([]byte, 1<<20)...) }), tranca.ErrInvalid, "longer"},
		"a shorter layer": {blobIs(func(b []byte) []byte { return b[:1000] }), tranca.ErrUnavailable, "1000 bytes"},
		"a manifest without end": {func(*registry) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, req *http.Request) bool {
				if !strings.Contains(req.URL.Path, "/manifests/") {
					return false
				}
				for range 10 << 10 {
					if _, err := w.Write(make([]byte, 1<<10)); err != nil {
						break
					}
				}
				return true
			}
		}, tranca.ErrInvalid, "more than"},
		"an error without end": {func(*registry) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, req *http.Request) bool {
				if !strings.Contains(req.URL.Path, "/blobs/") {
					return false
				}
				w.WriteHeader(http.StatusTeapot)
				for range 10 << 10 {
					if _, err := w.Write(make([]byte, 1<<10)); err != nil {
						break
					}
				}
				return true
			}
		}, tranca.ErrUnavailable, ""},
		"no manifest at all": {func(*registry) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, req *http.Request) bool {
				if strings.Contains(req.URL.Path, "/manifests/") {
					fmt.Fprint(w, "<html>welcome</html>")
					return true
				}
				return false
			}
		}, tranca.ErrInvalid, "manifest"},
		"broken": {func(*registry) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, req *http.Request) bool {
				if strings.Contains(req.URL.Path, "/blobs/") {
					w.WriteHeader(http.StatusNotImplemented)
					return true
				}
				return false
			}
		}, tranca.ErrUnavailable, "registry"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t, httptest.NewServer)
			r.answer = c.answer(r)
			_, err := pull(t, r.image(":v1"), Options{})
			if !errors.Is(err, c.want) && !(c.say == "" && err != nil) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%v", err)
			}
		})
	}
}

// blobIs changes what the layer is.
func blobIs(change func([]byte) []byte) func(r *registry) func(http.ResponseWriter, *http.Request) bool {
	return func(r *registry) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, req *http.Request) bool {
			if !strings.HasSuffix(req.URL.Path, r.layer) {
				return false
			}
			b := change(bytes.Clone(r.blobs[r.layer]))
			w.Header().Set("Transfer-Encoding", "chunked")
			_, _ = w.Write(b)
			return true
		}
	}
}

func TestStalls(t *testing.T) {
	for name, what := range map[string]string{"before the answer": "head", "in a layer": "/blobs/", "in a manifest": "/manifests/"} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t, httptest.NewServer)
			r.answer = func(w http.ResponseWriter, req *http.Request) bool {
				if what == "head" {
					<-req.Context().Done()
					return true
				}
				if !strings.Contains(req.URL.Path, what) {
					return false
				}
				w.Header().Set("Content-Length", "1000")
				_, _ = w.Write([]byte("a"))
				w.(http.Flusher).Flush()
				<-req.Context().Done()
				return true
			}
			began := time.Now()
			_, err := pull(t, r.image(":v1"), Options{Stall: 300 * time.Millisecond})
			if !errors.Is(err, tranca.ErrUnavailable) {
				t.Errorf("%v", err)
			}
			if time.Since(began) > 30*time.Second {
				t.Errorf("it took %v", time.Since(began))
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	r := newRegistry(t, httptest.NewServer)
	reached := make(chan struct{}, 10)
	r.answer = func(_ http.ResponseWriter, req *http.Request) bool {
		if strings.Contains(req.URL.Path, "/blobs/") {
			reached <- struct{}{}
			<-req.Context().Done()
			return true
		}
		return false
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	go func() { <-reached; cancel(why) }()
	src, err := New(r.image(":v1"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	s := image.New(image.Options{Dir: filepath.Join(t.TempDir(), "c")})
	if _, err := s.Add(ctx, src, image.AddOptions{Name: "x"}); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

func TestRedirects(t *testing.T) {
	r := newRegistry(t, httptest.NewServer)
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "" {
			t.Error("the password went to another host")
		}
		_, _ = w.Write(r.blobs[strings.TrimPrefix(req.URL.Path, "/")])
	}))
	defer store.Close()
	r.answer = func(w http.ResponseWriter, req *http.Request) bool {
		if strings.HasSuffix(req.URL.Path, r.layer) {
			http.Redirect(w, req, store.URL+"/"+r.layer, http.StatusTemporaryRedirect)
			return true
		}
		return false
	}
	if _, err := pull(t, r.image(":v1"), Options{}); err != nil {
		t.Error(err)
	}
	r.answer = func(w http.ResponseWriter, req *http.Request) bool {
		if strings.Contains(req.URL.Path, "/blobs/") {
			http.Redirect(w, req, req.URL.Path+"/", http.StatusFound)
			return true
		}
		return false
	}
	if _, err := pull(t, r.image(":v1"), Options{}); !errors.Is(err, tranca.ErrUnavailable) {
		t.Errorf("a loop: %v", err)
	}
}

func TestNoTLS(t *testing.T) {
	g := newGuard(Options{Stall: time.Second})
	for url, fine := range map[string]bool{
		"https://r.example/v2/": true, "http://localhost:5000/v2/": true, "http://127.0.0.1/": true, "http://[::1]:1/": true,
		"http://r.example/": false, "http://10.0.0.1/": false, "http://localhost.example/": false,
	} {
		req := httptest.NewRequest(http.MethodGet, url, nil)
		if err := g.check(req); (err == nil) != fine || err != nil && !errors.Is(err, tranca.ErrRefused) {
			t.Errorf("%s: %v", url, err)
		}
	}
	from := httptest.NewRequest(http.MethodGet, "https://r.example/", nil)
	to := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
	to.Response = &http.Response{Request: from}
	if err := g.check(to); !errors.Is(err, tranca.ErrRefused) {
		t.Errorf("a redirect away from TLS: %v", err)
	}
	open := newGuard(Options{PlainHTTP: true})
	if err := open.check(httptest.NewRequest(http.MethodGet, "http://r.example/", nil)); err != nil {
		t.Error(err)
	}
}
