package triage

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures"
)

// Files that are no dumps are told apart by how they begin.
func TestNotADump(t *testing.T) {
	for name, x := range map[string]struct{ content, says string }{
		"empty":           {"", "it is empty"},
		"a.exe":           {"MZ\x90\x00\x03\x00\x00\x00\x04\x00", "PE image"},
		"a.so":            {"\x7fELF\x02\x01\x01\x00", "ELF"},
		"a.pdb":           {"Microsoft C/C++ MSF 7.00\r\n\x1aDS", "PDB"},
		"a.sym":           {"MODULE windows x86_64 000", "Breakpad symbol file"},
		"hiberfil.sys":    {"hibr\x00\x00\x00\x00", "hibernation"},
		"hiberfil2.sys":   {"HIBR\x00\x00\x00\x00", "hibernation"},
		"big-endian.dmp":  {"PMDM\xa7\x93\x00\x00", "big-endian"},
		"text":            {"Dear all,\n", "it begins with the bytes 4465617220616c6c"},
		"one byte":        {"\x01", "it begins with the bytes 01"},
		"nearly a dump":   {"PAGEDU6", "504147454455"},
		"another dump":    {"PAGEDUXX", "5041474544555858"},
		"like a minidump": {"MDM", "4d444d"},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(x.content), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path)
		var e *dump.Error
		if !errors.As(err, &e) || e.Code != dump.UnsupportedFormat || e.File != path || !strings.Contains(e.Msg, x.says) || !strings.Contains(e.Msg, "not a Windows dump") {
			t.Errorf("%s: %v, want it to say %q", name, err, x.says)
		}
	}
	path := filepath.Join(t.TempDir(), "nowhere.dmp")
	var e *dump.Error
	if _, err := Open(path); !errors.As(err, &e) || e.Code != dump.IO || e.File != path {
		t.Errorf("a file that is not there: %v", err)
	}
}

// A dump that is cut behind its magic is a damaged dump, not another file.
func TestOpenCut(t *testing.T) {
	for _, magic := range []string{"MDMP", "PAGEDU64", "PAGEDUMP", "USERDU64", "USERDUMP"} {
		path := filepath.Join(t.TempDir(), "a.dmp")
		if err := os.WriteFile(path, []byte(magic+"\x00\x00\x00\x00"), 0o666); err != nil {
			t.Fatal(err)
		}
		d, err := Open(path)
		if err == nil {
			d.Close()
			continue
		}
		var e *dump.Error
		if !errors.As(err, &e) || e.File != path || strings.Contains(e.Msg, "not a Windows dump") {
			t.Errorf("%s: %v", magic, err)
		}
	}
}

func TestOpenKinds(t *testing.T) {
	s := fixtures.ReadLine()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Write(s.Kernel)
	w.Close()
	dir := imageDir(t, map[string][]byte{"a.dmp": s.User, "a.Kernel.dmp.gz": packed.Bytes()})
	for name, x := range map[string]struct {
		format dump.Format
		kernel bool
	}{"a.dmp": {dump.FormatMinidump, false}, "a.Kernel.dmp.gz": {dump.FormatKernel64, true}} {
		path := filepath.Join(dir, name)
		d, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if d.Format() != x.format || d.Kernel() != x.kernel || d.Path != path || !strings.HasPrefix(d.String(), path+" (") {
			t.Errorf("%s: %s, kernel %v, %s", name, d.Format(), d.Kernel(), d)
		}
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		in := d.Describe(0)
		if in.Path != path || in.Size != fi.Size() || len(in.SHA256) != 64 || in.Format != x.format || in.Kind == "" {
			t.Errorf("%+v", in)
		}
		if in := d.Describe(fi.Size()); len(in.SHA256) != 64 {
			t.Errorf("a file of just the limit is not hashed: %+v", in)
		}
		if in := d.Describe(fi.Size() - 1); in.SHA256 != "" {
			t.Errorf("a file over the limit is hashed: %+v", in)
		}
		if len(d.Errors()) != 0 {
			t.Errorf("%v", d.Errors())
		}
	}
	got, ok := Companion(filepath.Join(dir, "a.dmp"))
	if !ok || filepath.Base(got) != "a.Kernel.dmp.gz" {
		t.Errorf("companion %q", got)
	}
}
