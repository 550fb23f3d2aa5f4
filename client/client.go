package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tranca"
	"tranca/internal/api"
)

// Client speaks to one server. Make one with [New] and close it.
type Client struct {
	transport http.RoundTripper
	base      string
	place     string
	key       string
}

var _ tranca.Runner = (*Client)(nil)

// New makes a client. It speaks to nobody yet: that nobody listens is told by
// the first call. Without an option the server is the one that [EnvServer]
// names, with the key in [EnvKey], or else this user's own at [DefaultSocket].
// The error wraps [tranca.ErrInvalid], or [tranca.ErrRefused] where the default
// socket lies in a folder that somebody else may have made.
func New(opts ...Option) (*Client, error) {
	s, err := chosen(opts)
	if err != nil {
		return nil, err
	}
	c := &Client{key: s.key}
	c.transport, c.base, c.place = s.roundTripper()
	return c, nil
}

// Close frees the idle connections. Sandboxes live on; calls under way are not
// ended.
func (c *Client) Close() error {
	switch t := c.transport.(type) {
	case interface{ Close() error }:
		return t.Close()
	case interface{ CloseIdleConnections() }:
		t.CloseIdleConnections()
	}
	return nil
}

// Info is what a server says of itself.
type Info struct {
	Version string
	// Languages are those that a request may name.
	Languages []string
	// Profiles are the operator's policies; the first is the default.
	Profiles []Profile
}

// Profile is one of the operator's policies as a request may name it.
type Profile struct {
	Name string
	// Digest is that of the policy, as in results.
	Digest string
	Limits tranca.Limits
}

// Info asks the server what it is and what requests may name.
func (c *Client) Info(ctx context.Context) (Info, error) {
	var in api.Info
	if err := c.get(ctx, &in, nil, api.RouteInfo); err != nil {
		return Info{}, err
	}
	out := Info{Version: in.Version, Languages: in.Languages}
	for _, p := range in.Profiles {
		out.Profiles = append(out.Profiles, Profile{Name: p.Name, Digest: p.Digest, Limits: p.Limits.Limits()})
	}
	return out, nil
}

// Create makes a sandbox that lives until it is closed or its time is over. It
// waits while the server has no room. Errors wrap [tranca.ErrInvalid],
// [tranca.ErrRefused], [tranca.ErrUnavailable] or [tranca.ErrBusy].
func (c *Client) Create(ctx context.Context, o tranca.CreateRequest) (*Sandbox, error) {
	body := api.CreateRequest{
		Profile: o.Profile, Metadata: o.Metadata, Narrow: api.NarrowingOf(o.Narrow),
		TTLMS: milliseconds(o.TTL), IdleTimeoutMS: milliseconds(o.IdleTimeout),
	}
	q := newCall(api.RouteCreate).json(body)
	q.key, q.repeatable, q.patience = newKey(), true, forever
	var info tranca.SandboxInfo
	if err := c.do(ctx, q, &info); err != nil {
		return nil, err
	}
	return c.sandbox(info)
}

// sandbox takes what a server says of a sandbox, if it can be used.
func (c *Client) sandbox(info tranca.SandboxInfo) (*Sandbox, error) {
	if !usable(string(info.ID)) {
		return nil, fmt.Errorf("%w: the server names a sandbox %q", tranca.ErrProtocol, info.ID)
	}
	return &Sandbox{c: c, id: info.ID, info: info}, nil
}

// Sandbox finds a sandbox that lives. The error wraps [tranca.ErrNotFound] for
// one that never was, and [tranca.ErrGone], with the reason, for one that has
// ended.
func (c *Client) Sandbox(ctx context.Context, id tranca.ID) (*Sandbox, error) {
	s := &Sandbox{c: c, id: id}
	if _, err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// ListOptions choose sandboxes.
type ListOptions struct {
	// Metadata lists only those that have all of these.
	Metadata map[string]string
}

// maxListed bounds a list, for a server that never ends it.
const maxListed = 1 << 20

// List returns the sandboxes that live, oldest first.
func (c *Client) List(ctx context.Context, o ListOptions) ([]tranca.SandboxInfo, error) {
	return c.list(ctx, o, pageSize)
}

// pageSize is how many sandboxes are asked for at a time.
const pageSize = 100

func (c *Client) list(ctx context.Context, o ListOptions, size int) ([]tranca.SandboxInfo, error) {
	query := url.Values{"limit": {strconv.Itoa(size)}}
	for k, v := range o.Metadata {
		query.Add("metadata", k+"="+v)
	}
	var all []tranca.SandboxInfo
	for {
		var page api.SandboxList
		if err := c.get(ctx, &page, query, api.RouteList); err != nil {
			return nil, err
		}
		all = append(all, page.Sandboxes...)
		if page.Next == "" {
			return all, nil
		}
		if page.Next == query.Get("cursor") || len(page.Sandboxes) == 0 || len(all) > maxListed {
			return nil, fmt.Errorf("%w: the server's list of sandboxes does not end", tranca.ErrProtocol)
		}
		query.Set("cursor", page.Next)
	}
}

// milliseconds rounds up, so that what is asked for never becomes nothing.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// usable reports whether a name can be an element of a path: what can't names
// nothing on any server, and must not name something else there.
func usable(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= 1024 && !strings.ContainsRune(name, 0)
}

// fill puts names into the pattern of a route.
func fill(pattern string, names ...string) (method, path string, err error) {
	method, path, _ = strings.Cut(pattern, " ")
	for _, name := range names {
		before, rest, _ := strings.Cut(path, "{")
		_, after, _ := strings.Cut(rest, "}")
		if !usable(name) {
			return "", "", fmt.Errorf("%w: nothing is named %s", tranca.ErrNotFound, strconv.Quote(name))
		}
		path = before + url.PathEscape(name) + after
	}
	return method, path, nil
}
