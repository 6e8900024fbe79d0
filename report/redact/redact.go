// Package redact takes out of facts what tells of people and machines: user and
// machine names, folders, command lines, texts out of memory. What takes the
// place of a value is a pseudonym such as <user1>, the same for equal values in
// one output, so that a reader can still follow them.
//
// Two passes make it hard to forget something. Values walks the facts that an
// output is made from and treats each string by the policy of its field; a field
// without one is taken for secret. Text goes over what is written, whatever
// it is, and takes out paths, servers and security identifiers by their looks.
//
// Registers, addresses and the names of modules, functions and files of images
// stay: without them a stack says nothing.
package redact

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// Policy is what becomes of a string.
type Policy uint8

// The policies. The first is that of fields that nobody decided on.
const (
	Secret   Policy = iota // replaced as a whole: <text1>
	Keep                   // stays as it is
	Sentence               // paths and known secrets in it are replaced
	Path                   // the folder is replaced: <dir1>\app.exe
	Base                   // only the file's name stays
	Folder                 // a place to look in, replaced when it is a folder: <dir1>
	Object                 // replaced as a whole: <object1>
	Name                   // replaced as a whole: <name1>
	Command                // replaced as a whole: <command1>
	Variable               // NAME=value of an environment: the value is replaced
)

// labels are what pseudonyms are made of.
var labels = map[Policy]string{Secret: "text", Object: "object", Name: "name", Command: "command"}

// shortest is the length from which a secret is looked for inside sentences: a
// shorter one is too likely to be a word of them.
const shortest = 6

// Redactor replaces the secrets of one output. It is used by one goroutine. The
// methods of a nil Redactor change nothing.
type Redactor struct {
	policies map[string]Policy
	issued   map[string]map[string]string // by label and value
	own      map[string]bool              // pseudonyms that were given
	users    map[string]string            // names of users, in lower case
	secrets  map[string]string            // values that are replaced inside sentences
	folders  map[string]bool              // that the user named
	finder   *strings.Replacer            // of secrets; nil when they have changed
	userName *regexp.Regexp               // of users; nil when they have changed
}

// New returns a redactor with the policies of fields, by "package.Type.Field".
func New(policies map[string]Policy) *Redactor {
	return &Redactor{policies: policies, issued: map[string]map[string]string{}, own: map[string]bool{}, users: map[string]string{}, secrets: map[string]string{}, folders: map[string]bool{}}
}

// pseudonym returns what stands for a value, the same each time.
func (r *Redactor) pseudonym(label, value string) string {
	known := r.issued[label]
	if known == nil {
		known = map[string]string{}
		r.issued[label] = known
	}
	p, ok := known[value]
	if !ok {
		p = fmt.Sprintf("<%s%d>", label, len(known)+1)
		known[value], r.own[p] = p, true
	}
	return p
}

// Number returns what stands for a number, the same each time.
func (r *Redactor) Number(label string, value uint64) string {
	return r.pseudonym(label, fmt.Sprintf("%#x", value))
}

// Learn makes a path that the user named a secret inside sentences, of which the last part
// stays, and its folder, whatever else is found there.
func (r *Redactor) Learn(value string) {
	if r == nil || !strings.ContainsFunc(value, isWord) {
		return
	}
	if r.folders[value] = true; !strings.ContainsAny(value, `\/`) {
		return // it may be a folder to look in, and is too short for sentences
	}
	r.learn(value, r.path(value))
	r.LearnFolder(value[:strings.LastIndexAny(value, `\/`)])
}

// LearnFolder is Learn for a folder, of which nothing stays.
func (r *Redactor) LearnFolder(value string) {
	if r == nil || !strings.ContainsFunc(value, isWord) {
		return
	}
	r.folders[value] = true
	r.noteHosts(value)
	if strings.ContainsAny(value, `\/`) && strings.ContainsFunc(value, isWord) {
		r.learn(value, r.folder(value))
	}
}

func isWord(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }

func (r *Redactor) learn(value, instead string) {
	if value != instead && !r.own[value] && r.secrets[value] == "" {
		r.secrets[value], r.finder = instead, nil
	}
}

// apply returns what a policy makes of a value.
func (r *Redactor) apply(p Policy, s string) string {
	switch {
	case s == "" || r.own[s]:
		return s
	case p == Keep:
		return s
	case p == Sentence:
		return r.sentence(s)
	case p == Path:
		return r.path(s)
	case p == Base:
		return BaseName(s)
	case p == Folder:
		return r.folder(s)
	case p == Variable:
		return r.variable(s)
	}
	return r.pseudonym(labels[p], s)
}

// variable keeps the name of a variable of the environment. One whose name begins
// with "=" is a drive's current folder.
func (r *Redactor) variable(s string) string {
	at := strings.IndexByte(s, '=')
	if at <= 0 {
		return r.pseudonym("value", s)
	}
	if v := s[at+1:]; v != "" && !r.own[v] {
		return s[:at+1] + r.pseudonym("value", v)
	}
	return s
}

// note learns from a value what later sentences must not say.
func (r *Redactor) note(p Policy, s string) {
	if s == "" || r.own[s] {
		return
	}
	switch p {
	case Path, Object, Command, Secret, Variable:
		r.noteUsers(s)
	case Folder, Sentence:
		r.noteHosts(s)
	}
	if p == Variable {
		r.noteVariable(s)
	}
	switch p {
	case Secret, Object, Name, Command, Base:
		if len(s) >= shortest {
			r.learn(s, r.apply(p, s))
		}
	}
}

// sentence replaces what was learned, then what has the looks of a secret.
func (r *Redactor) sentence(s string) string {
	r.noteHosts(s)
	if r.finder == nil {
		r.finder = newFinder(r.secrets)
	}
	s = r.Text(r.finder.Replace(s))
	s = endpoint.ReplaceAllStringFunc(s, func(at string) string { return r.pseudonym("server", at) })
	if len(r.users) == 0 {
		return s
	}
	if r.userName == nil {
		r.userName = userPattern(r.users)
	}
	return r.userName.ReplaceAllStringFunc(s, func(name string) string { return r.users[strings.ToLower(name)] })
}
