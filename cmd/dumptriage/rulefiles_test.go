package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

// utf16File is a text as PowerShell writes it.
func utf16File(text string) []byte {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(text)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}

const mineRules = "# mine\n[irrelevant]\ncrashes!call_*\n[role]\n*!main role=gui\n[wait]\n*!x class=io object=handle arg=0\n"

// TestRuleFileEncodings reads the same rules in every encoding and with every end of line.
func TestRuleFileEncodings(t *testing.T) {
	dumpFile := filepath.Join("..", "..", "fixtures", "crashes", "thrown.dmp")
	a := newAttack(t)
	judge := func(text []byte) string {
		var out, errs bytes.Buffer
		args := []string{"triage", "--explain-signature", "-i", filepath.Join(filepath.Dir(dumpFile), "images"), dumpFile}
		if text != nil {
			args = append(args, "--rules", a.write(t, "mine.rules", text))
		}
		if status := run(args, &out, &errs); status != 0 {
			t.Errorf("%q: exit %d: %s", text, status, errs.Bytes())
		}
		return out.String()
	}
	want := judge([]byte(mineRules))
	if want == judge(nil) {
		t.Fatal("the rules change nothing")
	}
	for _, text := range [][]byte{[]byte("\xef\xbb\xbf" + mineRules), utf16File(mineRules), []byte(strings.ReplaceAll(mineRules, "\n", "\r\n"))} {
		if got := judge(text); got != want {
			t.Errorf("%q: other than the plain file:\n%s\n%s", text, got, want)
		}
	}
}

// TestBrokenRuleFiles changes a file of rules: it is read, or wrong usage.
func TestBrokenRuleFiles(t *testing.T) {
	a := newAttack(t)
	dumpFile := filepath.Join("..", "..", "fixtures", "crashes", "thrown.dmp")
	texts := [][]byte{nil, bytes.Repeat([]byte("[wait]\n"), 1<<19), bytes.Repeat([]byte{0}, 8<<20), []byte("[irrelevant]\n" + strings.Repeat("a*", 1<<20)),
		[]byte("[wait]\na!b class=\"" + strings.Repeat("\\", 1<<20))}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		texts = append(texts, breakBytes(rng, []byte(mineRules)))
	}
	for _, text := range texts {
		var out, errs bytes.Buffer
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		status := run([]string{"triage", "--rules", a.write(t, "mine.rules", text), dumpFile}, &out, &errs)
		took := time.Since(begun)
		runtime.ReadMemStats(&after)
		head := text[:min(len(text), 100)]
		if status != 0 && (status != 2 || out.Len() > 0 || !strings.Contains(errs.String(), "mine.rules") || errs.Len() > 1<<10) {
			t.Errorf("%q: exit %d, %d bytes of output: %.1000s", head, status, out.Len(), errs.Bytes())
		}
		if used := after.TotalAlloc - before.TotalAlloc; took > mutationTime || used > mutationMemory {
			t.Errorf("%q: took %v and %d bytes", head, took, used)
		}
	}
}

// TestManyRules gives thousands of threads tens of thousands of rules with stars.
func TestManyRules(t *testing.T) {
	var text strings.Builder
	for _, section := range []string{"[wait]\n*x%d*y class=io\n", "[plumbing]\n*x%d*y\n", "[role]\n*x%d*y role=gui\n"} {
		name, line, _ := strings.Cut(section, "\n")
		text.WriteString(name + "\n")
		for i := range 20_000 {
			fmt.Fprintf(&text, line, i)
		}
	}
	a := newAttack(t)
	a.large = true
	b := mutexCrowd(t, 4000, func(i int) int { return i ^ 1 }, nil)
	images := filepath.Join("..", "..", "fixtures", "locks", "images")
	a.verb(t, len(b)+text.Len(), "triage", "-i", images, "--rules", a.write(t, "many.rules", []byte(text.String())), a.write(t, "crowd.dmp", b))
}
