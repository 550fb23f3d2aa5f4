package route

import (
	"net/http"
	"reflect"

	"tranca"
	"tranca/internal/api"
)

// Bounds of requests.
const (
	// MaxJSON bounds a JSON body but that of a run, which is
	// [api.MaxRequest].
	MaxJSON = 1 << 20
	// MaxPath bounds a path in the query, in bytes.
	MaxPath = 4096
	// MaxWait bounds wait_ms.
	MaxWait = 10 * 60 * 1000
	// PageSize and MaxPage are how many sandboxes a page has by default and at
	// most.
	PageSize = 100
	MaxPage  = 1000
)

func body[T any](optional bool) *Body {
	return &Body{JSON: reflect.TypeFor[T](), Optional: optional, Most: MaxJSON}
}

func answer[T any](status int, about string, media ...string) []Answer {
	return []Answer{{Status: status, JSON: reflect.TypeFor[T](), About: about, Media: media}}
}

func empty(about string) []Answer { return []Answer{{Status: http.StatusNoContent, About: about}} }

func media(status int, about string, types ...string) []Answer {
	return []Answer{{Status: status, Media: types, About: about}}
}

const aboutPath = "A path in the sandbox: absolute, or relative to the policy's working folder."

func path() Param {
	return Param{Name: "path", Required: true, MaxBytes: MaxPath, About: aboutPath}
}

func offset(name, about string) Param {
	return Param{Name: name, Kind: Number, Max: 1<<63 - 1, Default: "0", About: about}
}

// All returns every call of the server.
func All() []Route {
	var all []Route
	for _, group := range [][]Route{server(), runs(), sandboxes(), processes(), files(), ports()} {
		all = append(all, group...)
	}
	return all
}

func server() []Route {
	const group = "Server"
	return []Route{
		{
			Pattern: api.RouteHealth, Name: "health", Group: group, Open: true,
			Summary: "Ask whether the server is well",
			About:   "Needs no key, and tells nothing else.",
			Answers: answer[Health](http.StatusOK, "It is."), Codes: []api.Code{api.CodeUnavailable},
		},
		{
			Pattern: api.RouteMetrics, Name: "metrics", Group: group,
			Summary: "Read the server's counters, for Prometheus",
			Answers: media(http.StatusOK, "Counters in Prometheus' text format.", TypeMetrics),
		},
		{
			Pattern: api.RouteOpenAPI, Name: "openapi", Group: group,
			Summary: "Read this description as an OpenAPI 3.1 document",
			Answers: answer[map[string]any](http.StatusOK, "The document."),
		},
		{
			Pattern: api.RouteInfo, Name: "info", Group: group,
			Summary: "Read the server's version, languages and profiles",
			Answers: answer[api.Info](http.StatusOK, "What may be asked of this server."),
		},
	}
}

// Health is the answer of a server that is well.
type Health struct {
	Status string `json:"status"`
}

// TypeMetrics is Prometheus' text format.
const TypeMetrics = "text/plain; version=0.0.4; charset=utf-8"

const aboutRun = "Answers when nothing of the program is left: the whole result or, where the header Accept asks for " +
	api.TypeEvents + " or " + api.TypeFrames + ", a stream of events, with the output as it comes and the result as the last event. " +
	"A program that fails, or that a limit ends, is a result and no error. A client that goes away ends the run: at once, " +
	"or some seconds later where it gave an Idempotency-Key and may come back.\n\n" +
	"A body of type " + api.TypeFrames + " carries the request, the code and standard input while the program runs; it can't have an Idempotency-Key that is repeated."

var runCodes = []api.Code{
	api.CodeUnavailable, api.CodeNotFound, api.CodeBusy, api.CodeClosed, api.CodeUnsupported, api.CodeProtocol, api.CodeNoSpace,
}

func run(pattern, name, summary string) Route {
	return Route{
		Pattern: pattern, Name: name, Group: "Runs", Summary: summary, About: aboutRun, Idempotent: true,
		Body:    &Body{JSON: reflect.TypeFor[api.RunRequest](), Media: []string{api.TypeFrames}, Most: api.MaxRequest},
		Answers: answer[tranca.Result](http.StatusOK, "How it went.", api.TypeEvents, api.TypeFrames),
		Codes:   runCodes,
	}
}

func runs() []Route {
	return []Route{
		run(api.RouteRun, "run", "Run code or a command in a fresh sandbox"),
		run(api.RouteSandboxRun, "runInSandbox", "Run code or a command in a sandbox that lives"),
		{
			Pattern: api.RouteCancelRun, Name: "cancelRun", Group: "Runs", NeedsKey: true,
			Summary: "End a run that is under way",
			About:   "The header Idempotency-Key says which: the one that was begun with it, in a fresh sandbox or in one that lives. Its own answer says that it was closed.",
			Answers: empty("It is being ended."), Codes: []api.Code{api.CodeNotFound},
		},
	}
}

func sandboxes() []Route {
	const group = "Sandboxes"
	return []Route{
		{
			Pattern: api.RouteCreate, Name: "createSandbox", Group: group, Idempotent: true,
			Summary: "Make a sandbox that lives",
			About:   "It waits in line while too much is going on.",
			Body:    body[api.CreateRequest](true),
			Answers: answer[tranca.SandboxInfo](http.StatusCreated, "It is there; the header Location says where."),
			Codes:   runCodes,
		},
		{
			Pattern: api.RouteList, Name: "listSandboxes", Group: group,
			Summary: "List the sandboxes that live, oldest first",
			Query: []Param{
				{Name: "limit", Kind: Number, Min: 1, Max: MaxPage, Default: "100", About: "How many at most."},
				{Name: "cursor", MaxBytes: 256, About: "Where the next page begins: next of the page before."},
				{Name: "metadata", Kind: Pair, Repeat: true, About: "NAME=VALUE: only sandboxes with this metadata; with several, with all of them."},
			},
			Answers: answer[api.SandboxList](http.StatusOK, "One page."),
		},
		{
			Pattern: api.RouteGet, Name: "getSandbox", Group: group,
			Summary: "Read what is known of a sandbox",
			Answers: answer[tranca.SandboxInfo](http.StatusOK, "It lives."),
		},
		{
			Pattern: api.RouteDelete, Name: "destroySandbox", Group: group,
			Summary: "Destroy a sandbox",
			Answers: empty("Nothing of it is left."),
		},
		{
			Pattern: api.RouteKeepAlive, Name: "keepAlive", Group: group,
			Summary: "Let a sandbox live for so long from now",
			Body:    body[api.KeepAliveRequest](true),
			Answers: answer[tranca.SandboxInfo](http.StatusOK, "Its new end is set."),
		},
		{
			Pattern: api.RouteEnvironment, Name: "setEnvironment", Group: group,
			Summary: "Change the environment of programs that are started later",
			Body:    body[api.EnvironmentRequest](true),
			Answers: empty("It is set."),
		},
		{
			Pattern: api.RouteChanges, Name: "listChanges", Group: group,
			Summary: "List what was written to mounts of mode cow so far",
			About:   "The host's folders are as they were. When the sandbox has ended its changes are kept on the server's host, where the operator looks at them (tranca diff) and applies them (tranca apply).",
			Answers: answer[api.ChangeList](http.StatusOK, "The changes, by their paths."),
			Codes:   []api.Code{api.CodeUnavailable, api.CodeUnsupported},
		},
	}
}
