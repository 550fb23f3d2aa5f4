package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"tranca"
	"tranca/internal/advisory"
	"tranca/internal/backend/container/docker"
)

// The oldest engines that have what a sandbox needs.
const (
	oldestDocker = "20.10"
	oldestPodman = "4.0"
)

// answerTime bounds the first answer of an engine: one that hangs is none.
// infoTime bounds the second, for which Podman runs some programs.
const (
	answerTime = 5 * time.Second
	infoTime   = 30 * time.Second
)

// place is where an engine may answer.
type place struct {
	engine string // "docker", "podman", or "" where only the path is known
	socket string
}

// places lists where engines answer, in the order in which they are tried. All
// of it is the operator's: TRANCA_CONTAINER_ENGINE names an engine or a socket;
// else the variables by which Docker's and Podman's own clients are told;
// else the usual sockets.
func places(named string, env func(string) string) ([]place, error) {
	switch {
	case named == "docker" || named == "podman":
		var of []place
		for _, p := range usualPlaces(env) {
			if p.engine == named {
				of = append(of, p)
			}
		}
		return of, nil
	case named != "":
		return socketPlace("TRANCA_CONTAINER_ENGINE", named)
	}
	for _, variable := range []string{"DOCKER_HOST", "CONTAINER_HOST"} {
		if v := env(variable); v != "" {
			return socketPlace(variable, v)
		}
	}
	return usualPlaces(env), nil
}

// socketPlace takes a local socket alone: an engine elsewhere has neither this
// host's files nor this guest agent.
func socketPlace(variable, value string) ([]place, error) {
	for _, scheme := range []string{"unix://", "npipe://"} {
		if path, ok := strings.CutPrefix(value, scheme); ok {
			return []place{{socket: filepath.FromSlash(path)}}, nil
		}
	}
	if filepath.IsAbs(value) {
		return []place{{socket: value}}, nil
	}
	return nil, refusal(tranca.Problem{
		Item: tranca.ItemIsolation, Asked: "the container engine that " + variable + " names: " + value,
		Missing: "it is no local socket; an engine on another host can't be used",
		Mend:    "set TRANCA_CONTAINER_ENGINE to docker, podman, or unix:///PATH",
	})
}

func usualPlaces(env func(string) string) []place {
	switch runtime.GOOS {
	case "windows":
		return []place{{"docker", `\\.\pipe\docker_engine`}, {"podman", `\\.\pipe\podman-machine-default`}}
	case "darwin":
		home := env("HOME")
		return []place{
			{"docker", filepath.Join(home, ".docker/run/docker.sock")}, {"docker", "/var/run/docker.sock"},
			{"podman", filepath.Join(home, ".local/share/containers/podman/machine/podman.sock")},
		}
	}
	root := []place{{"docker", "/var/run/docker.sock"}, {"podman", "/run/podman/podman.sock"}}
	dir := env("XDG_RUNTIME_DIR")
	if os.Geteuid() == 0 || dir == "" {
		return root
	}
	return []place{
		{"docker", filepath.Join(dir, "docker.sock")}, {"podman", filepath.Join(dir, "podman/podman.sock")},
		root[0], root[1],
	}
}

// engine is one that answers.
type engine struct {
	*docker.Client
	docker.Engine
	info docker.Info
	// parts are the versions of the engine's programs, as far as it tells them.
	parts docker.Version
	// known are the holes of versions; nil is the built-in table.
	known *advisory.InForce

	mu sync.Mutex
	// logs are the changelogs of the engine's programs, by component; see
	// [engine.changelog].
	logs map[string]advisory.Changelog
}

func (e *engine) podman() bool   { return e.Name == "Podman" }
func (e *engine) rootless() bool { return e.info.Rootless || e.info.Security("rootless") }

// mapsUsers reports whether the engine gives containers users of their own.
func (e *engine) mapsUsers() bool { return e.rootless() || e.info.Security("userns") }

