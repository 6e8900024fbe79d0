package report

import (
	"time"

	"dumptriage/dump"
	"dumptriage/triage"
)

// stampKind says what an image's TimeDateStamp can be.
type stampKind string

const (
	stampDate stampKind = "date" // it can be the date of the build; it may be a hash all the same
	stampHash stampKind = "hash" // it cannot be a date: the build is reproducible, and the stamp a hash
	// stampUnsure can be a date among many that cannot: some hashes look like dates.
	stampUnsure stampKind = "unsure"
)

// firstImages is when the first tools that write PE images were: no image is older.
var firstImages = time.Date(1992, 1, 1, 0, 0, 0, 0, time.UTC)

// stampOf is what the stamp of a module is by itself; an image may say that its build
// is reproducible.
func stampOf(m *dump.Module, captured time.Time) stampKind {
	if m.Reproducible && m.TimeDateStamp != 0 {
		return stampHash
	}
	return kindOfStamp(m.TimeDateStamp, captured)
}

// kindOfStamp tells dates from the hashes that reproducible builds have in their
// place: no image was built after the dump was written. Clocks may be a day off.
func kindOfStamp(stamp uint32, captured time.Time) stampKind {
	switch built := time.Unix(int64(stamp), 0); {
	case stamp == 0:
		return ""
	case built.Before(firstImages), stamp == ^uint32(0), !captured.IsZero() && built.After(captured.AddDate(0, 0, 1)):
		return stampHash
	}
	return stampDate
}

// stampKinds says what the stamps of a list are. Hashes are spread evenly, so that
// of every four one or more passes for a date: where a quarter of a list cannot be
// dates, none of it is surely one.
func stampKinds(modules []*triage.Module, captured time.Time) []stampKind {
	kinds := make([]stampKind, len(modules))
	hashes := 0
	for i, m := range modules {
		kinds[i] = stampOf(m.Module, captured)
		// One that an image tells of says nothing of the others, which would, too.
		if kinds[i] == stampHash && !m.Reproducible {
			hashes++
		}
	}
	if 4*hashes < len(modules) || hashes == 0 {
		return kinds
	}
	for i := range kinds {
		if kinds[i] == stampDate {
			kinds[i] = stampUnsure
		}
	}
	return kinds
}

// builtText is the date of a build, "hash" when there is none.
func builtText(stamp uint32, k stampKind) string {
	date := time.Unix(int64(stamp), 0).UTC().Format(time.DateOnly)
	switch k {
	case stampDate:
		return date
	case stampUnsure:
		return date + "?"
	}
	return string(k)
}

// kernelVersion gives the kernel's module the version that the system's exact
// build proves, when the dump does not give it one. Modules are not changed.
func kernelVersion(m *triage.Module, system *dump.System) string {
	if v := version(m.Version); v != "" || system == nil || !m.IsNT() {
		return v
	}
	return system.NTVersion
}
