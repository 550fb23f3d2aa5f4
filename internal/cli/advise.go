package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/internal/advise"
	"tranca/internal/terminal"
)

const adviseHelp = `Recommends a backend and a floor for what you want to run, from a few answers and
from this host: what doctor sees now, and what the last runs of tranca hostile
and tranca bench on it have shown. It says why, what the recommendation does not
protect from, what it costs, and what the next stronger one would; and it makes
a policy file of it.

What is needed follows from the risk alone. Where this host can't hold it,
nothing weaker is recommended, and the answer says what makes it available. A
backend that let a hostile program through is never recommended.

Answers come from flags, from a file with lines of "question: answer", and on a
terminal from you; the first four questions have to be answered.

Examples:
  tranca advise
  tranca advise --code strangers --breakout this-machine --network none --secrets none
  tranca advise --answers answers.yaml --write policy.yaml
  tranca advise --answers answers.yaml --json

`

// adviseUnmet is the exit status where something that was asked for is not met.
const adviseUnmet = 1

func (a *app) adviseCommand() *cli.Command {
	flags := []cli.Flag{}
	for _, q := range advise.Questions() {
		flags = append(flags, &cli.StringFlag{Name: q.Name, Usage: questionUsage(q), HideDefault: true})
	}
	return &cli.Command{
		Name:  "advise",
		Usage: "recommend a backend and a policy for what you want to run",
		Description: adviseHelp + "Exit status:\n" +
			"  0      recommended\n" +
			"  1      recommended, but slower or larger than what was asked for\n" +
			"  125    tranca itself failed, or the answers are malformed or contradict\n" +
			"  126    nothing can be recommended on this host",
		Flags: append(flags,
			&cli.StringFlag{Name: "answers", Usage: "take answers from `FILE`, YAML or JSON", HideDefault: true},
			&cli.StringFlag{Name: "write", Usage: "write the policy to `FILE`", HideDefault: true},
			&cli.BoolFlag{Name: "force", Usage: "replace that file if it is there"},
			jsonFlag("print the advice as JSON"),
		),
		Action: a.advise,
	}
}

// questionUsage is the help of a question's flag.
func questionUsage(q advise.Question) string {
	usage := strings.ToLower(q.Text[:1]) + strings.TrimSuffix(q.Text[1:], "?") + ": `" + strings.ToUpper(q.Name) + "`"
	if q.Choices == nil {
		return usage + ", " + q.Form
	}
	var words []string
	for _, c := range q.Choices {
		words = append(words, c.Word)
	}
	return usage + " is " + strings.Join(words, ", ")
}

func (a *app) advise(ctx context.Context, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	if a.Elsewhere != nil {
		return a.Elsewhere
	}
	if c.Bool("force") && c.String("write") == "" {
		return &usageError{c.FullName(), "--force is about the file of --write"}
	}
	ctx, stop := interruptible(ctx, a.Quit)
	defer stop()
	answers, err := a.answers(ctx, c)
	if err != nil {
		return err
	}
	in, err := a.adviceInput(ctx, answers)
	if err != nil {
		return err
	}
	advice, err := advise.Build(in)
	if err != nil {
		return err
	}
	return a.tellAdvice(c, advice)
}

// tellAdvice prints the advice and writes its policy.
func (a *app) tellAdvice(c *cli.Command, advice *advise.Advice) error {
	path := c.String("write")
	if advice.Recommended != nil && path != "" {
		if err := writePolicy(path, []byte(advice.Policy), c.Bool("force")); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		if err := a.printJSON(advice); err != nil {
			return err
		}
	} else {
		a.printAdvice(advice, path)
	}
	if advice.Recommended == nil {
		return exit(statusRefused)
	}
	for _, d := range advice.Demands {
		if d.Met == advise.No {
			return exit(adviseUnmet)
		}
	}
	return nil
}

// adviceInput looks at the host.
func (a *app) adviceInput(ctx context.Context, answers advise.Answers) (advise.Input, error) {
	in := advise.Input{Answers: answers}
	p := a.progress("looking at this host", 0)
	seen, err := a.inspect(ctx, InspectSetup{})
	p.stop()
	if err != nil {
		return in, err
	}
	for _, b := range seen.Probed {
		level := b.Report.Level
		if level == 0 { // a backend that can't be made says only its name
			level, _ = tranca.ParseLevel(b.Backend)
		}
		in.Candidates = append(in.Candidates, advise.Candidate{Backend: b.Backend, Level: level, Report: b.Report, Err: b.Err})
	}
	in.Checks = seen.Checks
	if a.Evidence != nil {
		in.Evidence = a.Evidence()
	}
	return in, nil
}

