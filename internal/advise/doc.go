// Package advise recommends a backend and a floor for what somebody wants to
// run, from a few answers, from what this host's doctor saw, and from what the
// last runs of the benchmark and of the hostile suite on it have shown.
//
// Which risk needs which floor is data (rules.json). Every rule asks for "at
// least" some risk, and the highest floor of those that apply counts, so that
// more risk never gets a lower one. Where this host can't hold what is needed,
// nothing weaker is recommended: the advice says which mend makes it available.
// A backend that let a hostile program through in something that it promises is
// never recommended.
//
// All of it is pure: the caller looks at the host and reads the files.
// docs/ADVISE.md has the questions, the rules and the JSON form.
package advise
