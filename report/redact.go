package report

import (
	"slices"

	"dumptriage/dump"
	"dumptriage/report/codes"
	"dumptriage/report/redact"
	"dumptriage/triage"
)

// NewRedactor returns what takes people and machines out of one output; see
// Options.Redact.
func NewRedactor() *redact.Redactor { return redact.New(policies) }

// policies says what becomes of each text in the facts that outputs are made from. A
// field that is not here is replaced as a whole.
var policies = map[string]redact.Policy{
	// The host's own files.
	"triage.Input.Path":         redact.Base,
	"triage.Input.Member":       redact.Base,
	"triage.Pairing.User":       redact.Base,
	"triage.Pairing.Kernel":     redact.Base,
	"dump.Error.File":           redact.Base,
	"triage.Module.ImagePath":   redact.Path,
	"triage.Module.SymbolsPath": redact.Path,
	"symbols.Need.File":         redact.Path,
	"symbols.Attempt.Place":     redact.Folder,
	"symbols.Attempt.Path":      redact.Path,
	"symbols.Missing.Tried":     redact.Folder,
	"crash.Blame.Source":        redact.Path,
	"crash.Verdict.Rule":        redact.Path, // file:line of a user's rules, as these are
	"hang.Wait.Rule":            redact.Path,
	"signature.Step.Rule":       redact.Path,
	"bugcheck.Blame.Source":     redact.Path,

	// Paths of the dumped machine, of those who built its programs too.
	"dump.Module.Path":                redact.Path,
	"dump.Region.Image":               redact.Path,
	"dump.CodeView.PDB":               redact.Path,
	"symbols.Name.File":               redact.Path,
	"symbols.Inline.File":             redact.Path,
	"dump.PendingIRP.Driver":          redact.Sentence,
	"bugcheck.IRP.DriverName":         redact.Sentence,
	"bugcheck.IRPLocation.DriverName": redact.Sentence,
	"bugcheck.PowerWorker.DriverName": redact.Sentence,
	"bugcheck.Device.DriverName":      redact.Sentence,

	// What people, programs and their data are called, and what they said.
	"dump.Process.CommandLine":        redact.Command,
	"triage.Input.Comments":           redact.Secret,
	"dump.Thread.Name":                redact.Name,
	"hang.SeriesThread.Name":          redact.Name,
	"dump.Handle.Name":                redact.Object,
	"dump.WaitObject.Name":            redact.Object,
	"dump.PendingIRP.Device":          redact.Object,
	"dump.PendingIRP.File":            redact.Object,
	"dump.Region.File":                redact.Object,
	"report.HexDump.File":             redact.Object,
	"report.MemoryPage.File":          redact.Object,
	"dump.ALPCMessage.Port":           redact.Object,
	"report.ProcessEntry.Environment": redact.Variable,
	"triage.Crash.Assertion":          redact.Secret,
	"crash.Target.Text":               redact.Secret,
	"bugcheck.Parameter.Text":         redact.Secret,
	"bugcheck.ErrorSection.FRU":       redact.Secret,
	"bugcheck.DeviceNode.Instance":    redact.Secret, // it may end with the device's serial number
	"crash.Thrown.Message":            redact.Secret,
	"report.BucketJSON.Note":          redact.Secret,
	"report.ConflictJSON.Here":        redact.Secret, // it may be a note
	"report.ConflictJSON.There":       redact.Secret,
	"managed.Exception.Message":       redact.Secret,
	"managed.Thread.Name":             redact.Name,

	// Sentences of this program, which may quote any of the above.
	"dump.Error.Msg":             redact.Sentence,
	"dump.WaitObject.Note":       redact.Sentence,
	"dump.KernelWait.Note":       redact.Sentence,
	"dump.KernelThread.Note":     redact.Sentence,
	"unwind.Frame.Detail":        redact.Sentence,
	"unwind.Stop.Detail":         redact.Sentence,
	"unwind.Note.Detail":         redact.Sentence,
	"triage.Seam.Note":           redact.Sentence,
	"triage.Callback.Note":       redact.Sentence,
	"triage.Thread.KernelNote":   redact.Sentence,
	"triage.Pairing.Warnings":    redact.Sentence,
	"symbols.Missing.Reason":     redact.Sentence,
	"symbols.Need.Reason":        redact.Sentence,
	"symbols.Attempt.Result":     redact.Sentence,
	"crash.Verdict.Detail":       redact.Sentence,
	"hang.Series.Warnings":       redact.Sentence,
	"report.Stream.Note":         redact.Sentence,
	"report.HexDump.Reason":      redact.Sentence,
	"report.BucketJSON.Related":  redact.Keep,
	"managed.Method.Note":        redact.Sentence,
	"managed.Exception.Note":     redact.Sentence,
	"triage.ManagedRuntime.Note": redact.Sentence,

	// Pseudonyms of numbers, see hideSerials.
	"dump.BugCheck.Hidden": redact.Keep,

	// Words of this program, and names of modules, functions and types.
	"triage.Input.SHA256":                redact.Keep,
	"triage.Input.Kind":                  redact.Keep,
	"triage.Input.Flags":                 redact.Keep,
	"dump.System.NTVersion":              redact.Keep,
	"dump.System.ServicePack":            redact.Keep,
	"dump.System.CPUVendor":              redact.Keep,
	"dump.System.BuildLab":               redact.Keep,
	"dump.Process.Name":                  redact.Keep,
	"triage.CPU.ProcessName":             redact.Keep,
	"report.ProcessEntry.UserMemory":     redact.Keep,
	"dump.Process.How":                   redact.Keep,
	"dump.Process.State":                 redact.Keep,
	"dump.CodeView.Signature":            redact.Keep,
	"dump.KernelThread.TrapFrameRule":    redact.Keep,
	"dump.KernelWait.Class":              redact.Keep,
	"dump.WaitObject.Type":               redact.Keep,
	"dump.ProcessorStack.Kind":           redact.Keep,
	"dump.ThreadRef.Process":             redact.Keep,
	"dump.Handle.Type":                   redact.Keep,
	"dump.VAD.Kind":                      redact.Keep,
	"report.MemoryPage.State":            redact.Keep,
	"report.MemoryPage.Words":            redact.Keep,
	"dump.Error.Stream":                  redact.Keep,
	"triage.Emulation.Module":            redact.Keep,
	"triage.Instruction.Text":            redact.Keep,
	"triage.AdjustedAddress.Kind":        redact.Keep,
	"triage.BugCheck.BrokenDriver":       redact.Keep,
	"bugcheck.Verdict.Name":              redact.Keep,
	"bugcheck.Verdict.Summary":           redact.Keep,
	"bugcheck.Verdict.Steps":             redact.Keep,
	"bugcheck.Blame.Name":                redact.Keep,
	"bugcheck.Blame.Step":                redact.Keep,
	"bugcheck.Blame.Confidence":          redact.Keep,
	"bugcheck.Blob.Name":                 redact.Keep,
	"bugcheck.Blob.Holds":                redact.Keep,
	"bugcheck.ErrorRecord.Notify":        redact.Keep,
	"bugcheck.ErrorSection.Type":         redact.Keep,
	"bugcheck.Parameter.Meaning":         redact.Keep,
	"bugcheck.Parameter.Name":            redact.Keep,
	"bugcheck.DeviceNode.Service":        redact.Keep,
	"bugcheck.HungCPU.Thread":            redact.Keep,
	"bugcheck.PowerWorker.Name":          redact.Keep,
	"crash.Blame.Confidence":             redact.Keep,
	"triage.Seam.Rule":                   redact.Keep,
	"triage.ManagedRuntime.Host":         redact.Keep,
	"managed.Method.Module":              redact.Keep,
	"managed.Method.MVID":                redact.Keep,
	"managed.Method.Type":                redact.Keep,
	"managed.Method.Name":                redact.Keep,
	"managed.Method.TypeArgs":            redact.Keep,
	"managed.Method.Args":                redact.Keep,
	"managed.Method.Params":              redact.Keep,
	"managed.Exception.Type":             redact.Keep,
	"managed.Monitor.Type":               redact.Keep,
	"hang.Object.Type":                   redact.Keep,
	"managed.Exception.Bases":            redact.Keep,
	"triage.Pairing.How":                 redact.Keep,
	"triage.Explanation.Half":            redact.Keep,
	"symbols.Name.Function":              redact.Keep,
	"symbols.Name.Full":                  redact.Keep,
	"symbols.Inline.Function":            redact.Keep,
	"symbols.Missing.Key":                redact.Keep,
	"symbols.FileKey.Dir":                redact.Keep,
	"symbols.FileKey.ID":                 redact.Keep,
	"symbols.FileKey.Name":               redact.Keep,
	"unwind.Note.Module":                 redact.Keep,
	"unwind.Note.Name":                   redact.Keep,
	"unwind.Note.Op":                     redact.Keep,
	"crash.Pattern.Meaning":              redact.Keep,
	"crash.Thrown.Types":                 redact.Keep,
	"crash.Thrown.ByHResult":             redact.Keep,
	"crash.HeapFailure.Name":             redact.Keep,
	"hang.Wait.Roles":                    redact.Keep,
	"signature.Signature.Class":          redact.Keep,
	"signature.Signature.Text":           redact.Keep,
	"signature.Signature.ID":             redact.Keep,
	"signature.Signature.ExactID":        redact.Keep,
	"signature.Signature.DepthIDs":       redact.Keep,
	"signature.Signature.Frames":         redact.Keep,
	"signature.Signature.Stack":          redact.Keep,
	"signature.Step.Name":                redact.Keep,
	"report.Stream.Name":                 redact.Keep,
	"report.WholeSystem.DebuggerData":    redact.Keep,
	"report.WholeSystem.Layout":          redact.Keep,
	"report.WholeSystem.Offsets":         redact.Keep,
	"report.WholeSystem.PageTables":      redact.Keep,
	"report.WholeSystem.PageTablesFrom":  redact.Keep,
	"pdb.Struct.Name":                    redact.Keep,
	"pdb.Struct.Kind":                    redact.Keep,
	"pdb.Field.Name":                     redact.Keep,
	"pdb.Field.Type":                     redact.Keep,
	"report.BucketJSON.ID":               redact.Keep,
	"report.BucketJSON.Text":             redact.Keep,
	"report.BucketJSON.Algorithm":        redact.Keep,
	"report.BucketJSON.Kind":             redact.Keep,
	"report.BucketJSON.Class":            redact.Keep,
	"report.BucketJSON.Change":           redact.Keep,
	"report.BucketJSON.FirstSeen":        redact.Keep,
	"report.BucketJSON.LastSeen":         redact.Keep,
	"report.BucketJSON.State":            redact.Keep,
	"report.BucketJSON.FixedModule":      redact.Keep,
	"report.BucketJSON.FixedVersion":     redact.Keep,
	"report.BucketJSON.RegressedVersion": redact.Keep,
	"report.BucketJSON.MergedInto":       redact.Keep,
	"report.BucketJSON.Clusters":         redact.Keep,
	"report.BucketJSON.Examples":         redact.Base,
	"report.JoinedJSON.Path":             redact.Base,
	"report.ComparedJSON.Older":          redact.Base,
	"report.ComparedJSON.Newer":          redact.Base,
	"report.ComparedJSON.Since":          redact.Keep,
	"report.ComparedJSON.Until":          redact.Keep,
	"report.ConflictJSON.Bucket":         redact.Keep,
	"report.ConflictJSON.What":           redact.Keep,
	"report.ScrubJSON.Output":            redact.Base,
	"report.ScrubJSON.KernelOutput":      redact.Base,
	"report.ScrubJSON.NotScrubbed":       redact.Base,
	"report.ScrubJSON.Differences":       redact.Sentence,
	"report.LoosenedJSON.Kept":           redact.Keep,
	"report.VersionJSON.Version":         redact.Keep,
}

