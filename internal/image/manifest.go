package image

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"tranca"
)

// The media types that are understood.
const (
	typeOCIIndex       = "application/vnd.oci.image.index.v1+json"
	typeOCIManifest    = "application/vnd.oci.image.manifest.v1+json"
	typeOCIConfig      = "application/vnd.oci.image.config.v1+json"
	typeOCILayer       = "application/vnd.oci.image.layer.v1.tar"
	typeOCILayerGzip   = "application/vnd.oci.image.layer.v1.tar+gzip"
	typeDockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	typeDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	typeDockerConfig   = "application/vnd.docker.container.image.v1+json"
)

// MediaTypes are what a source should offer: indexes and manifests.
func MediaTypes() []string {
	return []string{typeOCIIndex, typeOCIManifest, typeDockerList, typeDockerManifest}
}

var layerTypes = []string{
	typeOCILayer, typeOCILayerGzip, "application/vnd.oci.image.layer.v1.tar+zstd",
	"application/vnd.docker.image.rootfs.diff.tar", "application/vnd.docker.image.rootfs.diff.tar.gzip",
	"application/vnd.docker.image.rootfs.diff.tar.zstd",
}

// The bounds of documents and of what they may list.
const (
	// MaxDocument bounds an index, a manifest and a configuration, in bytes.
	MaxDocument  = 4 << 20
	maxManifests = 1000
	maxIndexes   = 4 // one in the other
	maxEnv       = 1000
)

// Platform is for what an image was made. The zero value is this host's.
type Platform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Variant      string `json:"variant,omitempty"`
}

// ParsePlatform reads OS/ARCHITECTURE or OS/ARCHITECTURE/VARIANT; empty is this
// host's platform. Errors wrap [tranca.ErrInvalid].
func ParsePlatform(text string) (Platform, error) {
	if text == "" {
		return Platform{}, nil
	}
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return Platform{}, fmt.Errorf("%w: platform %q: want OS/ARCHITECTURE, as in linux/%s", tranca.ErrInvalid, text, runtime.GOARCH)
	}
	p := Platform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	return p, nil
}

func (p Platform) orHost() Platform {
	if p == (Platform{}) {
		return Platform{OS: "linux", Architecture: runtime.GOARCH}
	}
	return p
}

// fits reports whether what p describes is what was asked for.
func (p Platform) fits(asked Platform) bool {
	return p.OS == asked.OS && p.Architecture == asked.Architecture &&
		(asked.Variant == "" || p.Variant == asked.Variant)
}

// String writes it as ParsePlatform reads it.
func (p Platform) String() string {
	text := p.OS + "/" + p.Architecture
	if p.Variant != "" {
		text += "/" + p.Variant
	}
	return text
}

// Descriptor names a blob: what it is, how long, and its digest.
type Descriptor struct {
	MediaType string    `json:"mediaType"`
	Digest    string    `json:"digest"`
	Size      int64     `json:"size"`
	Platform  *Platform `json:"platform,omitempty"`
}

// check says whether it could name a blob at all.
func (d Descriptor) check(most int64) error {
	switch {
	case !wholeDigest(d.Digest):
		return fmt.Errorf("%w: a blob with the digest %.100q: only sha256 with 64 digits is taken", tranca.ErrInvalid, d.Digest)
	case d.Size < 0 || d.Size > most:
		return fmt.Errorf("%w: blob %s claims %d bytes: at most %d are taken", tranca.ErrInvalid, short(d.Digest), d.Size, most)
	}
	return nil
}

// short is a digest for people.
func short(digest string) string {
	if h := hexOf(digest); len(h) > 12 {
		return h[:12]
	}
	return digest
}

// index lists manifests for several platforms.
type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []Descriptor `json:"manifests"`
}

// manifest lists the blobs of one image.
type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        Descriptor   `json:"config"`
	Layers        []Descriptor `json:"layers"`
}

// config is what is read of an image's configuration. All else in it (entry
// point, user, volumes, health check) says what Docker would do, and is shown
// and otherwise passed over: the policy says what runs, and as whom.
type config struct {
	Platform
	Created *time.Time `json:"created,omitempty"`
	Config  runConfig  `json:"config"`
	RootFS  rootFS     `json:"rootfs"`
}

