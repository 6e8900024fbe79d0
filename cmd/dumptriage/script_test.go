package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"dumptriage/fixtures/machine"
)

var update = flag.Bool("update", false, "rewrite golden files and the expected output in the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"dumptriage": main,
	})
}

// TestScripts runs the built command as a user does: help, exit status, output
// and standard error of every verb.
func TestScripts(t *testing.T) {
	fixtures, err := filepath.Abs(filepath.Join("..", "..", "fixtures"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "script"),
		UpdateScripts: *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": checkStatus, "cut": cutFile, "spoil": spoilFile, "gzip": gzipFile, "zip": zipFiles, "grow": growFile, "machine": machineDump,
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("FIXTURES", fixtures)
			return nil
		},
	})
}

// growFile copies a file and adds a byte, which makes other content of the same
// dump: grow FROM TO.
func growFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: grow from to")
	}
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), append(b, 0), 0o666))
}

// checkStatus runs a command and compares its exit status: status 3 dumptriage ...
func checkStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command [args]")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}

// machineDump writes a full kernel dump of a machine: machine VARIANT KIND FILE,
// KIND being a DumpType.
func machineDump(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args) > 5 {
		ts.Fatalf("usage: machine variant kind file [pdb [pdb-of-another-build]]")
	}
	kind, err := strconv.Atoi(args[1])
	ts.Check(err)
	for _, v := range append(machine.Variants(), &machine.WindowsOdd) {
		if v.Name != args[0] {
			continue
		}
		m := machine.Build(*v)
		ts.Check(os.WriteFile(ts.MkAbs(args[2]), m.Dump(machine.Kind(kind)), 0o666))
		for i, name := range args[3:] {
			pdb := m.KernelPDB()
			pdb.GUID[0] += byte(i)
			ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(name)), 0o777))
			ts.Check(os.WriteFile(ts.MkAbs(name), pdb.Bytes(), 0o666))
		}
		return
	}
	ts.Fatalf("no machine is called %q", args[0])
}

// spoilFile copies a file with eight bytes of it zero: spoil FROM TO OFFSET
func spoilFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: spoil from to offset")
	}
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	at, err := strconv.Atoi(args[2])
	ts.Check(err)
	clear(b[at : at+8])
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o666))
}

// cutFile copies the first bytes of a file: cut FROM TO BYTES
func cutFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: cut from to bytes")
	}
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(ts.ReadFile(args[0])[:n]), 0o666))
}

// gzipFile compresses a file: gzip FROM TO
func gzipFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: gzip from to")
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, ts.ReadFile(args[0]))
	ts.Check(errors.Join(err, w.Close()))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b.Bytes(), 0o666))
}

// zipFiles makes an archive: zip TO FILE...
func zipFiles(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: zip to file ...")
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range args[1:] {
		f, err := w.Create(filepath.Base(name))
		ts.Check(err)
		_, err = io.WriteString(f, ts.ReadFile(name))
		ts.Check(err)
	}
	ts.Check(w.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o666))
}

// An interrupt ends the program with the status of its own, and so does being told to
// end. It comes while the program reads standard input: more has been written than a pipe
// holds.
func TestInterrupt(t *testing.T) {
	for sig, want := range ends {
		t.Run(sig.String(), func(t *testing.T) { testInterrupt(t, sig, want) })
	}
}

// ends are the signals that end the program, and its exit status then.
var ends = map[os.Signal]int{os.Interrupt: exitInterrupted, syscall.SIGTERM: exitTerminated}

func testInterrupt(t *testing.T, sig os.Signal, want int) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be sent an interrupt there")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: exe, Args: []string{"dumptriage", "info", "-"}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, werr := in.Write(append([]byte("MDMP"), make([]byte, 1<<20)...)) // what is no dump is not read on
	if err := errors.Join(werr, cmd.Process.Signal(sig)); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != want {
		t.Errorf("exit status %d, want %d", got, want)
	}
}

// What help and the manual page say of exit statuses, the README says too.
func TestExitStatusesDocumented(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range exitStatuses {
		if !strings.Contains(string(readme), fmt.Sprintf("| %d | ", s.status)) {
			t.Errorf("README.md says nothing of exit status %d", s.status)
		}
	}
}
