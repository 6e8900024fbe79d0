package redact

import (
	"errors"
	"reflect"
	"slices"
)

var errorType = reflect.TypeFor[error]()

// Values redacts everything that the roots, which are pointers, lead to by
// exported fields, in place. Secrets of all roots are learned before the first is
// replaced, so that sentences cannot tell them.
func (r *Redactor) Values(roots ...any) {
	if r == nil {
		return
	}
	plans := map[reflect.Type][]plannedField{}
	for _, visit := range []func(p Policy, s string) string{
		func(p Policy, s string) string { r.note(p, s); return s },
		r.apply,
	} {
		w := walk{policies: r.policies, visit: visit, seen: map[place]bool{}, plans: plans}
		for _, root := range roots {
			w.value(reflect.ValueOf(root), Secret)
		}
	}
}

// place is where a value lies; a struct and its first field share an address.
type place struct {
	at  uintptr
	typ reflect.Type
	len int
}

// walk goes through values once, whatever cycles there are.
type walk struct {
	policies map[string]Policy
	visit    func(p Policy, s string) string
	seen     map[place]bool
	plans    map[reflect.Type][]plannedField // of the structs met so far
}

// plannedField is a field of a struct that may lead to texts.
type plannedField struct {
	index  int
	policy Policy
}

// value visits the strings in v; p is the policy of the field that holds it.
func (w *walk) value(v reflect.Value, p Policy) {
	if !v.IsValid() || !mayHold(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.String:
		w.text(v, p)
	case reflect.Pointer:
		if !v.IsNil() && w.first(place{v.Pointer(), v.Type(), 0}) {
			w.value(v.Elem(), p)
		}
	case reflect.Slice:
		if v.Len() > 0 && !w.first(place{v.Pointer(), v.Type(), v.Len()}) {
			return
		}
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			w.value(v.Index(i), p)
		}
	case reflect.Struct:
		w.fields(v)
	case reflect.Interface:
		w.err(v)
	}
}

func (w *walk) first(at place) bool {
	if w.seen[at] {
		return false
	}
	w.seen[at] = true
	return true
}

func (w *walk) text(v reflect.Value, p Policy) {
	if s := w.visit(p, v.String()); v.CanSet() && s != v.String() {
		v.SetString(s)
	}
}

func (w *walk) fields(v reflect.Value) {
	for _, f := range w.plan(v.Type()) {
		w.value(v.Field(f.index), f.policy)
	}
}

// plan works out once for a type what there is to visit.
func (w *walk) plan(t reflect.Type) []plannedField {
	plan, known := w.plans[t]
	if !known {
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && mayHold(f.Type) {
				plan = append(plan, plannedField{i, policyOf(w.policies, t, f)})
			}
		}
		w.plans[t] = plan
	}
	return plan
}

// err replaces an error by one that says less.
func (w *walk) err(v reflect.Value) {
	if v.IsNil() || v.Type() != errorType || !v.CanSet() {
		return
	}
	old := v.Interface().(error).Error()
	if s := w.visit(Sentence, old); s != old {
		v.Set(reflect.ValueOf(errors.New(s)))
	}
}

// policyOf is the policy of a field. Types of strings are words of this program.
func policyOf(policies map[string]Policy, t reflect.Type, f reflect.StructField) Policy {
	if p, ok := policies[fieldName(t, f)]; ok {
		return p
	}
	if e := elem(f.Type); e.Kind() == reflect.String && e.PkgPath() != "" {
		return Keep
	}
	return Secret
}

func fieldName(t reflect.Type, f reflect.StructField) string { return t.String() + "." + f.Name }

// elem is what slices and pointers are of in the end.
func elem(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// mayHold is false for the long lists of numbers that a walk need not look at.
func mayHold(t reflect.Type) bool {
	switch elem(t).Kind() {
	case reflect.String, reflect.Struct, reflect.Interface:
		return true
	}
	return false
}

// Undecided lists the fields with texts that the types lead to and that have no
// policy, and Unused the policies that no such field has.
func Undecided(policies map[string]Policy, types ...reflect.Type) (undecided, unused []string) {
	met := map[string]bool{}
	seen := map[reflect.Type]bool{}
	var visit func(t reflect.Type)
	visit = func(t reflect.Type) {
		if t = elem(t); t.Kind() != reflect.Struct || seen[t] {
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			f := t.Field(i)
			if !f.IsExported() {
				continue
			}
			e := elem(f.Type)
			_, decided := policies[fieldName(t, f)]
			if decided {
				met[fieldName(t, f)] = true
			} else if e == reflect.TypeFor[string]() || e.Kind() == reflect.Map {
				undecided = append(undecided, fieldName(t, f))
			}
			visit(f.Type)
		}
	}
	for _, t := range types {
		visit(t)
	}
	for name := range policies {
		if !met[name] {
			unused = append(unused, name)
		}
	}
	slices.Sort(undecided)
	slices.Sort(unused)
	return undecided, unused
}
