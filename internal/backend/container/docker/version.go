package docker

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// oldestAPI is what Docker 20.10 and Podman 4 serve. Docker 29 no longer serves
// it, so newerAPI is spoken where an engine has that, from Docker 25 on. What is
// used of the API is the same in both.
const (
	oldestAPI = "1.41"
	newerAPI  = "1.44"
)

// Version is what an engine says of itself.
type Version struct {
	Version    string
	APIVersion string `json:"ApiVersion"`
	OS         string `json:"Os"`
	Arch       string
	Components []Component
}

// Component is a part of an engine.
type Component struct {
	Name    string
	Version string
	Details map[string]string
}

// Component returns the part whose name starts so, and whether there is one.
func (v *Version) Component(name string) (Component, bool) {
	for _, c := range v.Components {
		if strings.HasPrefix(c.Name, name) {
			return c, true
		}
	}
	return Component{}, false
}

// Parts asks the engine for its version and those of its parts. An engine
// may run programs to find out.
func (c *Client) Parts(ctx context.Context) (Version, error) {
	var v Version
	err := c.call(ctx, http.MethodGet, "/version", nil, nil, &v)
	return v, err
}

// Engine is what an engine says of itself in a breath.
type Engine struct {
	// Name is "Docker" or "Podman".
	Name string
	// Version is the engine's, APIVersion that of the newest API it serves.
	Version, APIVersion string
}

// Ping asks the engine what it is and settles which version of the API is
// spoken.
func (c *Client) Ping(ctx context.Context) (Engine, error) {
	var e Engine
	unversioned := &Client{Socket: c.Socket, http: c.http}
	req, err := unversioned.request(ctx, http.MethodGet, "/_ping", nil, nil)
	if err != nil {
		return e, err
	}
	resp, err := c.send(req, "GET /_ping")
	if err != nil {
		return e, err
	}
	resp.Body.Close()
	e.APIVersion = resp.Header.Get("Api-Version")
	product, _, _ := strings.Cut(resp.Header.Get("Server"), " ")
	e.Name, e.Version, _ = strings.Cut(product, "/")
	if e.Name == "Libpod" {
		e.Name = "Podman"
	}
	if e.Name != "Docker" && e.Name != "Podman" || e.Version == "" || Older(e.APIVersion, "1.0") {
		return e, fmt.Errorf("engine at %s: %w: GET /_ping: it is no Docker and no Podman", c.Socket, ErrGarbage)
	}
	c.version = "/v" + oldestAPI
	if !Older(e.APIVersion, newerAPI) {
		c.version = "/v" + newerAPI
	}
	return e, nil
}

// Older compares dotted numbers; what is no number counts as 0, and text after
// a number is ignored: "20.10.24+dfsg1" is 20, 10, 24.
func Older(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		if n, m := number(x, i), number(y, i); n != m {
			return n < m
		}
	}
	return false
}

func number(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	digits := parts[i]
	if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		digits = digits[:end]
	}
	n, _ := strconv.Atoi(digits) // empty is 0
	return n
}

// Info is what an engine says of its host.
type Info struct {
	ID              string
	Driver          string
	DriverStatus    [][2]string
	CgroupDriver    string
	CgroupVersion   string
	MemoryLimit     bool
	SwapLimit       bool
	PidsLimit       bool
	NCPU            int
	CPUCfsQuota     bool `json:"CpuCfsQuota"`
	OperatingSystem string
	OSType          string
	Architecture    string
	KernelVersion   string
	SecurityOptions []string
	DefaultRuntime  string
	Runtimes        map[string]Runtime
	// DockerRootDir is where the engine keeps its data.
	DockerRootDir string
	// Rootless is Podman's word; Docker says it among SecurityOptions.
	Rootless bool
}

// Runtime is an OCI runtime of an engine.
type Runtime struct{ Path string }

// Security reports whether the engine lists a security option: "rootless",
// "userns", "seccomp", "apparmor".
func (i *Info) Security(name string) bool {
	for _, o := range i.SecurityOptions {
		for _, part := range strings.Split(o, ",") {
			if part == "name="+name || part == name {
				return true
			}
		}
	}
	return false
}

// Info asks for it.
func (c *Client) Info(ctx context.Context) (Info, error) {
	var i Info
	err := c.call(ctx, http.MethodGet, "/info", nil, nil, &i)
	return i, err
}
