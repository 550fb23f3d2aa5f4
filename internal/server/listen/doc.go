// Package listen makes the places where the server is reached, so that nobody
// reaches it who may not: a unix socket that one user's processes can connect
// to, and TCP for those who have a key.
//
// The folder of the socket belongs to the user alone. A lock file in it says
// which server is the one; a socket without a holder of the lock is a dead
// server's, and is taken over. The socket gets its mode and name before anybody
// can connect to it, and is removed at the end only while it is still the same
// file.
package listen
