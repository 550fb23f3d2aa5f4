package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"time"

	"github.com/godbus/dbus/v5"

	"tranca"
)

const (
	systemdName  = "org.freedesktop.systemd1"
	systemdPath  = dbus.ObjectPath("/org/freedesktop/systemd1")
	systemdIface = "org.freedesktop.systemd1.Manager"
	// busTimeout bounds the whole talk: a bus that is not served by a running
	// manager must not hold tranca up.
	busTimeout = 3 * time.Second
)

// viaSystemd asks the user's own systemd for a scope that is delegated to us,
// and looks again. It is the last resort: it needs the user's manager, and
// takes some milliseconds.
func (f *finder) viaSystemd(m mount, need []string, before outcome) (outcome, error) {
	err := f.enterScope()
	if err != nil {
		for ctl, feature := range before.features {
			feature.Missing += "; and systemd gives no scope: " + err.Error()
			before.features[ctl] = feature
		}
		return before, nil
	}
	if err := f.lookMembers(); err != nil {
		return outcome{}, err
	}
	return f.bestV2(m, need)
}

// enterScope has this process moved into a new scope of its own, which is
// gone as soon as no process is in it.
func (f *finder) enterScope() error {
	address, err := f.busAddress()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), busTimeout)
	defer cancel()
	conn, err := dbus.Connect(address, dbus.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("D-Bus %s: %w", address, err)
	}
	defer conn.Close()
	if err := f.startScope(ctx, conn); err != nil {
		return fmt.Errorf("D-Bus %s: start a scope: %w", address, err)
	}
	return nil
}

// startScope starts the unit and waits until systemd has done it.
func (f *finder) startScope(ctx context.Context, conn *dbus.Conn) error {
	match := []dbus.MatchOption{
		dbus.WithMatchObjectPath(systemdPath),
		dbus.WithMatchInterface(systemdIface),
		dbus.WithMatchMember("JobRemoved"),
	}
	if err := conn.AddMatchSignalContext(ctx, match...); err != nil {
		return err
	}
	removed := make(chan *dbus.Signal, 64)
	conn.Signal(removed)
	type property struct {
		Name  string
		Value dbus.Variant
	}
	type auxiliary struct {
		Name       string
		Properties []property
	}
	properties := []property{
		{"Description", dbus.MakeVariant("tranca sandboxes")},
		{"PIDs", dbus.MakeVariant([]uint32{uint32(os.Getpid())})},
		{"Delegate", dbus.MakeVariant(true)},
		{"CollectMode", dbus.MakeVariant("inactive-or-failed")},
	}
	var job dbus.ObjectPath
	manager := conn.Object(systemdName, systemdPath)
	err := manager.CallWithContext(ctx, systemdIface+".StartTransientUnit", 0,
		"tranca-"+f.ID+".scope", "fail", properties, []auxiliary{}).Store(&job)
	if err != nil {
		return err
	}
	return waitJob(ctx, removed, job)
}

// waitJob waits for the signal (id, job, unit, result) that ends a job.
func waitJob(ctx context.Context, removed <-chan *dbus.Signal, job dbus.ObjectPath) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case s, ok := <-removed:
			if !ok {
				return errors.New("the connection broke")
			}
			var id uint32
			var which dbus.ObjectPath
			var unit, result string
			if dbus.Store(s.Body, &id, &which, &unit, &result) != nil || which != job {
				continue
			}
			if result != "done" {
				return fmt.Errorf("systemd's job ended with %q", result)
			}
			return nil
		}
	}
}

// busAddress finds the user's bus by the same rules as other programs.
func (f *finder) busAddress() (string, error) {
	switch {
	case f.Bus == "none":
		return "", fmt.Errorf("not asked for: %w", tranca.ErrUnavailable)
	case f.Bus != "":
		return f.Bus, nil
	}
	if a := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); a != "" {
		return a, nil
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		dir = "/run/user/" + strconv.Itoa(f.euid)
	}
	socket := path.Join(dir, "bus")
	if _, err := os.Stat(socket); err != nil {
		return "", fmt.Errorf("no user bus: %w", err)
	}
	return "unix:path=" + socket, nil
}
