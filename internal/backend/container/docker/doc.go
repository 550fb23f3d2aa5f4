// Package docker speaks to a container engine: the part of the Docker Engine
// API that sandboxes need, over a local socket, which Docker and Podman both
// serve.
//
// It is written out on net/http, which the server and the client of tranca
// link anyway: the engine's own client package would add two milliseconds to
// every start of tranca, most of them for regular expressions that are
// compiled at init, and eighteen modules.
//
// An engine is trusted with the sandbox, since it is what makes it, but not
// with the health of this process: every answer is bounded, every call ends
// with its context, and what an attached program writes is parsed as the
// hostile bytes that it is.
package docker
