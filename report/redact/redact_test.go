package redact

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"nothing here", "nothing here"},
		{`app!main+0x1f`, `app!main+0x1f`},
		{`std::vector<int>::operator/=`, `std::vector<int>::operator/=`},
		{`00/01 and/or n/a`, `00/01 and/or n/a`},
		{`\Driver\condrv`, `\Driver\condrv`},
		{`C:\Windows\System32\ntdll.dll`, `C:\Windows\System32\ntdll.dll`},
		{`\Device\HarddiskVolume2\Windows\System32\x.dll`, `\Device\HarddiskVolume2\Windows\System32\x.dll`},
		{`C:\Windows\Temp\x.dll`, `<dir1>\x.dll`},
		{`C:\Users\ann lee\app\a.exe`, `<dir1>\a.exe`},
		{`C:/Users/ann/a.exe`, `<dir1>/a.exe`},
		{`\\?\C:\data\a.exe`, `<dir1>\a.exe`},
		{`\\host\share\a.dll`, `<dir1>\a.dll`},
		{`\Device\HarddiskVolume3\Users\ann\a.exe`, `<dir1>\a.exe`},
		{`open C:\Users\ann: denied`, `open <dir1>\<user1>: denied`},
		{`open /home/ann/dumps/a.dmp: no such file or directory`, `open <dir1>/a.dmp: no such file or directory`},
		{`from "/home/ann/x y/a.dmp" to /srv/b.dmp`, `from "<dir1>/a.dmp" to <dir2>/b.dmp`},
		{`two in C:\x\a.dll and C:\x\b.dll`, `two in <dir1>\a.dll and <dir1>\b.dll`},
		{`S-1-5-21-1-2-3-1001 and S-1-5-18`, `<sid1> and S-1-5-18`},
		{`https://symbols.corp.example/store/a.pdb`, `https://<server1>/a.pdb`},
		{`https://ann:secret@symbols.corp.example/a`, `https://<server1>/a`},
		{`https://msdl.microsoft.com/download/symbols`, `https://msdl.microsoft.com/download/symbols`},
		{`C:\`, `C:\`},
		{`--dir=C:\my data\`, `--dir=<dir1>\`},
	} {
		r := New(nil)
		got := r.Text(tc.in)
		if got != tc.want {
			t.Errorf("Text(%q) = %q, want %q", tc.in, got, tc.want)
		}
		if again := r.Text(got); again != got {
			t.Errorf("Text(%q) = %q the second time", got, again)
		}
	}
	var none *Redactor
	if s := none.Text(`C:\Users\ann\x`); s != `C:\Users\ann\x` {
		t.Errorf("a nil redactor made %q", s)
	}
}

func TestJSON(t *testing.T) {
	in := map[string]string{"a": `C:\Users\ann\x.exe`, "b": "tab\tand \"quote\" \\ end", "c": "\u2028<>&"}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]string
	if err := json.Unmarshal(New(nil).JSON(b), &out); err != nil {
		t.Fatal(err)
	}
	if out["a"] != `<dir1>\x.exe` || out["b"] != in["b"] || out["c"] != in["c"] {
		t.Errorf("got %q", out)
	}
}

type facts struct {
	Command, Note, Path, Host, Name, Function string
	Texts                                     []string
	Undecided                                 string
	Word                                      word
	Err                                       error
	Next                                      *facts
	hidden                                    string
}

type word string

var testPolicies = map[string]Policy{"redact.facts.Command": Command, "redact.facts.Note": Sentence, "redact.facts.Path": Path,
	"redact.facts.Host": Base, "redact.facts.Name": Name, "redact.facts.Function": Keep, "redact.facts.Texts": Object}

func TestValues(t *testing.T) {
	f := &facts{
		Command: "app --secret", Note: `it ran "app --secret" for Ann in C:\Users\ann\x.exe`, Path: `C:\Users\ann\x.exe`, Host: "../dumps/x.dmp",
		Name: "worker", Function: `ann::f`, Texts: []string{"one", "two", "one"}, Undecided: "who knows", Word: "word", hidden: "hidden",
		Err: errors.New(`open /home/ann/x: no`),
	}
	f.Next = &facts{Name: "worker", Next: f} // a cycle
	New(testPolicies).Values(f)
	want := facts{
		Command: "<command1>", Note: `it ran "<command1>" for <user1> in <dir1>\x.exe`, Path: `<dir1>\x.exe`, Host: "x.dmp",
		Name: "<name1>", Function: `ann::f`, Undecided: "<text1>", Word: "word", hidden: "hidden",
	}
	if got := strings.Join(f.Texts, " "); got != "<object1> <object2> <object1>" {
		t.Errorf("texts are %s", got)
	}
	if f.Err.Error() != `open <dir2>/x: no` {
		t.Errorf("the error is %v", f.Err)
	}
	if f.Next.Name != "<name1>" {
		t.Errorf("the same name became %s elsewhere", f.Next.Name)
	}
	f.Texts, f.Err, f.Next = nil, nil, nil
	if got := *f; got.Command != want.Command || got.Note != want.Note || got.Path != want.Path || got.Host != want.Host || got.Name != want.Name ||
		got.Function != want.Function || got.Undecided != want.Undecided || got.Word != want.Word || got.hidden != want.hidden {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// What an environment calls the user and the machine is in no sentence, in any case.
func TestNamesOfTheEnvironment(t *testing.T) {
	type process struct{ Environment []string }
	type note struct{ Text string }
	p := &process{[]string{`USERNAME=Ann`, `ComputerName=ACME-PC01`, `LOGONSERVER=\\ACME-DC`, `USERDOMAIN=it`, `OS=Windows_NT`, `Path=main`}}
	n := &note{`ann on acme-pc01 by \Acme-DC: it is main, annual, of Windows_NT`}
	New(map[string]Policy{"redact.process.Environment": Variable, "redact.note.Text": Sentence}).Values(n, p)
	if want := `<user1> on <host1> by \<host2>: it is main, annual, of Windows_NT`; n.Text != want {
		t.Errorf("%q, want %q", n.Text, want)
	}
	if want := `USERNAME=<value1>`; p.Environment[0] != want {
		t.Errorf("%q, want %q", p.Environment[0], want)
	}
}

func TestPathOfDrivers(t *testing.T) {
	for in, want := range map[string]string{
		`\SystemRoot\system32\ntoskrnl.exe`:      `\SystemRoot\system32\ntoskrnl.exe`,
		`\??\C:\Program Files\Acme\acmefilt.sys`: `<dir1>\acmefilt.sys`,
		`\SystemRoot\Temp\x.sys`:                 `<dir1>\x.sys`,
		`\Windows\SysWOW64\ntdll.dll`:            `\Windows\SysWOW64\ntdll.dll`,
		`ntdll.dll`:                              `ntdll.dll`,
	} {
		if got := New(nil).apply(Path, in); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

// TestValuesTwice: facts that are written twice keep their pseudonyms.
func TestValuesTwice(t *testing.T) {
	f := &facts{Command: "app --secret", Path: `C:\data\x.exe`, Texts: []string{"one"}, Undecided: "two"}
	r := New(testPolicies)
	r.Values(f)
	first := *f
	r.Values(f)
	if f.Command != first.Command || f.Path != first.Path || f.Texts[0] != "<object1>" || f.Undecided != "<text1>" {
		t.Errorf("%+v became %+v", first, *f)
	}
}

func FuzzText(f *testing.F) {
	f.Add(`open C:\Users\ann\x: \\host\share\y /home/ann/z https://a@b/c S-1-5-21-1`)
	f.Add(`<dir1>\x <dir1>/y C:\<user1>`)
	f.Fuzz(func(t *testing.T, s string) {
		r := New(nil)
		once := r.Text(s)
		if len(once) > 4*len(s)+64 {
			t.Errorf("%d bytes became %d", len(s), len(once))
		}
		quoted, _ := json.Marshal(s)
		if !json.Valid(New(nil).JSON(quoted)) {
			t.Errorf("%q is no JSON any more", s)
		}
	})
}

