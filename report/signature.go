package report

import (
	"fmt"

	"dumptriage/triage/signature"
	"dumptriage/triage/verdict"
)

// SignatureJSON names what happened, independent of load addresses. rtl_sum and
// crc32 are the exception: they hash addresses, for comparison with tools that do.
type SignatureJSON struct {
	Text      string `json:"text" jsonschema_description:"class and frames, at most 255 bytes"`
	ID        string `json:"id" jsonschema_description:"the bucket: 64 bits of SHA-256 of text"`
	Algorithm string `json:"algorithm,omitempty"`
	Kind      string `json:"kind,omitempty" jsonschema_description:"crash, bugcheck, hang or snapshot"`
	Class     string `json:"class,omitempty"`
	ExactID   string `json:"exact_id,omitempty" jsonschema_description:"128 bits of SHA-256 of kind, class and stack, with functions of the system called as without debug information"`
	// DepthIDs are of 1, 2, 3, 5 and all frames of the application.
	DepthIDs []string      `json:"depth_ids,omitempty" jsonschema_description:"of the first 1, 2, 3, 5 and all frames of the application, without the class"`
	Frames   []string      `json:"frames,omitempty" jsonschema_description:"in text"`
	Stack    []string      `json:"stack,omitempty" jsonschema_description:"every canonical frame, innermost first, recursion collapsed"`
	Ignored  []IgnoredJSON `json:"ignored,omitempty"`
	Steps    []StepJSON    `json:"steps,omitempty" jsonschema_description:"what became of every frame (triage --explain-signature)"`
	RTLSum   string        `json:"rtl_sum,omitempty"`
	CRC32    string        `json:"crc32,omitempty"`
}

// IgnoredJSON is a frame that a signature left out. Equal ones are counted.
type IgnoredJSON struct {
	Frame  string `json:"frame"`
	Reason string `json:"reason"`
	Count  int    `json:"count,omitempty" jsonschema_description:"when there are several"`
}

// StepJSON is one frame and its fate.
type StepJSON struct {
	ThreadsIndex int    `json:"threads_index"`
	Kernel       bool   `json:"kernel,omitempty" jsonschema_description:"a frame of kernel_frames"`
	Frame        int    `json:"frame"`
	Name         string `json:"name,omitempty"`
	Fate         string `json:"fate" jsonschema:"enum=kept,enum=prefix,enum=sentinel,enum=above,enum=irrelevant,enum=below,enum=recursion,enum=scan,enum=unproven,enum=capture,enum=no_module"`
	Rule         string `json:"rule,omitempty" jsonschema_description:"file:line"`
}

func signatureJSON(v *verdict.Verdict, explain bool) *SignatureJSON {
	if v == nil || v.Signature == nil {
		return nil
	}
	s := v.Signature
	j := &SignatureJSON{Text: s.Text, ID: s.ID, Algorithm: signature.Algorithm, Kind: string(s.Kind), Class: s.Class, ExactID: s.ExactID,
		DepthIDs: s.DepthIDs, Frames: s.Frames, Stack: s.Stack, Ignored: ignoredJSON(s.Steps)}
	if len(s.Steps) > 0 {
		j.RTLSum, j.CRC32 = hex32(s.RTLSum), hex32(s.CRC32)
	}
	if explain {
		for _, st := range s.Steps {
			j.Steps = append(j.Steps, StepJSON{st.Thread, st.Kernel, st.Frame, st.Name, string(st.Fate), st.Rule})
		}
	}
	return j
}

// ignoredJSON lists what is not in the text and why, but for the frames behind
// its last, which stack tells.
func ignoredJSON(steps []signature.Step) []IgnoredJSON {
	var out []IgnoredJSON
	index := map[IgnoredJSON]int{}
	for _, s := range steps {
		switch s.Fate {
		case signature.FateKept, signature.FatePrefix, signature.FateBelow:
			continue
		}
		key := IgnoredJSON{Frame: s.Name, Reason: string(s.Fate)}
		at, seen := index[key]
		if !seen {
			index[key] = len(out)
			out = append(out, key)
			continue
		}
		out[at].Count = max(out[at].Count, 1) + 1
	}
	return out
}

// signature writes the line of the signature and its bucket.
func (t *text) signature(v *verdict.Verdict) {
	if v == nil || v.Signature == nil {
		return
	}
	t.line("", "Signature: %s", clean(v.Signature.Text))
	t.line("", "Bucket: %s %s", v.Signature.ID, signature.Algorithm)
}

// explainSignature writes the fate of every frame.
func (t *text) explainSignature(opt Options) {
	if !opt.ExplainSignature || opt.Verdict == nil || opt.Verdict.Signature == nil {
		return
	}
	s := opt.Verdict.Signature
	t.line("", "")
	t.line(sgrBold, "How the signature was made")
	thread := -1
	for _, st := range s.Steps {
		if st.Thread != thread {
			thread = st.Thread
			t.line("", "%-4s %-11s %-20s %s", "#", "fate", "rule", "frame")
		}
		name := st.Name
		if name == "" {
			name = "-"
		}
		number := fmt.Sprint(st.Frame)
		if st.Kernel {
			number = "k" + number
		}
		t.line("", "%-4s %-11s %-20s %s", number, st.Fate, clean(st.Rule), clean(name))
	}
	t.line("", "stack: %s", s.ExactID)
	for i, n := range signature.Depths {
		of := fmt.Sprintf("first %d of the application's frames", n)
		if n == 0 {
			of = "all of the application's frames"
		}
		t.line("", "%s: %s", of, s.DepthIDs[i])
	}
}
