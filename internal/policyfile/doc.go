// Package policyfile finds and reads the policy file that is in force.
//
// A policy is only worth something when the code that it confines, and other
// users of the host, can't write it. So a file is opened step by step from
// the root, and every folder and link on the way, and the file itself, must
// belong to root or the caller and be writable by nobody else. Whatever is
// found and can't be trusted or read is an error, never skipped: a policy
// that somebody spoiled must not turn into the defaults.
//
// The working directory is never searched, since an agent may have written to
// it.
package policyfile
