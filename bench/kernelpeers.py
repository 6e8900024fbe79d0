"""Reads the dumps that bench/kerneldump wrote with kdmp-parser and volatility3
and compares pages, translations, processes, threads and modules with the
description beside each. Prints a table; exits 1 when anything differs that the
tool claims to read. bench/kernelpeers.sh runs it.

volatility3 wants symbols of the kernel: a table is made from the machine's
offsets, just large enough for its own list walks."""
import collections
import contextlib
import glob
import io
import json
import os
import pathlib
import struct
import sys

PAGE = 4096
PARTS = ["pages", "translated", "processes", "threads", "modules"]


# Kinds of pages that a tool does not read, or reads wrongly: not compared.
# Neither reads pages that only a section's prototype entries lead to.
PROTOTYPES = {"prototype, valid", "prototype, in transition", "prototype, in a paging file", "shared memory", "a file's, valid",
              "a file's, trimmed", "in the third part of a file", "of an image, only its section has it"}
KDMP_LACKS = PROTOTYPES | {"in transition", "in transition, swizzled", "private, trimmed", "in a large page, PAT set"}
VOLATILITY_LACKS = PROTOTYPES | {"in transition, swizzled"}


class Score:
    """Counts what was compared, right and all, by part; notes what differed."""

    def __init__(self):
        self.right, self.all, self.notes = collections.Counter(), collections.Counter(), []

    def add(self, part, ok, note):
        self.all[part] += 1
        self.right[part] += bool(ok)
        if not ok:
            self.notes.append(f"{part}: {note}")

    def cell(self, part):
        return f"{self.right[part]}/{self.all[part]}" if self.all[part] else "-"


def probes(d, user):
    """What must be readable where; a dump without user memory has no probes of processes."""
    for p in d["probes"]:
        if user or not p["pid"]:
            yield p


def read(page_of, va, size):
    """Reads through a function from a page's address to its bytes or None."""
    out = b""
    while size:
        page = page_of(va & ~(PAGE - 1))
        if page is None:
            return None
        part = bytes(page)[va % PAGE : va % PAGE + size]
        out, va, size = out + part, va + len(part), size - len(part)
    return out


def lists(d, page_of, score):
    """Walks the kernel's lists by the machine's offsets through page_of."""
    o, ptr = d["offsets"], 8

    def u(va):
        b = read(page_of, va, ptr)
        return None if b is None else struct.unpack("<Q", b)[0]

    def walk(head):
        found, e = [], u(head)
        while e and e != head and len(found) < 10000:
            found.append(e)
            e = u(e)
        return found

    got = {}
    for e in walk(d["lists"]["PsActiveProcessHead"]):
        p = e - o["EPROCESS.ActiveProcessLinks"]
        name = read(page_of, p + o["EPROCESS.ImageFileName"], 15).split(b"\0")[0].decode()
        threads = [(u(t - o["ETHREAD.ThreadListEntry"] + o["ETHREAD.Cid"] + 8), t - o["ETHREAD.ThreadListEntry"])
                   for t in walk(p + o["EPROCESS.ThreadListHead"])]
        got[p] = (u(p + o["EPROCESS.UniqueProcessId"]), name, threads)
    modules = [u(e + 0x30) for e in walk(d["lists"]["PsLoadedModuleList"])]
    compare_lists(d, got, modules, score)


def compare_lists(d, got, modules, score):
    """got: EPROCESS to (pid, name, [(tid, ETHREAD)]); modules: bases in order."""
    for p in d["processes"]:
        g = got.get(p["eprocess"])
        score.add("processes", g and g[:2] == (p["pid"], p["name"]), f"{p['name']}: {g and g[:2]}")
        for t in p["threads"] or []:
            score.add("threads", g and (t["tid"], t["ethread"]) in g[2], f"{p['name']} {t['tid']:#x}")
    score.add("processes", len(got) == len(d["processes"]), f"{len(got)} in the list")
    for i, m in enumerate(d["modules"]):
        score.add("modules", i < len(modules) and modules[i] == m["base"], m["name"])


def kdmp(path, d, user):
    """kdmp-parser: its own page look-up and translation; the lists by our offsets."""
    import kdmp_parser

    score, dump = Score(), kdmp_parser.KernelDumpParser(path)
    score.add("pages", dump.type.value == d["kind"], f"kind {dump.type}")
    for n, first in d["pages"].items():
        page = dump.read_physical_page(int(n) * PAGE)
        score.add("pages", page is not None and bytes(page[:16]).hex() == first, f"frame {int(n):#x}")
    for p in probes(d, user):
        if p["why"] in KDMP_LACKS:
            continue
        if p["data"]:
            want = bytes.fromhex(p["data"])
            got = read(lambda va: dump.read_virtual_page(va, p["dtb"]), p["va"], len(want))
            score.add("translated", got == want, f"{p['why']} at {p['va']:#x}")
        else:
            score.add("translated", dump.translate_virtual(p["va"], p["dtb"]) in (None, 0), f"{p['why']} at {p['va']:#x} is readable")
    lists(d, lambda va: dump.read_virtual_page(va, d["dtb"]), score)
    return score


