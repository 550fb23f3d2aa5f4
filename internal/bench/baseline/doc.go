// Package baseline holds what tranca is measured against, by its commands: the
// interpreter alone, bubblewrap, firejail, `runsc do` and `docker run`. Each is
// asked for the boundary that comes nearest to ours.
package baseline
