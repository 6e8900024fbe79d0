package kdump

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
)

// The two kernels of real dumps whose version WinDbg or a public symbol file
// confirms.
func TestLookupBuild(t *testing.T) {
	for _, c := range []struct {
		stamp, size uint32
		want        ntBuild
		ok          bool
	}{
		{0x0d8333e6, 0x1046000, ntBuild{19041, 804}, true},
		{0x5dee2b07, 0x1046000, ntBuild{19041, 3803}, true},
		{0x5dee2b07, 0x1047000, ntBuild{}, false},
		{0x5dee2b07, 0x1046001, ntBuild{}, false},
		{0x7a5ef578, 0x1047000, ntBuild{}, false}, // 22621.1483 and .1485 share the image
		{0, 0, ntBuild{}, false},
		{0xffffffff, 0xffffffff, ntBuild{}, false},
	} {
		if got, ok := lookupBuild(c.stamp, c.size); got != c.want || ok != c.ok {
			t.Errorf("%#x %#x: %v %v", c.stamp, c.size, got, ok)
		}
	}
	if n := testing.AllocsPerRun(100, func() { lookupBuild(0x5dee2b07, 0x1046000) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Every line of the text table is found in the packed one, unless two versions
// share an image, and the packed one holds nothing else.
func TestPackedTable(t *testing.T) {
	text, err := os.ReadFile("nt_builds.tsv")
	if err != nil {
		t.Fatal(err)
	}
	versions := map[[2]uint32][]ntBuild{}
	for line := range strings.Lines(string(text)) {
		var stamp, pages uint32
		var b ntBuild
		if n, _ := fmt.Sscanf(line, "%x\t%x\t%d.%d", &stamp, &pages, &b.build, &b.revision); n == 4 {
			key := [2]uint32{stamp, pages}
			versions[key] = append(versions[key], b)
		}
	}
	unique := 0
	for key, bs := range versions {
		got, ok := lookupBuild(key[0], key[1]*4096)
		if len(bs) == 1 {
			unique++
		}
		if ok != (len(bs) == 1) || ok && got != bs[0] {
			t.Errorf("%x %x: %v %v, want %v", key[0], key[1], got, ok, bs)
		}
	}
	if unique < 3600 || len(ntBuilds) != unique*ntBuildSize {
		t.Errorf("%d lines, %d packed bytes: run go generate", unique, len(ntBuilds))
	}
	for i := ntBuildSize; i < len(ntBuilds); i += ntBuildSize {
		if a, b := ntBuilds[i-ntBuildSize:i], ntBuilds[i:i+ntBuildSize]; a >= b {
			t.Fatalf("record %d is out of order: %x", i/ntBuildSize, binary.BigEndian.Uint32([]byte(b[:4])))
		}
	}
}

// Offsets that real dumps confirmed: 19041 x64 and 22000 ARM64.
func TestOffsetRows(t *testing.T) {
	find := func(ethread, eprocess int) *offsetRow {
		for i := range offsetRows {
			if r := &offsetRows[i]; r.ethread == ethread && eprocess >= r.eprocessLow && eprocess <= r.eprocessHigh {
				return r
			}
		}
		return &offsetRow{}
	}
	if r := find(0x898, 0xa40); r.cid != 0x478 || r.pid != 0x440 || r.trapFrame != 0x90 || r.owner != 0x220 || r.imageName != 0x5a8 {
		t.Errorf("19041: %+v", *r)
	}
	if r := find(0x910, 0xc80); r.cid != 0x4e8 || r.pid != 0x3f8 || r.imageName != 0x560 {
		t.Errorf("22000 ARM64: %+v", *r)
	}
	for _, r := range offsetRows {
		if r.cid == 0 || r.pid == 0 || r.imageName == 0 || r.eprocessLow > r.eprocessHigh {
			t.Errorf("incomplete row %+v", r)
		}
	}
}