// find connects to the first engine that answers and can be used.
func find(ctx context.Context, named string, env func(string) string) (*engine, error) {
	all, err := places(named, env)
	if err != nil {
		return nil, err
	}
	var looked []string
	for _, p := range all {
		if _, err := os.Stat(p.socket); errors.Is(err, os.ErrNotExist) {
			looked = append(looked, p.socket)
			continue
		}
		return connect(ctx, p.socket)
	}
	return nil, refusal(tranca.Problem{
		Item: tranca.ItemIsolation, Asked: "a container engine",
		Missing: "none answers: there is no socket " + strings.Join(looked, ", "),
		Mend:    "start Docker (systemctl start docker) or Podman (systemctl --user start podman.socket), or name its socket in TRANCA_CONTAINER_ENGINE",
	})
}

func connect(ctx context.Context, socket string) (*engine, error) {
	if err := trusted(socket); err != nil {
		return nil, err
	}
	e := &engine{Client: docker.New(socket)}
	if err := e.ask(ctx); err != nil {
		e.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, explain(socket, err)
	}
	if e.info.OSType != "linux" {
		e.Close()
		return nil, refusal(tranca.Problem{
			Item: tranca.ItemIsolation, Asked: "Linux containers",
			Missing: "the engine at " + socket + " makes containers of " + quote(e.info.OSType),
			Mend:    "switch Docker Desktop to Linux containers",
		})
	}
	return e, nil
}

// ask finds out what the engine is. One that is there answers the first
// question at once; for the second, it may have to run programs.
func (e *engine) ask(ctx context.Context) (err error) {
	first, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if e.Engine, err = e.Ping(first); err != nil {
		return err
	}
	if err := e.newEnough(); err != nil {
		return err
	}
	ctx, cancel = context.WithTimeout(ctx, infoTime)
	defer cancel()
	parts := make(chan docker.Version, 1)
	go func() {
		// What it does not tell is not known, and no reason not to run.
		v, _ := e.Parts(ctx)
		parts <- v
	}()
	e.info, err = e.Info(ctx)
	e.parts = <-parts
	return err
}

func (e *engine) newEnough() error {
	oldest := oldestDocker
	if e.podman() {
		oldest = oldestPodman
	}
	if !docker.Older(e.Version, oldest) {
		return nil
	}
	return refusal(tranca.Problem{
		Item: tranca.ItemIsolation, Asked: e.Name + " " + oldest + " or later",
		Missing: "the engine at " + e.Socket + " is " + e.Name + " " + quote(e.Version),
		Mend:    "update " + e.Name,
	})
}

// explain turns an error of an engine into a refusal.
func explain(socket string, err error) error {
	var r *tranca.RefusalError
	if errors.As(err, &r) || errors.Is(err, context.Canceled) {
		return err
	}
	p := tranca.Problem{Item: tranca.ItemIsolation, Asked: "a container engine"}
	switch {
	case errors.Is(err, os.ErrPermission):
		p.Missing = "this user may not use the engine's socket " + socket
		p.Mend = "use rootless Podman (systemctl --user start podman.socket) or rootless Docker; to be in the group docker is to be root"
	case errors.Is(err, context.DeadlineExceeded):
		p.Missing = fmt.Sprintf("the engine at %s does not answer: %s", socket, err)
		p.Mend = "look at its log, and start it anew"
	case errors.Is(err, docker.ErrGarbage):
		p.Missing = err.Error()
		p.Mend = "name the socket of Docker or Podman in TRANCA_CONTAINER_ENGINE"
	default:
		p.Missing = err.Error()
		p.Mend = "look at the engine's log, and start it anew"
	}
	return refusal(p)
}

// refusal says that the backend can't be used.
func refusal(p tranca.Problem) error {
	return &tranca.RefusalError{Backend: Name, Unavailable: true, Problems: []tranca.Problem{p}}
}

// quote makes somebody else's word fit for a message.
func quote(s string) string {
	if len(s) > 100 {
		s = s[:100]
	}
	return fmt.Sprintf("%q", s)
}
