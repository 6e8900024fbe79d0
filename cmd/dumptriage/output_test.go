package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// fullDisk takes so many bytes and no more.
type fullDisk struct{ room int }

var errDiskFull = errors.New("write: no room left")

func (d *fullDisk) Write(p []byte) (int, error) {
	n := min(len(p), d.room)
	d.room -= n
	if n < len(p) {
		return n, errDiskFull
	}
	return n, nil
}

// TestOutputErrors gives every verb a standard output that takes nothing, or only a
// beginning: the run fails, and says why without blaming a file.
func TestOutputErrors(t *testing.T) {
	f := writePrivate(t)
	if status := run([]string{"batch", f.thrown, "--db", f.db, "--quiet"}, &bytes.Buffer{}, &bytes.Buffer{}); status != exitOK {
		t.Fatalf("batch: status %d", status)
	}
	lines := f.leakCases()
	lines["batch"] = [][]string{{"batch", f.thrown}}
	lines["schema"], lines["man"], lines["completion"] = [][]string{{"schema"}}, [][]string{{"man"}}, [][]string{{"completion", "bash"}}
	for _, cmd := range newApp(nil, nil).Commands {
		if cmd.Hidden {
			continue
		}
		if len(lines[cmd.Name]) == 0 {
			t.Errorf("no command line for %s", cmd.Name)
			continue
		}
		args := lines[cmd.Name][0]
		checkOutputError(t, 0, args)
		checkOutputError(t, 20, args)
		checkOutputError(t, 0, []string{"help", cmd.Name})
		if slices.Contains(cmd.Flags, cli.Flag(jsonFlag)) {
			checkOutputError(t, 20, append(slices.Clone(args), "--json"))
		}
	}
	checkOutputError(t, 0, []string{"help"})
	checkOutputError(t, 0, []string{"--version"})
}

func checkOutputError(t *testing.T, room int, args []string) {
	t.Helper()
	var stderr bytes.Buffer
	status := run(args, &fullDisk{room}, &stderr)
	want := "dumptriage: " + errDiskFull.Error() + "\n"
	if status != exitFailed || !strings.HasSuffix("\n"+stderr.String(), "\n"+want) {
		t.Errorf("%q with room for %d bytes: status %d, %s", args, room, status, &stderr)
	}
}

// What scrub has written stays where its report cannot be printed, which is said: nobody
// has to do it again.
func TestScrubWithoutOutput(t *testing.T) {
	f := writePrivate(t)
	for name, args := range map[string][]string{
		"one":   {"scrub", f.thrown, filepath.Join(f.dir, "one.dmp"), "--images", f.images},
		"quiet": {"scrub", f.thrown, filepath.Join(f.dir, "quiet.dmp"), "--images", f.images, "--quiet", "--json"},
		"pair":  {"scrub", f.user, f.half, filepath.Join(f.dir, "pair")},
	} {
		var stderr bytes.Buffer
		if status := run(args, &fullDisk{}, &stderr); status != exitFailed {
			t.Errorf("%s: status %d, %s", name, status, &stderr)
		}
		written := []string{args[2]}
		said := " is written and compared"
		if name == "pair" {
			written = []string{filepath.Join(args[3], filepath.Base(f.user)), filepath.Join(args[3], filepath.Base(f.half))}
			said = " are written and compared"
		}
		for _, path := range written {
			if st, err := os.Stat(path); err != nil || st.Size() == 0 || !strings.Contains(stderr.String(), path) {
				t.Errorf("%s: %v, or it is not named in %s", name, err, &stderr)
			}
		}
		if !strings.Contains(stderr.String(), said) || !strings.Contains(stderr.String(), errDiskFull.Error()) {
			t.Errorf("%s: not said: %s", name, &stderr)
		}
	}
}
