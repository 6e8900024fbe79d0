// Command unwind-oracle checks the x64 and ARM64 unwinders on the functions of
// PE images, by emulation, and prints a table of boundaries tried and wrong.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"dumptriage/unwind/oracle"
)

func main() {
	oracle.ChildMain()
	job := oracle.Job{Limits: oracle.DefaultLimits}
	flag.IntVar(&job.Stride, "stride", 1, "check every `n`th function")
	flag.IntVar(&job.Limits.Runs, "runs", job.Limits.Runs, "runs of a function at most")
	flag.IntVar(&job.Limits.Steps, "steps", job.Limits.Steps, "instructions of a run at most")
	failures := flag.Int("failures", 0, "describe up to `n` failures of each image")
	limit := flag.Float64("fail", -1, "exit with status 1 when more than this `percentage` of an image's checks is wrong")
	unmarked := flag.Float64("fail-unmarked", -1, "the same for wrong answers that do not say they are guesses")
	header := flag.Bool("header", true, "print the table's header")
	asJSON := flag.Bool("json", false, "print reports as JSON instead of a table")
	flag.Parse()
	if err := run(job, flag.Args(), *failures, limits{*limit, *unmarked}, *header, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "unwind-oracle:", err)
		os.Exit(1)
	}
}

// limits are the percentages of an image's checks that may be wrong, all of
// them and those that do not say they are guesses; negative means any.
type limits struct{ all, unmarked float64 }

func (l limits) exceeded(r *oracle.Report) bool {
	percent := func(wrong int) float64 { return 100 * float64(wrong) / float64(max(1, r.Checks.Tried+r.Calls.Tried)) }
	all := r.Checks.Wrong + r.Calls.Wrong
	return l.all >= 0 && percent(all) > l.all ||
		l.unmarked >= 0 && percent(all-r.Checks.Marked-r.Calls.Marked) > l.unmarked
}

func run(job oracle.Job, paths []string, failures int, limit limits, header, asJSON bool) error {
	if header && !asJSON {
		fmt.Println("| image | functions | boundaries | checks (prolog, epilog, leaf) | wrong | call sites | wrong | lost | undescribed | aborted | s |")
		fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|")
	}
	over := false
	for _, path := range paths {
		job.Path = path
		r, err := oracle.Run(context.Background(), job)
		if err != nil {
			return err
		}
		if asJSON {
			if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
				return err
			}
			continue
		}
		fmt.Printf("| %s | %d | %d | %d (%d, %d, %d) | %s | %d | %s | %d | %s | %d | %.0f |\n", filepath.Base(path), r.Functions, r.Boundaries,
			r.Checks.Tried, r.Prologs, r.Epilogs, r.Leaves, wrong(r.Checks), r.Calls.Tried, wrong(r.Calls), r.Checks.Lost+r.Calls.Lost, undescribed(r.Undescribed), len(r.Aborted), r.Took.Seconds())
		for _, f := range r.Failures[:min(failures, len(r.Failures))] {
			where := "at"
			if f.Call {
				where = "call before"
			}
			fmt.Printf("    %s %#x: %s [%s] %s: %s %s\n", where, f.RVA, f.Code, f.Text, f.Method, f.Wrong, f.Detail)
		}
		over = over || limit.exceeded(r)
	}
	if over {
		return errors.New("more of an image's checks are wrong than the limit allows")
	}
	return nil
}

func wrong(c oracle.Counts) string {
	if c.Wrong == 0 {
		return "0"
	}
	if c.Right > 0 {
		return fmt.Sprintf("%d (%d marked, %d of them right)", c.Wrong, c.Marked, c.Right)
	}
	return fmt.Sprintf("%d (%d marked)", c.Wrong, c.Marked)
}

func undescribed(c oracle.Counts) string {
	if c.Tried == 0 {
		return "0"
	}
	return fmt.Sprintf("%d, %d wrong", c.Tried, c.Wrong)
}
