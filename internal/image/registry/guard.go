package registry

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"tranca"
	"tranca/internal/image"
)

// maxAnswer bounds what is read of an answer that is no blob: a manifest, a
// token, an error.
const maxAnswer = image.MaxDocument + 64<<10

// guard stands between the client and the network.
type guard struct {
	base  *http.Transport
	plain bool
	stall time.Duration
}

func newGuard(o Options) *guard {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &guard{plain: o.PlainHTTP, stall: o.Stall, base: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 30 * time.Second, ResponseHeaderTimeout: o.Stall,
		MaxResponseHeaderBytes: 1 << 20, MaxIdleConnsPerHost: 4, IdleConnTimeout: 10 * time.Second,
		DisableCompression: true, // a blob is compared as it is
	}}
}

type blobKey struct{}

// asBlob says that what is asked for may be long: whoever asked bounds it.
func asBlob(ctx context.Context) context.Context { return context.WithValue(ctx, blobKey{}, true) }

// RoundTrip sends a request where it may go, and bounds the answer.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.check(req); err != nil {
		return nil, err
	}
	if redirects(req) > maxRedirects {
		return nil, fmt.Errorf("%w: %s sends on and on", tranca.ErrUnavailable, req.URL.Host)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	stalled := fmt.Errorf("%w: %s made no progress for %s", tranca.ErrUnavailable, req.URL.Host, g.stall)
	timer := time.AfterFunc(g.stall, func() { cancel(stalled) })
	resp, err := g.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		timer.Stop()
		if context.Cause(ctx) == stalled {
			err = stalled
		}
		cancel(nil)
		return nil, err
	}
	left := int64(maxAnswer)
	if long, _ := req.Context().Value(blobKey{}).(bool); long && resp.StatusCode == http.StatusOK {
		left = -1
	}
	resp.Body = &watched{
		ReadCloser: resp.Body, ctx: ctx, cancel: cancel, timer: timer, stall: g.stall, left: left,
		stalled: stalled, host: req.URL.Host,
	}
	return resp, nil
}

const maxRedirects = 10

// redirects counts how often a request was sent on. The client of the registry
// has a rule of its own for redirects, and by that no bound.
func redirects(req *http.Request) (n int) {
	for from := req.Response; from != nil && from.Request != nil && n <= maxRedirects; from = from.Request.Response {
		n++
	}
	return n
}

// check refuses a request that would go unencrypted to another host, also where
// a redirect sent it there.
func (g *guard) check(req *http.Request) error {
	if req.URL.Scheme == "https" {
		return nil
	}
	from := req.Response // what sent it here
	if from != nil && from.Request != nil && from.Request.URL.Scheme == "https" {
		return fmt.Errorf("%w: %s sends on to %s without TLS", tranca.ErrRefused, from.Request.URL.Host, req.URL.Host)
	}
	host := req.URL.Hostname()
	ip := net.ParseIP(host)
	if g.plain || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%w: registry %s does not speak TLS: --plain-http allows that", tranca.ErrRefused, req.URL.Host)
}

// watched is an answer's body.
type watched struct {
	io.ReadCloser
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	stall   time.Duration
	left    int64 // bytes; negative is no bound
	stalled error
	host    string
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.ReadCloser.Read(b)
	if n > 0 {
		w.timer.Reset(w.stall)
	}
	if w.left >= 0 {
		if w.left -= int64(n); w.left < 0 {
			return 0, fmt.Errorf("%w: %s answers with more than %d bytes", tranca.ErrInvalid, w.host, maxAnswer)
		}
	}
	if err != nil && err != io.EOF && context.Cause(w.ctx) == w.stalled {
		err = w.stalled
	}
	return n, err
}

func (w *watched) Close() error {
	w.timer.Stop()
	err := w.ReadCloser.Close()
	w.cancel(nil)
	return err
}
