package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"dumptriage/internal/textfile"
	"dumptriage/report"
	"dumptriage/triage/verdict"
)

var (
	rulesFlag            = &cli.StringSliceFlag{Name: "rules", Usage: "rules about frames from `FILE`, before the built-in ones; may be repeated"}
	explainSignatureFlag = &cli.BoolFlag{Name: "explain-signature", DisableDefaultText: true, Usage: "show what became of every frame on the way to the signature"}
	briefFlag            = &cli.BoolFlag{Name: "brief", DisableDefaultText: true, Usage: "the verdict alone, in less than 2 KB"}
)

func triageCommand() *cli.Command {
	return &cli.Command{
		Name:      "triage",
		Usage:     "say what happened, who is to blame, and what to do next",
		ArgsUsage: "DUMP [KERNELDUMP]",
		Description: "Judges a user dump, a kernel dump, or both: the class of the crash, the first function\n" +
			"of the application on its stack, what speaks for and against it, and the stack. X.Kernel.dmp\n" +
			"beside X.dmp is found by itself.",
		Flags:  []cli.Flag{jsonFlag, processFlag, allFlag, briefFlag, explainSignatureFlag, rulesFlag, imagesFlag, symbolsFlag, notBesideFlag, offlineFlag, mismatchFlag, framesFlag, aloneFlag, hashFlag, colorFlag, quietFlag},
		Action: runTriage,
	}
}

func runTriage(c *cli.Context) error {
	inc, opt, done, err := analyze(c)
	if err != nil {
		return fail(c, err)
	}
	defer done()
	opt.Brief = c.Bool(briefFlag.Name)
	opt.ExplainSignature = c.Bool(explainSignatureFlag.Name)
	w := bufio.NewWriterSize(c.App.Writer, 1<<16)
	switch {
	case c.Bool(jsonFlag.Name) && opt.Brief:
		err = report.BriefJSON(w, inc, opt)
	case c.Bool(jsonFlag.Name):
		err = report.JSON(w, inc, opt)
	default:
		err = report.TriageText(w, inc, opt)
	}
	_, status := report.Status(inc)
	return finish(c, w, err, inc.Errors, status)
}

// maxRules is the size of a file of rules, far more than people write.
const maxRules = 4 << 20

// readRules reads a file of rules, which a pipe may be.
func readRules(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(textfile.UTF8(f), maxRules+1))
	if err == nil && len(text) > maxRules {
		err = fmt.Errorf("%s has more than %d MB, which no rules have", name, maxRules>>20)
	}
	return string(text), err
}

// ruleFiles reads the files of --rules; nil when there are none.
func ruleFiles(c *cli.Context) (*verdict.Rules, error) {
	var files []verdict.RuleFile
	for _, name := range c.StringSlice(rulesFlag.Name) {
		text, err := readRules(name)
		if err != nil {
			return nil, usagef("--rules: %v", err)
		}
		files = append(files, verdict.RuleFile{Name: name, Text: text})
	}
	r, err := verdict.NewRules(files...)
	if err != nil {
		return nil, usagef("--rules: %v", err)
	}
	warnOfClasses(c, r)
	return r, nil
}

// warnOfClasses names classes of users' own that are most likely misspelt.
func warnOfClasses(c *cli.Context, r *verdict.Rules) {
	said := map[string]bool{}
	for _, rule := range r.OwnClasses() {
		class := rule.Attrs["class"]
		if near := nearestClass(class); near != "" && !said[class] {
			warn(c, "%s: class=%s is a class of its own; did you mean %s?", rule.String(), class, near)
		}
		said[class] = true
	}
}

// nearestClass is the class of crashes that a misspelt one stands for, "" when none is near:
// two edits in a name that is not short.
func nearestClass(typed string) string {
	const nearly = 3
	best, least := "", nearly
	for _, class := range verdict.CrashClasses() {
		if len(typed) >= len(class)+nearly || len(class) < 2*nearly { // far from it, or a short word, to which others are near
			continue
		}
		if d := edits(strings.ToLower(typed), class); d < least {
			best, least = class, d
		}
	}
	return best
}
