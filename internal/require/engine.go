package require

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// engines are the container engines a run may provide, by the environment
// variable that holds the path of the engine's socket; scripts/engines.sh
// starts them and sets the variables.
var engines = map[string]string{
	"docker":          "TRANCA_TEST_DOCKER",
	"podman":          "TRANCA_TEST_PODMAN",
	"podman-rootless": "TRANCA_TEST_PODMAN_ROOTLESS",
}

// Engine asks for a container engine that answers: "docker", "podman" or
// "podman-rootless". It returns the path of the engine's socket.
func Engine(t testing.TB, name string) string {
	t.Helper()
	variable, ok := engines[name]
	if !ok {
		t.Fatalf("require: no engine is called %q", name)
	}
	socket := os.Getenv(variable)
	err := fmt.Errorf("%s is not set: see scripts/engines.sh", variable)
	if socket != "" {
		err = ping(socket)
	}
	Check(t, name, err == nil, fmt.Sprint(err))
	return socket
}

// Image returns the reference of the image with python3 that every engine of
// Engine has.
func Image(t testing.TB) string {
	t.Helper()
	image := os.Getenv("TRANCA_TEST_IMAGE")
	Check(t, "engine-image", image != "", "TRANCA_TEST_IMAGE is not set: see scripts/engines.sh")
	return image
}

// Sentry asks for tranca's own gVisor, the second program, as "gvisor": the one
// that TRANCA_TEST_SENTRY names. It returns its path.
func Sentry(t testing.TB) string {
	t.Helper()
	path := os.Getenv("TRANCA_TEST_SENTRY")
	err := fmt.Errorf("TRANCA_TEST_SENTRY is not set: make build, and name bin/tranca-sentry")
	if path != "" {
		_, err = exec.LookPath(path)
	}
	Check(t, "gvisor", err == nil, fmt.Sprint(err))
	return path
}

// ping asks the engine for a sign of life, as both Docker and Podman give it.
func ping(socket string) error {
	conn, err := net.DialTimeout("unix", socket, 5*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "GET /_ping HTTP/1.0\r\nHost: engine\r\n\r\n"); err != nil {
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 64<<10))
	if err != nil {
		return fmt.Errorf("%s: %w", socket, err)
	}
	first, _, _ := strings.Cut(string(answer), "\r\n")
	if !strings.Contains(first, " 200 ") {
		return fmt.Errorf("%s: the engine answered %q", socket, first)
	}
	return nil
}
