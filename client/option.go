package client

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"tranca"
	"tranca/internal/api"
)

// The environment variables that say which server is meant where no option
// does.
const (
	// EnvServer holds what [WithServer] takes as its address.
	EnvServer = "TRANCA_SERVER"
	// EnvKey holds the server's key.
	EnvKey = "TRANCA_KEY"
)

// Option says which server a client speaks to. The last one counts.
type Option func(*settings)

type settings struct {
	address   string
	key       string
	socket    string
	transport http.RoundTripper
}

// WithSocket names the unix socket of a server.
func WithSocket(path string) Option {
	return func(s *settings) { *s = settings{socket: path} }
}

// WithServer names a server by its URL, "http://host:port", "https://host" or
// "unix:///path", or by the path of its unix socket, and gives the key that it
// wants; a socket needs none. Over plain HTTP whoever sees the traffic reads
// the key and all that goes over it: use it on this host or within a tunnel.
func WithServer(address, key string) Option {
	return func(s *settings) { *s = settings{address: address, key: key} }
}

// WithTransport sends requests by rt, such as one that calls a server in the
// same process. [Client.Close] closes it where it has a method Close() error.
// It must be full-duplex: an answer may begin before the request has ended.
func WithTransport(rt http.RoundTripper) Option {
	return func(s *settings) { *s = settings{transport: rt} }
}

// DefaultSocket returns where this user's server listens when it was told
// nothing else: $XDG_RUNTIME_DIR/tranca/tranca.sock, else
// /run/tranca/tranca.sock as root, else tranca-UID/tranca.sock in the folder
// for temporary files.
func DefaultSocket() string { return api.DefaultSocket() }

// chosen finds out which server is meant.
func chosen(opts []Option) (settings, error) {
	var s settings
	for _, o := range opts {
		o(&s)
	}
	if len(opts) == 0 {
		s = settings{address: os.Getenv(EnvServer), key: os.Getenv(EnvKey)}
	}
	if s.transport != nil || s.socket != "" {
		return s, nil
	}
	if s.address == "" {
		if len(opts) > 0 {
			return s, fmt.Errorf("%w: the server's address is empty: want a URL or the path of a socket", tranca.ErrInvalid)
		}
		s.socket = DefaultSocket()
		return s, trustedFolder(s.socket)
	}
	return s, s.resolve()
}

// resolve takes the address apart. It never puts the address into an error
// where a key may stand in it.
func (s *settings) resolve() error {
	scheme, rest, isURL := strings.Cut(s.address, "://")
	if !isURL {
		s.socket = s.address
		return nil
	}
	switch strings.ToLower(scheme) {
	case "unix":
		s.socket = rest
		if rest == "" {
			return fmt.Errorf("%w: %s has no path: want unix:///path/of/the.sock", tranca.ErrInvalid, s.address)
		}
		return nil
	case "http", "https":
	default:
		return fmt.Errorf("%w: a server's address begins with http, https or unix, or is the path of a socket", tranca.ErrInvalid)
	}
	u, err := url.Parse(s.address)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("%w: the server's address is no URL with a host", tranca.ErrInvalid)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%w: the server's address holds more than host and path; a key never stands in it: it goes by %s", tranca.ErrInvalid, EnvKey)
	case strings.ContainsFunc(s.key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf("%w: the key holds a blank or a character that no key has", tranca.ErrInvalid)
	}
	s.address = strings.TrimRight(u.String(), "/")
	return nil
}

// Bounds of the connections to a server.
const (
	dialTimeout = 10 * time.Second
	idleConns   = 64
	idleTime    = 90 * time.Second
	// connBuffer is what one read or write takes at most.
	connBuffer = 64 << 10
	// readBuffer is what is read beside what was asked for; more than that goes
	// straight to where it was asked for.
	readBuffer = 16 << 10
)

// roundTripper returns what sends the requests, the URL that they begin with,
// and words for the place.
func (s *settings) roundTripper() (rt http.RoundTripper, base, place string) {
	if s.transport != nil {
		return s.transport, "http://tranca", "the server"
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	t := &http.Transport{
		DialContext:            dialer.DialContext,
		Proxy:                  http.ProxyFromEnvironment,
		MaxIdleConnsPerHost:    idleConns,
		MaxIdleConns:           idleConns,
		IdleConnTimeout:        idleTime,
		TLSHandshakeTimeout:    dialTimeout,
		ExpectContinueTimeout:  time.Second,
		DisableCompression:     true,
		ReadBufferSize:         readBuffer,
		WriteBufferSize:        connBuffer,
		MaxResponseHeaderBytes: 64 << 10,
	}
	// A connection that is upgraded to a port's bytes must be HTTP/1.1.
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	if s.socket == "" {
		return t, s.address, s.address
	}
	t.Proxy = nil
	t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", s.socket)
	}
	return t, "http://tranca", cmp.Or(s.socket, "the socket")
}
