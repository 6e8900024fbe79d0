package hang

import (
	"errors"
	"os"
	"strings"
	"testing"

	"dumptriage/triage"
	"dumptriage/triage/rules"
)

// TestStacks classes stacks written by hand, of which every rule must name one.
func TestStacks(t *testing.T) {
	text, err := os.ReadFile("testdata/stacks.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := builtinRules(t)
	used := map[string]bool{}
	n := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		n++
		fields := strings.Fields(line)
		names := strings.Split(strings.Join(fields[2:], " "), " < ")
		th := triage.Thread{}
		if fields[1] == "kernel" {
			th.Kernel = half(names...)
		} else {
			th.User = half(names...)
		}
		w := Of(incident(th), r).Waits[0]
		class := string(w.Class)
		if class == "" {
			class = "unknown"
		}
		if class != fields[0] || w.Kernel != (fields[1] == "kernel" && class != "unknown") {
			t.Errorf("%s\nis %s by %s", line, class, w.Rule)
		}
		used[w.Rule] = true
	}
	list, err := builtin()
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if list[i].Section == "wait" && !used[list[i].String()] {
			t.Errorf("no stack is classed by %s", &list[i])
		}
	}
	if n < 200 {
		t.Errorf("only %d stacks were read", n)
	}
}

func TestEveryClassHasARule(t *testing.T) {
	list, _ := builtin()
	have := map[Class]bool{}
	for _, r := range list {
		have[Class(r.Attrs["class"])] = true
	}
	// Those that a handle's type tells have none.
	for _, c := range []Class{ClassTimer, ClassJob} {
		have[c] = true
	}
	for _, c := range classes {
		if !have[c] {
			t.Errorf("no rule has the class %s", c)
		}
	}
}

func parse(t *testing.T, text string) []rules.Rule {
	t.Helper()
	list, err := rules.Parse("my.rules", text, rules.ParseOptions{Sections: Sections, Keys: Keys})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestUsersRulesComeFirst(t *testing.T) {
	inc := incident(thread(4, "ntdll!NtWaitForSingleObject", "kernelbase!WaitForSingleObjectEx", "app!Queue::Pop", "app!main"))
	if w := Of(inc, builtinRules(t)).Waits[0]; w.Class != ClassObject {
		t.Fatalf("without: %s", w.Class)
	}
	r, err := NewRules(parse(t, "[wait]\napp!Queue::Pop class=idle_worker\n"))
	if err != nil {
		t.Fatal(err)
	}
	if w := Of(inc, r).Waits[0]; w.Class != ClassIdleWorker || w.Rule != "my.rules:2" || w.Frame != 2 {
		t.Errorf("%s by %s at %d", w.Class, w.Rule, w.Frame)
	}
}

func TestBadRulesAreErrors(t *testing.T) {
	for text, want := range map[string]string{
		"[wait]\na!b class=odd\n":                          `my.rules:2: no class "odd"`,
		"[wait]\na!b\n":                                    `my.rules:2: no class ""`,
		"[wait]\na!b class=io object=thing arg=0\n":        `my.rules:2: no kind of object "thing"`,
		"[wait]\na!b class=io object=handle arg=4\n":       `my.rules:2: arg wants the number of an argument, 0 to 3, not "4"`,
		"[wait]\na!b class=io object=handle\n":             `my.rules:2: object and arg go together`,
		"[wait]\na!b class=io over=object,thing\n":         `my.rules:2: no class "thing"`,
		"[hold]\na!b lock=gc calls=in\n":                   `my.rules:2: calls wants out, not "in"`,
		"[wait]\na!b class=objects object=handles arg=1\n": `my.rules:2: object=handles wants count`,
	} {
		_, err := NewRules(parse(t, text))
		var e *rules.Error
		if !errors.As(err, &e) || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestRuntimeInTheProgram looks through the frames of a program that holds the .NET runtime
// itself, and not through those of one that merely has a runtime in another module.
func TestRuntimeInTheProgram(t *testing.T) {
	stack := []string{"ntdll!NtWaitForMultipleObjects", "kernelbase!WaitForMultipleObjectsEx", "shop!fn@b7b30", "system.private.corelib!System.Threading.Monitor.Enter", "web!Work"}
	for host, want := range map[string]Class{"Shop.exe": ClassMonitor, "coreclr.dll": ClassObjects, "": ClassObjects} {
		inc := incident(thread(4, stack...))
		inc.Runtime = &triage.ManagedRuntime{Host: host}
		if w := Of(inc, builtinRules(t)).Waits[0]; w.Class != want {
			t.Errorf("runtime in %q: %s by %s, want %s", host, w.Class, w.Rule, want)
		}
	}
}
