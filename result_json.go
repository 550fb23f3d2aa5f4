package tranca

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// resultJSON is the stable JSON form of a [Result].
type resultJSON struct {
	ID          ID            `json:"id"`
	Backend     string        `json:"backend"`
	Isolation   string        `json:"isolation"`
	Image       string        `json:"image_digest,omitempty"`
	Exit        Exit          `json:"exit"`
	Stdout      string        `json:"stdout"`
	Stderr      string        `json:"stderr"`
	Encoding    encodingJSON  `json:"encoding"`
	Truncated   truncatedJSON `json:"truncated"`
	LimitsHit   []LimitHit    `json:"limits_hit"`
	Usage       RunUsage      `json:"usage"`
	Enforcement []Enforcement `json:"enforcement"`
	Denials     []Denial      `json:"denials"`
	Changes     []Change      `json:"changes"`
	State       ChangesState  `json:"changes_state,omitempty"`
	Policy      PolicyRef     `json:"policy"`
	Notes       []string      `json:"notes"`
}

type encodingJSON struct {
	Stdout Encoding `json:"stdout"`
	Stderr Encoding `json:"stderr"`
}

type truncatedJSON struct {
	Stdout bool `json:"stdout"`
	Stderr bool `json:"stderr"`
}

// MarshalJSON writes the stable form. Output that is valid UTF-8 stands as it
// is, anything else as base64, told by "encoding"; no byte is ever replaced.
// Arrays are never null. An isolation that is no level is the empty string,
// as in the result of a run that reached no sandbox.
func (r Result) MarshalJSON() ([]byte, error) {
	out := resultJSON{
		ID: r.ID, Backend: r.Backend, Image: r.ImageDigest, Exit: r.Exit,
		Truncated:   truncatedJSON{r.StdoutTruncated, r.StderrTruncated},
		LimitsHit:   present(r.LimitsHit),
		Usage:       r.Usage,
		Enforcement: present(r.Enforcement),
		Denials:     present(r.Denials),
		Changes:     present(r.Changes),
		State:       r.ChangesState,
		Policy:      r.Policy,
		Notes:       present(r.Notes),
	}
	if r.Isolation != 0 {
		name, err := r.Isolation.MarshalText()
		if err != nil {
			return nil, err
		}
		out.Isolation = string(name)
	}
	out.Stdout, out.Encoding.Stdout = encodeBytes(r.Stdout)
	out.Stderr, out.Encoding.Stderr = encodeBytes(r.Stderr)
	return marshalPlain(out)
}

// UnmarshalJSON reads what MarshalJSON writes. Fields that it doesn't know are
// passed over, so that a later version's results can still be read. Errors
// wrap [ErrInvalid].
func (r *Result) UnmarshalJSON(data []byte) error {
	var in resultJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("%w: result: %w", ErrInvalid, err)
	}
	res := Result{
		ID: in.ID, Backend: in.Backend, ImageDigest: in.Image, Exit: in.Exit,
		StdoutTruncated: in.Truncated.Stdout, StderrTruncated: in.Truncated.Stderr,
		LimitsHit:   absent(in.LimitsHit),
		Usage:       in.Usage,
		Enforcement: absent(in.Enforcement),
		Denials:     absent(in.Denials),
		Changes:     absent(in.Changes),

		ChangesState: in.State,
		Policy:       in.Policy,
		Notes:        absent(in.Notes),
	}
	var err error
	if in.Isolation != "" {
		if res.Isolation, err = ParseLevel(in.Isolation); err != nil {
			return fmt.Errorf("result: %w", err)
		}
	}
	if res.Stdout, err = decodeBytes(in.Stdout, in.Encoding.Stdout); err != nil {
		return fmt.Errorf("result: stdout: %w", err)
	}
	if res.Stderr, err = decodeBytes(in.Stderr, in.Encoding.Stderr); err != nil {
		return fmt.Errorf("result: stderr: %w", err)
	}
	*r = res
	return nil
}

// changeJSON is the JSON form of a [Change]. A path that isn't valid UTF-8
// stands readable in path and byte for byte in path_base64.
type changeJSON struct {
	Path           string     `json:"path"`
	PathBase64     string     `json:"path_base64,omitempty"`
	Kind           ChangeKind `json:"kind"`
	Size           int64      `json:"size"`
	HostExecutable bool       `json:"host_executable,omitempty"`
}

// MarshalJSON writes the change. File names are bytes and need not be text: a
// path that isn't valid UTF-8 is written with replacement characters, and its
// bytes beside it as "path_base64".
func (c Change) MarshalJSON() ([]byte, error) {
	out := changeJSON{Path: c.Path, Kind: c.Kind, Size: c.Size, HostExecutable: c.HostExecutable}
	if !utf8.ValidString(c.Path) {
		out.Path = string(bytes.ToValidUTF8([]byte(c.Path), []byte("\uFFFD")))
		out.PathBase64 = base64.StdEncoding.EncodeToString([]byte(c.Path))
	}
	return marshalPlain(out)
}

// UnmarshalJSON reads what MarshalJSON writes. Errors wrap [ErrInvalid].
func (c *Change) UnmarshalJSON(data []byte) error {
	var in changeJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("%w: change: %w", ErrInvalid, err)
	}
	*c = Change{Path: in.Path, Kind: in.Kind, Size: in.Size, HostExecutable: in.HostExecutable}
	if in.PathBase64 != "" {
		raw, err := base64.StdEncoding.DecodeString(in.PathBase64)
		if err != nil {
			return fmt.Errorf("%w: change: path_base64: %w", ErrInvalid, err)
		}
		c.Path = string(raw)
	}
	return nil
}

func encodeBytes(b []byte) (string, Encoding) {
	if utf8.Valid(b) {
		return string(b), EncodingUTF8
	}
	return base64.StdEncoding.EncodeToString(b), EncodingBase64
}

func decodeBytes(s string, e Encoding) ([]byte, error) {
	switch e {
	case EncodingUTF8:
		return absent([]byte(s)), nil
	case EncodingBase64:
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		return absent(b), nil
	}
	return nil, fmt.Errorf("%w: encoding %q: want %s or %s", ErrInvalid, e, EncodingUTF8, EncodingBase64)
}

// marshalPlain marshals without escaping <, > and &, which are frequent in
// program output and harmless outside of HTML.
func marshalPlain(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// present returns s, never nil, so that an empty list is [] in JSON.
func present[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// absent returns s, or nil if it is empty.
func absent[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}
