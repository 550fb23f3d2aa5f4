// Package archive moves whole folders in and out of a sandbox as tar streams,
// in constant memory: over [tranca.Files] on the one side ([Pack], [Extract]),
// and a folder of the own disk on the other ([PackLocal], [ExtractLocal]).
//
// An archive is hostile, wherever it comes from: one out of a sandbox was made
// from what the code left there, by an agent that may lie, and one that goes in
// may have been downloaded from anywhere. So an archive holds regular files,
// folders and symbolic links, and nothing else; names are relative and made of
// names only; nothing is ever written through a link; and a link leads at most
// to where the archive's own folder reaches. Whatever else is in it ends the
// extraction with [tranca.ErrInvalid] and the entry's name. What was extracted
// before that stays.
//
// Owners are not carried over, and of modes only the permission bits.
package archive
