package baseline

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tranca"
	"tranca/internal/bench/measure"
)

// dockerRuns is `docker run` with the limits that sandboxes of ours have, and
// with its other switches set as tight, by the engine's default runtime and by
// the others.
func dockerRuns(ctx context.Context, o Options) []measure.Subject {
	about := like(DockerRun, tranca.LevelContainer)
	path, err := exec.LookPath("docker")
	if err != nil {
		return []measure.Subject{missing(about, "docker is not installed")}
	}
	client := []string{path}
	if host := DockerHost(o.Getenv("TRANCA_CONTAINER_ENGINE")); host != "" {
		client = append(client, "-H", host)
	}
	ask, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ask, client[0], slices.Concat(client[1:], []string{"version", "--format", "{{.Server.Version}}"})...).Output()
	if err != nil {
		return []measure.Subject{missing(about, "no engine answers it")}
	}
	about.Version = "Engine " + strings.TrimSpace(string(out))
	image := o.Getenv("TRANCA_CONTAINER_IMAGE")
	if image == "" {
		return []measure.Subject{missing(about, "no image: name one of the engine's that has python3 in TRANCA_CONTAINER_IMAGE")}
	}
	about.Image = image
	all := []measure.Subject{subject(about, dockerRun(client, image, "", o.Policy))}
	for _, name := range o.Runtimes {
		by := about
		by.Name, by.Runtime, by.Isolation = DockerRun+":"+name, name, levelOf(name).String()
		all = append(all, subject(by, dockerRun(client, image, name, o.Policy)))
	}
	return all
}

// levelOf is the level of ours that a runtime is built like, by its name: nobody
// tries here what it holds.
func levelOf(runtime string) tranca.Level {
	switch {
	case strings.Contains(runtime, "runsc"), strings.Contains(runtime, "gvisor"):
		return tranca.LevelGVisor
	case strings.Contains(runtime, "kata"):
		return tranca.LevelMicroVM
	}
	return tranca.LevelContainer
}

// DockerHost turns what names an engine for tranca into what names one for
// docker; empty lets it take its own.
func DockerHost(engine string) string {
	switch {
	case strings.HasPrefix(engine, "unix://"):
		return engine
	case filepath.IsAbs(engine):
		return "unix://" + engine
	}
	return ""
}

func dockerRun(client []string, image, runtime string, p tranca.Policy) command {
	l := p.Limits
	tmpfs := fmt.Sprintf("rw,nosuid,nodev,mode=1777,size=%d,nr_inodes=%d", l.Disk.Size, l.Disk.Inodes)
	argv := append(slices.Clone(client), "run", "--rm", "--name", nameWord, "--network", "none", "--log-driver", "none",
		"--read-only", "--init=false", "--ipc", "private", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--memory", strconv.FormatInt(l.Memory, 10), "--memory-swap", strconv.FormatInt(l.Memory, 10),
		"--pids-limit", strconv.FormatInt(l.Processes, 10),
		"--cpus", strconv.FormatFloat(float64(l.MilliCPUs)/1000, 'f', -1, 64),
		"--ulimit", fmt.Sprintf("nofile=%d:%d", l.OpenFiles, l.OpenFiles),
		"--ulimit", fmt.Sprintf("fsize=%d:%d", l.FileSize, l.FileSize), "--ulimit", "core=0:0",
		"--user", "1000:1000", "--workdir", "/tmp", "--tmpfs", "/tmp:"+tmpfs)
	if runtime != "" {
		argv = append(argv, "--runtime", runtime)
	}
	return command{
		argv: append(argv, image, "python3", "-I", "-c", codeWord),
		rescue: func(ctx context.Context, name string) {
			ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			// It may have been ended already, and that is well.
			_ = exec.CommandContext(ctx, client[0], slices.Concat(client[1:], []string{"rm", "--force", name})...).Run()
		},
	}
}
