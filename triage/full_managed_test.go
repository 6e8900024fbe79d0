package triage

import (
	"testing"

	"dumptriage/fixtures/machine"
	"dumptriage/symbols"
)

// TestManagedInFullDump: the .NET methods of one process of a full dump have their
// names, and its thread the exception that it threw, as in a user dump of it.
func TestManagedInFullDump(t *testing.T) {
	names := []string{"KERNELBASE.dll!RaiseException", "coreclr.dll!IL_Throw", "System.Private.CoreLib.dll!System.ThrowHelper.ThrowInvalidOperation", "Shop.dll!Shop.Cart.Pay",
		"Shop.dll!Shop.Program.Main", "coreclr.dll!CallDescrWorkerInternal", "coreclr.dll!coreclr_execute_assembly", "shop.exe!main"}
	for _, v := range x64Machines() {
		m := machine.BuildManaged(*v)
		want := m.Processes[len(m.Processes)-1].Threads[0]
		for name, opt := range map[string]Options{"named": {Process: "shop"}, "all": {AllProcesses: true}} {
			d := openBytes(t, "MEMORY.DMP", m.Dump(machine.BitmapFull))
			inc := analyze(t, nil, d, opt)
			var th *Thread
			for i := range inc.Threads {
				if inc.Threads[i].ID == machine.ManagedThread {
					th = &inc.Threads[i]
				}
			}
			if th == nil {
				t.Fatalf("%s: %s: no thread", v.Name, name)
			}
			checkThread(t, v.Name, th, want)
			for i := range th.User.Frames {
				f := &th.User.Frames[i]
				if got := f.ModuleName() + "!" + f.Name.Function; i >= len(names) || got != names[i] || (f.Name.Source == symbols.SourceCLR) != (i >= 2 && i <= 4) {
					t.Errorf("%s: %s: frame %d is %s", v.Name, name, i, got)
				}
			}
			if th.Managed == nil || th.Managed.Exception == nil || th.Managed.Exception.Message != "The cart is empty" {
				t.Errorf("%s: %s: %+v", v.Name, name, th.Managed)
			}
			if one := inc.Runtime != nil && inc.Runtime.Host == "coreclr.dll"; one != (name == "named") { // of --all the incident is another process's
				t.Errorf("%s: %s: runtime %+v", v.Name, name, inc.Runtime)
			}
			listed := []Thread{{Thread: th.Thread}}
			if r := AddManaged(d, d.FindProcesses("shop.exe")[0], listed); r == nil || listed[0].Managed == nil {
				t.Errorf("%s: listed: %+v, %+v", v.Name, r, listed[0].Managed)
			}
		}
	}
}
