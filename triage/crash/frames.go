package crash

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"dumptriage/triage"
	"dumptriage/triage/rules"
)

//go:embed classes.rules
var classText string

//go:embed blame.rules
var blameText string

// Sections and Keys are what crash rules are made of.
//
//	[class]   functions on top of the stack that say what happened:
//	          class=..., from=CLASSES that they may refine, top=yes when all
//	          frames above must be of the same module
//	[skip]    functions that are never to blame, why=os|runtime|machinery|start
//	[app]     functions that are the application's
//	[folder]  folders of images that are never to blame, why=os|runtime
//	[source]  source files of functions that are never to blame, the same
var (
	Sections = []string{"class", "skip", "app", "folder", "source"}
	Keys     = []string{"class", "from", "top", "why"}
)

// Rules are rules ready for use.
type Rules struct {
	class   *rules.Set
	frame   *rules.Set // skip and app
	folders []rules.Rule
	sources []rules.Rule
}

// builtIn are the rules of classes.rules and blame.rules.
var builtIn = sync.OnceValue(func() []rules.Rule {
	var all []rules.Rule
	for _, f := range []struct{ name, text string }{{"classes.rules", classText}, {"blame.rules", blameText}} {
		list, err := rules.Parse(f.name, f.text, rules.ParseOptions{Sections: Sections, Keys: Keys})
		if err == nil {
			err = Check(list)
		}
		if err != nil {
			panic("built-in rules: " + err.Error()) // a test reads them too
		}
		all = append(all, list...)
	}
	return all
})

// NewRules puts a user's rules in front of the built-in ones; those of other
// sections are not looked at.
func NewRules(user []rules.Rule) *Rules {
	all := slices.Concat(user, builtIn())
	pick := func(sections ...string) []rules.Rule {
		var out []rules.Rule
		for _, r := range all {
			if slices.Contains(sections, r.Section) {
				out = append(out, r)
			}
		}
		return out
	}
	return &Rules{class: rules.NewSet(pick("class")), frame: rules.NewSet(pick("skip", "app")), folders: pick("folder"), sources: pick("source")}
}

// whys are the values of why.
var whys = []string{"os", "runtime", "machinery", "start"}

// Check reports the first rule of ours whose keys make no sense.
func Check(list []rules.Rule) error {
	for i := range list {
		r := &list[i]
		bad := ""
		switch why := r.Attrs["why"]; r.Section {
		case "class":
			bad = checkClass(r)
		case "skip", "folder", "source":
			if !slices.Contains(whys, why) {
				bad = fmt.Sprintf("why=%s; there are %s", rules.Quote(why), strings.Join(whys, ", "))
			}
		}
		if bad != "" {
			return &rules.Error{File: r.File, Line: r.Line, Msg: bad}
		}
	}
	return nil
}

// topFrames is how deep a function may stand that says what happened.
const topFrames = 12

// classifyByFrames refines the class by the functions on top of the stack. The
// outermost of those that apply wins: abort calls raise, not the other way.
func (j *judge) classifyByFrames() {
	sameModule := true
	class := j.v.Class
	for i := range j.frames[:min(topFrames, len(j.frames))] {
		f := &j.frames[i]
		if f.Module == nil {
			sameModule = false
			continue
		}
		sameModule = sameModule && f.Module == j.frames[0].Module
		if f.Name.Function == "" || !certain(f) {
			continue
		}
		r := j.rules.class.Find(rules.Module(f.Module.Name()), f.Name.Function)
		if r == nil || !appliesTo(r, j.v.Class) || r.Attrs["top"] == "yes" && !sameModule {
			continue
		}
		class, j.v.Rule, j.v.RuleFrame = Class(r.Attrs["class"]), r.String(), i
	}
	j.v.Class = class
	if class == Breakpoint && j.systemOnly() {
		j.v.Class = DebuggerBreak
	}
}

// systemOnly reports whether a breakpoint was ntdll's own: nothing of the
// program is on the stack. It is where a debugger starts a process, and where it
// attaches to one.
func (j *judge) systemOnly() bool {
	if len(j.frames) == 0 || j.frames[0].Module == nil || rules.Module(j.frames[0].Module.Name()) != "ntdll" {
		return false
	}
	for i := range j.frames {
		if skip, _ := j.rules.why(&j.frames[i]); skip == nil {
			return false
		}
	}
	return true
}

// appliesTo reports whether a rule may refine a class: one of its from list, in
// which "access" is every class of a failed access and "*" every class.
func appliesTo(r *rules.Rule, class Class) bool {
	for word := range strings.SplitSeq(r.Attrs["from"], ",") {
		if word == "*" || word == string(class) || word == "access" && class.isAccess() {
			return true
		}
	}
	return false
}

// why says why a frame is not the application's: the rule and its reason. A nil
// rule means that it is; app is the rule that said so, if one did.
func (r *Rules) why(f *triage.Frame) (skip, app *rules.Rule) {
	module := f.ModuleName()
	if module == "" {
		return nil, nil
	}
	if rule := r.frame.Find(rules.Module(module), f.Name.Function); rule != nil {
		if rule.Section == "app" {
			return nil, rule
		}
		return rule, nil
	}
	if file := f.Name.File; file != "" {
		if rule := firstMatch(r.sources, strings.ToLower(strings.ReplaceAll(file, "/", `\`))); rule != nil {
			return rule, nil
		}
	}
	if f.Module == nil || f.Module.Module == nil {
		return nil, nil
	}
	path := strings.ToLower(f.Module.Path)
	if strings.HasSuffix(path, ".exe") {
		return nil, nil
	}
	return firstMatch(r.folders, path), nil
}

// firstMatch is the first rule whose pattern matches a path, nil when none does.
func firstMatch(list []rules.Rule, path string) *rules.Rule {
	for i := range list {
		if list[i].Pattern.Match("", path) {
			return &list[i]
		}
	}
	return nil
}
