// Package trial asks a kernel what a program without any right gets from it, by
// doing it: a version or a setting that is there says less.
//
// Each trial makes its calls in a child of its own, which has a deadline and is
// dead when the trial returns; whatever the kernel gave it is gone with it.
// Nothing on the host is changed: no file, no setting, no module is loaded.
// Where this process is root the child is nobody, unless the trial says
// otherwise.
package trial
