package tranca

import (
	"context"
	"io"
)

// Image is a root tree from tranca's store. The engine opens it before a
// sandbox is made and keeps it open until that sandbox is gone; its tree is
// then neither changed nor removed. Safe for concurrent use.
type Image struct {
	// Name is what the policy called it.
	Name string
	// Digest is "sha256:" and 64 hexadecimal digits: the digest of its
	// manifest, the same on every backend.
	Digest string
	// Root is the absolute path of the unpacked tree. It is shared by all
	// sandboxes of the image and only ever shown read-only. Everything in it
	// is the image's: links may point anywhere, and any path may be missing.
	Root string
	// Env holds the variables that the image's configuration sets. PATH among
	// them is where programs are looked for.
	Env map[string]string
	// Export writes the image as an archive that `docker load` reads, with the
	// layers and the configuration byte for byte as they are.
	Export func(ctx context.Context, w io.Writer) error
}

// ImageHost is the name of the image that is none: a minimal, read-only view
// of the host's own tree.
const ImageHost = "host"
