package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dumptriage/dump"
)

// TestProcessTree: ids are reused, creators end, damaged ids lead in circles.
func TestProcessTree(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2024, 3, 4, 6, 30, s, 0, time.UTC) }
	process := func(name string, pid, parent uint32, created int) ProcessEntry {
		return ProcessEntry{Process: &dump.Process{Name: name, PID: pid, HasPID: true, ParentPID: parent, Created: at(created)}}
	}
	for _, tt := range []struct {
		name string
		in   []ProcessEntry
		want string
	}{
		{"a tree in any order", []ProcessEntry{process("c", 30, 20, 3), process("a", 10, 0, 1), process("d", 40, 10, 4), process("b", 20, 10, 2)}, "a0 d1 b1 c2"},
		{"the creator has ended", []ProcessEntry{process("a", 10, 99, 1), process("b", 20, 10, 2)}, "a0 b1"},
		{"its id is a younger one's", []ProcessEntry{process("a", 10, 20, 1), process("b", 20, 4, 2)}, "a0 b0"},
		{"an id of two, one ended", []ProcessEntry{process("old", 20, 0, 1), process("new", 20, 0, 5), process("x", 30, 20, 3), process("y", 40, 20, 6)}, "old0 x1 new0 y1"},
		{"a circle", []ProcessEntry{process("a", 10, 20, 1), process("b", 20, 10, 1)}, "a0 b1"},
		{"its own creator", []ProcessEntry{process("a", 10, 10, 1)}, "a0"},
		{"ids not known", []ProcessEntry{{Process: &dump.Process{Name: "a"}}, {Process: &dump.Process{Name: "b"}}}, "a0 b0"},
	} {
		var got []string
		for _, e := range ProcessTree(tt.in) {
			got = append(got, fmt.Sprintf("%s%d", e.Name, e.Depth))
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, s, tt.want)
		}
	}
}

// TestProcessTreeDeep: a chain of 60,000 processes is no deep recursion.
func TestProcessTreeDeep(t *testing.T) {
	const n = 60000
	var all []ProcessEntry
	for i := range uint32(n) {
		all = append(all, ProcessEntry{Process: &dump.Process{PID: i + 1, HasPID: true, ParentPID: i}})
	}
	if tree := ProcessTree(all); len(tree) != n || tree[n-1].Depth != n-1 {
		t.Errorf("%d processes, the last at %d", len(tree), tree[len(tree)-1].Depth)
	}
}

// TestOddProcesses: what one of the kernel's registers lacks is marked and said.
func TestOddProcesses(t *testing.T) {
	l := &List{Kind: ListProcesses, ThreadCount: -1, ModuleCount: -1, Process: &dump.Process{EPROCESS: 0x1000}, Processes: []ProcessEntry{
		{Process: &dump.Process{Name: "System", PID: 4, HasPID: true, EPROCESS: 0x1000, How: "list+cid_table"}},
		{Process: &dump.Process{Name: "evil.exe", PID: 88, HasPID: true, EPROCESS: 0x2000, How: "cid_table", State: dump.ProcessUnlisted}},
		{Process: &dump.Process{Name: "sly.exe", PID: 92, HasPID: true, EPROCESS: 0x3000, How: "list", State: dump.ProcessWithout}},
	}}
	var b strings.Builder
	if err := ListText(&b, l, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n!  88 ", "\n!  92 ", "\n#  4 ",
		"! evil.exe, pid 88, is not in the kernel's list of processes: it has been hidden, or was being made or ended\n",
		"! sly.exe, pid 92, is not in the kernel's table of ids: it has been hidden, or was being made or ended\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
