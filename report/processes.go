package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dumptriage/dump"
	"dumptriage/triage"
)

// WholeSystem says how a full kernel dump is read.
type WholeSystem struct {
	Pages          uint64 // of 4 KiB that the file holds
	Layout         string // runs, bitmap, ranges
	PageTables     string // their kind
	PageTablesFrom string // header, self_map
	DebuggerData   string // where KDDEBUGGER_DATA64 was found, "" nowhere
	Offsets        string // how the places of fields are known: symbols, table, calibrated; "" not
	Processes      int
}

// WholeSystemJSON is a WholeSystem.
type WholeSystemJSON struct {
	Pages          uint64 `json:"pages" jsonschema_description:"of 4 KiB that the file holds"`
	Layout         string `json:"layout,omitempty" jsonschema_description:"how the file lists its pages: runs, bitmap, ranges"`
	PageTables     string `json:"page_tables,omitempty"`
	PageTablesFrom string `json:"page_tables_from,omitempty" jsonschema_description:"header, self_map, or header, not proved"`
	DebuggerData   string `json:"debugger_data,omitempty" jsonschema_description:"where the kernel's data block was found: header, header, decoded, symbols, symbols, decoded, scan; when it was not, what stands in for it: types, table"`
	Offsets        string `json:"offsets,omitempty" jsonschema_description:"how the places of fields are known: symbols (the types of the kernel's PDB), table or calibrated"`
	ProcessCount   int    `json:"process_count"`
}

func wholeSystemJSON(w *WholeSystem) *WholeSystemJSON {
	if w == nil {
		return nil
	}
	return &WholeSystemJSON{w.Pages, w.Layout, w.PageTables, w.PageTablesFrom, w.DebuggerData, w.Offsets, w.Processes}
}

func (t *text) wholeSystem(w *WholeSystem) {
	if w == nil {
		return
	}
	t.line("", "Memory:  %d pages of 4 KiB, by %s", w.Pages, clean(w.Layout))
	t.line("", "Tables:  %s (%s)", clean(w.PageTables), clean(w.PageTablesFrom))
	t.line("", "Kernel:  data block: %s; places of fields: %s", orNone(w.DebuggerData), orNone(w.Offsets))
	t.line("", "Processes: %d", w.Processes)
}

func orNone(s string) string {
	if s == "" {
		return "not found"
	}
	return clean(s)
}

// ProcessEntry is a process with what lies in its own memory.
type ProcessEntry struct {
	*dump.Process
	Threads     int      // found in the dump, -1 not counted
	Handles     int      // open, -1 not known
	Environment []string // nil when it was not asked for or is not in the dump
	UserMemory  string   // why its own memory cannot be read, as states of pages are called; "" when it can or there is none
	Depth       int      // below the process that created it, of a tree
}

// ProcessEntryJSON is one process of a kernel dump.
type ProcessEntryJSON struct {
	PID            *uint32  `json:"pid,omitempty"`
	PPID           *uint32  `json:"ppid,omitempty" jsonschema_description:"of the process that created it; that one may have ended, and its id may be another's by now"`
	Name           string   `json:"name,omitempty" jsonschema_description:"the kernel keeps at most 15 characters"`
	CommandLine    string   `json:"command_line,omitempty"`
	Created        string   `json:"created,omitempty"`
	Exited         string   `json:"exited,omitempty"`
	ThreadCount    *int     `json:"thread_count,omitempty"`
	HandleCount    *int     `json:"handle_count,omitempty" jsonschema_description:"open handles (processes); absent when the dump does not hold the whole handle table"`
	Wow64          bool     `json:"wow64" jsonschema_description:"a 32-bit process on a 64-bit system"`
	Session        *uint32  `json:"session,omitempty"`
	EPROCESS       string   `json:"eprocess,omitempty"`
	PEB            string   `json:"peb,omitempty"`
	DirBase        string   `json:"dir_base,omitempty" jsonschema_description:"physical address of the page tables"`
	UserDirBase    string   `json:"user_dir_base,omitempty" jsonschema_description:"of those that user mode runs on, where they are split"`
	How            string   `json:"how,omitempty" jsonschema_description:"by what it was found: list, cid_table, scan, current_thread, joined with +"`
	State          string   `json:"state,omitempty" jsonschema_description:"ended: kept by a handle; unlisted: not in the kernel's list of processes, though that is whole; no_id: in the list, but not in the table of ids, though that is whole; absent for an ordinary process"`
	UserMemory     string   `json:"user_memory,omitempty" jsonschema_description:"why its own memory (PEB, command line, stacks) cannot be read: not_in_dump, paged_out and the other states of bytes.pages; absent when it can (processes)"`
	Depth          *int     `json:"depth,omitempty" jsonschema_description:"in the tree of processes: 0 for one whose creator is not there (processes --tree)"`
	Environment    []string `json:"environment,omitempty" jsonschema_description:"NAME=value (processes --environment)"`
	CurrentProcess bool     `json:"current,omitempty" jsonschema_description:"its thread stopped the system"`
}

