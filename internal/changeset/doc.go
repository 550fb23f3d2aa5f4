// Package changeset keeps what code wrote to a copy-on-write mount, shows it,
// and writes it back to the host's folder when the operator says so.
//
// A set is read from the upper folder of an overlay ([Read]): a tree that
// hostile code made, of which nothing is followed, nothing but folders and
// regular files is opened, and entries, depth, bytes and time are bounded. For
// each path the set says what it is now and what the host had there. It is kept
// in a folder of the user ([Store]): one list and one file with all contents,
// so that the code's names become no names on the host until they are applied.
//
// [Store.Apply] looks at everything before it writes anything. A path that the
// host changed since the sandbox began refuses the whole; a path of the host
// that already is what the set asks for is left alone, so that applying again
// goes on where an attempt broke off. Folders are opened below the mount's
// source by descriptor, with no link in any part, and must be the ones that
// were mounted. Never written are devices, sockets, FIFOs, set-id bits, links
// that could lead out of the folder, and files that the host may execute by
// itself, unless those are named.
//
// The list and what is shown of it are portable; reading and applying need
// Linux.
package changeset
