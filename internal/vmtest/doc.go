// Package vmtest boots a small virtual machine in software and runs commands
// in it: a host with nothing but cgroup v2 and with Landlock, whatever the
// machine that builds it has. It needs no hardware virtualization and no
// network; the kernel is a distribution's, the root tree is made from the
// files of this host.
//
// Nothing may be timed in such a machine: it is ten to thirty times slower.
package vmtest