// processesOf gives the processes of an incident the form of a list.
func processesOf(inc *triage.Incident) (out []ProcessEntry) {
	for i := range inc.Processes {
		out = append(out, ProcessEntry{Process: &inc.Processes[i], Threads: inc.Processes[i].ThreadCount, Handles: -1})
	}
	return out
}

func (s *stream) processes(all []ProcessEntry, tree bool, current *dump.Process, h hexer) {
	list(s, "processes", func(yield func(ProcessEntryJSON) bool) {
		for i := range all {
			p := &all[i]
			j := ProcessEntryJSON{Name: p.Name, CommandLine: p.CommandLine, Created: timeText(p.Created), Exited: timeText(p.Exited), Wow64: p.Wow64,
				EPROCESS: h.known(p.EPROCESS), PEB: h.known(p.PEB), DirBase: h.known(p.DirBase), UserDirBase: h.known(p.UserDirBase), How: p.How, State: string(p.State), UserMemory: p.UserMemory, Environment: p.Environment,
				CurrentProcess: isCurrent(p.Process, current)}
			if p.HasPID {
				j.PID, j.PPID = &p.PID, &p.ParentPID
			}
			if p.HasSession {
				j.Session = &p.Session
			}
			j.ThreadCount, j.HandleCount = count(p.Threads), count(p.Handles)
			if tree {
				j.Depth = &p.Depth
			}
			if !yield(j) {
				return
			}
		}
	})
}

// isCurrent reports whether a process is the one whose thread stopped the system.
func isCurrent(p, current *dump.Process) bool {
	return current != nil && current.EPROCESS != 0 && current.EPROCESS == p.EPROCESS
}

func (t *text) processTable(l *List) {
	t.table([]string{" ", "pid", "ppid", "session", "threads", "handles", "wow64", "created", "exited", "eprocess", "peb", "dir base", "found by", "name", "command line"}, func(add func(...string)) {
		for i := range l.Processes {
			p := &l.Processes[i]
			mark, id, parent, session, threads, handles, wow := "", "", "", "", "", "", ""
			switch {
			case isCurrent(p.Process, l.Process):
				mark = "#"
			case isOdd(p.State):
				mark = "!"
			}
			if p.HasPID {
				id, parent = strconv.FormatUint(uint64(p.PID), 10), strconv.FormatUint(uint64(p.ParentPID), 10)
			}
			if p.HasSession {
				session = strconv.FormatUint(uint64(p.Session), 10)
			}
			if p.Threads >= 0 {
				threads = strconv.Itoa(p.Threads)
			}
			if p.Handles >= 0 {
				handles = strconv.Itoa(p.Handles)
			}
			if p.Wow64 {
				wow = "yes"
			}
			add(mark, id, parent, session, threads, handles, wow, shortTime(p.Process.Created), shortTime(p.Exited), t.known(p.EPROCESS), t.known(p.PEB), fmt.Sprintf("%x", p.DirBase), p.How, strings.Repeat("  ", min(p.Depth, deepest))+clean(p.Name), clean(p.CommandLine))
		}
	})
	for i := range l.Processes {
		if p := &l.Processes[i]; len(p.Environment) > 0 {
			t.line("", "")
			t.line(sgrBold, "Environment of %s, pid %d:", clean(p.Name), p.PID)
			for _, v := range p.Environment {
				t.line("", "  %s", clean(v))
			}
			t.line("", "")
		}
	}
	if len(l.Processes) == 1 {
		t.line("", "1 process")
	} else {
		t.line("", "%d processes", len(l.Processes))
	}
	t.oddProcesses(l.Processes)
	t.unreadableProcesses(l.Processes)
}

// unreadableProcesses says whose own memory cannot be read: their command lines are
// missing for that.
func (t *text) unreadableProcesses(all []ProcessEntry) {
	const named = 5
	names := map[string][]string{}
	var states []string
	for i := range all {
		if s := all[i].UserMemory; s != "" {
			if names[s] == nil {
				states = append(states, s)
			}
			names[s] = append(names[s], clean(all[i].Name))
		}
	}
	for _, s := range states {
		of := names[s]
		if len(of) > named {
			of = append(of[:named:named], fmt.Sprintf("%d more", len(of)-named))
		}
		t.line(sgrYellow, "no command line, as their own memory cannot be read (%s): %s", strings.ReplaceAll(s, "_", " "), strings.Join(of, ", "))
	}
}

// oddProcesses says what is odd about processes that one of the kernel's registers
// lacks.
func (t *text) oddProcesses(all []ProcessEntry) {
	for i := range all {
		p := &all[i]
		register := "list of processes"
		switch p.State {
		default:
			continue
		case dump.ProcessUnlisted:
		case dump.ProcessWithout:
			register = "table of ids"
		}
		t.line(sgrYellow, "! %s, pid %d, is not in the kernel's %s: it has been hidden, or was being made or ended", clean(p.Name), p.PID, register)
	}
}

func isOdd(s dump.ProcessState) bool { return s == dump.ProcessUnlisted || s == dump.ProcessWithout }

// shortTime is a time of day to the second.
func shortTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}
