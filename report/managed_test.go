package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"dumptriage/dump"
	"dumptriage/managed"
	"dumptriage/symbols"
	"dumptriage/triage"
	"dumptriage/unwind"
)

// managedIncident has a thread in .NET code that handles an exception.
func managedIncident() *triage.Incident {
	jit := func(ip uint64, m managed.Method) triage.Frame {
		f := frame(0xd67c9fe400, ip, nil, "", 0, unwind.MethodCodeHeap)
		f.Managed = &m
		if m.Name != "" {
			f.Name = symbols.Name{Function: m.FullName(), Full: m.Declaration(), Offset: ip - m.Start, Source: symbols.SourceCLR}
		}
		return f
	}
	fail := managed.Method{Kind: managed.KindJIT, Source: managed.SourceContracts, Start: 0x7000, Module: "Shop.dll", MVID: "01020304-0506-0708-0910-111213141516",
		Token: 0x06000010, Type: "Shop.Box`1", Name: "Pay", TypeArgs: []string{"System.Guid"}, Params: []string{"Int32", "!0"}, HasParams: true}
	return &triage.Incident{
		System: dump.System{Arch: dump.AMD64, Major: 10, Build: 19041}, Crashing: -1,
		Runtime: &triage.ManagedRuntime{Host: "coreclr.dll", Source: managed.SourceContracts},
		Threads: []triage.Thread{{
			Thread: dump.Thread{ID: 36, Name: "cashier"},
			User: &triage.Half{Registers: registers(dump.AMD64, 0x7024, 0xd67c9fe400), Frames: []triage.Frame{
				jit(0x7024, fail),
				jit(0x8000, managed.Method{Kind: managed.KindJIT, Source: managed.SourceContracts, Start: 0x7f00, Module: "Shop.dll", Token: 0x06000011, Note: "the metadata of Shop.dll is not in the dump"}),
				jit(0x9000, managed.Method{Kind: managed.KindStub, Source: managed.SourceContracts}),
			}},
			Managed: &managed.Thread{ID: 2, OSID: 36, Name: "cashier", Exception: &managed.Exception{
				Type: "System.InvalidOperationException", Bases: []string{"System.SystemException"}, Message: "card 4711\nof Ann", HResult: 0x80131509, HasHR: true, Address: 0x2000,
				Inner: []managed.Exception{{Type: "System.IO.IOException", Address: 0x3000}},
				Stack: []managed.StackFrame{{IP: 0x7020, Method: &fail}, {IP: 0x123}},
			}},
		}},
	}
}

func TestManagedText(t *testing.T) {
	out := renderText(t, managedIncident(), testOptions)
	for _, line := range []string{
		".NET:    coreclr.dll, by its own contract descriptor\n",
		"   .NET exception: System.InvalidOperationException: card 4711 of Ann (0x80131509)\n",
		"      at Shop!Shop.Box`1[System.Guid].Pay(Int32, !0)\n      at 0x00000000`00000123\n",
		"   inner exception: System.IO.IOException\n",
		" Shop!Shop.Box`1.Pay+0x24\n",
		" Shop!06000011+0x100\n",
		" 0x00000000`00009000 (.NET stub)\n",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in\n%s", line, out)
		}
	}
}

func TestManagedJSON(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, managedIncident(), testOptions); err != nil {
		t.Fatal(err)
	}
	var d Document
	if err := json.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if d.ManagedRuntime == nil || d.ManagedRuntime.Module != "coreclr.dll" || d.ManagedRuntime.Source != "contracts" {
		t.Errorf("%+v", d.ManagedRuntime)
	}
	f := d.Threads[0].Frames[0]
	want := ManagedFrame{Kind: "jit", Module: "Shop.dll", MVID: "01020304-0506-0708-0910-111213141516", Type: "Shop.Box`1", Method: "Pay", Token: "06000010", Source: "contracts"}
	if f.Managed == nil || *f.Managed != want || f.Function != "Shop.Box`1.Pay" || f.FunctionFull != "Shop.Box`1[System.Guid].Pay(Int32, !0)" || f.SymbolSource != "clr" || f.Unwind != "code_heap" {
		t.Errorf("%+v, %+v", f, f.Managed)
	}
	m := d.Threads[0].Managed
	if m == nil || *m.ThreadID != 2 || m.Exception.Message != "card 4711\nof Ann" || m.Exception.HResult != "0x80131509" || m.Exception.LastThrown ||
		len(m.Exception.Inner) != 1 || m.Exception.Inner[0].Type != "System.IO.IOException" || len(m.Exception.Stack) != 2 || m.Exception.Stack[0].Managed.Token != "06000010" {
		t.Errorf("%+v, %+v", m, m.Exception)
	}
}

// What an exception says, and what a thread is called, is people's; names of types and
// methods are not.
func TestManagedRedacted(t *testing.T) {
	opt := testOptions
	opt.Redact = NewRedactor()
	out := renderText(t, managedIncident(), opt)
	for _, secret := range []string{"4711", "Ann", "cashier"} {
		if strings.Contains(out, secret) {
			t.Errorf("%q in\n%s", secret, out)
		}
	}
	if !strings.Contains(out, "System.InvalidOperationException") || !strings.Contains(out, "Shop!Shop.Box`1.Pay") {
		t.Errorf("too much is gone:\n%s", out)
	}
}
