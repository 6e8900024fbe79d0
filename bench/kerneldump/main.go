// Command kerneldump writes the kernel dumps that package fixtures/machine
// builds, for measurements and for other tools to read, and beside each what a
// reader must find in it, as JSON.
//
//	go run ./bench/kerneldump [-large] FOLDER [VARIANT [KIND ...]]
//
// VARIANT is a part of a machine's name ("22H2", "LA57"); KIND is a DumpType.
package main

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"dumptriage/fixtures/machine"
)

func main() {
	large := flag.Bool("large", false, "a machine of 16 GB, 200 processes and 4,000 threads, in a sparse file")
	flag.Parse()
	if err := run(flag.Args(), *large); err != nil {
		fmt.Fprintln(os.Stderr, "kerneldump:", err)
		os.Exit(1)
	}
}

func run(args []string, large bool) error {
	if len(args) == 0 {
		return fmt.Errorf("no folder given")
	}
	variant, kinds := "", []machine.Kind{machine.Full}
	if len(args) > 1 {
		variant = args[1]
	}
	if len(args) > 2 {
		kinds = nil
		for _, a := range args[2:] {
			k, err := strconv.ParseUint(a, 0, 32)
			if err != nil {
				return err
			}
			kinds = append(kinds, machine.Kind(k))
		}
	}
	for _, v := range machine.Variants() {
		if !strings.Contains(v.Name, variant) {
			continue
		}
		if err := write(args[0], v, kinds, large); err != nil {
			return err
		}
		if large {
			break
		}
	}
	return nil
}

func write(folder string, v *machine.Variant, kinds []machine.Kind, large bool) error {
	build := machine.Build
	if large {
		build = machine.BuildLarge
	}
	m := build(*v)
	for _, k := range kinds {
		name := fmt.Sprintf("%s-%d.dmp", strings.ReplaceAll(v.Name, " ", "-"), k)
		f, err := os.Create(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		size, err := m.WriteDump(f, k)
		if err == nil {
			err = f.Truncate(size)
		}
		if err != nil {
			f.Close()
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		b, err := json.MarshalIndent(describe(m, k), "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, strings.TrimSuffix(name, ".dmp")+".json"), b, 0o644); err != nil {
			return err
		}
		fmt.Println(filepath.Join(folder, name))
	}
	return nil
}

type thread struct {
	ID      uint32 `json:"tid"`
	ETHREAD uint64 `json:"ethread"`
}

type process struct {
	PID      uint32   `json:"pid"`
	Name     string   `json:"name"`
	EPROCESS uint64   `json:"eprocess"`
	DirBase  uint64   `json:"dtb"`
	Threads  []thread `json:"threads"`
}

type module struct {
	Base uint64 `json:"base"`
	Size uint32 `json:"size"`
	Name string `json:"name"`
}

type probe struct {
	PID  uint32 `json:"pid"`
	DTB  uint64 `json:"dtb"`
	VA   uint64 `json:"va"`
	Data string `json:"data"` // hexadecimal, "" when it must not be readable
	Why  string `json:"why"`
}

// description is what a reader must find.
type description struct {
	Kind      machine.Kind      `json:"kind"`
	Build     uint32            `json:"build"`
	Arch      uint16            `json:"arch"`
	Paging    string            `json:"paging"`
	DTB       uint64            `json:"dtb"` // System's
	NT        uint64            `json:"nt"`
	Modules   []module          `json:"modules"`
	Processes []process         `json:"processes"`
	Probes    []probe           `json:"probes"`
	Offsets   map[string]uint64 `json:"offsets"`
	Pages     map[string]string `json:"pages"` // frame number to the page's first 16 bytes
	Lists     map[string]uint64 `json:"lists"`
}

func describe(m *machine.Machine, kind machine.Kind) description {
	d := description{Kind: kind, Build: m.Build, Arch: uint16(m.Arch), Paging: m.Paging.Name, DTB: m.Kernel.Root, NT: m.NT.Base, Offsets: m.Offsets(),
		Lists: map[string]uint64{"PsActiveProcessHead": m.ProcessHead, "PsLoadedModuleList": m.ModuleList, "KdDebuggerDataBlock": m.Debugger}, Pages: map[string]string{}}
	for _, mod := range m.Drivers {
		d.Modules = append(d.Modules, module{mod.Base, mod.Size, mod.Image.Name})
	}
	for _, p := range m.Processes {
		q := process{PID: p.PID, Name: p.Name, EPROCESS: p.EPROCESS, DirBase: p.DirBase}
		for _, t := range p.Threads {
			q.Threads = append(q.Threads, thread{t.ID, t.ETHREAD})
		}
		d.Processes = append(d.Processes, q)
	}
	for _, p := range m.Probes {
		q := probe{DTB: m.Kernel.Root, VA: p.VA, Data: hex.EncodeToString(p.Data), Why: p.Why}
		if p.Process != nil {
			q.PID, q.DTB = p.Process.PID, p.Process.DirBase
		}
		d.Probes = append(d.Probes, q)
	}
	for i, n := range m.Memory.Frames(kind.KernelOnly()) {
		if i%37 == 0 {
			d.Pages[strconv.FormatUint(n, 10)] = hex.EncodeToString(m.Memory.Page(n)[:16])
		}
	}
	return d
}
