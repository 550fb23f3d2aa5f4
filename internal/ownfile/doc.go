// Package ownfile reads files by which an operator decides something: policies,
// lists, answers, kept results.
//
// Such a file is only worth something when the code that it speaks of, and
// other users of the host, can't write it. So it is opened step by step from
// the root, and every folder and link on the way, and the file itself, must
// belong to root or the caller and be writable by nobody else. What can't be
// trusted is an error that says which command mends it.
package ownfile
