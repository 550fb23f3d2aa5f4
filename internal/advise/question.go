package advise

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tranca"
	"tranca/internal/policy"
)

// Answers are what the advice is for.
type Answers struct {
	// Code is whose code it is, Breakout what it would cost if it got out;
	// Network and Secrets whether it needs any. All of them are answered.
	Code     string `json:"code"`
	Breakout string `json:"breakout"`
	Network  string `json:"network"`
	Secrets  string `json:"secrets"`
	// Latency is how long the first byte may take, Rate how many sandboxes a
	// second are started; 0 asks for nothing.
	Latency time.Duration `json:"-"`
	Rate    float64       `json:"rate,omitempty"`
	// Memory is what one sandbox may take, the boundary's own need included; 0
	// asks for nothing.
	Memory int64 `json:"memory_bytes,omitempty"`
	// Image is the root tree to run in; empty is the host's own.
	Image string `json:"image,omitempty"`
	// LatencyMS is Latency for the JSON form.
	LatencyMS float64 `json:"latency_ms,omitempty"`
}

// Choice is one possible answer to a question about risk.
type Choice struct{ Word, Means string }

// Question is one that is asked.
type Question struct {
	// Name is that of the flag and of the field in an answer file.
	Name string
	// Text is the question itself.
	Text string
	// Choices are the possible answers, the least risk first; of a question
	// about a demand there are none, and Form says how it is answered.
	Choices []Choice
	Form    string
	set     func(a *Answers, text string) error
	get     func(a *Answers) string
}

// Questions returns all questions in the order in which they are asked. Those
// with choices have to be answered.
func Questions() []Question {
	return []Question{
		{Name: "code", Text: "Whose code is it?", Choices: []Choice{
			{"own", "you wrote or read all of it"},
			{"nearly-trusted", "people or agents wrote it whom you would let use this account"},
			{"internal-tools", "tools, tutorials and experiments of many authors within one organization"},
			{"strangers", "anybody wrote it, or it reads what anybody wrote"},
			{"tenants", "several parties, who must not reach each other"},
		}, get: func(a *Answers) string { return a.Code }, set: func(a *Answers, s string) error { a.Code = s; return nil }},
		{Name: "breakout", Text: "What would it cost if code got out?", Choices: []Choice{
			{"nothing", "the machine is thrown away afterwards"},
			{"this-user", "the files and accounts of this user"},
			{"this-machine", "this machine, and what else runs on it"},
			{"production", "systems that others depend on"},
		}, get: func(a *Answers) string { return a.Breakout }, set: func(a *Answers, s string) error { a.Breakout = s; return nil }},
		{Name: "network", Text: "Does the code need a network?", Choices: []Choice{
			{"none", "no"}, {"some", "yes"},
		}, get: func(a *Answers) string { return a.Network }, set: func(a *Answers, s string) error { a.Network = s; return nil }},
		{Name: "secrets", Text: "Does it need, or could it reach, secrets?", Choices: []Choice{
			{"none", "no"}, {"some", "yes: keys, customers' data, credentials of the machine"},
		}, get: func(a *Answers) string { return a.Secrets }, set: func(a *Answers, s string) error { a.Secrets = s; return nil }},
		{Name: "latency", Text: "How long may the first byte of output take?", Form: "a time such as 50ms",
			get: func(a *Answers) string { return unlessZero(a.Latency, policy.FormatDuration(a.Latency)) }, set: setLatency},
		{Name: "rate", Text: "How many sandboxes are started in a second?", Form: "a number such as 20",
			get: func(a *Answers) string { return unlessZero(a.Rate, strconv.FormatFloat(a.Rate, 'f', -1, 64)) }, set: setRate},
		{Name: "memory", Text: "How much memory may one sandbox take, its boundary included?", Form: "a size such as 512MiB",
			get: func(a *Answers) string { return unlessZero(a.Memory, policy.FormatSize(a.Memory)) }, set: setMemory},
		{Name: "image", Text: "In which image of tranca's store does it run?", Form: "a name or digest; without one, in the host's own tree",
			get: func(a *Answers) string { return a.Image }, set: setImage},
	}
}

func unlessZero[T comparable](v T, text string) string {
	var zero T
	if v == zero {
		return ""
	}
	return text
}

// Find returns the question of a name.
func Find(name string) (Question, bool) {
	all := Questions()
	i := slices.IndexFunc(all, func(q Question) bool { return q.Name == name })
	if i < 0 {
		return Question{}, false
	}
	return all[i], true
}

func setLatency(a *Answers, s string) error {
	d, err := policy.ParseDuration(s)
	if err == nil && d > time.Hour {
		err = errors.New("want at most 1h")
	}
	a.Latency, a.LatencyMS = d, float64(d)/float64(time.Millisecond)
	return err
}

