package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"tranca"
)

const (
	// maxAnswer bounds an answer that is read whole.
	maxAnswer = 8 << 20
	// maxMessage bounds what is told of an engine's error.
	maxMessage = 1024
	// dialTimeout bounds a connection to a local socket.
	dialTimeout = 5 * time.Second
	// idleConnections are kept for the next call, for idleTime.
	idleConnections = 4
	idleTime        = 2 * time.Second
)

// Client speaks to one engine. Safe for concurrent use.
type Client struct {
	// Socket is the path of the engine's socket or, on Windows, named pipe.
	Socket string

	http    *http.Client
	version string // "/v1.41", set by Ping
}

// New makes a client for a socket. It connects with the first call. Until
// [Client.Ping] has settled the version of the API, only that may be called.
func New(socket string) *Client {
	c := &Client{Socket: socket}
	c.http = &http.Client{Transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) },
		DisableCompression:  true,
		MaxIdleConnsPerHost: idleConnections,
		IdleConnTimeout:     idleTime,
	}}
	return c
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return dialSocket(ctx, c.Socket)
}

// Error is an answer of the engine that is none of success. It wraps
// [tranca.ErrNotFound] where the engine has no such thing.
type Error struct {
	// Call is what was asked: "POST /containers/create".
	Call string
	// Status is the HTTP status.
	Status int
	// Message is what the engine says, bounded. It may hold anything.
	Message string
}

// Error names the call, the status and what the engine says.
func (e *Error) Error() string {
	return fmt.Sprintf("engine: %s: status %d: %s", e.Call, e.Status, e.Message)
}

// Is reports whether target is the class of the error.
func (e *Error) Is(target error) bool {
	return target == tranca.ErrNotFound && e.Status == http.StatusNotFound
}

// ErrGarbage is an answer that is not what the API says.
var ErrGarbage = errors.New("the engine's answer is not of the Docker Engine API")

// request makes a request for a path below the version.
func (c *Client) request(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Request, error) {
	u := url.URL{Scheme: "http", Host: "engine", Path: c.version + path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, fmt.Errorf("engine: %s %s: %w", method, path, err)
	}
	return req, nil
}

// send makes a call and returns an answer of success, whose body the caller
// closes.
func (c *Client) send(req *http.Request, name string) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		// The URL says nothing to anybody; what is beneath does.
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, fmt.Errorf("engine at %s: %s: %w", c.Socket, name, err)
	}
	if resp.StatusCode/100 == 2 || resp.StatusCode == http.StatusNotModified {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, answerError(resp, name)
}

func answerError(resp *http.Response, name string) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 8*maxMessage))
	var told struct{ Message, Cause string }
	message := string(text)
	if json.Unmarshal(text, &told) == nil && told.Message != "" {
		message = told.Message
	}
	return &Error{Call: name, Status: resp.StatusCode, Message: bounded(message)}
}

// bounded makes text of the engine fit for an error: short, without control
// characters.
func bounded(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(strings.TrimSpace(text), "?"))
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

// call makes a call with a JSON body, unless in is nil, and reads a JSON answer
// into out, unless that is nil.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("engine: %s %s: %w", method, path, err)
		}
		body = bytes.NewReader(text)
	}
	req, err := c.request(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	name := method + " " + path
	resp, err := c.send(req, name)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("engine at %s: %s: %w", c.Socket, name, err)
	case len(text) > maxAnswer:
		return fmt.Errorf("engine at %s: %s: %w: more than %d bytes", c.Socket, name, ErrGarbage, maxAnswer)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("engine at %s: %s: %w: %w", c.Socket, name, ErrGarbage, err)
	}
	return nil
}
