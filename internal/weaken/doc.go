// Package weaken takes guarantees away, one at a time, to see the hostile suite
// find out: a suite that has never been red proves nothing.
//
// In an ordinary build Enabled is a constant false, nothing reads the
// environment, and the linker drops all that only a switch needs. With the build
// tag tranca_weaken the variable TRANCA_WEAKEN names what is taken away:
//
//	TRANCA_WEAKEN=process:network,process:limits.memory tranca-weakened run ...
//
// A switch takes the whole guarantee: each layer of it, and the look at the
// start that would refuse. What such a build says of itself, its report, its
// enforcement statements and its refusals, stays as it was. They are lies then,
// which only a look at what happens can find. That it is such a build is said by
// `tranca version` and on standard error.
//
// Switches lists what there is. What a switch does to a sandbox stands beside
// the code that makes it: in confine, in each backend, and in the engine.
package weaken