type runConfig struct {
	Env         []string            `json:"Env,omitempty"`
	Entrypoint  []string            `json:"Entrypoint,omitempty"`
	Cmd         []string            `json:"Cmd,omitempty"`
	User        string              `json:"User,omitempty"`
	WorkingDir  string              `json:"WorkingDir,omitempty"`
	Volumes     map[string]struct{} `json:"Volumes,omitempty"`
	Healthcheck json.RawMessage     `json:"Healthcheck,omitempty"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

func malformed(what, format string, args ...any) error {
	return fmt.Errorf("%w: the image's %s: %s", tranca.ErrInvalid, what, fmt.Sprintf(format, args...))
}

// decode reads one JSON document, with nothing behind it.
func decode(what string, b []byte, v any) error {
	if len(b) > MaxDocument {
		return malformed(what, "it is longer than %d bytes", MaxDocument)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(v); err != nil {
		return malformed(what, "%v", err)
	}
	if d.More() {
		return malformed(what, "something stands behind it")
	}
	return nil
}

// encode writes a document of our own: always in the same way.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// isIndex tells an index from a manifest by what it holds: the media type of a
// descriptor may be left out, and may lie.
func isIndex(b []byte) (bool, error) {
	var probe struct {
		Manifests json.RawMessage `json:"manifests"`
		Layers    json.RawMessage `json:"layers"`
		Config    json.RawMessage `json:"config"`
		FSLayers  json.RawMessage `json:"fsLayers"`
	}
	if err := decode("manifest", b, &probe); err != nil {
		return false, err
	}
	switch {
	case probe.FSLayers != nil:
		return false, malformed("manifest", "it has the first version of Docker's form, which nobody should use any more")
	case probe.Manifests != nil && (probe.Layers != nil || probe.Config != nil):
		return false, malformed("manifest", "it is a manifest and an index at once")
	}
	return probe.Manifests != nil, nil
}

func parseManifest(b []byte, bounds Bounds) (*manifest, error) {
	m := &manifest{}
	if err := decode("manifest", b, m); err != nil {
		return nil, err
	}
	switch {
	case m.SchemaVersion != 2:
		return nil, malformed("manifest", "version %d: only version 2 is understood", m.SchemaVersion)
	case m.MediaType != "" && m.MediaType != typeOCIManifest && m.MediaType != typeDockerManifest:
		return nil, malformed("manifest", "it is of type %.100q", m.MediaType)
	case m.Config.MediaType != typeOCIConfig && m.Config.MediaType != typeDockerConfig:
		return nil, malformed("manifest", "its configuration is of type %.100q: that is no image with a root tree", m.Config.MediaType)
	case len(m.Layers) > bounds.Layers:
		return nil, malformed("manifest", "%d layers: at most %d are taken", len(m.Layers), bounds.Layers)
	}
	if err := m.Config.check(MaxDocument); err != nil {
		return nil, err
	}
	for _, l := range m.Layers {
		if !slices.Contains(layerTypes, l.MediaType) {
			return nil, malformed("manifest", "a layer is of type %.100q", l.MediaType)
		}
		if err := l.check(bounds.Bytes); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// parseConfig reads the configuration to a manifest.
func parseConfig(b []byte, m *manifest) (*config, error) {
	c := &config{}
	if err := decode("configuration", b, c); err != nil {
		return nil, err
	}
	switch {
	case c.OS != "linux":
		return nil, malformed("configuration", "it is for %.40q: only Linux runs in a sandbox", c.OS)
	case c.Architecture == "":
		return nil, malformed("configuration", "it names no architecture")
	case c.RootFS.Type != "layers":
		return nil, malformed("configuration", "its root tree is made of %.40q", c.RootFS.Type)
	case len(c.RootFS.DiffIDs) != len(m.Layers):
		return nil, malformed("configuration", "%d layers in it, and %d in the manifest", len(c.RootFS.DiffIDs), len(m.Layers))
	}
	for _, id := range c.RootFS.DiffIDs {
		if !wholeDigest(id) {
			return nil, malformed("configuration", "a layer with the digest %.100q", id)
		}
	}
	return c, nil
}

// environment returns the variables that can be passed to a program.
func (c *config) environment() map[string]string {
	env := map[string]string{}
	for _, line := range c.Config.Env {
		name, value, ok := strings.Cut(line, "=")
		if !ok || name == "" || strings.ContainsRune(line, 0) || len(env) == maxEnv {
			continue
		}
		env[name] = value
	}
	return env
}

// choose returns what an index has for a platform.
func (x *index) choose(asked Platform) (Descriptor, error) {
	if len(x.Manifests) > maxManifests {
		return Descriptor{}, malformed("index", "%d manifests: at most %d are taken", len(x.Manifests), maxManifests)
	}
	var there []string
	for _, d := range x.Manifests {
		switch {
		case d.Platform == nil && len(x.Manifests) == 1:
			return d, nil // its configuration says what it is for
		case d.Platform == nil || d.Platform.OS == "unknown":
			continue // what belongs to an image, and is none
		case d.Platform.fits(asked):
			return d, nil
		}
		there = append(there, d.Platform.String())
	}
	return Descriptor{}, otherPlatform(asked, there)
}

func otherPlatform(asked Platform, there []string) error {
	if len(there) == 0 {
		there = []string{"none"}
	}
	slices.Sort(there)
	return fmt.Errorf("%w: the image is not made for %s; there is: %.400s", tranca.ErrNotFound, asked, strings.Join(slices.Compact(there), ", "))
}
