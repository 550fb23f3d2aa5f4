package route

import (
	"reflect"
	"strings"

	"tranca/internal/api"
)

// Kind is how a parameter is written.
type Kind int

// The kinds of parameter.
const (
	Text Kind = iota
	Number
	Flag  // true or false
	Octal // permission bits: 0644
	Pair  // NAME=VALUE
)

// Param is a parameter in the query.
type Param struct {
	Name     string
	Kind     Kind
	About    string
	Required bool
	Repeat   bool
	// Min and Max bound a Number.
	Min, Max int64
	// Default is the value where it is absent.
	Default string
	// MaxBytes bounds a Text.
	MaxBytes int
}

// Body is what a call takes.
type Body struct {
	// JSON is the type of a JSON body, or nil.
	JSON reflect.Type
	// Media lists what else is taken, as it is.
	Media []string
	// Optional says that an empty body asks for nothing in particular.
	Optional bool
	// Most bounds the bytes of a JSON body.
	Most int64
}

// Answer is one way in which a call succeeds.
type Answer struct {
	Status int
	// JSON is the type of a JSON answer, or nil.
	JSON reflect.Type
	// Media lists what else may come, by the header Accept.
	Media []string
	About string
}

// Route is one call.
type Route struct {
	// Pattern is one of package api.
	Pattern string
	// Name is the operation's id in the OpenAPI document.
	Name    string
	Group   string
	Summary string
	About   string
	Query   []Param
	Body    *Body
	Answers []Answer
	// Open says that no key is needed.
	Open bool
	// Idempotent says that the call takes the header Idempotency-Key;
	// NeedsKey that it must have it.
	Idempotent, NeedsKey bool
	// Codes are the problems that are particular to the call.
	Codes []api.Code
}

// Method returns the HTTP method.
func (r *Route) Method() string {
	method, _, _ := strings.Cut(r.Pattern, " ")
	return method
}

// Path returns the path with its parameters in braces.
func (r *Route) Path() string {
	_, path, _ := strings.Cut(r.Pattern, " ")
	return path
}

// PathParams returns the names of the parameters in the path.
func (r *Route) PathParams() []string {
	var names []string
	for part := range strings.SplitSeq(r.Path(), "/") {
		if strings.HasPrefix(part, "{") {
			names = append(names, strings.Trim(part, "{}"))
		}
	}
	return names
}

// Problems returns every code that the call may answer, in the order of
// [api.Codes].
func (r *Route) Problems() []api.Code {
	has := map[api.Code]bool{api.CodeInvalid: true, api.CodeInternal: true, api.CodeRefused: true, api.CodeTimeout: true}
	if !r.Open {
		has[api.CodeUnauthorized] = true
	}
	if len(r.PathParams()) > 0 {
		for _, c := range []api.Code{api.CodeNotFound, api.CodeGone, api.CodeClosed, api.CodeProtocol, api.CodeBusy, api.CodeUnavailable} {
			has[c] = true
		}
	}
	if r.Body != nil {
		has[api.CodeMediaType], has[api.CodeTooLarge], has[api.CodeBusy] = true, true, true
	}
	if r.Idempotent {
		has[api.CodeConflict], has[api.CodeGone], has[api.CodeBusy] = true, true, true
	}
	for _, c := range r.Codes {
		has[c] = true
	}
	var all []api.Code
	for _, c := range api.Codes() {
		if has[c] {
			all = append(all, c)
		}
	}
	return all
}
