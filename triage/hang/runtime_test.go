package hang

import (
	"testing"

	"dumptriage/managed"
	"dumptriage/triage"
)

// TestFinalizers tells a thread that waits for finalizers to run from one that is held
// up in one.
func TestFinalizers(t *testing.T) {
	wait := []string{"ntdll!NtWaitForMultipleObjects", "kernelbase!WaitForMultipleObjectsEx", "coreclr!fn@15ed30", "coreclr!fn@15ee40"}
	idle := thread(4, wait...)
	held := thread(4, append(wait, "shop!Shop.Log.Finalize")...)
	held.User.Frames[4].Managed = &managed.Method{}
	for _, c := range []struct {
		name      string
		th        triage.Thread
		finalizer uint32
		class     Class
	}{{"idle", idle, 4, ClassIdleWorker}, {"held up", held, 4, ClassObjects}, {"another thread", idle, 8, ClassObjects}} {
		inc := incident(c.th)
		inc.Runtime = &triage.ManagedRuntime{Host: "coreclr.dll", Finalizer: c.finalizer}
		w := Of(inc, builtinRules(t)).Waits[0]
		if w.Class != c.class || w.Has(roleFinalizer) != (c.finalizer == 4) {
			t.Errorf("%s: %s %v, want %s", c.name, w.Class, w.Roles, c.class)
		}
	}
}

// TestWhoStoppedTheOthers: the runtime names the thread that the others wait for.
func TestWhoStoppedTheOthers(t *testing.T) {
	inc := incident(thread(4, "ntdll!NtWaitForSingleObject", "kernelbase!WaitForSingleObjectEx", "coreclr!Thread::RareDisablePreemptiveGC", "shop!Shop.Main"),
		thread(8, "coreclr!fn@1000", "shop!Shop.Load"))
	inc.Runtime = &triage.ManagedRuntime{Host: "coreclr.dll", Suspender: 8}
	v := Of(inc, builtinRules(t))
	if o := v.Waits[0].Owner; v.State != GCSuspension || o == nil || o.ThreadID != 8 || v.Subject != 1 {
		t.Errorf("%s of %d, owner %+v", v.State, v.Subject, o)
	}
}
