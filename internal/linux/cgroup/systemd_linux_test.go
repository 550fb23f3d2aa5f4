package cgroup

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"

	"tranca"
	"tranca/internal/require"
)

// manager answers on a real bus in the place of the user's systemd, which no
// test host needs to have. What it was asked is kept.
type manager struct {
	conn   *dbus.Conn
	result string // of the job

	mu         sync.Mutex
	unit, mode string
	properties map[string]dbus.Variant
}

type unitProperty struct {
	Name  string
	Value dbus.Variant
}

type unitAux struct {
	Name       string
	Properties []unitProperty
}

// StartTransientUnit is systemd's method.
func (m *manager) StartTransientUnit(unit, mode string, properties []unitProperty, _ []unitAux) (dbus.ObjectPath, *dbus.Error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unit, m.mode, m.properties = unit, mode, map[string]dbus.Variant{}
	for _, p := range properties {
		m.properties[p.Name] = p.Value
	}
	if m.result == "refuse" {
		return "", dbus.MakeFailedError(errors.New("no more scopes"))
	}
	const job = dbus.ObjectPath("/org/freedesktop/systemd1/job/7")
	// Another job ends first; it is not ours. Ours may end before the caller
	// knows its number.
	for _, j := range []struct {
		job    dbus.ObjectPath
		result string
	}{{"/org/freedesktop/systemd1/job/6", "canceled"}, {job, m.result}} {
		if err := m.conn.Emit(systemdPath, systemdIface+".JobRemoved", uint32(7), j.job, unit, j.result); err != nil {
			return "", dbus.MakeFailedError(err)
		}
	}
	return job, nil
}

// startBus runs a bus of its own.
func startBus(t *testing.T) (address string) {
	t.Helper()
	daemon := require.Program(t, "dbus-daemon")
	dir := t.TempDir()
	config := filepath.Join(dir, "bus.conf")
	address = "unix:path=" + filepath.Join(dir, "bus")
	text := `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>` + address + `</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(daemon, "--nofork", "--nosyslog", "--print-address", "--config-file="+config)
	cmd.Stderr = os.Stderr
	startCmd(t, cmd).line(t)
	return address
}

func startManager(t *testing.T, address, result string) *manager {
	t.Helper()
	conn, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	m := &manager{conn: conn, result: result}
	if err := conn.Export(m, systemdPath, systemdIface); err != nil {
		t.Fatal(err)
	}
	if r, err := conn.RequestName(systemdName, dbus.NameFlagDoNotQueue); err != nil || r != dbus.RequestNameReplyPrimaryOwner {
		t.Fatal(r, err)
	}
	return m
}

func TestEnterScope(t *testing.T) {
	address := startBus(t)
	m := startManager(t, address, "done")
	f := &finder{Options: Options{ID: "0123456789abcdef", Bus: address}}
	if err := f.enterScope(); err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unit != "tranca-0123456789abcdef.scope" || m.mode != "fail" {
		t.Errorf("unit %q, mode %q", m.unit, m.mode)
	}
	pids, _ := m.properties["PIDs"].Value().([]uint32)
	if len(pids) != 1 || int(pids[0]) != os.Getpid() || m.properties["Delegate"].Value() != true {
		t.Errorf("asked for %v", m.properties)
	}
}

func TestEnterScopeFails(t *testing.T) {
	for result, want := range map[string]string{"failed": `ended with "failed"`, "refuse": "no more scopes"} {
		address := startBus(t)
		startManager(t, address, result)
		f := &finder{Options: Options{ID: "0123456789abcdef", Bus: address}}
		if err := f.enterScope(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", result, err)
		}
	}
	f := &finder{Options: Options{ID: "0123456789abcdef", Bus: startBus(t)}}
	if err := f.enterScope(); err == nil {
		t.Error("a bus without systemd gave a scope")
	}
	f.Bus = "unix:path=/nonexistent"
	if err := f.enterScope(); err == nil {
		t.Error("no bus gave a scope")
	}
	silent := filepath.Join(t.TempDir(), "silent")
	l, err := net.Listen("unix", silent)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f.Bus = "unix:path=" + silent
	if err := f.enterScope(); err == nil {
		t.Error("a bus that does not answer gave a scope")
	}
	f.Bus = "none"
	if err := f.enterScope(); !errors.Is(err, tranca.ErrUnavailable) {
		t.Errorf("not to be asked: %v", err)
	}
}

func TestBusAddress(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bus"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	t.Setenv("XDG_RUNTIME_DIR", dir)
	f := &finder{}
	if got, err := f.busAddress(); err != nil || got != "unix:path="+dir+"/bus" {
		t.Errorf("from the runtime folder: %q %v", got, err)
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/x")
	if got, err := f.busAddress(); err != nil || got != "unix:path=/x" {
		t.Errorf("from the environment: %q %v", got, err)
	}
}