def symbols(d, path):
    """Writes a volatility3 symbol table from the machine's offsets."""
    o, nt, p = d["offsets"], d["nt"], pointer(d)
    word = "unsigned long" if p == 4 else "unsigned long long"
    loader = (0x50, 0x18, 0x20, 0x24, 0x2C) if p == 4 else (0xA0, 0x30, 0x40, 0x48, 0x58)
    base = {n: {"size": s, "signed": False, "kind": "int" if s else "void", "endian": "little"}
            for n, s in [("unsigned char", 1), ("unsigned short", 2), ("unsigned long", 4), ("unsigned long long", 8), ("pointer", p), ("void", 0)]}
    base["unsigned char"]["kind"] = "char"

    def b(name):
        return {"kind": "base", "name": name}

    def st(name):
        return {"kind": "struct", "name": name}

    def ptr(t):
        return {"kind": "pointer", "subtype": t}

    def struct_(size, **fields):
        return {"kind": "struct", "size": size, "fields": {k: {"offset": off, "type": t} for k, (off, t) in fields.items() if off is not None}}

    types = {
        "_LIST_ENTRY": struct_(2 * p, Flink=(0, ptr(st("_LIST_ENTRY"))), Blink=(p, ptr(st("_LIST_ENTRY")))),
        "_UNICODE_STRING": struct_(2 * p, Length=(0, b("unsigned short")), MaximumLength=(2, b("unsigned short")), Buffer=(p, ptr(b("unsigned short")))),
        "_CLIENT_ID": struct_(2 * p, UniqueProcess=(0, ptr(b("void"))), UniqueThread=(p, ptr(b("void")))),
        "_KPROCESS": struct_(0x100, DirectoryTableBase=(o["KPROCESS.DirectoryTableBase"], b(word))),
        "_EPROCESS": struct_(o["EPROCESS.size"], Pcb=(0, st("_KPROCESS")), UniqueProcessId=(o["EPROCESS.UniqueProcessId"], b(word)),
                             ActiveProcessLinks=(o["EPROCESS.ActiveProcessLinks"], st("_LIST_ENTRY")), ThreadListHead=(o["EPROCESS.ThreadListHead"], st("_LIST_ENTRY")),
                             ImageFileName=(o["EPROCESS.ImageFileName"], {"kind": "array", "count": 15, "subtype": b("unsigned char")})),
        "_KTHREAD": struct_(o["KTHREAD.State"] + 1, State=(o["KTHREAD.State"], b("unsigned char"))),
        "_ETHREAD": struct_(o["ETHREAD.size"], Tcb=(0, st("_KTHREAD")), Cid=(o["ETHREAD.Cid"], st("_CLIENT_ID")), ThreadListEntry=(o["ETHREAD.ThreadListEntry"], st("_LIST_ENTRY"))),
        "_LDR_DATA_TABLE_ENTRY": struct_(loader[0], InLoadOrderLinks=(0, st("_LIST_ENTRY")), DllBase=(loader[1], ptr(b("void"))), SizeOfImage=(loader[2], b("unsigned long")),
                                         FullDllName=(loader[3], st("_UNICODE_STRING")), BaseDllName=(loader[4], st("_UNICODE_STRING"))),
    }
    table = {"metadata": {"format": "6.1.0", "producer": {"name": "kernelpeers", "version": "1", "datetime": "2024-01-01T00:00:00"}},
             "base_types": base, "user_types": types, "enums": {},
             "symbols": {n: {"address": a - nt} for n, a in d["lists"].items()}}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(table))


def volatility_open(path, d):
    """volatility3's layers over a dump: the context, and a maker of address spaces."""
    from volatility3.framework import contexts
    from volatility3.framework.layers import crash, intel, physical

    c = contexts.Context()
    c.config["base.location"] = pathlib.Path(path).absolute().as_uri()
    c.add_layer(physical.FileLayer(c, "base", "base"))
    c.config["dump.base_layer"] = "base"
    c.add_layer((crash.WindowsCrashDump32Layer if pointer(d) == 4 else crash.WindowsCrashDump64Layer)(c, "dump", "dump"))
    tables = {"x64": intel.WindowsIntel32e, "x86 PAE": intel.WindowsIntelPAE, "x86": intel.WindowsIntel}[d["paging"]]

    def virtual(name, dtb):
        c.config[name + ".memory_layer"] = "dump"
        c.config[name + ".page_map_offset"] = dtb & ~(0x1F if d["paging"] == "x86 PAE" else 0xFFF)
        c.add_layer(tables(c, name, name))
        return c.layers[name]

    return c, virtual


