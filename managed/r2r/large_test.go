package r2r

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"dumptriage/dump"
	"dumptriage/pdata"
)

// R2R_LARGE is a folder of ReadyToRun images, which the project does not hold. What is
// known of a method by other ways must agree with what the tables say of its code.
func TestLarge(t *testing.T) {
	dir := os.Getenv("R2R_LARGE")
	if dir == "" {
		t.Skip("R2R_LARGE is not set")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.dll"))
	var total tally
	for _, f := range files {
		checkLarge(t, f, &total)
	}
	t.Logf("%+v", total)
	// Most methods whose code has handlers have them in their IL. The limits are loose ones
	// round what was measured; tokens one row apart are far outside (docs/managed-names.md).
	if total.Images == 0 || total.Twice+total.Unread+total.Generic != 0 || total.Covered != total.Functions {
		t.Error("entry points are wrong or missing")
	}
	if total.HandlersNative*50 > total.HandlersAgree || total.HandlersILOnly*10 > total.HandlersAgree {
		t.Error("handlers of the code are not those of the IL")
	}
	// Only handlers are funclets, so no other code comes between two methods.
	if total.ExtraWithout != 0 {
		t.Error("code was given to the method before it that is not its own")
	}
}

type tally struct {
	Images, Methods, Instances, Unread, Functions, Covered int
	NoBody, Generic, Twice                                 int
	HandlersNative, HandlersAgree, HandlersILOnly          int
	ExtraWithEH, ExtraWithout                              int
	OtherModule                                            int
}

func checkLarge(t *testing.T, file string, total *tally) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, _ := f.Stat()
	im, err := pdata.OpenFile(f, st.Size(), file)
	if err != nil {
		return
	}
	r, err := Open(im)
	if err != nil {
		if dump.AsError(err).Code != dump.UnsupportedFormat {
			t.Errorf("%s: %v", file, err)
		}
		return
	}
	entries, err := r.Entries()
	if err != nil {
		t.Errorf("%s: %v", file, err)
	}
	m, err := r.Metadata(0)
	if err != nil {
		t.Fatal(err)
	}
	total.Images++
	total.Functions += int(r.index.count)
	handlers := handlers(t, r)
	byFunction := map[uint32]bool{}
	for _, e := range entries {
		if byFunction[e.Function] {
			total.Twice++
		}
		byFunction[e.Function] = true
		if e.Instance {
			total.Instances++
			if e.Token == 0 {
				total.Unread++
			}
			if e.Assembly != "" {
				total.OtherModule++
			}
		} else {
			total.Methods++
		}
		if e.Token == 0 || e.Assembly != "" || e.Token>>24 != 6 {
			continue
		}
		method, err := m.Method(e.Token)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if method.RVA == 0 {
			total.NoBody++
		}
		if method.Arity > 0 && !e.Instance {
			total.Generic++
		}
		il := hasHandlers(im, method.RVA)
		switch {
		case handlers[e.Start] && il:
			total.HandlersAgree++
		case handlers[e.Start]:
			total.HandlersNative++
		case il:
			total.HandlersILOnly++
		}
	}
	for i := range r.index.count {
		begin, _, err := r.index.bounds(i)
		if err != nil {
			t.Fatal(err)
		}
		got, ok, err := r.Lookup(begin)
		if err != nil {
			t.Errorf("%s: %#x: %v", file, begin, err)
		}
		if ok {
			total.Covered++
		}
		if !byFunction[i] && ok {
			if handlers[got.Start] {
				total.ExtraWithEH++
			} else {
				total.ExtraWithout++
			}
		}
	}
}

// handlers returns the methods that ExceptionInfo (section 104) has handlers of.
func handlers(t *testing.T, r *Image) map[uint32]bool {
	out := map[uint32]bool{}
	tab, ok := r.table(r.sections, 104, "exceptions")
	if !ok {
		return out
	}
	for i := range tab.size / 8 {
		rva, err := tab.cell(i*8, 4)
		if err != nil {
			t.Fatal(err)
		}
		out[rva] = true
	}
	return out
}

// hasHandlers reports whether a method's body in IL has a section of handlers
// (II.25.4): a fat header with the flag MoreSects.
func hasHandlers(im *pdata.Image, rva uint32) bool {
	var b [2]byte
	if n, _ := im.ReadRVA(b[:], rva); rva == 0 || n < 2 {
		return false
	}
	return b[0]&3 == 3 && binary.LittleEndian.Uint16(b[:])&8 != 0
}
