package report

import (
	"bytes"
	"testing"
	"time"

	"dumptriage/dump"
	"dumptriage/triage"
)

// lists makes one list of every kind from an incident.
func lists(inc *triage.Incident) []*List {
	base := List{Inputs: inc.Inputs, Errors: inc.Errors, System: &inc.System, Process: &inc.Process, ThreadCount: -1, ModuleCount: -1}
	var out []*List
	for _, kind := range []ListKind{ListInfo, ListModules, ListDrivers, ListThreads, ListHandles, ListMemory, ListStreams} {
		l := base
		l.Kind = kind
		switch kind {
		case ListInfo:
			l.Captured = time.Date(2025, 8, 31, 12, 30, 15, 0, time.UTC)
			l.ThreadCount, l.ModuleCount = len(inc.Threads), len(inc.Modules)
			if inc.BugCheck != nil {
				l.BugCheck = &inc.BugCheck.BugCheck
			}
			if inc.Crash != nil {
				l.Crash = &inc.Crash.Exception
			}
		case ListModules, ListDrivers:
			l.Modules, l.Unloaded = inc.Modules, inc.Unloaded
		case ListThreads:
			l.Threads = inc.Threads
		case ListHandles:
			l.Handles = append([]dump.Handle{{Value: 4, Type: "Event", Access: 0x1f0003}}, inc.Handles...)
		case ListMemory:
			l.Regions = []dump.Region{
				{Base: 0x10000, Size: 0x1000, AllocationBase: 0x10000, State: 0x1000, Protect: 0x4, Type: 0x20000},
				{Base: 0x11000, Size: 0x1000, AllocationBase: 0x10000, State: 0x1000, Protect: 0x104, Type: 0x20000},
				{Base: 0x12000, Size: 0xee000, State: 0x10000},
				{Base: 0x7ffe63871000, Size: 0x1000, AllocationBase: 0x7ffe63870000, State: 0x1000, Protect: 0x20, Type: 0x1000000},
			}
			l.Ranges = []dump.Range{{VA: 0x10000, Size: 0x2000, Off: 0x4000}}
		case ListStreams:
			l.Streams = []Stream{{Type: 3, HasType: true, Name: "ThreadListStream", Offset: 0x100, Size: 52},
				{Type: 0x4767, HasType: true, Offset: 0x200, Size: 8, Note: "unknown type"}, {Name: "TRIAGE_DUMP64", Offset: 0x2000, Size: 0x100}, {Name: "Memory", Offset: 0x3000, Size: -1}}
		}
		out = append(out, &l)
	}
	return out
}

func TestListGoldens(t *testing.T) {
	var all, text bytes.Buffer
	for _, inc := range []*triage.Incident{seedIncident(), bugCheckIncident()} {
		for _, l := range lists(inc) {
			var b bytes.Buffer
			if err := ListJSON(&b, l, testOptions); err != nil {
				t.Fatal(err)
			}
			validate(t, b.Bytes())
			all.Write(b.Bytes())
			text.WriteString("==== " + string(l.Kind) + "\n")
			if err := ListText(&text, l, testOptions); err != nil {
				t.Fatal(err)
			}
		}
	}
	golden(t, "lists.jsonl", all.Bytes())
	golden(t, "lists.txt", text.Bytes())
}

// The threads verb prints no frames, drivers only kernel modules, and an empty
// list is a list.
func TestListJSON(t *testing.T) {
	inc := seedIncident()
	for _, l := range lists(inc) {
		var b bytes.Buffer
		if err := ListJSON(&b, l, testOptions); err != nil {
			t.Fatal(err)
		}
		doc := validate(t, b.Bytes())
		switch l.Kind {
		case ListThreads:
			checkAll(t, doc, map[string]any{"threads.0.thread_id": 0x5920, "threads.0.frames": []any{}, "threads.2.thread_name": ".NET Finalizer"}, dotted)
		case ListDrivers:
			checkAll(t, doc, map[string]any{"modules.0.filename": "ntoskrnl.exe", "modules.1": nil, "drivers": nil}, dotted)
		case ListMemory:
			checkAll(t, doc, map[string]any{
				"regions.1.protect": "PAGE_READWRITE | PAGE_GUARD", "regions.1.state": "MEM_COMMIT", "regions.1.type": "MEM_PRIVATE",
				"regions.2.protect": nil, "regions.2.state": "MEM_FREE", "regions.2.allocation_base": nil,
				"regions.3.protect": "PAGE_EXECUTE_READ", "regions.3.type": "MEM_IMAGE", "ranges.0.offset": 0x4000,
			}, dotted)
		case ListStreams:
			checkAll(t, doc, map[string]any{"streams.0.type": 3, "streams.2.type": nil, "streams.2.size": 0x100, "streams.3.size": nil, "streams.3.offset": 0x3000}, dotted)
		case ListInfo:
			checkAll(t, doc, map[string]any{"captured": "2025-08-31T12:30:15Z", "thread_count": 3, "module_count": 4}, dotted)
		}
		if l.Kind == ListHandles {
			checkAll(t, doc, map[string]any{"handles.0.type_name": "Event", "handles.0.object_name": nil}, dotted)
			for _, c := range []struct {
				handles []dump.Handle
				want    any
			}{{[]dump.Handle{}, []any{}}, {nil, nil}} { // no handles, and not known
				l.Handles = c.handles
				b.Reset()
				if err := ListJSON(&b, l, testOptions); err != nil {
					t.Fatal(err)
				}
				checkAll(t, validate(t, b.Bytes()), map[string]any{"handles": c.want}, dotted)
			}
		}
	}
}
