package listen

import (
	"fmt"
	"net"
	"strings"

	"tranca"
)

// Bounds of a key.
const (
	MinKey = 32
	MaxKey = 4096
)

// TCP listens at HOST:PORT; an empty host is every address of this host, which
// must be said as such: ":8080" is refused. The error wraps
// [tranca.ErrInvalid] or [tranca.ErrUnavailable].
func TCP(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%w: %q is no HOST:PORT: %w", tranca.ErrInvalid, address, err)
	}
	if host == "" {
		return nil, fmt.Errorf("%w: %q names no host: write 127.0.0.1%s, or 0.0.0.0%s for every address of this host",
			tranca.ErrInvalid, address, address, address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", tranca.ErrUnavailable, err)
	}
	return l, nil
}

// Loopback reports whether only this host reaches a listener.
func Loopback(l net.Listener) bool {
	a, ok := l.Addr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

// ParseKey returns the key that a file holds: one line. The error wraps
// [tranca.ErrInvalid] and says nothing of what the file holds.
func ParseKey(text []byte) (string, error) {
	key := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	switch {
	case len(key) < MinKey:
		return "", fmt.Errorf("%w: the key has %d characters: want at least %d: head -c 32 /dev/urandom | base64", tranca.ErrInvalid, len(key), MinKey)
	case len(key) > MaxKey:
		return "", fmt.Errorf("%w: the key has %d characters: want at most %d", tranca.ErrInvalid, len(key), MaxKey)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return "", fmt.Errorf("%w: byte %d of the key is no visible ASCII character, so no header can carry it", tranca.ErrInvalid, i+1)
		}
	}
	return key, nil
}
