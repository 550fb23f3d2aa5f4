// Package whole tries the server as a whole: the command in a process of its
// own, over the real process backend, by real sockets. It holds tests only.
package whole
