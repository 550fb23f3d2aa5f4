package container_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"tranca"
	"tranca/internal/backend/container"
	engineapi "tranca/internal/backend/container/docker"
	"tranca/internal/policy"
)

// probeVariable makes the test's own program the one that runs in images of
// these tests, which hold nothing else: no shell, no library.
const probeVariable = "TRANCA_CONTAINER_PROBE"

func TestMain(m *testing.M) {
	switch os.Getenv(probeVariable) {
	case "inside":
		probe(os.Args[1:])
		os.Exit(0)
	case "supervisor":
		supervise()
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// probe is what runs inside. It does what its words say, in order.
func probe(words []string) {
	for _, w := range words {
		what, of, _ := strings.Cut(w, "=")
		switch what {
		case "ids":
			fmt.Println(os.Getuid(), os.Geteuid(), os.Getgid(), os.Getegid())
		case "list":
			entries, err := os.ReadDir(of)
			names := []string{}
			for _, e := range entries {
				names = append(names, e.Name())
			}
			fmt.Println(of, names, err)
		case "read":
			text, err := os.ReadFile(of)
			fmt.Printf("%q %v\n", text, err)
		case "write":
			fmt.Println(os.WriteFile(of, []byte("x"), 0o644))
		case "exec":
			cmd := exec.Command(of, "ids")
			out, err := cmd.CombinedOutput()
			fmt.Printf("%s%v\n", out, err)
		case "env":
			fmt.Println(strings.Join(os.Environ(), "\n"))
		case "dial":
			c, err := net.Dial("unix", of)
			if err == nil {
				c.Close()
			}
			fmt.Println(err)
		case "sleep":
			d, err := time.ParseDuration(of)
			if err != nil {
				panic(err)
			}
			time.Sleep(d)
		case "exit":
			os.Exit(3)
		case "try":
			name, argument, _ := strings.Cut(of, "|")
			verdict := "escaped"
			if err := try(name, argument); err != nil {
				verdict = "denied: " + err.Error()
			}
			fmt.Printf("%s\t%s\n", of, verdict)
		default:
			panic(w)
		}
	}
}

// try does one hostile act.
func try(name, argument string) error {
	for _, acts := range []map[string]act{kernelActs, mountActs, fileActs} {
		if f, ok := acts[name]; ok {
			return f(argument)
		}
	}
	panic("no act " + name)
}

func dial(network, address string) error {
	c, err := net.DialTimeout(network, address, 3*time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

// imageSpec is an image that a test makes.
type imageSpec struct {
	config map[string]any // of the image's configuration, over the usual
	arch   string
	links  map[string]string
	files  map[string]string
	// folders are folders that everybody may write to.
	folders []string
	mode    int64 // of /bin/probe; 0 is 0755
}

// archive is an archive of the image as `docker load` reads it.
func (i imageSpec) archive(t *testing.T, tag string) []byte {
	t.Helper()
	layer := i.layer(t)
	sum := sha256.Sum256(layer)
	config := map[string]any{"Env": []string{"PATH=/bin", "FROM_IMAGE=yes"}}
	for k, v := range i.config {
		config[k] = v
	}
	arch := i.arch
	if arch == "" {
		arch = runtime.GOARCH
	}
	cfg, err := json.Marshal(map[string]any{
		"architecture": arch, "os": "linux", "config": config,
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
		"history": []any{map[string]any{"created_by": "test"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	csum := sha256.Sum256(cfg)
	cname := hex.EncodeToString(csum[:]) + ".json"
	manifest, err := json.Marshal([]any{map[string]any{"Config": cname, "RepoTags": []string{tag}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	put(t, w, "layer.tar", layer, 0o644)
	put(t, w, cname, cfg, 0o644)
	put(t, w, "manifest.json", manifest, 0o644)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func put(t *testing.T, w *tar.Writer, name string, content []byte, mode int64) {
	t.Helper()
	h := &tar.Header{Name: name, Size: int64(len(content)), Mode: mode, Typeflag: tar.TypeReg}
	if err := w.WriteHeader(h); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
}

// ownProgram is this test's program, read once.
var ownProgram = sync.OnceValues(func() ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return os.ReadFile(self)
})

func (i imageSpec) layer(t *testing.T) []byte {
	t.Helper()
	program, err := ownProgram()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	mode := i.mode
	if mode == 0 {
		mode = 0o755
	}
	if err := w.WriteHeader(&tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	put(t, w, "bin/probe", program, mode)
	for _, name := range i.folders {
		if err := w.WriteHeader(&tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o777}); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range i.files {
		put(t, w, name, []byte(content), 0o644)
	}
	for name, target := range i.links {
		if err := w.WriteHeader(&tar.Header{Name: name, Linkname: target, Typeflag: tar.TypeSymlink, Mode: 0o777}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// client speaks to the engine of a backend.
func client(t *testing.T, o container.Options) *engineapi.Client {
	t.Helper()
	c := engineapi.New(strings.TrimPrefix(o.Engine, "unix://"))
	t.Cleanup(c.Close)
	if _, err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// load gives the engine the image and has the backend's options name it. The
// engine forgets it when the test ends.
func (i imageSpec) load(t *testing.T, o *container.Options) {
	t.Helper()
	c := client(t, *o)
	tag := "tranca-test-" + strings.ToLower(string(tranca.NewID())) + ":1"
	if _, err := c.LoadImage(t.Context(), bytes.NewReader(i.archive(t, tag))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd := exec.Command("curl", "-s", "-X", "DELETE", "--unix-socket", strings.TrimPrefix(o.Engine, "unix://"), "http://engine/v1.41/images/"+tag+"?force=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("remove image: %v %s", err, out)
		}
	})
	o.Image = tag
}

func testPolicy(change ...func(*tranca.Policy)) tranca.Policy {
	p := policy.Default()
	p.Floor, p.Backend = tranca.LevelContainer, container.Name
	p.Env = map[string]string{probeVariable: "inside"}
	for _, f := range change {
		f(&p)
	}
	return p
}

// create makes a sandbox that the test closes.
func create(t *testing.T, b tranca.Backend, p tranca.Policy) tranca.Sandbox {
	t.Helper()
	sb, err := b.Create(t.Context(), tranca.Spec{ID: tranca.NewID(), Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Close(context.Background()); err != nil { // the test's own context has ended
			t.Error(err)
		}
	})
	return sb
}

// run runs a program and returns what it said.
func run(t *testing.T, sb tranca.Sandbox, args ...string) (string, tranca.Exit) {
	t.Helper()
	var out bytes.Buffer
	p, err := sb.Start(t.Context(), tranca.Command{Args: args, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), exit
}

// supervise is a process that makes a sandbox, says that it runs, and waits to
// be killed.
func supervise() {
	b, err := container.New(container.Options{
		Engine: os.Getenv("T_ENGINE"), Image: os.Getenv("T_IMAGE"), CacheFolder: os.Getenv("T_CACHE"),
	})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	sb, err := b.Create(ctx, tranca.Spec{ID: tranca.ID(os.Getenv("T_ID")), Policy: testPolicy()})
	if err != nil {
		panic(err)
	}
	p, err := sb.Start(ctx, tranca.Command{Args: []string{"/bin/probe", "sleep=10m"}})
	if err != nil {
		panic(err)
	}
	fmt.Println("runs", p.PID())
	select {}
}
