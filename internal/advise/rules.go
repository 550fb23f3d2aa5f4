package advise

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"tranca"
	"tranca/internal/listfile"
)

// rulesSchema is what the rules' file says it is.
const rulesSchema = "tranca.advice-rules/1"

//go:embed rules.json
var rulesText []byte

// Rule is one row of the rules. It is one of three things: a floor for risk, a
// contradiction, or a gap of some levels.
type Rule struct {
	// Code, Breakout, Network and Secrets are conditions; an empty one is none. A
	// floor counts where the answers are at least these, a contradiction where
	// they are these.
	Code     string `json:"code,omitempty"`
	Breakout string `json:"breakout,omitempty"`
	Network  string `json:"network,omitempty"`
	Secrets  string `json:"secrets,omitempty"`

	// Floor is the level that is needed, Aim the one that is taken where the host
	// can; 0 is the floor itself.
	Floor tranca.Level `json:"floor,omitempty"`
	Aim   tranca.Level `json:"aim,omitempty"`
	// RefuseHoles has the policy refuse versions with known holes.
	RefuseHoles bool   `json:"refuse_holes,omitempty"`
	Why         string `json:"why,omitempty"`

	// Contradiction says why two answers can't both be true.
	Contradiction string `json:"contradiction,omitempty"`

	// Gap is what levels do not protect from.
	Gap    string         `json:"gap,omitempty"`
	Levels []tranca.Level `json:"levels,omitempty"`
}

var ruleLists = listfile.New(rulesSchema, rulesText, func() func(*Rule) error { return (*Rule).validate })

// rules are those of this program.
func rules() []Rule { return ruleLists.BuiltIn().Rows }

func (r *Rule) validate() error {
	kinds := 0
	for _, is := range []bool{r.Floor != 0, r.Contradiction != "", r.Gap != ""} {
		if is {
			kinds++
		}
	}
	conditions := 0
	for _, q := range Questions() {
		word := r.risk(q.Name)
		if word == "" {
			continue
		}
		if conditions++; q.rank(word) < 0 {
			return fmt.Errorf("%s: %.60q is no answer: want %s", q.Name, word, q.words())
		}
	}
	switch {
	case kinds != 1:
		return errors.New("want a floor, a contradiction or a gap")
	case r.Floor != 0 && (r.Why == "" || r.Aim != 0 && r.Aim < r.Floor || r.Floor < tranca.LevelProcess):
		return errors.New("a floor is process or more, has a why, and an aim that is no lower")
	case r.Floor == 0 && (r.Why != "" || r.Aim != 0 || r.RefuseHoles):
		return errors.New("why, aim and refuse_holes belong to a floor")
	case r.Contradiction != "" && conditions < 2:
		return errors.New("a contradiction is between two answers")
	case (r.Gap != "") != (len(r.Levels) > 0) || r.Gap != "" && conditions > 0:
		return errors.New("a gap has levels, and no condition")
	}
	return nil
}

// risk is the condition on a question, or "".
func (r *Rule) risk(question string) string {
	switch question {
	case "code":
		return r.Code
	case "breakout":
		return r.Breakout
	case "network":
		return r.Network
	case "secrets":
		return r.Secrets
	}
	return ""
}

// atLeast reports whether the answers are of the rule's risk, or more.
func (r *Rule) atLeast(a *Answers) bool {
	return r.all(a, func(have, want int) bool { return have >= want })
}

// equals reports whether the answers are those of the rule.
func (r *Rule) equals(a *Answers) bool {
	return r.all(a, func(have, want int) bool { return have == want })
}

func (r *Rule) all(a *Answers, holds func(have, want int) bool) bool {
	for _, q := range Questions() {
		if word := r.risk(q.Name); word != "" && !holds(q.rank(q.get(a)), q.rank(word)) {
			return false
		}
	}
	return true
}

// Need is what the rules ask for.
type Need struct {
	// Floor is needed; Aim is taken where the host can.
	Floor, Aim  tranca.Level
	RefuseHoles bool
	// Why are the reasons for the floor, and for an aim above it.
	Why []string
}

// needOf applies the rules: the highest counts.
func needOf(a *Answers) Need {
	var n Need
	for _, r := range rules() {
		if r.Floor == 0 || !r.atLeast(a) {
			continue
		}
		n.Floor, n.Aim = max(n.Floor, r.Floor), max(n.Aim, r.Floor, r.Aim)
		n.RefuseHoles = n.RefuseHoles || r.RefuseHoles
	}
	for _, r := range rules() {
		if r.Floor == n.Floor && r.atLeast(a) {
			n.Why = append(n.Why, r.Why)
		}
	}
	return n
}

// gapsOf is what a level does not protect from.
func gapsOf(level tranca.Level) []string {
	var all []string
	for _, r := range rules() {
		if slices.Contains(r.Levels, level) {
			all = append(all, r.Gap)
		}
	}
	return all
}
