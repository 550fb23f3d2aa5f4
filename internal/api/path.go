package api

// The patterns of the routes, as net/http's mux takes them. {id} is a
// sandbox, {process} is a [tranca.ProcessID], a pid in decimal, or "tag=" and a
// tag, of which the oldest that runs is meant.
const (
	RouteHealth  = "GET /healthz"
	RouteMetrics = "GET /metrics"
	RouteOpenAPI = "GET /v1/openapi.json"
	RouteInfo    = "GET /v1/info"
	RouteRun     = "POST /v1/run"
	// RouteCancelRun ends a run that is under way, in a fresh sandbox or in one
	// that lives, and was begun with the same header Idempotency-Key: it answers
	// 204 at once, and the run's own answer says that it was closed. 404 where no
	// run of that key is under way.
	RouteCancelRun   = "DELETE /v1/run"
	RouteCreate      = "POST /v1/sandboxes"
	RouteList        = "GET /v1/sandboxes"                                 // ?limit= &cursor= &metadata=k=v
	RouteGet         = "GET /v1/sandboxes/{id}"                            //
	RouteDelete      = "DELETE /v1/sandboxes/{id}"                         // 204
	RouteKeepAlive   = "POST /v1/sandboxes/{id}/keepalive"                 // KeepAliveRequest -> SandboxInfo
	RouteEnvironment = "PATCH /v1/sandboxes/{id}/environment"              // EnvironmentRequest -> 204
	RouteChanges     = "GET /v1/sandboxes/{id}/changes"                    // ChangeList
	RouteSandboxRun  = "POST /v1/sandboxes/{id}/run"                       // as RouteRun
	RouteProcesses   = "GET /v1/sandboxes/{id}/processes"                  // ?tag= -> ProcessList
	RouteStart       = "POST /v1/sandboxes/{id}/processes"                 // StartRequest -> 201 ProcessInfo
	RouteProcess     = "GET /v1/sandboxes/{id}/processes/{process}"        // ?wait_ms= -> ProcessInfo
	RouteOutput      = "GET /v1/sandboxes/{id}/processes/{process}/output" // ?stdout_from= &stderr_from= &follow= -> events
	RouteStdin       = "POST /v1/sandboxes/{id}/processes/{process}/stdin" // ?close= , bytes -> InputAnswer
	RouteSignal      = "POST /v1/sandboxes/{id}/processes/{process}/signal"
	RouteResize      = "POST /v1/sandboxes/{id}/processes/{process}/resize" // tranca.TerminalSize -> 204
	RouteRead        = "GET /v1/sandboxes/{id}/files/content"               // ?path= &offset=
	RouteWrite       = "PUT /v1/sandboxes/{id}/files/content"               // ?path= &mode= &offset= , bytes -> WriteAnswer
	RouteStat        = "GET /v1/sandboxes/{id}/files/stat"                  // ?path= -> FileInfo
	RouteFiles       = "GET /v1/sandboxes/{id}/files"                       // ?path= &depth= -> FileList
	RouteRemove      = "DELETE /v1/sandboxes/{id}/files"                    // ?path= -> 204
	RouteMakeDir     = "POST /v1/sandboxes/{id}/files/mkdir"                // PathRequest -> 201 FileInfo
	RouteMove        = "POST /v1/sandboxes/{id}/files/move"                 // MoveRequest -> FileInfo
	RouteArchiveOut  = "GET /v1/sandboxes/{id}/files/archive"               // ?path= -> tar
	RouteArchiveIn   = "PUT /v1/sandboxes/{id}/files/archive"               // ?path= , tar -> WriteAnswer
	RouteWatch       = "GET /v1/sandboxes/{id}/files/watch"                 // ?path= &recursive= -> events
	RoutePort        = "GET /v1/sandboxes/{id}/ports/{port}"                // Upgrade: tranca-port -> 101, bytes
)
