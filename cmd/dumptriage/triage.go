package main

import (
	"bufio"
	"os"

	"github.com/urfave/cli/v2"

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

// ruleFiles reads the files of --rules; nil when there are none.
func ruleFiles(c *cli.Context) (*verdict.Rules, error) {
	var files []verdict.RuleFile
	for _, name := range c.StringSlice(rulesFlag.Name) {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, usagef("--rules: %v", err)
		}
		files = append(files, verdict.RuleFile{Name: name, Text: string(text)})
	}
	r, err := verdict.NewRules(files...)
	if err != nil {
		return nil, usagef("--rules: %v", err)
	}
	return r, nil
}