// TestMessages: what a message tells of a server is not told without its URL either, nor
// is a folder that stands alone.
func TestMessages(t *testing.T) {
	r := New(map[string]Policy{"redact.tried.Place": Folder, "redact.tried.Result": Sentence})
	r.Learn("crash/app.dmp")
	r.LearnFolder("srv*cache*https://ann@symbols.corp.example:8443/store")
	for in, want := range map[string]string{
		"dial tcp: lookup symbols.corp.example on 10.1.2.3:53: no such host":    "dial tcp: lookup <server> on <server>: no such host",
		"dial tcp [fe80::1%eth0]:443: connect: connection refused":              "dial tcp <server>: connect: connection refused",
		"kernel 10.0.19041.1: 12:30:45 of 10.0.19041.1":                         "kernel 10.0.19041.1: 12:30:45 of 10.0.19041.1",
		"https://msdl.microsoft.com/x: lookup msdl.microsoft.com: no such host": "https://msdl.microsoft.com/x: lookup msdl.microsoft.com: no such host",
	} {
		got := r.Message(in)
		for _, n := range "123456789" { // by the order of the map
			got = strings.ReplaceAll(got, "<server"+string(n)+">", "<server>")
		}
		if got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := r.Message("https://files.corp.example/x.pdb: lookup files.corp.example: not found"); strings.Contains(got, "files") {
		t.Errorf("it became %q", got)
	}
	all := []tried{{"crash", "not there"}, {"dump memory", "no"}, {"https://late.corp.example/s (dial tcp: lookup late.corp.example: no such host)", "x"}}
	early := []tried{{"", "lookup late.corp.example: no such host"}}
	r.Values(&early, &all)
	if all[0].Place == "crash" || all[1].Place != "dump memory" || strings.Contains(early[0].Result+all[2].Place, "late") {
		t.Errorf("%+v %+v", all, early)
	}
}

type tried struct{ Place, Result string }
