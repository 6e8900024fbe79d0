package main

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// permute reorders a command line so that flags may stand anywhere: the verb
// first, then all flags, then "--" and the operands. The library itself takes
// every flag behind the first operand for one more operand.
func permute(app *cli.App, args []string) ([]string, error) {
	takes := flagArity(app)
	var verb string
	var flags, operands []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			operands = append(operands, args[i+1:]...)
			i = len(args)
		case len(arg) > 1 && arg[0] == '-':
			flags = append(flags, arg)
			if strings.Contains(arg, "=") || !takes[strings.TrimLeft(arg, "-")] {
				continue
			}
			if i++; i == len(args) {
				return nil, usagef("%s wants a value", arg)
			}
			flags = append(flags, args[i])
		case verb == "":
			verb = arg
		default:
			operands = append(operands, arg)
		}
	}
	switch {
	case verb == "":
		return append(flags, operands...), nil
	case isHelp(verb):
		if len(operands) > 0 && isHelp(operands[0]) {
			operands = nil // the library finds no help of help
		}
		if len(operands) > 0 && app.Command(operands[0]) == nil {
			return nil, unknownVerb(app, operands[0])
		}
		return append([]string{verb}, operands...), nil
	}
	if app.Command(verb) == nil {
		return nil, unknownVerb(app, verb)
	}
	out := append([]string{verb}, flags...)
	return append(append(out, "--"), operands...), nil
}

func isHelp(word string) bool { return word == "help" || word == "h" }

// flagArity maps every flag name of every verb to whether a value follows it.
func flagArity(app *cli.App) map[string]bool {
	takes := map[string]bool{}
	for _, cmd := range app.Commands {
		for _, f := range cmd.Flags {
			d, ok := f.(cli.DocGenerationFlag)
			for _, name := range f.Names() {
				takes[name] = ok && d.TakesValue()
			}
		}
	}
	return takes
}