def volatility_lists(c, d, table):
    """The walks of volatility3's pslist, threads and modules in the space "kernel"."""
    from volatility3.framework import contexts
    from volatility3.framework.symbols import intermed
    from volatility3.framework.symbols.windows import extensions
    from volatility3.plugins.windows import modules, pslist, threads

    symbols(d, table)
    isf = intermed.IntermediateSymbolTable(c, "symbols", "nt", isf_url=table.absolute().as_uri(),
                                           class_types={"_LIST_ENTRY": extensions.LIST_ENTRY, "_UNICODE_STRING": extensions.UNICODE_STRING})
    c.symbol_space.append(isf)
    contexts.Module.create(c, "nt", "kernel", offset=d["nt"] & 0xFFFFFFFFFFFF)
    got = {}
    for p in pslist.PsList.list_processes(c, "nt"):
        name = bytes(p.ImageFileName).split(b"\0")[0].decode() if not isinstance(p.ImageFileName, str) else p.ImageFileName
        found = [(int(t.Cid.UniqueThread), canonical(t.vol.offset)) for t in threads.Threads.list_threads(c, "nt", p)]
        got[canonical(p.vol.offset)] = (int(p.UniqueProcessId), name, found)
    return got, [canonical(int(m.DllBase)) for m in modules.Modules.list_modules(c, "nt")]


def volatility(path, d, user, folder):
    """volatility3: its layers, and the list walks of its pslist, threads and modules."""
    from volatility3.framework import exceptions

    score = Score()
    c, virtual = volatility_open(path, d)

    def get(from_, va, size):
        try:
            return from_.read(va, size)
        except exceptions.InvalidAddressException:
            return None

    for n, first in d["pages"].items():
        score.add("pages", get(c.layers["dump"], int(n) * PAGE, 16) == bytes.fromhex(first), f"frame {int(n):#x}")
    kernel = virtual("kernel", d["dtb"])
    spaces = {}
    for p in probes(d, user):
        if p["why"] in VOLATILITY_LACKS:
            continue
        if p["pid"] and p["pid"] not in spaces:
            spaces[p["pid"]] = virtual(f"process{p['pid']}", p["dtb"])
        got = get(spaces.get(p["pid"], kernel), p["va"] & 0xFFFFFFFFFFFF, max(len(p["data"]) // 2, 1))
        score.add("translated", got == (bytes.fromhex(p["data"]) or None), f"{p['why']} at {p['va']:#x}")
    got, bases = volatility_lists(c, d, folder / (pathlib.Path(path).stem + ".json"))
    compare_lists(d, got, bases, score)
    return score


def walk(path, folder):
    """Lists processes, threads and modules with volatility3 and nothing else, to be timed."""
    d = json.loads(pathlib.Path(path[:-4] + ".json").read_text())
    c, virtual = volatility_open(path, d)
    virtual("kernel", d["dtb"])
    got, bases = volatility_lists(c, d, folder / "walk.json")
    print(f"{len(got)} processes, {sum(len(t) for _, _, t in got.values())} threads, {len(bases)} modules")


def pointer(d):
    return 4 if d["arch"] == 0x14C else 8


def canonical(va):
    return va | 0xFFFF << 48 if va >> 47 & 1 else va


def main():
    if sys.argv[1] == "-walk":
        return walk(sys.argv[2], pathlib.Path(sys.argv[3]))
    folder, rows, failed = pathlib.Path(sys.argv[2]), [], False
    for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.dmp")), key=lambda p: (p.rsplit("-", 1)[0], int(p.rsplit("-", 1)[1][:-4]))):
        d = json.loads(pathlib.Path(path[:-4] + ".json").read_text())
        if d["paging"] not in ("x64", "x86", "x86 PAE"):
            continue  # neither tool translates those
        user = d["kind"] not in (2, 6, 8)
        for name, tool, kinds in [("kdmp-parser", kdmp, (1, 5, 6, 8, 9, 10)), ("volatility3", lambda *a: volatility(*a, folder), (1, 5))]:
            if d["kind"] not in kinds or name == "kdmp-parser" and d["paging"] != "x64":
                continue
            with contextlib.redirect_stdout(io.StringIO()):
                score = tool(path, d, user)
            rows.append((pathlib.Path(path).stem.rsplit("-", 1)[0].replace("-", " "), d["kind"], name, [score.cell(p) for p in PARTS]))
            for note in score.notes:
                print(f"{path}: {name}: {note}", file=sys.stderr)
                failed = True
    print("| machine | DumpType | tool | " + " | ".join(PARTS) + " |\n|---|---:|---|" + "---:|" * len(PARTS))
    for machine, kind, tool, cells in rows:
        print(f"| {machine} | {kind} | {tool} | " + " | ".join(cells) + " |")
    sys.exit(failed)


if __name__ == "__main__":
    main()
