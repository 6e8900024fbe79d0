package hang

import (
	"fmt"
	"testing"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/triage"
)

// What is advised must be what would help: no second dump for a deadlock that is
// proved, no full dump for locks that record no owner.
func TestNext(t *testing.T) {
	srw := func() Wait {
		return Wait{Class: ClassSRW, Confidence: High, Object: Object{Kind: KindSRW, Value: 0x10, Confidence: High}}
	}
	for _, c := range []struct {
		name  string
		waits []Wait
		want  string
	}{
		{"a deadlock", []Wait{waitsFor(0x10, 1, High), waitsFor(0x20, 0, High)}, "[]"},
		{"an inferred one", []Wait{waitsFor(0x10, 1, Low), waitsFor(0x20, 0, Low)}, "[full_memory second_dump]"},
		{"a lock without its owner", []Wait{waitsFor(0x10, -1, ""), waitsFor(0x10, -1, "")}, "[full_memory second_dump]"},
		{"a lock that records none", []Wait{srw(), srw()}, "[second_dump]"},
		{"another process", []Wait{does(ClassProcess)}, "[other_process second_dump]"},
		{"behind a call", []Wait{waitsFor(0x10, 1, High), does(ClassALPC)}, "[other_process second_dump]"},
		{"input", []Wait{does(ClassIO)}, "[kernel_half second_dump]"},
		{"idle", []Wait{does(ClassIdleWorker)}, "[while_hanging]"},
		{"nothing", nil, "[]"},
	} {
		var kinds []NextKind
		for _, n := range judged(c.waits...).Next {
			kinds = append(kinds, n.Kind)
		}
		if fmt.Sprint(kinds) != c.want {
			t.Errorf("%s: %v, want %s", c.name, kinds, c.want)
		}
	}
}

// Images are missed where stacks do not tell, those of most threads first.
func TestNextImages(t *testing.T) {
	module := func(name string, image symbols.ImageState) *triage.Module {
		return &triage.Module{Module: &dump.Module{Path: name, Base: 0x1000}, Image: image}
	}
	app, sys, have := module("app.exe", symbols.ImageMissing), module("ntdll.dll", symbols.ImageMissing), module("kernelbase.dll", symbols.ImageMissing+1)
	half := func(mods ...*triage.Module) *triage.Half {
		h := &triage.Half{}
		for _, m := range mods {
			h.Frames = append(h.Frames, triage.Frame{Module: m})
		}
		return h
	}
	inc := incident()
	inc.Threads = []triage.Thread{{User: half(app, sys)}, {User: half(sys, have)}, {User: half(have, have, have, have, app)}, {}, {User: half(app)}}
	v := (&analysis{inc: inc, waits: []Wait{{}, {}, {}, {}, does(ClassRunning)}}).verdict()
	if len(v.Next) != 2 || v.Next[0].Kind != NextImages || len(v.Next[0].Modules) != 2 || v.Next[0].Modules[0] != sys || v.Next[0].Modules[1] != app {
		t.Errorf("%+v", v.Next)
	}
}

// Who is to blame for a hang has no name but an export's: symbols would give lines.
func TestNextSymbols(t *testing.T) {
	app := &triage.Module{Module: &dump.Module{Path: "app.exe", Base: 0x1000}}
	for source, want := range map[symbols.SourceKind]string{symbols.SourceExport: "[symbols]", symbols.SourcePdata: "[symbols]", symbols.SourcePDB: "[]"} {
		half := func() *triage.Half {
			return &triage.Half{Frames: []triage.Frame{{}, {Module: app, Name: symbols.Name{Function: "f", Source: source}}}}
		}
		inc := incident()
		inc.Threads = []triage.Thread{{Thread: dump.Thread{ID: 100}, User: half()}, {Thread: dump.Thread{ID: 104}, User: half()}}
		a, b := waitsFor(0x10, 1, High), waitsFor(0x20, 0, High)
		a.Caller, b.Caller = 1, 1
		var kinds []NextKind
		for _, n := range (&analysis{inc: inc, waits: []Wait{a, b}}).verdict().Next {
			kinds = append(kinds, n.Kind)
		}
		if fmt.Sprint(kinds) != want {
			t.Errorf("%v: %v, want %s", source, kinds, want)
		}
	}
}
