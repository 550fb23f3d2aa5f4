package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// Config is what a container is made from, in the API's own words. Only what
// sandboxes set is there.
type Config struct {
	Hostname     string
	User         string
	AttachStdin  bool
	AttachStdout bool
	AttachStderr bool
	OpenStdin    bool
	StdinOnce    bool
	Tty          bool
	Env          []string
	Cmd          []string
	Entrypoint   []string
	Healthcheck  *Healthcheck `json:",omitempty"`
	Image        string
	Volumes      map[string]struct{} `json:",omitempty"`
	WorkingDir   string
	Labels       map[string]string
	StopSignal   string `json:",omitempty"`
	// NetworkDisabled asks for no network at all.
	NetworkDisabled bool
	ExposedPorts    map[string]struct{} `json:",omitempty"`
	HostConfig      *HostConfig         `json:",omitempty"`
}

// Healthcheck with the test NONE switches an image's own off.
type Healthcheck struct{ Test []string }

// HostConfig is what a container may use of its host.
type HostConfig struct {
	Binds           []string
	NetworkMode     string
	RestartPolicy   RestartPolicy
	AutoRemove      bool
	VolumesFrom     []string
	CapAdd          []string
	CapDrop         []string
	CgroupnsMode    string
	DNS             []string `json:"Dns"`
	ExtraHosts      []string
	GroupAdd        []string
	IpcMode         string
	Cgroup          string
	Links           []string
	OomScoreAdj     int
	PidMode         string
	Privileged      bool
	PublishAllPorts bool
	ReadonlyRootfs  bool
	SecurityOpt     []string
	StorageOpt      map[string]string `json:",omitempty"`
	Tmpfs           map[string]string
	UTSMode         string
	UsernsMode      string
	ShmSize         int64
	Sysctls         map[string]string `json:",omitempty"`
	Runtime         string            `json:",omitempty"`
	Memory          int64
	NanoCPUs        int64 `json:"NanoCpus"`
	CPUPeriod       int64 `json:"CpuPeriod,omitempty"`
	CPUQuota        int64 `json:"CpuQuota,omitempty"`
	CgroupParent    string
	Devices         []json.RawMessage
	DeviceRequests  []json.RawMessage
	OomKillDisable  *bool
	MemorySwap      int64
	PidsLimit       *int64
	Ulimits         []Ulimit
	Mounts          []Mount
	MaskedPaths     []string
	ReadonlyPaths   []string
	Init            *bool
	LogConfig       LogConfig
}

// RestartPolicy says when a container is started again.
type RestartPolicy struct {
	Name              string
	MaximumRetryCount int
}

// LogConfig says where output goes beside the stream.
type LogConfig struct {
	Type   string
	Config map[string]string
}

// Ulimit is a resource limit of the first process.
type Ulimit struct {
	Name       string
	Soft, Hard int64
}

// Mount is a mount of a container.
type Mount struct {
	Type          string // bind, volume, tmpfs
	Source        string `json:",omitempty"`
	Target        string
	ReadOnly      bool           `json:",omitempty"`
	BindOptions   *BindOptions   `json:",omitempty"`
	VolumeOptions *VolumeOptions `json:",omitempty"`
}

// BindOptions are those of a bind mount.
type BindOptions struct {
	Propagation  string
	NonRecursive bool `json:",omitempty"`
}

// VolumeOptions are those of a volume.
type VolumeOptions struct {
	NoCopy bool
}

// Container is what inspect says of a container.
type Container struct {
	ID         string `json:"Id"`
	Name       string
	Image      string // the id of the image
	State      State
	Config     *Config
	HostConfig *HostConfig
	Mounts     []MountPoint
	// NetworkSettings holds the networks by name.
	NetworkSettings struct {
		Networks map[string]json.RawMessage
	}
	AppArmorProfile string
	// OCIRuntime is the runtime, as Podman says it.
	OCIRuntime string
}

// State is where a container stands.
type State struct {
	Status    string
	Running   bool
	OOMKilled bool
	Pid       int
	ExitCode  int
	Error     string
}

// MountPoint is a mount that a container has.
type MountPoint struct {
	Type        string
	Name        string
	Source      string
	Destination string
	Mode        string
	RW          bool
	Propagation string
}

// Create makes a container and returns its id. What the engine made otherwise
// than asked is seen by [Client.Inspect], not by its warnings.
func (c *Client) Create(ctx context.Context, name string, config *Config) (id string, err error) {
	var out struct {
		ID string `json:"Id"`
	}
	err = c.call(ctx, http.MethodPost, "/containers/create", url.Values{"name": {name}}, config, &out)
	if err == nil && !validID(out.ID) {
		err = fmt.Errorf("engine at %s: POST /containers/create: %w: %.140q is no container's id", c.Socket, ErrGarbage, out.ID)
	}
	return out.ID, err
}

// validID tells a container's id from anything that would change a path.
func validID(id string) bool {
	if len(id) < 12 || len(id) > 128 {
		return false
	}
	for _, r := range id {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return false
		}
	}
	return true
}

// Inspect says what a container is.
func (c *Client) Inspect(ctx context.Context, id string) (*Container, error) {
	var out Container
	if err := c.call(ctx, http.MethodGet, "/containers/"+id+"/json", nil, nil, &out); err != nil {
		return nil, err
	}
	if out.Config == nil || out.HostConfig == nil {
		return nil, fmt.Errorf("engine at %s: GET /containers/%s/json: %w: it tells no configuration", c.Socket, id, ErrGarbage)
	}
	return &out, nil
}

// Start starts a container.
func (c *Client) Start(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, "/containers/"+id+"/start", nil, nil, nil)
}

// Kill sends SIGKILL to a container's first process.
func (c *Client) Kill(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, "/containers/"+id+"/kill", url.Values{"signal": {"KILL"}}, nil, nil)
}

// Remove kills a container and removes it with its unnamed volumes.
func (c *Client) Remove(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "/containers/"+id, url.Values{"force": {"1"}, "v": {"1"}}, nil, nil)
}

// Summary is a container in a list.
type Summary struct {
	ID     string `json:"Id"`
	Names  []string
	State  string
	Labels map[string]string
}

// List lists the containers that have all of the labels, running or not. A
// label is "name" or "name=value".
func (c *Client) List(ctx context.Context, labels ...string) ([]Summary, error) {
	var out []Summary
	err := c.call(ctx, http.MethodGet, "/containers/json", url.Values{"all": {"1"}, "filters": {filters("label", labels...)}}, nil, &out)
	return out, err
}

func filters(key string, values ...string) string {
	text, _ := json.Marshal(map[string][]string{key: values}) // strings can't fail
	return string(text)
}

// Volume is a named volume.
type Volume struct {
	Name   string
	Labels map[string]string
}

// Volumes lists the volumes that have all of the labels.
func (c *Client) Volumes(ctx context.Context, labels ...string) ([]Volume, error) {
	var out struct{ Volumes []Volume }
	err := c.call(ctx, http.MethodGet, "/volumes", url.Values{"filters": {filters("label", labels...)}}, nil, &out)
	return out.Volumes, err
}