func setRate(a *Answers, s string) error {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v > 0) || v > 1e6 || math.IsInf(v, 0) {
		return errors.New("want a number above 0, such as 20")
	}
	a.Rate = v
	return nil
}

// leastMemory is what is left for the code at least, and so the least that one
// may ask for.
const leastMemory = 32 << 20

func setMemory(a *Answers, s string) error {
	n, err := policy.ParseSize(s)
	if err != nil {
		return err
	}
	if n < leastMemory {
		return fmt.Errorf("want at least %s", policy.FormatSize(leastMemory))
	}
	p := policy.Default()
	boundMemory(&p, n)
	if bad := policy.Validate(p); len(bad) > 0 {
		return bad[0]
	}
	a.Memory = n
	return nil
}

func setImage(a *Answers, s string) error {
	p := policy.Default()
	p.Image = s
	if bad := policy.Validate(p); len(bad) > 0 {
		return bad[0]
	}
	a.Image = s
	return nil
}

// Set answers a question. The error says what is allowed.
func (q *Question) Set(a *Answers, text string) error {
	if q.Choices == nil {
		err := q.set(a, text)
		if err == nil {
			return nil
		}
		var one *policy.Error
		if errors.As(err, &one) {
			return errors.New(one.Message)
		}
		return err
	}
	if q.rank(text) < 0 {
		return fmt.Errorf("%.60q is no answer: want %s", text, q.words())
	}
	return q.set(a, text)
}

// rank is the place of an answer among the choices, or -1.
func (q *Question) rank(word string) int {
	return slices.IndexFunc(q.Choices, func(c Choice) bool { return c.Word == word })
}

// words lists the choices.
func (q *Question) words() string {
	var all []string
	for _, c := range q.Choices {
		all = append(all, c.Word)
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// Given is an answer as somebody gave it.
type Given struct {
	Name, Text string
	// Where says where it stands: "answers.yaml:3:7", "--code".
	Where string
}

// Collect turns what was given into answers, and lists the questions that have
// to be answered and were not. An unknown question, an answer that is none, two
// that differ, and answers that contradict each other are errors, which wrap
// [tranca.ErrInvalid] and say where.
func Collect(given []Given) (a Answers, open []Question, err error) {
	at := map[string]Given{}
	for _, g := range given {
		q, ok := Find(g.Name)
		if !ok {
			return a, nil, fmt.Errorf("%w: %s: there is no question %.60q: want %s", tranca.ErrInvalid, g.Where, g.Name, names())
		}
		if before, twice := at[g.Name]; twice && before.Text != g.Text {
			return a, nil, fmt.Errorf("%w: %s says %s: %s, and %s says %s: leave one out",
				tranca.ErrInvalid, before.Where, g.Name, before.Text, g.Where, g.Text)
		}
		if err := q.Set(&a, g.Text); err != nil {
			return a, nil, fmt.Errorf("%w: %s: %s: %w", tranca.ErrInvalid, g.Where, g.Name, err)
		}
		at[g.Name] = g
	}
	for _, q := range Questions() {
		if _, ok := at[q.Name]; !ok && q.Choices != nil {
			open = append(open, q)
		}
	}
	if len(open) > 0 {
		return a, open, nil
	}
	return a, nil, a.contradiction(at)
}

func names() string {
	var all []string
	for _, q := range Questions() {
		all = append(all, q.Name)
	}
	return strings.Join(all, ", ")
}

// contradiction finds answers that can't both be true.
func (a *Answers) contradiction(at map[string]Given) error {
	for _, r := range rules() {
		if r.Contradiction == "" || !r.equals(a) {
			continue
		}
		var where []string
		for _, q := range Questions() {
			if r.risk(q.Name) != "" {
				g := at[q.Name]
				where = append(where, fmt.Sprintf("%s: %s (%s)", q.Name, g.Text, g.Where))
			}
		}
		return fmt.Errorf("%w: %s contradict each other: %s", tranca.ErrInvalid, strings.Join(where, " and "), r.Contradiction)
	}
	return nil
}

// ReadAnswers reads an answer file: lines of "question: answer" in YAML, or the
// same in JSON. The error is that of package policy, with line and column.
func ReadAnswers(name string, data []byte) ([]Given, error) {
	all, err := policy.ReadFlat(name, data)
	if err != nil {
		return nil, err
	}
	var given []Given
	for _, s := range all {
		given = append(given, Given{s.Name, s.Text, fmt.Sprintf("%s:%d:%d", name, s.Line, s.Column)})
	}
	return given, nil
}
