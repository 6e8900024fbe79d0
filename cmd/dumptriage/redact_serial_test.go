package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dumptriage/fixtures"
)

// serialDump is a dump of bugcheck 0x9A, whose third parameter is a part of the system's
// serial number where the first one is 0; the call passed it in r9.
func serialDump(t *testing.T, serial uint64) string {
	t.Helper()
	const code, parameters, context, r9 = 0x38, 0x40, 0x348, 0xc0
	b := bytes.Clone(fixtures.BugCheckScenes()["unknown"].Dump)
	le := binary.LittleEndian
	le.PutUint32(b[code:], 0x9a)
	for i, v := range []uint64{0, 1, serial, 2} {
		le.PutUint64(b[parameters+8*i:], v)
	}
	le.PutUint64(b[context+r9:], serial)
	path := filepath.Join(t.TempDir(), "license.dmp")
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRedactSerialNumber(t *testing.T) {
	const serial = 0x1d5e71a1c0ffee
	path := serialDump(t, serial)
	small := filepath.Join(t.TempDir(), "small.dmp")
	said := 0
	for _, args := range [][]string{{"triage"}, {"stacks"}, {"info"}, {"cpus"}, {"explain", "--thread", "0x1d8", "--frame", "0"}, {"batch", "--jobs", "1"}} {
		for _, form := range []string{"--quiet", "--json"} {
			if args[0] == "batch" && form == "--json" {
				continue
			}
			var plain, hidden bytes.Buffer
			line := append(append([]string{args[0], path}, args[1:]...), form)
			run(line, &plain, &plain)
			run(append(line, "--redact"), &hidden, &hidden)
			if strings.Contains(strings.ToLower(hidden.String()), "1d5e71a1c0ffee") {
				t.Errorf("%q --redact tells the serial number: %s", line, &hidden)
			}
			if strings.Contains(strings.ToLower(plain.String()), "1d5e71a1c0ffee") {
				if said++; args[0] != "explain" && args[0] != "cpus" && // which show registers alone
					!strings.Contains(hidden.String(), "<serial1>") {
					t.Errorf("%q --redact does not say that there is a serial number: %s", line, &hidden)
				}
			}
		}
	}
	if said < 5 {
		t.Errorf("only %d outputs tell the serial number without --redact: the test shows little", said)
	}
	var out bytes.Buffer
	if status := run([]string{"scrub", path, small}, &out, &out); status != exitOK {
		t.Fatalf("%d: %s", status, &out)
	}
	b, err := os.ReadFile(small)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, binary.LittleEndian.AppendUint64(nil, serial)) {
		t.Error("the scrubbed dump holds the serial number")
	}
	if got := binary.LittleEndian.Uint64(b[0x50:]); got != 1 {
		t.Errorf("%#x stands for it", got)
	}
}
