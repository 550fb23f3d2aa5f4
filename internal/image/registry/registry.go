// Package registry gets images from registries, for the store of package image.
//
// A registry is not trusted: the store compares each blob with the digest by
// which it was asked for, and this package bounds what is read, ends what makes
// no progress, and speaks unencrypted only where the operator said so or the
// registry is on this host. Who the user is comes from the files that `docker
// login` and `podman login` write.
package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"tranca"
	"tranca/internal/image"
)

// Options say how a registry is spoken to.
type Options struct {
	// PlainHTTP allows speaking to the registry without TLS.
	PlainHTTP bool
	// Stall ends what makes no progress for so long; the default is 60 s.
	Stall time.Duration
	// UserAgent is what tranca is called there.
	UserAgent string
}

// Source is an image in a registry. Safe for concurrent use.
type Source struct {
	ref    name.Reference
	puller *remote.Puller
	host   string
	base   *http.Transport
}

var _ image.Source = (*Source)(nil)

// New returns the image that a reference names, by tag or digest. It speaks to
// nobody yet. Errors wrap [tranca.ErrInvalid].
func New(reference string, o Options) (*Source, error) {
	var opts []name.Option
	if o.PlainHTTP {
		opts = append(opts, name.Insecure)
	}
	ref, err := name.ParseReference(reference, opts...)
	if err != nil {
		return nil, fmt.Errorf("%w: image reference %q: %w", tranca.ErrInvalid, reference, err)
	}
	if o.Stall == 0 {
		o.Stall = time.Minute
	}
	guard := newGuard(o)
	puller, err := remote.NewPuller(
		remote.WithTransport(guard), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithUserAgent(o.UserAgent),
	)
	if err != nil {
		return nil, fmt.Errorf("%w: registry: %w", tranca.ErrInvalid, err)
	}
	return &Source{ref: ref, puller: puller, host: ref.Context().RegistryStr(), base: guard.base}, nil
}

// Close closes the connections.
func (s *Source) Close() error {
	s.base.CloseIdleConnections()
	return nil
}

// Name returns the reference in full.
func (s *Source) Name() string { return s.ref.Name() }

// Root returns what the tag or digest stands for now.
func (s *Source) Root(ctx context.Context) ([]byte, error) {
	d, err := s.puller.Get(ctx, s.ref)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	return d.Manifest, nil
}

// Document gets an index or manifest.
func (s *Source) Document(ctx context.Context, d image.Descriptor) (io.ReadCloser, error) {
	got, err := s.puller.Get(ctx, s.ref.Context().Digest(d.Digest))
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	return io.NopCloser(bytes.NewReader(got.Manifest)), nil
}

// Blob opens a layer or a configuration.
func (s *Source) Blob(ctx context.Context, d image.Descriptor) (io.ReadCloser, error) {
	if _, err := v1.NewHash(d.Digest); err != nil {
		return nil, fmt.Errorf("%w: digest %.100q: %w", tranca.ErrInvalid, d.Digest, err)
	}
	layer, err := s.puller.Layer(asBlob(ctx), s.ref.Context().Digest(d.Digest))
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	r, err := layer.Compressed()
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	return &explained{r, ctx, s}, nil
}

// explained puts errors of a body that is read into words.
type explained struct {
	io.ReadCloser
	ctx context.Context
	s   *Source
}

func (e *explained) Read(b []byte) (int, error) {
	n, err := e.ReadCloser.Read(b)
	if err != nil && err != io.EOF {
		err = e.s.explain(e.ctx, err)
	}
	return n, err
}

// explain gives an error its class, and says what to do about it.
func (s *Source) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, class := range []error{tranca.ErrInvalid, tranca.ErrRefused, tranca.ErrUnavailable} {
		if errors.Is(err, class) {
			return fmt.Errorf("image %s: %w", s.ref.Name(), err)
		}
	}
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return fmt.Errorf("%w: image %s: registry %s: %w", tranca.ErrUnavailable, s.ref.Name(), s.host, err)
	}
	switch answer.StatusCode {
	case http.StatusNotFound:
		return fmt.Errorf("%w: registry %s has no image %s: %w", tranca.ErrNotFound, s.host, s.ref.Name(), err)
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: registry %s has no image %s, or you may not have it: log in with `docker login %s` or `podman login %s`: %w",
			tranca.ErrRefused, s.host, s.ref.Name(), s.host, s.host, err)
	case http.StatusTooManyRequests:
		return fmt.Errorf("%w: registry %s wants fewer requests: log in, or try again later: %w", tranca.ErrBusy, s.host, err)
	}
	return fmt.Errorf("%w: registry %s: image %s: %w", tranca.ErrUnavailable, s.host, s.ref.Name(), err)
}
