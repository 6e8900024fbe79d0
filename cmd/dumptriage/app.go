package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"dumptriage/report"
)

// version is set by release builds with -ldflags "-X main.version=...".
var version = "0.1.0-dev"

// tool identifies this program in its output.
func tool() report.Tool { return report.Tool{Name: "dumptriage", Version: version} }

// run executes one command line and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	app := newApp(stdout, stderr)
	if words, ok := completionRequest(args); ok {
		complete(app, words, stdout)
		return exitOK
	}
	args, err := permute(app, args)
	if err == nil {
		err = runApp(app, args)
	}
	return exitStatus(err, stderr)
}

// runApp turns a panic of ours into an error that says so, with the stack for a
// bug report: no input may take the exit status away from a script.
func runApp(app *cli.App, args []string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = internalError{fmt.Sprint(p), string(debug.Stack())}
		}
	}()
	return app.Run(append([]string{app.Name}, args...))
}

func newApp(stdout, stderr io.Writer) *cli.App {
	cli.SuggestDidYouMeanTemplate = "%s" // unknownVerb makes the sentence
	cli.VersionPrinter = func(c *cli.Context) { fmt.Fprintf(c.App.Writer, "dumptriage %s\n", version) }
	app := &cli.App{
		Name:                      "dumptriage",
		Usage:                     "triage Windows crash and hang dumps, offline, on any OS",
		UsageText:                 "dumptriage VERB [flags] FILES    (flags may stand anywhere)",
		Version:                   version,
		Writer:                    stdout,
		ErrWriter:                 stderr,
		HideHelpCommand:           false,
		Suggest:                   true,
		DisableSliceFlagSeparator: true,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              onUsageError,
		Commands: []*cli.Command{
			stacksCommand(), infoCommand(), modulesCommand(), driversCommand(), threadsCommand(), handlesCommand(),
			memoryCommand(), streamsCommand(), schemaCommand(), completionCommand(), manCommand(),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownVerb(c.App, c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
	}
	for _, cmd := range app.Commands {
		cmd.OnUsageError = onUsageError
		cmd.HideHelpCommand = true
	}
	return app
}

func onUsageError(_ *cli.Context, err error, _ bool) error { return usageError{err.Error()} }

// unknownVerb helps where a file was given without a verb or a verb mistyped.
func unknownVerb(app *cli.App, word string) error {
	if _, err := os.Stat(word); err == nil {
		return usagef("no verb given; try: dumptriage stacks %s", word)
	}
	if s := cli.SuggestCommand(app.Commands, word); s != "" {
		return usagef("there is no verb %q; did you mean %q?", word, s)
	}
	return usagef("there is no verb %q", word)
}
