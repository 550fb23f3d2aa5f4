// Package direct takes HTTP requests to a handler in the same process: the same
// calls as over a socket, without one. Nothing of a body is copied or held
// back on its way, and both directions flow at once.
package direct
