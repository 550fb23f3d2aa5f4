// Package image is tranca's store of images: root trees for sandboxes, kept by
// the digest of their manifest in the user's cache folder.
//
// An image comes from a registry, an OCI layout, an archive of `docker save`, a
// tarball of a root tree, a folder, or Debian's packages. Whatever it came from,
// the store holds a manifest, a configuration and layers, each a blob by its
// SHA-256, and one unpacked tree, which all sandboxes share and none writes to.
// A tree is put in its place at once, when all of it was unpacked and each layer
// had the digest that the configuration names: a tree that is there is whole.
//
// All of that is hostile, also what has the right digest: archives are unpacked
// by descriptors below the tree's own root, where the kernel keeps each path
// (openat2), within bounds on bytes, entries, depth and time. Owners, set-id bits
// and extended attributes are dropped, devices are left out and noted, and all
// files can be read by everybody and written by the store's owner alone.
//
// Several processes may use one store at once, and may be killed at any time:
// locks are the kernel's and end with their process, what is under way lies in
// a folder of its own which the next one removes, and every file comes into its
// place by a rename.
package image
