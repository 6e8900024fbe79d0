package metadata

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dumptriage/pdata"
)

// openAssembly opens an assembly file and its metadata.
func openAssembly(t testing.TB, file string) *Metadata {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	im, err := pdata.OpenFile(bytes.NewReader(b), int64(len(b)), file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := FindInImage(im)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Mono.Cecil reads the same of our assemblies, and printed testdata/*.txt by
// testdata/oracle.cs.
func TestCecil(t *testing.T) {
	for _, name := range []string{"names", "odd"} {
		m := openAssembly(t, filepath.Join("testdata", name+".dll"))
		golden, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		if bad, n := compareCecil(t, m, string(golden)); bad > 0 || n < 15 {
			t.Errorf("%s: %d of %d lines differ", name, bad, n)
		}
	}
}

// METADATA_ORACLE is a folder of assemblies, each with what oracle.cs printed of it in a
// .txt beside it: for comparing with large ones, which the project does not hold.
func TestCecilLarge(t *testing.T) {
	dir := os.Getenv("METADATA_ORACLE")
	if dir == "" {
		t.Skip("METADATA_ORACLE is not set")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.txt"))
	bad, lines, methods := 0, 0, uint32(0)
	for _, f := range files {
		golden, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		m := openAssembly(t, strings.TrimSuffix(f, ".txt"))
		b, n := compareCecil(t, m, string(golden))
		bad, lines, methods = bad+b, lines+n, methods+m.Rows(0x06000000)
	}
	t.Logf("%d assemblies, %d methods, %d lines, %d differ", len(files), methods, lines, bad)
	if bad > 0 || len(files) == 0 {
		t.Errorf("%d of %d lines differ, in %d assemblies", bad, lines, len(files))
	}
}

// compareCecil compares line by line, and that no method or type is missing.
func compareCecil(t *testing.T, m *Metadata, golden string) (bad, lines int) {
	t.Helper()
	ref := 0
	var seen [3]uint32 // TypeRef, TypeDef, MethodDef
	for line := range strings.Lines(golden) {
		line = strings.TrimSuffix(line, "\n")
		var token uint32
		lines++
		got := ""
		switch word, _, _ := strings.Cut(line, " "); word {
		case "module":
			name, _ := m.Module()
			mvid, err := m.MVID()
			got = fmt.Sprintf("module %s %s", name, mvid)
			if err != nil {
				t.Error(err)
			}
		case "assembly":
			a, _ := m.Assembly()
			got = "assembly " + a.String()
		case "ref":
			refs, _ := m.AssemblyRefs()
			if ref < len(refs) {
				got = "ref " + refs[ref].String()
			}
			ref++
		default:
			fmt.Sscanf(word, "%x", &token)
			got = cecilLine(m, token)
			switch token >> 24 {
			case 1, 2:
				seen[token>>24-1]++
			case 6:
				seen[2]++
			}
		}
		if got != line {
			if bad++; bad < 10 {
				t.Errorf("\n got %s\nwant %s", got, line)
			}
		}
	}
	for i, table := range []uint32{0x01000000, 0x02000000, 0x06000000} {
		if seen[i] != m.Rows(table) {
			t.Errorf("the other reader has %d rows of %#x, ours %d", seen[i], table, m.Rows(table))
		}
	}
	return bad, lines
}

// cecilLine says what oracle.cs says of a token.
func cecilLine(m *Metadata, token uint32) string {
	switch table(token >> 24) {
	case tTypeDef, tTypeSpec:
		name, err := m.Type(token)
		return fmt.Sprintf("%08x type %s%s", token, name, problem(err))
	case tTypeRef:
		name, err := m.Type(token)
		return fmt.Sprintf("%08x type %s %s%s", token, name, scope(name.Assembly), problem(err))
	}
	method, err := m.Method(token)
	if table(token>>24) == tMethodSpec {
		return fmt.Sprintf("%08x spec %s <%s>%s", token, method.FullName(), strings.Join(method.TypeArgs, ","), problem(err))
	}
	kind := "instance"
	if method.Static {
		kind = "static"
	}
	line := fmt.Sprintf("%08x %x %s %d %s %s%s%s", token, method.RVA, kind, method.Arity, method, method.Returns, problem(err), problem(method.Signature))
	if table(token>>24) == tMemberRef {
		line += " " + scope(method.Assembly)
	}
	return line
}

func problem(err error) string {
	if err == nil {
		return ""
	}
	return " ! " + err.Error()
}

func scope(assembly string) string {
	if assembly == "" {
		return "-"
	}
	return assembly
}
