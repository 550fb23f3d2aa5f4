package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"tranca"
	"tranca/internal/backend/container/docker"
)

// resolved is the image that a sandbox runs.
type resolved struct {
	image  *docker.Image
	digest string            // as the result says it
	env    map[string]string // what its configuration sets
}

// resolve finds the image of a spec on the engine: one of tranca's store, which
// is given to the engine where it hasn't it yet, or the one that the operator
// configured for container sandboxes.
func (b *Backend) resolve(ctx context.Context, e *engine, spec *tranca.Spec) (*resolved, error) {
	if spec.Image != nil {
		return b.resolveStored(ctx, e, spec.Image)
	}
	if spec.Policy.Image != tranca.ImageHost {
		return nil, missingImage("the image "+quote(spec.Policy.Image), "it is not in tranca's store",
			"tranca image pull "+spec.Policy.Image)
	}
	if b.options.Image == "" {
		return nil, missingImage("an image", "the backend container has no host tree: it needs an image",
			"tranca image build code, then --image code (image: code in the policy), or name one that the engine has in TRANCA_CONTAINER_IMAGE")
	}
	img, err := e.InspectImage(ctx, b.options.Image)
	if errors.Is(err, tranca.ErrNotFound) {
		return nil, missingImage("the image "+quote(b.options.Image)+" that TRANCA_CONTAINER_IMAGE names",
			e.Name+" doesn't have it", "pull it with "+strings.ToLower(e.Name)+" pull, or build one: tranca image build code")
	}
	if err != nil {
		return nil, explain(e.Socket, err)
	}
	return accept(img, img.ID)
}

func missingImage(asked, missing, mend string) error {
	return &tranca.RefusalError{Backend: Name, Problems: []tranca.Problem{{
		Item: tranca.ItemFiles, Asked: asked, Missing: missing, Mend: mend,
	}}}
}

// accept refuses what can't run here.
func accept(img *docker.Image, digest string) (*resolved, error) {
	if img.OS != "linux" || img.Architecture != runtime.GOARCH {
		return nil, missingImage("an image for linux/"+runtime.GOARCH,
			"the image "+quote(digest)+" is for "+quote(img.OS+"/"+img.Architecture), "use one of this platform")
	}
	r := &resolved{image: img, digest: digest, env: map[string]string{}}
	if img.Config == nil {
		return r, nil
	}
	for _, v := range img.Config.Env {
		if name, value, ok := strings.Cut(v, "="); ok && name != "" {
			r.env[name] = value
		}
	}
	return r, nil
}

// repository is where the engine keeps tranca's images, by the name that their
// archives have; their tags are the digests.
const repository = "tranca.local/image"

// resolveStored finds an image of tranca's store by its digest. Whoever may use
// the engine could give another image that name, and could do anything else as
// well: the engine is trusted with what it runs.
func (b *Backend) resolveStored(ctx context.Context, e *engine, img *tranca.Image) (*resolved, error) {
	_, hex, ok := strings.Cut(img.Digest, ":")
	if !ok || len(hex) != 64 || strings.Trim(hex, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("%w: image %q: digest %q", tranca.ErrInvalid, img.Name, img.Digest)
	}
	name := repository + ":" + hex
	there, err := e.InspectImage(ctx, name)
	if errors.Is(err, tranca.ErrNotFound) {
		there, err = b.give(ctx, e, img, name)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, missingImage("the image "+quote(img.Name), "giving it to "+e.Name+" failed: "+err.Error(),
			"see that the engine has room on its disk")
	}
	return accept(there, img.Digest)
}

// give gives the engine an image that it hasn't, unless somebody else has
// done so meanwhile: two at once would send the whole of it twice.
func (b *Backend) give(ctx context.Context, e *engine, img *tranca.Image, name string) (*docker.Image, error) {
	b.loading.Lock()
	defer b.loading.Unlock()
	there, err := e.InspectImage(ctx, name)
	if !errors.Is(err, tranca.ErrNotFound) {
		return there, err
	}
	if err := load(ctx, e, img, name); err != nil {
		return nil, err
	}
	return e.InspectImage(ctx, name)
}

// load streams the image's archive into the engine and gives it its name there.
func load(ctx context.Context, e *engine, img *tranca.Image, name string) error {
	r, w := io.Pipe()
	exported := make(chan error, 1)
	go func() {
		err := img.Export(ctx, w)
		w.CloseWithError(err)
		exported <- err
	}()
	loaded, err := e.LoadImage(ctx, r)
	r.CloseWithError(errors.New("the engine takes no more"))
	if exportErr := <-exported; err == nil && exportErr != nil {
		err = exportErr
	}
	if err != nil || loaded == name {
		return err
	}
	repo, tag, _ := strings.Cut(name, ":")
	return e.TagImage(ctx, loaded, repo, tag)
}
