package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"tranca"
	"tranca/internal/api"
)

func createSandbox(c *call) error {
	c.hashBody()
	o, err := c.openOptions()
	if err != nil {
		return err
	}
	once, err := c.once()
	if err != nil {
		return err
	}
	if !once.first {
		kept, err := once.wait(c.ctx())
		if err != nil {
			return err
		}
		return c.created(kept.(tranca.SandboxInfo))
	}
	s, err := c.s.cfg.Engine.Open(once.ctx, o)
	if err != nil {
		once.done(nil, 0, err)
		return err
	}
	if err := context.Cause(once.ctx); err != nil {
		// Nobody learns of it, so nobody would destroy it.
		once.done(nil, 0, err)
		_ = s.Close(context.WithoutCancel(c.ctx()))
		return err
	}
	info := s.Info()
	once.done(info, 4096, nil)
	return c.created(info)
}

func (c *call) openOptions() (tranca.CreateRequest, error) {
	var in api.CreateRequest
	if err := c.decode(&in); err != nil {
		return tranca.CreateRequest{}, err
	}
	o := tranca.CreateRequest{Profile: in.Profile, Metadata: in.Metadata}
	var err error
	if o.TTL, err = api.Duration("ttl_ms", in.TTLMS); err != nil {
		return o, err
	}
	if o.IdleTimeout, err = api.Duration("idle_timeout_ms", in.IdleTimeoutMS); err != nil {
		return o, err
	}
	o.Narrow, err = in.Narrow.Narrowing()
	return o, err
}

func (c *call) created(info tranca.SandboxInfo) error {
	c.sandbox = info.ID
	c.w.Header().Set("Location", "/v1/sandboxes/"+string(info.ID))
	return c.json(http.StatusCreated, infoJSON(info))
}

// infoJSON lets no list be null.
func infoJSON(i tranca.SandboxInfo) tranca.SandboxInfo {
	if i.Enforcement == nil {
		i.Enforcement = []tranca.Enforcement{}
	}
	if i.Metadata == nil {
		i.Metadata = map[string]string{}
	}
	return i
}

func listSandboxes(c *call) error {
	after, err := parseCursor(c.query.text("cursor"))
	if err != nil {
		return err
	}
	limit := int(c.query.number("limit"))
	out := api.SandboxList{Sandboxes: []tranca.SandboxInfo{}}
	all := c.s.cfg.Engine.Sessions()
	slices.SortFunc(all, func(a, b tranca.SandboxInfo) int { return positionOf(a).compare(positionOf(b)) })
	for _, info := range all {
		if positionOf(info).compare(after) <= 0 || !matches(info.Metadata, c.query.values["metadata"]) {
			continue
		}
		if len(out.Sandboxes) == limit {
			out.Next = positionOf(out.Sandboxes[limit-1]).String()
			break
		}
		out.Sandboxes = append(out.Sandboxes, infoJSON(info))
	}
	return c.json(http.StatusOK, out)
}

func matches(metadata map[string]string, pairs []string) bool {
	for _, p := range pairs {
		name, value, _ := strings.Cut(p, "=")
		if v, ok := metadata[name]; !ok || v != value {
			return false
		}
	}
	return true
}

// position is where a sandbox stands in the list. It stays where it is while
// others come and go.
type position struct {
	created int64 // nanoseconds
	id      tranca.ID
}

func positionOf(i tranca.SandboxInfo) position { return position{i.Created.UnixNano(), i.ID} }

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.created, q.created), cmp.Compare(p.id, q.id))
}

// String returns the position as a cursor.
func (p position) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.created, 10) + " " + string(p.id)))
}

func parseCursor(text string) (position, error) {
	if text == "" {
		return position{created: -1 << 63}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	created, id, ok := strings.Cut(string(raw), " ")
	n, bad := strconv.ParseInt(created, 10, 64)
	if err != nil || !ok || bad != nil {
		return position{}, fmt.Errorf("%w: cursor: want next of the page before", tranca.ErrInvalid)
	}
	return position{n, tranca.ID(id)}, nil
}

func getSandbox(c *call) error {
	s, err := c.session()
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, infoJSON(s.Info()))
}

func destroySandbox(c *call) error {
	s, err := c.session()
	if err != nil {
		return err
	}
	if err := s.Close(context.WithoutCancel(c.ctx())); err != nil {
		return err
	}
	return c.none()
}

func keepAlive(c *call) error {
	var in api.KeepAliveRequest
	if err := c.decode(&in); err != nil {
		return err
	}
	ttl, err := api.Duration("ttl_ms", in.TTLMS)
	if err != nil {
		return err
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	info, err := s.KeepAlive(ttl)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, infoJSON(info))
}

func listChanges(c *call) error {
	s, err := c.session()
	if err != nil {
		return err
	}
	changes, notes, err := s.Changes(c.ctx())
	if err != nil {
		return err
	}
	out := api.ChangeList{Changes: []tranca.Change{}, Notes: []string{}}
	out.Changes, out.Notes = append(out.Changes, changes...), append(out.Notes, notes...)
	return c.json(http.StatusOK, out)
}

func setEnvironment(c *call) error {
	var in api.EnvironmentRequest
	if err := c.decode(&in); err != nil {
		return err
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	if err := s.SetEnv(in.Set, in.Unset); err != nil {
		return err
	}
	return c.none()
}
