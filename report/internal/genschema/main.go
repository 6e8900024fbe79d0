// Command genschema writes the JSON Schema of package report's output from its
// Go types.
package main

import (
	"flag"
	"log"
	"os"

	"dumptriage/report/internal/genschema/schema"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("genschema: ")
	out := flag.String("out", "schema.json", "file to write")
	flag.Parse()
	text, err := schema.Generate()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(*out, text, 0o644); err != nil {
		log.Fatal(err)
	}
}
