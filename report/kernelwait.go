package report

import (
	"fmt"
	"strings"

	"dumptriage/dump"
	"dumptriage/report/codes"
	"dumptriage/triage"
)

// KernelWaitJSON is what the kernel's structures say that a thread waits for.
// Addresses are of kernel objects.
type KernelWaitJSON struct {
	Class   string           `json:"class,omitempty" jsonschema_description:"see docs/triage.md"`
	Objects []WaitObjectJSON `json:"objects,omitempty" jsonschema_description:"in the order of the wait blocks"`
	All     bool             `json:"all,omitempty" jsonschema_description:"all objects are waited for, not any"`
	IRPs    []IRPJSON        `json:"irps,omitempty" jsonschema_description:"requests that the thread made and no driver has finished"`
	Message *ALPCMessageJSON `json:"alpc_message,omitempty"`
	Note    string           `json:"note,omitempty" jsonschema_description:"what of it is not in the dump"`
}

// WaitObjectJSON is an object that is waited for.
type WaitObjectJSON struct {
	Address string         `json:"address"`
	Type    string         `json:"type,omitempty"`
	Name    string         `json:"name,omitempty"`
	Owner   *ThreadRefJSON `json:"owner,omitempty" jsonschema_description:"the thread that holds it, or is it"`
	Process *ThreadRefJSON `json:"process,omitempty" jsonschema_description:"the process that it is"`
	Own     bool           `json:"own,omitempty" jsonschema_description:"part of the waiting thread: its timer, its semaphore"`
	Note    string         `json:"note,omitempty" jsonschema_description:"why something is not known"`
}

// ThreadRefJSON names a thread, or without thread_id a process.
type ThreadRefJSON struct {
	ProcessID   *uint32 `json:"process_id,omitempty"`
	ThreadID    *uint32 `json:"thread_id,omitempty"`
	ProcessName string  `json:"process_name,omitempty"`
	ETHREAD     string  `json:"ethread,omitempty"`
	EPROCESS    string  `json:"eprocess,omitempty"`
}

// IRPJSON is a request to a driver.
type IRPJSON struct {
	Address string `json:"address"`
	Major   string `json:"major,omitempty"`
	Driver  string `json:"driver,omitempty"`
	Device  string `json:"device,omitempty"`
	File    string `json:"file,omitempty"`
}

// ALPCMessageJSON is a message whose reply is waited for.
type ALPCMessageJSON struct {
	Address string         `json:"address"`
	Port    string         `json:"port,omitempty"`
	Server  *ThreadRefJSON `json:"server,omitempty" jsonschema_description:"the thread that took it; absent while nobody has"`
	Owner   *ThreadRefJSON `json:"owner,omitempty" jsonschema_description:"the process that serves the port"`
}

func kernelWaitJSON(w *dump.KernelWait, h hexer) *KernelWaitJSON {
	if w == nil {
		return nil
	}
	j := &KernelWaitJSON{Class: w.Class, All: w.All, Note: w.Note}
	for i := range w.Objects {
		o := &w.Objects[i]
		j.Objects = append(j.Objects, WaitObjectJSON{h.addr(o.Address), o.Type, o.Name, threadRefJSON(o.Owner, h), threadRefJSON(o.Process, h), o.Own, o.Note})
	}
	for i := range w.IRPs {
		p := &w.IRPs[i]
		j.IRPs = append(j.IRPs, IRPJSON{h.addr(p.Address), codes.IRPMajor(p.Major), p.Driver, p.Device, p.File})
	}
	if m := w.Message; m != nil {
		j.Message = &ALPCMessageJSON{h.addr(m.Address), m.Port, threadRefJSON(m.Server, h), threadRefJSON(m.Owner, h)}
	}
	return j
}

func threadRefJSON(r *dump.ThreadRef, h hexer) *ThreadRefJSON {
	if r == nil {
		return nil
	}
	j := &ThreadRefJSON{ProcessName: r.Process, ETHREAD: h.known(r.ETHREAD), EPROCESS: h.known(r.EPROCESS)}
	if r.PID != 0 {
		j.ProcessID = &r.PID
	}
	if r.TID != 0 {
		j.ThreadID = &r.TID
	}
	return j
}

// basicWait is the wait of a thread of a kernel dump, where no verdict has been
// asked for that would say more.
func basicWait(t *triage.Thread) *WaitJSON {
	if t.KernelInfo == nil || t.KernelInfo.Wait == nil || t.KernelInfo.Wait.Class == "" {
		return nil
	}
	w := t.KernelInfo.Wait
	j := &WaitJSON{Class: w.Class, Object: kernelWaitText(w), Detail: w.Note, Kernel: true, WaitAll: w.All}
	if o := w.Owner(); o != nil && o.TID != 0 {
		j.OwnerThreadID = &o.TID
	}
	return j
}

// kernelWaitText says what is waited for, "" when nothing of it is known.
func kernelWaitText(w *dump.KernelWait) string {
	if m := w.Message; m != nil {
		s := "the reply to an ALPC message"
		if m.Port != "" {
			s += " on port " + m.Port
		}
		if m.Owner != nil {
			s += " of " + refText(m.Owner)
		}
		if m.Server == nil {
			s += ", which nobody has taken"
		}
		return s
	}
	if w.Class == "io" && len(w.IRPs) > 0 {
		return irpText(&w.IRPs[0])
	}
	var names []string
	for i := range w.Objects {
		if o := &w.Objects[i]; !o.Own && (w.Class != "resource" || o.Type == "ERESOURCE") {
			names = append(names, waitObjectText(o))
		}
	}
	if w.All {
		return strings.Join(names, " and ")
	}
	return strings.Join(names, " or ")
}

func waitObjectText(o *dump.WaitObject) string {
	switch {
	case o.Type == "thread" && o.Owner != nil:
		return "the end of thread " + refText(o.Owner)
	case o.Type == "process" && o.Process != nil:
		return "the end of process " + refText(o.Process)
	}
	name := o.Type
	if name == "" {
		name = "object"
	}
	if o.Name != "" {
		name += " " + o.Name
	}
	name += " at " + kernelAddress(o.Address)
	if o.Note != "" {
		name += " (" + o.Note + ")"
	}
	return name
}

// irpText names a request by what it asks of which driver.
func irpText(p *dump.PendingIRP) string {
	s := codes.IRPMajor(p.Major)
	if p.Driver != "" {
		s += " of " + p.Driver
	}
	if p.Device != "" {
		s += ", device " + p.Device
	}
	if p.File != "" {
		s += ", file " + p.File
	}
	return s
}

// refText names a thread as the debugger does, or a process, with the program.
func refText(r *dump.ThreadRef) string {
	s := ""
	if r.PID != 0 {
		s = fmt.Sprintf("%x", r.PID)
	}
	if r.TID != 0 {
		s += fmt.Sprintf(".%x", r.TID)
	}
	return joinWith(" ", s, inBrackets(r.Process))
}

// kernelWait is the line below a thread's header.
func (t *text) kernelWait(w *dump.KernelWait) {
	s := kernelWaitText(w)
	if s == "" && w.Note == "" {
		return
	}
	line := "   waits for " + s
	if s == "" {
		line = "   what it waits for: " + w.Note
	}
	if o := w.Owner(); o != nil && w.Class != "thread" {
		line += ", held by " + refText(o)
	}
	t.line("", "%s", clean(line))
}
