// Package server is tranca over HTTP: the calls of package api over an engine.
//
// It decides nothing. It reads requests strictly, gives them to the engine, and
// writes what comes out, with bounds on everything that a client can make it
// keep or wait for: header, body, connections, idle time, and writes that
// nobody reads. Who may call is settled before a request is looked at: by the
// socket the user's own processes and root, by TCP who has the key.
//
// # What ends a call
//
// A client that goes away ends its run, and whatever else waits for it; a
// process goes on. The end of a connection is seen at once, except while a
// client still owes a part of its body or has sent a further request ahead:
// then it is seen by the next write, at the latest by a keepalive. A client
// that closes only its sending side counts as gone.
package server
