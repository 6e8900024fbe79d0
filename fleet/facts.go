package fleet

import (
	"encoding/json"
	"strings"
	"time"

	"dumptriage/dump"
	"dumptriage/report"
)

// Facts are what a fleet keeps of an incident: enough to bucket, to compare, and
// to tell since when and in which versions it happens.
type Facts struct {
	Tool      report.Tool // that made the record
	Batch     report.BatchJSON
	Key       string // of the job, see Key; "" when its files could not be read
	Path      string
	Status    string    // OK, PARTIAL or ERROR
	Reason    string    // the first error, of an ERROR
	Captured  time.Time // zero when the dump does not say
	Process   string    // image name, "" unknown
	Version   string    // of that image, "" unknown
	Arch, OS  string
	Threads   int
	Signature report.SignatureJSON // without a text when there is none
	// Blame is what the verdict holds responsible, "" nothing, and how sure it is.
	Blame, Confidence string
	Modules           []ModuleVersion // on the stack, in its order
}

// ModuleVersion is a build of a module.
type ModuleVersion struct{ Name, Version, CodeID string }

// record is the part of a line that facts are in.
type record struct {
	Tool      report.Tool           `json:"tool"`
	Status    string                `json:"status"`
	Errors    []report.ErrorJSON    `json:"errors"`
	Inputs    []report.InputJSON    `json:"inputs"`
	Batch     *report.BatchJSON     `json:"batch"`
	Process   *report.ProcessJSON   `json:"process"`
	System    *report.SystemJSON    `json:"system_info"`
	Captured  string                `json:"captured"`
	Threads   int                   `json:"thread_count"`
	Modules   []report.ModuleJSON   `json:"modules"`
	Signature *report.SignatureJSON `json:"signature"`
	Analysis  *report.AnalysisJSON  `json:"analysis"`
}

// FactsOf reads the facts from a JSON line, of this run or an earlier one.
func FactsOf(line []byte) (Facts, error) {
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return Facts{}, &dump.Error{Code: dump.BadRecord, Offset: -1, Size: -1, Msg: "not a record of batch", Err: err}
	}
	f := Facts{Tool: r.Tool, Status: r.Status, Threads: r.Threads}
	if r.Batch != nil {
		f.Key, f.Batch = r.Batch.Key, *r.Batch
	}
	if len(r.Inputs) > 0 {
		f.Path = r.Inputs[0].Path
	}
	if r.Status == report.StatusError && len(r.Errors) > 0 {
		f.Reason = r.Errors[0].Message
	}
	f.Captured, _ = time.Parse(time.RFC3339Nano, r.Captured) // zero: not known
	if r.Process != nil {
		f.Process = r.Process.Name
	}
	if r.System != nil {
		f.Arch, f.OS = r.System.CPUArch, r.System.OSVer
		if r.System.NTVersion != "" {
			f.OS = r.System.NTVersion
		}
	}
	if r.Signature != nil {
		f.Signature = *r.Signature
	}
	if r.Analysis != nil {
		f.Blame, f.Confidence = r.Analysis.Blame, r.Analysis.Confidence
	}
	f.versions(r.Modules)
	return f, nil
}

// versions picks the builds that an incident may depend on: of the process's
// image and of the modules on the stack.
func (f *Facts) versions(modules []report.ModuleJSON) {
	byName := map[string]*report.ModuleJSON{}
	for i := range modules {
		m := &modules[i]
		name := strings.ToLower(m.Filename)
		if f.Process == "" && m.Kind == "user" && strings.HasSuffix(name, ".exe") {
			f.Process = m.Filename
		}
		if strings.EqualFold(m.Filename, f.Process) {
			f.Version = m.Version
		}
		stem := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".dll"), ".sys")
		byName[stem] = m
	}
	seen := map[string]bool{}
	for _, frame := range f.Signature.Stack {
		module := frame
		if at := strings.IndexAny(frame, "!+"); at >= 0 {
			module = frame[:at]
		}
		if m := byName[module]; m != nil && !seen[module] {
			seen[module] = true
			f.Modules = append(f.Modules, ModuleVersion{strings.ToLower(m.Filename), m.Version, m.CodeID})
		}
	}
}
