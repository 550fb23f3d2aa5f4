package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Image is an image that an engine has.
type Image struct {
	ID           string `json:"Id"`
	RepoTags     []string
	RepoDigests  []string
	OS           string `json:"Os"`
	Architecture string
	Config       *ImageConfig
}

// ImageConfig is how an image wants to be run.
type ImageConfig struct {
	User         string
	Env          []string
	Entrypoint   []string
	Cmd          []string
	WorkingDir   string
	Volumes      map[string]struct{}
	ExposedPorts map[string]struct{}
	Healthcheck  *Healthcheck
	StopSignal   string
	OnBuild      []string
}

// InspectImage says what an image is. The error wraps [tranca.ErrNotFound]
// where the engine has none of that name.
func (c *Client) InspectImage(ctx context.Context, name string) (*Image, error) {
	var out Image
	if err := c.call(ctx, http.MethodGet, "/images/"+escapeName(name)+"/json", nil, nil, &out); err != nil {
		return nil, err
	}
	if out.ID == "" {
		return nil, ErrGarbage
	}
	return &out, nil
}

// escapeName keeps the slashes of an image's name, which are part of the path.
func escapeName(name string) string {
	return (&url.URL{Path: name}).EscapedPath()
}

// LoadImage gives the engine an archive as `docker save` writes it, and returns
// what the engine calls the image: an id or a name.
func (c *Client) LoadImage(ctx context.Context, archive io.Reader) (name string, err error) {
	const call = "POST /images/load"
	req, err := c.request(ctx, http.MethodPost, "/images/load", url.Values{"quiet": {"1"}}, archive)
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-tar")
	resp, err := c.send(req, call)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	// The status came before the work: errors are in the stream.
	dec := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer))
	for {
		var m struct {
			Stream string `json:"stream"`
			Error  string `json:"error"`
		}
		err := dec.Decode(&m)
		switch {
		case err == io.EOF && name == "":
			return "", fmt.Errorf("engine: %s: %w: it names no image", call, ErrGarbage)
		case err == io.EOF:
			return name, nil
		case err != nil:
			return "", fmt.Errorf("engine: %s: %w: %w", call, ErrGarbage, err)
		case m.Error != "":
			return "", &Error{Call: call, Status: resp.StatusCode, Message: bounded(m.Error)}
		}
		if found := loadedName(m.Stream); found != "" {
			name = found
		}
	}
}

// loadedName finds the name in "Loaded image: NAME" or "Loaded image ID: ID".
func loadedName(text string) string {
	for line := range strings.Lines(text) {
		for _, lead := range []string{"Loaded image ID: ", "Loaded image: ", "Loaded image(s): "} {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), lead); ok {
				first, _, _ := strings.Cut(rest, ",")
				return first
			}
		}
	}
	return ""
}

// TagImage gives an image another name.
func (c *Client) TagImage(ctx context.Context, name, repo, tag string) error {
	return c.call(ctx, http.MethodPost, "/images/"+escapeName(name)+"/tag", url.Values{"repo": {repo}, "tag": {tag}}, nil, nil)
}
