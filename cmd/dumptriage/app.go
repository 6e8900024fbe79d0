package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"dumptriage/dump"
	"dumptriage/report"
)

// version is set by release builds with -ldflags "-X main.version=...".
var version = "0.1.0-dev"

// tool identifies this program in its output.
func tool() report.Tool { return report.Tool{Name: "dumptriage", Version: version} }

// run executes one command line and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	out := &output{Writer: stdout}
	stderr = redactedErrors(args, stderr)
	app := newApp(out, stderr)
	if words, ok := completionRequest(args); ok {
		complete(app, words, stdout)
		return exitOK
	}
	verb := ""
	args, err := permute(app, args)
	if err == nil {
		if app.Command(args0(args)) != nil {
			verb = args[0]
		}
		err = runApp(app, args)
	}
	if err == nil {
		err = out.err
	}
	failInternal(out, args, err)
	return exitStatus(err, verb, stderr)
}

// failInternal keeps the promise that --json prints an object whatever happens,
// for a panic that came before any output.
func failInternal(out *output, args []string, err error) {
	var internal internalError
	if errors.As(err, &internal) && !out.begun && slices.Contains(args, "--"+jsonFlag.Name) {
		_ = report.FailureJSON(out, report.Options{Tool: tool(), Redact: argumentRedactor(args)}, nil, []*dump.Error{dump.Errorf(dump.Internal, "", "%s", internal.msg)})
	}
}

func args0(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// output is standard output. It keeps the first error, since whoever prints
// help looks at none.
type output struct {
	io.Writer
	err   error
	begun bool
}

func (o *output) Write(p []byte) (int, error) {
	o.begun = true
	n, err := o.Writer.Write(p)
	if err != nil {
		err = outputError{err}
	}
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// outputError is a failure of standard output, which is no fault of any file.
type outputError struct{ error }

func (e outputError) Unwrap() error { return e.error }

// runApp turns a panic of ours into an error that says so, with the stack for a
// bug report: no input may take the exit status away from a script.
func runApp(app *cli.App, args []string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = internalError{fmt.Sprint(p), string(debug.Stack())}
		}
	}()
	app.Setup() // adds the verb help
	app.Command("help").Usage = "show this list, or the help of one verb"
	return app.Run(append([]string{app.Name}, args...))
}

func newApp(stdout, stderr io.Writer) *cli.App {
	cli.FlagStringer = flagLine
	cli.AppHelpTemplate = strings.Replace(cli.AppHelpTemplate, "COMMANDS:", "VERBS:", 1)
	cli.SuggestDidYouMeanTemplate = "%s" // unknownVerb makes the sentence
	cli.VersionPrinter = func(c *cli.Context) { fmt.Fprintf(c.App.Writer, "dumptriage %s\n", version) }
	app := &cli.App{
		Name:                      "dumptriage",
		Usage:                     "triage Windows crash and hang dumps, offline, on any OS",
		UsageText:                 "dumptriage VERB [flags] FILES    (flags may stand anywhere)",
		Description:               description(),
		Version:                   version,
		Writer:                    stdout,
		ErrWriter:                 stderr,
		HideHelpCommand:           false,
		Suggest:                   true,
		DisableSliceFlagSeparator: true,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              onUsageError,
		Commands: []*cli.Command{
			triageCommand(), stacksCommand(), compareCommand(), batchCommand(), bucketsCommand(), explainCommand(), infoCommand(), modulesCommand(), driversCommand(), threadsCommand(), processesCommand(), cpusCommand(), handlesCommand(),
			memoryCommand(), streamsCommand(), symbolsCommand(), scrubCommand(), schemaCommand(), completionCommand(), manCommand(),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownVerb(c.App, c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
	}
	for _, cmd := range app.Commands {
		addRedact(cmd)
		cmd.OnUsageError = onUsageError
		cmd.HideHelpCommand = true
		if cmd.UsageText == "" {
			cmd.UsageText = strings.TrimSpace(app.Name + " " + cmd.Name + " " + strings.TrimSpace(flagsWord(cmd)+" "+cmd.ArgsUsage))
		}
	}
	return app
}

// flagsWord stands for the flags in a verb's usage line.
func flagsWord(cmd *cli.Command) string {
	if len(cmd.Flags) == 0 {
		return ""
	}
	return "[flags]"
}

// Messages of the flag parser, which names flags with one dash whatever was
// typed.
var (
	noSuchFlag = regexp.MustCompile(`^flag provided but not defined: -(.*)$`)
	badValue   = regexp.MustCompile(`^invalid (?:boolean )?value ("[^"]*") for (?:flag )?-([^:]*):`)
)

// onUsageError says in our words what is wrong with a flag.
func onUsageError(c *cli.Context, err error, _ bool) error {
	if m := noSuchFlag.FindStringSubmatch(err.Error()); m != nil {
		if c.Command == nil || c.App.Command(c.Command.Name) == nil {
			return usagef("no verb given before or after %s", dashed(m[1]))
		}
		return usagef("%s has no flag %s%s", c.Command.Name, dashed(m[1]), otherFlag(c, m[1]))
	}
	if m := badValue.FindStringSubmatch(err.Error()); m != nil {
		return usagef("%s does not take the value %s%s", dashed(m[2]), m[1], valueWanted(c, m[2]))
	}
	return usageError{err.Error()}
}

// dashed writes a flag as it is typed.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// unknownVerb helps where a file was given without a verb or a verb mistyped.
func unknownVerb(app *cli.App, word string) error {
	if _, err := os.Stat(word); err == nil {
		return usagef("no verb given; try: dumptriage triage %s", word)
	}
	if word == "version" {
		return usagef("there is no verb %q; try: dumptriage --version", word)
	}
	// The library always finds something, however far-fetched.
	if s := cli.SuggestCommand(app.Commands, word); s != "" && word != "" && s[0] == word[0] {
		return usagef("there is no verb %q; did you mean %q?", word, s)
	}
	return usagef("there is no verb and no file %q", word)
}