// hide takes people and machines out of facts before they are written. It changes
// them: what they are wanted for besides comes first.
func (opt *Options) hide(facts ...any) {
	if opt.Redact == nil {
		return
	}
	for _, f := range facts {
		switch f := f.(type) {
		case *List:
			f.hideBytes()
			hideSerials(opt.Redact, f.BugCheck, nil)
		case *triage.Incident:
			if f.BugCheck != nil {
				hideSerials(opt.Redact, &f.BugCheck.BugCheck, f)
			}
		}
	}
	if opt.Verdict != nil {
		facts = append(slices.Clone(facts), opt.Verdict)
	}
	opt.Redact.Values(facts...)
}

// hideBytes leaves out the memory that a list shows.
func (l *List) hideBytes() {
	if l.Bytes != nil && len(l.Bytes.Data) > 0 {
		hidden := *l.Bytes
		hidden.Data, hidden.Reason = nil, "redacted"
		l.Bytes = &hidden
	}
}

// hideSerials hides parameters of a bugcheck that are a part of a serial number, and the
// registers by which they were passed.
func hideSerials(r *redact.Redactor, b *dump.BugCheck, inc *triage.Incident) {
	if b == nil {
		return
	}
	params, _ := codes.BugCheckParams(b.Code, b.Parameters)
	for i, p := range params {
		if p.Kind != codes.KindSerial || b.Parameters[i] == 0 {
			continue
		}
		b.Hidden[i] = r.Number("serial", b.Parameters[i])
		if inc == nil {
			continue
		}
		for k := range inc.Threads {
			forget(inc.Threads[k].Kernel, b.Parameters[i])
			forget(inc.Threads[k].Handler, b.Parameters[i])
		}
		for k := range inc.CPUs {
			forget(inc.CPUs[k].Kernel, b.Parameters[i])
		}
	}
}

// forget makes registers that hold a value unknown.
func forget(h *triage.Half, value uint64) {
	if h == nil {
		return
	}
	for reg := range dump.Reg(dump.NumRegs) {
		if v, ok := h.Registers.Get(reg); ok && v == value {
			h.Registers.Forget(reg)
		}
	}
}