// answers come from a file, from flags, and on a terminal from a person.
func (a *app) answers(ctx context.Context, c *cli.Command) (advise.Answers, error) {
	var given []advise.Given
	if path := c.String("answers"); path != "" {
		data, err := a.readAnswers(ctx, path)
		if err != nil {
			return advise.Answers{}, err
		}
		if given, err = advise.ReadAnswers(path, data); err != nil {
			return advise.Answers{}, err
		}
	}
	for _, q := range advise.Questions() {
		if c.IsSet(q.Name) {
			given = append(given, advise.Given{Name: q.Name, Text: c.String(q.Name), Where: "--" + q.Name})
		}
	}
	answers, open, err := advise.Collect(given)
	if err != nil || open == nil {
		return answers, err
	}
	if !terminal.Is(a.Stdin) || !terminal.Is(a.Stderr) || terminal.Background(a.Stdin) {
		return answers, unanswered(c, open)
	}
	given, err = a.ask(ctx, given)
	if err != nil {
		return answers, err
	}
	answers, _, err = advise.Collect(given) // none is open: ask gets them all
	return answers, err
}

func unanswered(c *cli.Command, open []advise.Question) error {
	var flags []string
	for _, q := range open {
		flags = append(flags, "--"+q.Name)
	}
	return &usageError{c.FullName(), "not answered: " + strings.Join(flags, ", ") + "; no risk is taken for granted"}
}

// maxAnswers bounds an answer file.
const maxAnswers = 64 << 10

func (a *app) readAnswers(ctx context.Context, path string) ([]byte, error) {
	in := a.Stdin
	if path != "-" {
		f, err := os.OpenFile(path, os.O_RDONLY, 0)
		if err != nil {
			return nil, fileError(err)
		}
		defer f.Close()
		in = f
	}
	data, err := readMost(ctx, in, maxAnswers)
	if err != nil {
		return nil, err
	}
	if len(data) > maxAnswers {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", tranca.ErrInvalid, path, maxAnswers)
	}
	return data, nil
}

// ask puts the questions that are open to the person at the terminal.
func (a *app) ask(ctx context.Context, given []advise.Given) ([]advise.Given, error) {
	lines := bufio.NewScanner(io.LimitReader(a.Stdin, maxAnswers))
	for _, q := range advise.Questions() {
		if slices.ContainsFunc(given, func(g advise.Given) bool { return g.Name == q.Name }) {
			continue
		}
		for {
			a.put(q)
			text, err := nextLine(ctx, lines)
			if err != nil {
				return nil, err
			}
			if text == "" && q.Choices == nil {
				break
			}
			text = chosenWord(q, text)
			var trial advise.Answers
			if err := q.Set(&trial, text); err != nil {
				fmt.Fprintf(a.Stderr, "  %s\n", terminal.Clean(err.Error()))
				continue
			}
			given = append(given, advise.Given{Name: q.Name, Text: text, Where: "your answer"})
			break
		}
	}
	return given, nil
}

// put shows a question.
func (a *app) put(q advise.Question) {
	fmt.Fprintf(a.Stderr, "%s\n", q.Text)
	for i, c := range q.Choices {
		fmt.Fprintf(a.Stderr, "  %d  %-15s %s\n", i+1, c.Word, c.Means)
	}
	if q.Choices == nil {
		fmt.Fprintf(a.Stderr, "  %s; Enter where it does not matter\n", q.Form)
	}
	fmt.Fprint(a.Stderr, "> ")
}

// chosenWord takes the number of a choice for its word.
func chosenWord(q advise.Question, text string) string {
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(q.Choices) {
		return q.Choices[n-1].Word
	}
	return text
}

// nextLine reads a line, or ends with the context: a read of a terminal can't be
// taken back, and the process ends then.
func nextLine(ctx context.Context, lines *bufio.Scanner) (string, error) {
	got := make(chan bool, 1)
	go func() { got <- lines.Scan() }()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case ok := <-got:
		if !ok {
			return "", fmt.Errorf("%w: the answers ended before the questions did", errors.Join(tranca.ErrInvalid, lines.Err()))
		}
	}
	return strings.TrimSpace(lines.Text()), nil
}
