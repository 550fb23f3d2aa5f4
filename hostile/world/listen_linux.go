package world

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// ear is a listener of the host that counts.
type ear struct {
	name string

	mu   sync.Mutex
	hits int
	data []byte
}

const maxHeard = 64 << 10

func (e *ear) hear(data []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hits++
	if len(e.data) < maxHeard {
		e.data = append(e.data, data...)
	}
}

func (e *ear) heard() (int, []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hits, e.data
}

// listen opens the listeners that the probe names.
func (w *World) listen() error {
	for _, l := range []struct{ name, network, address string }{
		{"tcp4", "tcp4", "127.0.0.1:0"}, {"udp4", "udp4", "127.0.0.1:0"},
		{"tcp6", "tcp6", "[::1]:0"}, {"udp6", "udp6", "[::1]:0"}, {"dns", "udp4", "127.0.0.1:0"},
		{"abstract", "unix", "@" + word("ta")},
	} {
		if w.uses("{"+l.name+"}") || w.uses("{"+l.name+".port}") {
			w.open(l.name, l.network, l.address)
		}
	}
	w.listenLAN()
	if err := w.listenUnix(); err != nil {
		return err
	}
	w.listenServices()
	return nil
}

// open opens one; where it can't be, the probe that names it lacks it.
func (w *World) open(name, network, address string) bool {
	e := &ear{name: name}
	var at string
	if network == "udp4" || network == "udp6" {
		c, err := net.ListenPacket(network, address)
		if err != nil {
			return false
		}
		w.undo = append(w.undo, c.Close)
		at = c.LocalAddr().String()
		go e.packets(c)
	} else {
		ln, err := net.Listen(network, address)
		if err != nil {
			return false
		}
		w.undo = append(w.undo, ln.Close)
		at = ln.Addr().String()
		go e.connections(ln)
	}
	w.ears = append(w.ears, e)
	w.vars[name] = at
	if _, port, err := net.SplitHostPort(at); err == nil {
		w.vars[name+".port"] = port
	}
	return true
}

func (e *ear) packets(c net.PacketConn) {
	buf := make([]byte, 2048)
	for {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		e.hear(buf[:n])
		_, _ = c.WriteTo(append([]byte{}, buf[:n]...), from)
	}
}

func (e *ear) connections(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		e.hear(nil)
		go func() {
			defer c.Close()
			_, _ = c.Write([]byte("answer of the host\n"))
			buf := make([]byte, 2048)
			for {
				n, err := c.Read(buf)
				e.hear(buf[:n])
				if err != nil {
					return
				}
			}
		}()
	}
}

// listenLAN listens on an address beyond loopback, if there is one.
func (w *World) listenLAN() {
	if !w.uses("{lan.") {
		return
	}
	if w.o.Stand {
		if w.open("lan.tcp4", "tcp4", standLAN+":0") {
			return
		}
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return
	}
	for _, a := range addresses {
		ip, ok := a.(*net.IPNet)
		if ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() &&
			w.open("lan.tcp4", "tcp4", net.JoinHostPort(ip.IP.String(), "0")) {
			return
		}
	}
}

// standLAN is an address that the disposable place gives to its loopback, and
// metadataAddress the one where clouds have their metadata.
const (
	standLAN        = "10.213.47.1"
	metadataAddress = "169.254.169.254"
)

// StandAddresses are what the disposable place gives to its loopback.
func StandAddresses() []string { return []string{standLAN, metadataAddress} }

func (w *World) listenUnix() error {
	if w.uses("{unix}") {
		dir, err := w.folder("/tmp")
		if err != nil {
			return err
		}
		w.socket("unix", filepath.Join(dir, "socket"))
	}
	if root, ok := w.mounts["rw"]; ok && w.uses("{unix.rw}") {
		w.socket("unix.rw", filepath.Join(root, "socket"))
	}
	return nil
}

func (w *World) socket(name, path string) {
	if w.open(name, "unix", path) {
		_ = os.Chmod(path, 0o777)
	}
}

// services are sockets of the host's daemons. In the disposable place there are
// listeners at their paths, on a real host there is what there is.
func (w *World) listenServices() {
	w.vars["docker"] = "/var/run/docker.sock"
	w.vars["metadata"] = net.JoinHostPort(metadataAddress, "80")
	if !w.o.Stand {
		return
	}
	if w.uses("{docker}") {
		if os.MkdirAll("/run", 0o755) == nil {
			w.socket("docker", "/run/docker.sock")
			w.vars["docker"] = "/run/docker.sock"
		}
	}
	if w.uses("{metadata}") {
		w.open("metadata", "tcp4", w.vars["metadata"])
	}
}

// hits tells of each listener that was reached.
func (w *World) hits() (found []Finding) {
	for _, e := range w.ears {
		if n, data := e.heard(); n > 0 {
			found = append(found, Finding{"reached", fmt.Sprintf("listener %s of the host: %d times", e.name, n)})
			found = append(found, w.leaks("at listener "+e.name, data)...)
		}
	}
	return found
}
