package main

import (
	_ "embed"
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/urfave/cli/v2"
)

// The scripts ask the program itself for what may come next, so that they never
// go stale.
var (
	//go:embed completion/bash.sh
	bashCompletion string
	//go:embed completion/zsh.sh
	zshCompletion string
	//go:embed completion/fish.fish
	fishCompletion string
	//go:embed completion/powershell.ps1
	powershellCompletion string
)

var completionScripts = map[string]*string{
	"bash": &bashCompletion, "zsh": &zshCompletion, "fish": &fishCompletion, "powershell": &powershellCompletion,
}

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a shell completion script",
		ArgsUsage: "bash|zsh|fish|powershell",
		Description: "bash:        source <(dumptriage completion bash)\n" +
			"zsh:         dumptriage completion zsh > \"${fpath[1]}/_dumptriage\"\n" +
			"fish:        dumptriage completion fish > ~/.config/fish/completions/dumptriage.fish\n" +
			"powershell:  dumptriage completion powershell | Out-String | Invoke-Expression",
		Action: func(c *cli.Context) error {
			script, ok := completionScripts[c.Args().First()]
			if !ok || c.NArg() != 1 {
				return usagef("completion wants one of bash, zsh, fish or powershell")
			}
			_, err := io.WriteString(c.App.Writer, *script)
			return err
		},
	}
}

// completionMark is the hidden first argument by which the scripts ask.
const completionMark = "--complete"

// flagOfLast returns the flag whose value the last word is or begins: of "--f v",
// "--f=v", and "--f", "=", "v", which is how bash splits the latter.
func flagOfLast(words []string) string {
	n := len(words)
	if n == 0 {
		return ""
	}
	if before, _, ok := strings.Cut(words[n-1], "="); ok && before != "" {
		return before
	}
	rest := words[:n-1]
	if words[n-1] != "=" && n > 2 && rest[len(rest)-1] == "=" {
		rest = rest[:len(rest)-1]
	}
	if len(rest) == 0 {
		return ""
	}
	return rest[len(rest)-1]
}

func completionRequest(args []string) ([]string, bool) {
	if len(args) == 0 || args[0] != completionMark {
		return nil, false
	}
	words := args[1:]
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	return words, true
}

// complete lists what may stand for the last word: verbs, then what buckets and
// symbols do, flags of the verb and the values of --color. Nothing is printed where a file name belongs, and the shell completes
// that itself.
func complete(app *cli.App, words []string, w io.Writer) {
	last := ""
	if len(words) > 0 {
		last = words[len(words)-1]
	}
	verb := ""
	for _, word := range words[:max(len(words)-1, 0)] {
		if !strings.HasPrefix(word, "-") && app.Command(word) != nil {
			verb = word
			break
		}
	}
	var out []string
	switch {
	case verb == "" && !strings.HasPrefix(last, "-"):
		out = append(out, "help") // the library adds it when it runs
		for _, cmd := range app.Commands {
			out = append(out, cmd.Name)
		}
	case verb == "completion":
		for shell := range completionScripts {
			out = append(out, shell)
		}
	case verb == "buckets" && words[len(words)-2] == verb && !strings.HasPrefix(last, "-"):
		for action := range bucketActions {
			out = append(out, action)
		}
	case verb == "symbols" && words[len(words)-2] == verb && !strings.HasPrefix(last, "-"):
		out = []string{"fetch", "list", "types"}
	case flagOfLast(words) == "--"+colorFlag.Name:
		out = []string{"always", "auto", "never"}
		if before, _, ok := strings.Cut(last, "="); ok && before != "" {
			for i := range out {
				out[i] = before + "=" + out[i]
			}
		} else if ok {
			last = "" // bash takes "=" for a word
		}
	case verb == "":
		out = []string{"--help", "--version"}
	case strings.HasPrefix(last, "-"):
		for _, name := range flagNames(app.Command(verb)) {
			if len(name) > 1 {
				out = append(out, "--"+name)
			}
		}
		out = append(out, "--help")
	}
	sort.Strings(out)
	for _, word := range out {
		if strings.HasPrefix(word, last) {
			fmt.Fprintln(w, word)
		}
	}
}
