// Package api is what server and client say to each other over HTTP: paths,
// bodies, the stream of events, and errors. docs/API.md describes it for
// people, the OpenAPI document in package server for programs.
//
// A request never carries a policy: it names one of the operator's profiles
// and may only narrow it.
package api

// Media types.
const (
	TypeJSON    = "application/json"
	TypeProblem = "application/problem+json"
	// TypeEvents is a stream of events as lines of JSON.
	TypeEvents = "application/x-ndjson"
	// TypeFrames is the same stream in frames, with output as bytes.
	TypeFrames = "application/vnd.tranca.frames"
	TypeBytes  = "application/octet-stream"
	TypeTar    = "application/x-tar"
)

// Headers.
const (
	// HeaderRequestID names a request in logs and problems.
	HeaderRequestID = "X-Request-Id"
	// HeaderIdempotencyKey makes a repeated create or run answer what the
	// first one did.
	HeaderIdempotencyKey = "Idempotency-Key"
)

// UpgradePort is the protocol that a connection to a port is upgraded to:
// plain bytes both ways.
const UpgradePort = "tranca-port"
