package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"tranca"
)

// Problem is an error as the server tells it: RFC 9457, with a stable code.
type Problem struct {
	// Type is "urn:tranca:problem:" and the code.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   Code   `json:"code"`
	// Detail says what was wrong with this request.
	Detail string `json:"detail"`
	// Fix says what to do; empty where nothing helps.
	Fix string `json:"fix,omitempty"`
	// Refusal is set with the codes refused and unavailable where each problem
	// is known.
	Refusal   *tranca.RefusalError `json:"refusal,omitempty"`
	RequestID string               `json:"request_id,omitempty"`
}

// Code is the stable name of a class of error.
type Code string

// The codes. Those down to CodeNoSpace are one class of package tranca each.
const (
	CodeInvalid     Code = "invalid"
	CodeRefused     Code = "refused"
	CodeUnavailable Code = "unavailable"
	CodeNotFound    Code = "not_found"
	CodeExists      Code = "exists"
	CodeGone        Code = "gone"
	CodeBusy        Code = "busy"
	CodeClosed      Code = "closed"
	CodeUnsupported Code = "unsupported"
	CodeProtocol    Code = "protocol"
	CodeNoSpace     Code = "no_space"
	// CodeUnauthorized: no key, or a wrong one.
	CodeUnauthorized Code = "unauthorized"
	// CodeConflict: the idempotency key was used for another request.
	CodeConflict Code = "conflict"
	// CodeTooLarge: the body is larger than the server takes.
	CodeTooLarge Code = "too_large"
	// CodeMethod: the path has no such method; the header Allow lists those
	// that it has.
	CodeMethod Code = "method"
	// CodeMediaType: the body is of a type that the call does not take.
	CodeMediaType Code = "media_type"
	// CodeTimeout: the client or the server was too slow.
	CodeTimeout Code = "timeout"
	// CodeInternal: the server failed.
	CodeInternal Code = "internal"
)

type class struct {
	code   Code
	status int
	title  string
	// err is the class of package tranca; a code that is none itself is told
	// of its nearest one. Nil where there is none.
	err error
	fix string
}

// classes are in the order in which an error is looked up: one may be of two.
var classes = []class{
	{CodeUnavailable, http.StatusServiceUnavailable, "This host cannot run it", tranca.ErrUnavailable, "tranca doctor says what the host lacks"},
	{CodeRefused, http.StatusForbidden, "Policy or host do not allow it", tranca.ErrRefused, ""},
	{CodeInvalid, http.StatusBadRequest, "The request is malformed", tranca.ErrInvalid, "change the request; repeating it is useless"},
	{CodeNotFound, http.StatusNotFound, "There is no such thing", tranca.ErrNotFound, ""},
	{CodeExists, http.StatusConflict, "It is there already", tranca.ErrExists, ""},
	{CodeGone, http.StatusGone, "It existed and does no longer", tranca.ErrGone, "create a new sandbox"},
	{CodeBusy, http.StatusTooManyRequests, "Too much is going on", tranca.ErrBusy, "try again later"},
	{CodeClosed, http.StatusGone, "Its owner closed it", tranca.ErrClosed, "create a new sandbox"},
	{CodeUnsupported, http.StatusNotImplemented, "The backend can't do it", tranca.ErrUnsupported, ""},
	{CodeProtocol, http.StatusBadGateway, "The sandbox broke the protocol and was ended", tranca.ErrProtocol, "create a new sandbox"},
	{CodeNoSpace, http.StatusInsufficientStorage, "A bounded space is full", tranca.ErrNoSpace, "remove files, or ask for a larger space when it is created"},
	{CodeUnauthorized, http.StatusUnauthorized, "The key is missing or wrong", tranca.ErrRefused, "send the header Authorization: Bearer KEY"},
	{CodeConflict, http.StatusConflict, "The idempotency key was used for another request", tranca.ErrInvalid, "use a new key for each new request"},
	{CodeTooLarge, http.StatusRequestEntityTooLarge, "The body is too large", tranca.ErrInvalid, "send less at a time"},
	{CodeMethod, http.StatusMethodNotAllowed, "The path has no such method", tranca.ErrInvalid, "use one of those that the header Allow lists"},
	{CodeMediaType, http.StatusUnsupportedMediaType, "The body is of another type than the call takes", tranca.ErrInvalid, "set the header Content-Type to what the body is"},
	{CodeTimeout, http.StatusRequestTimeout, "It took too long", nil, "try again"},
	{CodeInternal, http.StatusInternalServerError, "The server failed", nil, "the server's log has the request id"},
}

func lookup(code Code) class {
	for _, c := range classes {
		if c.code == code {
			return c
		}
	}
	return lookup(CodeInternal)
}

// Codes returns all codes, in the order in which an error is looked up.
func Codes() []Code {
	all := make([]Code, len(classes))
	for i, c := range classes {
		all[i] = c.code
	}
	return all
}

// ProblemOf returns the problem that an error is. One that is of no class is
// [CodeInternal], or [CodeTimeout] where it is of a context.
func ProblemOf(err error) Problem {
	var own *Error
	if errors.As(err, &own) {
		return own.Problem
	}
	for _, c := range classes {
		if c.err == nil || !errors.Is(err, c.err) {
			continue
		}
		p := NewProblem(c.code, err.Error())
		if errors.As(err, &p.Refusal) && len(p.Refusal.Problems) > 0 && p.Refusal.Problems[0].Mend != "" {
			p.Fix = p.Refusal.Problems[0].Mend
		}
		return p
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return NewProblem(CodeTimeout, err.Error())
	}
	return NewProblem(CodeInternal, err.Error())
}

// NewProblem returns a problem of a code.
func NewProblem(code Code, detail string) Problem {
	c := lookup(code)
	return Problem{
		Type: "urn:tranca:problem:" + string(c.code), Title: c.title, Status: c.status,
		Code: c.code, Detail: detail, Fix: c.fix,
	}
}

// Error is a problem as an error. It wraps the class that the code names, and
// a [*tranca.RefusalError] where the problem has one.
type Error struct{ Problem Problem }

// Errorf returns an [*Error] of a code.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{NewProblem(code, fmt.Sprintf(format, args...))}
}

func (e *Error) Error() string {
	if e.Problem.Detail != "" {
		return e.Problem.Detail
	}
	return e.Problem.Title
}

// Unwrap returns the class and the refusal.
func (e *Error) Unwrap() []error {
	var all []error
	if e.Problem.Refusal != nil {
		all = append(all, e.Problem.Refusal)
	}
	if c := lookup(e.Problem.Code); c.err != nil {
		all = append(all, c.err)
	}
	return all
}
