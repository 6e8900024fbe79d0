package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"dumptriage/symbols"
	"dumptriage/symbols/server"
	"dumptriage/triage"
)

var (
	mismatchFlag = &cli.BoolFlag{Name: "allow-mismatch", DisableDefaultText: true,
		Usage: "use symbols of another build where there are none of the right one, and mark their frames"}
	notBesideFlag = &cli.BoolFlag{Name: "not-beside", DisableDefaultText: true, Usage: "do not look for images and symbols in the folder of the dump"}
	offlineFlag   = &cli.BoolFlag{Name: "offline", DisableDefaultText: true, Usage: "ask no symbol server, only the caches of the path"}
)

// environment lists the variables that the program reads.
var environment = []struct{ name, does string }{
	{symbols.EnvSymbols, "symbol path, used behind --images and --symbols"},
	{symbols.EnvAltSymbols, "another, used behind it"},
	{symbols.EnvImages, "path of images, used behind both"},
	{"NO_COLOR", "when set to anything, there is no colour unless --color always asks for it"},
}

// symbolPath is where the command line and the environment say that images and
// symbols are.
func symbolPath(c *cli.Context) (symbols.Path, error) {
	var p symbols.Path
	for _, dir := range c.StringSlice(imagesFlag.Name) {
		if err := checkDir(dir); err != nil {
			return nil, err
		}
		p = append(p, symbols.DirPath(dir)...)
	}
	for _, value := range c.StringSlice(symbolsFlag.Name) {
		q, err := parseSymbols(value)
		if err != nil {
			return nil, err
		}
		p = append(p, q...)
	}
	env, err := symbols.EnvPath(os.Getenv)
	if err != nil {
		return nil, usagef("%v", err)
	}
	return append(p, env...), nil
}

// parseSymbols reads one --symbols: a directory, whatever its name, or a path.
func parseSymbols(value string) (symbols.Path, error) {
	if st, err := os.Stat(value); err == nil && st.IsDir() {
		return symbols.DirPath(value), nil
	}
	if !strings.ContainsAny(value, "*;") && !strings.Contains(value, "://") {
		return nil, checkDir(value)
	}
	p, err := symbols.ParsePath(value)
	if err != nil {
		return nil, usagef("--%s: %v", symbolsFlag.Name, err)
	}
	for _, e := range p {
		if e.Plain {
			if err := checkDir(e.Stores[0]); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// checkDir makes an error in usage of a directory that is none.
func checkDir(dir string) error {
	switch st, err := os.Stat(dir); {
	case err != nil:
		return usagef("%s is not a directory", dir)
	case !st.IsDir():
		return usagef("%s is a file; --images wants the folder that holds it", dir)
	}
	return nil
}

// storeOptions are how the command line wants symbols to be found. A network is
// reached only where the path names a server.
func storeOptions(c *cli.Context, p symbols.Path) symbols.StoreOptions {
	opt := symbols.StoreOptions{AllowMismatch: c.Bool(mismatchFlag.Name)}
	if p.HasServer() && !c.Bool(offlineFlag.Name) {
		opt.Fetcher = newClient()
	}
	return opt
}

func newClient() *server.Client {
	return server.New(server.Options{UserAgent: fmt.Sprintf("dumptriage/%s", version)})
}

// setSymbols puts the symbol path into the options of an analysis.
func setSymbols(c *cli.Context, o *triage.Options) error {
	p, err := symbolPath(c)
	if err != nil {
		return err
	}
	o.Symbols, o.Store, o.NotBeside = p, storeOptions(c, p), c.Bool(notBesideFlag.Name)
	return nil
}
