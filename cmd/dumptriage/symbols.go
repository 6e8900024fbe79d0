package main

import (
	"bufio"

	"github.com/urfave/cli/v2"

	"dumptriage/dump"
	"dumptriage/internal/input"
	"dumptriage/report"
	"dumptriage/symbols"
	"dumptriage/symbols/pdb"
	"dumptriage/triage"
)

var (
	serverFlag   = &cli.StringFlag{Name: "server", Usage: "get files from the symbol server at `URL` (fetch)"}
	toFlag       = &cli.StringFlag{Name: "to", Usage: "keep what is fetched in the symbol store at `DIR` (fetch)"}
	manifestFlag = &cli.BoolFlag{Name: "manifest", DisableDefaultText: true, Usage: "print a line name,key,1 for each missing file, as symchk's manifests have it (list)"}
)

func symbolsCommand() *cli.Command {
	return &cli.Command{
		Name:      "symbols",
		Usage:     "list or fetch the images and symbols that a dump's modules call for; show a structure of a PDB",
		ArgsUsage: "list DUMP | fetch DUMP | types PDB NAME",
		Description: "symbols list DUMP                            what is needed, what was found and where\n" +
			"symbols fetch DUMP --server URL --to DIR     get what is missing from a symbol server;\n" +
			"                                             exit status 3 when some is missing still\n" +
			"symbols types PDB NAME                       the fields of a structure, such as _ETHREAD\n" +
			"Of a full kernel dump the modules are the kernel's; --process adds those of a process.",
		Flags:  []cli.Flag{serverFlag, toFlag, manifestFlag, processFlag, jsonFlag, imagesFlag, symbolsFlag, notBesideFlag, offlineFlag, colorFlag, quietFlag},
		Action: runSymbols,
	}
}

func runSymbols(c *cli.Context) error {
	what, operands := c.Args().First(), c.Args().Tail()
	switch {
	case what == "list" && len(operands) == 1:
		return listSymbols(c, operands[0])
	case what == "fetch" && len(operands) == 1:
		return fetchSymbols(c, operands[0])
	case what == "types" && len(operands) == 2:
		return showType(c, operands[0], operands[1])
	}
	return usagef("symbols wants list DUMP, fetch DUMP --server URL --to DIR, or types PDB NAME")
}

func listSymbols(c *cli.Context, file string) error {
	if c.IsSet(serverFlag.Name) || c.IsSet(toFlag.Name) {
		return usagef("--server and --to belong to symbols fetch")
	}
	p, err := symbolPath(c)
	if err != nil {
		return fail(c, err)
	}
	return showNeeds(c, file, p, false)
}

// fetchSymbols puts a chain of the directory and the server behind the places
// of the path, where what is found need not be fetched.
func fetchSymbols(c *cli.Context, file string) error {
	url, dir := c.String(serverFlag.Name), c.String(toFlag.Name)
	if url == "" || dir == "" {
		return usagef("symbols fetch wants --server URL and --to DIR")
	}
	if c.Bool(offlineFlag.Name) {
		return usagef("symbols fetch cannot be --offline")
	}
	chain, err := symbols.NewChain(dir, url)
	if err != nil {
		return usagef("%v", err)
	}
	p, err := symbolPath(c)
	if err != nil {
		return fail(c, err)
	}
	return showNeeds(c, file, append(p, chain), true)
}

// showNeeds looks for what a dump's modules call for and prints what came of it.
func showNeeds(c *cli.Context, file string, p symbols.Path, fetch bool) error {
	opt, err := reportOptions(c)
	if err != nil {
		return fail(c, err)
	}
	d, err := openDump(file)
	if err != nil {
		return fail(c, err)
	}
	defer d.Close()
	if !c.Bool(notBesideFlag.Name) {
		p = append(triage.Beside(d), p...)
	}
	processes, err := chosenProcesses(c, d)
	if err != nil {
		return fail(c, err)
	}
	if c.String(processFlag.Name) == "" {
		processes = nil // the kernel's modules alone
	}
	store := symbols.NewPathStore(p, storeOptions(c, p))
	defer store.Close()
	l := &report.List{Kind: report.ListSymbols, Inputs: []triage.Input{d.Describe(triage.DefaultHashLimit)}, System: d.System(), Process: d.Process(), ThreadCount: -1, ModuleCount: -1, Fetch: fetch}
	progress := newProgress(c, "looking for symbols of modules")
	l.Symbols = triage.SymbolNeeds(d, processes, store, progress.update)
	progress.done()
	l.Errors = d.Errors()
	if !c.Bool(manifestFlag.Name) || c.Bool(jsonFlag.Name) {
		return emitList(c, l, opt)
	}
	w := bufio.NewWriter(c.App.Writer)
	err = report.ManifestText(w, l)
	_, status := report.ListStatus(l)
	return finish(c, w, err, l.Errors, status)
}

// showType prints a structure of a PDB.
func showType(c *cli.Context, file, name string) error {
	opt, err := reportOptions(c)
	if err != nil {
		return fail(c, err)
	}
	f, err := input.Open(file, input.Options{Want: func(string) bool { return true }})
	if err != nil {
		return fail(c, err)
	}
	defer f.Close()
	p, err := pdb.Open(f, f.Size(), file)
	if err != nil {
		return fail(c, err)
	}
	s, err := p.Struct(name)
	if err != nil {
		return fail(c, err)
	}
	l := &report.List{Kind: report.ListTypes, Inputs: []triage.Input{{Path: file, Size: f.DiskSize()}}, System: &dump.System{}, Struct: s, ThreadCount: -1, ModuleCount: -1}
	return emitList(c, l, opt)
}
