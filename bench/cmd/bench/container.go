package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"tranca"
	"tranca/bench/sample"
	"tranca/internal/backend/container"
)

// The subjects of the container rows.
const (
	containerCold = "container: engine, cold"
	dockerRun     = "container: `docker run --rm`, same hard flags, image and engine"
)

var errNoEngine = errors.New("-engine and -image name a Docker Engine and an image in it: make bench starts its own, as root")

// containers times one answer in a fresh container beside the engine's own
// command.
func (o *options) containers(ctx context.Context, rep *report) error {
	if o.engine == "" || o.image == "" {
		return errNoEngine
	}
	b, err := container.New(container.Options{Engine: "unix://" + o.engine, Image: o.image})
	if err != nil {
		return err
	}
	p := o.policy()
	p.Floor, p.Backend = tranca.LevelContainer, container.Name
	ours, err := over(ctx, b, p)
	if err != nil {
		return err
	}
	defer ours.close()
	theirs, err := o.dockerRun(ctx, b, p)
	if err != nil {
		return err
	}
	defer theirs.close()
	subjects := []sample.Subject{
		{Name: containerCold, Do: ours.answers},
		{Name: dockerRun, Do: runs(theirs.argv[0], theirs.argv[1:]...)},
	}
	times, err := sample.Interleave(ctx, subjects, min(o.warm, 3), max(o.rounds/4, 1), o.seed)
	if err != nil {
		return err
	}
	rep.beside("container", "x docker run", times, dockerRun, map[string]float64{containerCold: 1},
		containerCold, dockerRun)
	return nil
}

// hostConfig is what an engine tells of a container that can be asked of its
// command line, too.
type hostConfig struct {
	NetworkMode, Runtime, IpcMode, CgroupnsMode string
	ReadonlyRootfs                              bool
	Memory, MemorySwap, PidsLimit               int64
	NanoCPUs                                    int64 `json:"NanoCpus"`
	CapAdd, CapDrop, SecurityOpt                []string
	LogConfig                                   struct{ Type string }
	Ulimits                                     []struct {
		Name       string
		Soft, Hard int64
	}
}

// engineCommand is a command line of the engine's client.
type engineCommand struct {
	argv   []string
	folder string // of its system call filter
}

func (c *engineCommand) close() { _ = os.RemoveAll(c.folder) }

// dockerRun makes a command line with the flags of a container of ours: read
// from the engine, so that they can't come to differ.
func (o *options) dockerRun(ctx context.Context, b tranca.Backend, p tranca.Policy) (*engineCommand, error) {
	docker := []string{"docker", "-H", "unix://" + o.engine}
	s, err := b.Create(ctx, tranca.Spec{ID: benchID(0), Policy: p})
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close(context.WithoutCancel(ctx)) }()
	id, err := output(ctx, append(docker, "ps", "--quiet", "--filter", "label=tranca.sandbox="+string(benchID(0)))...)
	if err != nil {
		return nil, err
	}
	text, err := output(ctx, append(docker, "inspect", "--format", "{{json .HostConfig}}", strings.TrimSpace(id))...)
	if err != nil {
		return nil, err
	}
	var h hostConfig
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return nil, fmt.Errorf("docker inspect: %w", err)
	}
	folder, err := os.MkdirTemp("", "bench-docker-")
	if err != nil {
		return nil, err
	}
	c := &engineCommand{folder: folder}
	flags, err := h.flags(folder)
	if err != nil {
		c.close()
		return nil, err
	}
	c.argv = append(append(docker, "run", "--rm"), flags...)
	c.argv = append(c.argv, "--user", "1000:1000", "--workdir", "/work",
		"--tmpfs", "/work:"+tmpfs(p), "--tmpfs", "/tmp:"+tmpfs(p), o.image, python, "-I", "-c", code)
	return c, nil
}

// tmpfs are the options of a writable place in memory.
func tmpfs(p tranca.Policy) string {
	d := p.Limits.Disk
	return fmt.Sprintf("rw,nosuid,nodev,mode=1777,size=%d,nr_inodes=%d", d.Size, d.Inodes)
}

// flags are those of `docker run` that ask for the same.
func (h *hostConfig) flags(folder string) ([]string, error) {
	args := []string{
		"--network", h.NetworkMode, "--runtime", h.Runtime, "--ipc", h.IpcMode, "--cgroupns", h.CgroupnsMode,
		"--log-driver", h.LogConfig.Type, "--memory", strconv.FormatInt(h.Memory, 10),
		"--memory-swap", strconv.FormatInt(h.MemorySwap, 10), "--pids-limit", strconv.FormatInt(h.PidsLimit, 10),
		"--cpus", strconv.FormatFloat(float64(h.NanoCPUs)/1e9, 'f', -1, 64), "--init=false",
		fmt.Sprintf("--read-only=%t", h.ReadonlyRootfs),
	}
	for _, c := range h.CapDrop {
		args = append(args, "--cap-drop", c)
	}
	for _, c := range h.CapAdd {
		args = append(args, "--cap-add", c)
	}
	for _, u := range h.Ulimits {
		args = append(args, "--ulimit", fmt.Sprintf("%s=%d:%d", u.Name, u.Soft, u.Hard))
	}
	for _, opt := range h.SecurityOpt {
		if filter, ok := strings.CutPrefix(opt, "seccomp="); ok {
			path := filepath.Join(folder, "seccomp.json")
			if err := os.WriteFile(path, []byte(filter), 0o600); err != nil {
				return nil, err
			}
			opt = "seccomp=" + path
		}
		args = append(args, "--security-opt", opt)
	}
	return args, nil
}

// output runs a command and returns what it printed.
func output(ctx context.Context, argv ...string) (string, error) {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return string(out), nil
}
