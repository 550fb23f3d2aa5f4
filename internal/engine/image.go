package engine

import (
	"context"

	"tranca"
)

// Images is where the engine finds root trees. Safe for concurrent use.
type Images interface {
	// Open finds an image by its name or digest, and keeps its tree as it is
	// until release is called. ctx bounds the search only. Where there is no such
	// image the error is a [*tranca.RefusalError] with the command that gets it.
	Open(ctx context.Context, name string) (img *tranca.Image, release func(), err error)
}

// openImage opens the image of a policy; for the host's own tree it is nil.
func (e *Engine) openImage(ctx context.Context, name string) (img *tranca.Image, release func(), err error) {
	if name == tranca.ImageHost {
		return nil, func() {}, nil
	}
	if e.cfg.Images == nil {
		return nil, nil, &tranca.RefusalError{Problems: []tranca.Problem{{
			Item: tranca.ItemFiles, Asked: "image " + name,
			Missing: "there are no images here", Mend: "image: " + tranca.ImageHost,
		}}}
	}
	return e.cfg.Images.Open(ctx, name)
}

// digestOf says which image a sandbox has; empty is the host's own tree.
func digestOf(img *tranca.Image, sb tranca.Sandbox) string {
	if img != nil {
		return img.Digest
	}
	if d, ok := tranca.As[tranca.ImageDigester](sb); ok {
		return d.ImageDigest()
	}
	return ""
}
