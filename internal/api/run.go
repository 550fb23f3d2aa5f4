package api

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"tranca"
)

// MaxCode bounds the code of one run, in bytes. Engines have bounds of their
// own for each language.
const MaxCode = 64 << 20

// RunRequestOf returns the JSON form of req, apart from its code and standard
// input, which go after it in a body of type [TypeFrames]. Arguments keep
// every byte, also where they are no text.
func RunRequestOf(req tranca.Request) RunRequest {
	out := RunRequest{
		Language: req.Language, Profile: req.Profile, Narrow: NarrowingOf(req.Narrow),
		CodeBytes: int64(len(req.Code)), NoStdin: req.Stdin == nil,
	}
	out.Command, out.CommandBase64 = textOrBytes(req.Command)
	out.Args, out.ArgsBase64 = textOrBytes(req.Args)
	return out
}

func textOrBytes(all []string) (text []string, raw [][]byte) {
	if !slices.ContainsFunc(all, func(s string) bool { return !utf8.ValidString(s) }) {
		return all, nil
	}
	for _, s := range all {
		raw = append(raw, []byte(s))
	}
	return nil, raw
}

func fromTextOrBytes(field string, text []string, raw [][]byte) ([]string, error) {
	if len(raw) == 0 {
		return text, nil
	}
	if len(text) > 0 {
		return nil, fmt.Errorf("%w: both %s and %s_base64 are set: give one", tranca.ErrInvalid, field, field)
	}
	for _, b := range raw {
		text = append(text, string(b))
	}
	return text, nil
}

// splitEnv takes the values that are no text apart from the others.
func splitEnv(env map[string]string) (text map[string]string, raw map[string][]byte) {
	for name, value := range env {
		if utf8.ValidString(value) {
			continue
		}
		if raw == nil {
			raw, text = map[string][]byte{}, maps.Clone(env)
		}
		raw[name] = []byte(value)
		delete(text, name)
	}
	if raw == nil {
		return env, nil
	}
	return text, raw
}

func joinEnv(text map[string]string, raw map[string][]byte) (map[string]string, error) {
	if len(raw) == 0 {
		return text, nil
	}
	all := make(map[string]string, len(text)+len(raw))
	maps.Copy(all, text)
	for name, value := range raw {
		if _, twice := text[name]; twice {
			return nil, fmt.Errorf("%w: the variable %q stands in env and in env_base64: give it once", tranca.ErrInvalid, name)
		}
		all[name] = string(value)
	}
	return all, nil
}

// Request returns the request. Its Stdin holds what stands in the body, and
// is nil for none. The error wraps [tranca.ErrInvalid].
func (r RunRequest) Request() (tranca.Request, error) {
	req := tranca.Request{Code: r.Code, Language: r.Language, Profile: r.Profile}
	var err error
	if req.Command, err = fromTextOrBytes("command", r.Command, r.CommandBase64); err != nil {
		return req, err
	}
	if req.Args, err = fromTextOrBytes("args", r.Args, r.ArgsBase64); err != nil {
		return req, err
	}
	switch {
	case r.Stdin != "" && len(r.StdinBase64) > 0:
		return req, fmt.Errorf("%w: both stdin and stdin_base64 are set: give one", tranca.ErrInvalid)
	case r.Stdin != "":
		req.Stdin = strings.NewReader(r.Stdin)
	case len(r.StdinBase64) > 0:
		req.Stdin = bytes.NewReader(r.StdinBase64)
	}
	req.Narrow, err = r.Narrow.Narrowing()
	return req, err
}

// RunBody returns how to make the body of type [TypeFrames] of a run, up to
// where standard input begins, and its size; where req has none that is all.
// The code is read where it is and not copied.
func RunBody(req tranca.Request) (body func() io.Reader, size int64, err error) {
	var head bytes.Buffer
	if err := WriteRequestFrame(&head, RunRequestOf(req)); err != nil {
		return nil, 0, err
	}
	frames := (len(req.Code) + MaxFrame - 1) / MaxFrame
	size = int64(head.Len() + len(req.Code) + frames*frameHeader)
	return func() io.Reader {
		parts := []io.Reader{bytes.NewReader(head.Bytes())}
		for code := req.Code; code != ""; {
			piece := code[:min(len(code), MaxFrame)]
			code = code[len(piece):]
			parts = append(parts, bytes.NewReader(frameHead(frameCode, len(piece))), strings.NewReader(piece))
		}
		return io.MultiReader(parts...)
	}, size, nil
}

// StdinHead is the length of the head of a frame of standard input.
const StdinHead = frameHeader

// PutStdinHead writes the head of a frame with n bytes of standard input, at
// most [MaxFrame], into the first [StdinHead] bytes of b; n of 0 ends it.
func PutStdinHead(b []byte, n int) {
	b[0] = frameStdin
	binary.BigEndian.PutUint32(b[1:], uint32(n))
}

// ReadRun reads a body of type [TypeFrames] of a run. The Stdin of what it
// returns reads on from r, and is nil where none follows. The error wraps [tranca.ErrInvalid] or is r's.
func ReadRun(r io.Reader) (tranca.Request, error) {
	head, err := ReadRequestFrame(r)
	if err != nil {
		return tranca.Request{}, err
	}
	var in RunRequest
	if err := Decode(head, &in); err != nil {
		return tranca.Request{}, err
	}
	if in.Stdin != "" || len(in.StdinBase64) > 0 {
		return tranca.Request{}, fmt.Errorf("%w: standard input stands in the request: in a body of frames it comes after it", tranca.ErrInvalid)
	}
	req, err := in.Request()
	if err != nil {
		return req, err
	}
	if in.CodeBytes != 0 {
		if req.Code != "" {
			return req, fmt.Errorf("%w: code stands in the request and comes after it: give it once", tranca.ErrInvalid)
		}
		if req.Code, err = readCode(r, in.CodeBytes); err != nil {
			return req, err
		}
	}
	if !in.NoStdin {
		req.Stdin = NewStdinReader(r)
	}
	return req, nil
}

// readCode reads frames of code until there are n bytes of it.
func readCode(r io.Reader, n int64) (string, error) {
	if n < 0 || n > MaxCode {
		return "", fmt.Errorf("%w: the code has %d bytes: at most %d are taken", tranca.ErrInvalid, n, MaxCode)
	}
	var code strings.Builder
	var buf []byte
	for int64(code.Len()) < n {
		kind, piece, err := readFrame(r, &buf, MaxFrame)
		if errors.Is(err, tranca.ErrProtocol) {
			return "", fmt.Errorf("%w: where code comes: %w", tranca.ErrInvalid, err)
		}
		if err != nil {
			return "", err
		}
		if kind != frameCode || len(piece) == 0 || int64(code.Len()+len(piece)) > n {
			return "", fmt.Errorf("%w: a frame of kind %q and %d bytes where code comes, of which %d are missing",
				tranca.ErrInvalid, kind, len(piece), n-int64(code.Len()))
		}
		code.Write(piece)
	}
	return code.String(), nil
}
