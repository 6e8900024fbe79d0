"""Compares the stacks that several tools find in the same dumps with the ones that are known.

Called by bench/peers.sh. A frame is a pair of a program counter and a stack
pointer, so that two frames of one recursive function differ, and a frame is
right when the pair is one of the known ones of its thread.
"""
import argparse
import collections
import json
import os
import platform
import re
import statistics
import struct
import subprocess
import sys
import tempfile

GROUPS = [  # title, dumps
    ("threads that hang", r"t64-clang-O1-hang_(?!jit|readfile\.full)"),
    ("a hang called from JIT code", r"t64-clang-O1-hang_jit"),
    ("crashes, seen by a debugger", r"t64-clang-O1-dbg_(?!so)"),
    ("crashes, dumped by the process itself", r"t64-clang-O1-inproc_"),
    ("a stack overflow", r"t64-clang-O1-dbg_so"),
    ("MSVC's code: winpty-agent", r"msvc-"),
    ("MSVC's and V8's code: node 16", r"node-"),
    ("no C runtime", r"mini-.*O2\.dmp"),
    ("full memory", r"\.full\.dmp"),
]


def truth(text):
    """The frames known of each thread, and whether the list ends where the thread began."""
    threads = collections.defaultdict(list)
    virtual, table, crashed, last = [], False, None, {}
    for line in text:
        word = line.split()
        pairs = dict(p.split("=", 1) for p in word if "=" in p)
        if line.startswith("SW "):
            tid = int(pairs["tid"])
            threads[tid].append((int(pairs["pc"], 16), int(pairs["sp"], 16)))
            last[tid] = line
        elif line.startswith("FILTER "):
            crashed = int(pairs["tid"])
        elif line.startswith("XU ") and crashed is not None:
            threads[crashed].append((int(pairs["rip"], 16), int(pairs["rsp"], 16)))
            last[crashed] = line
        elif line.startswith("VU "):
            virtual.append((int(pairs["tid"]), int(pairs["rip"], 16), int(pairs["rsp"], 16)))
        elif line.startswith("JIT "):
            table = pairs.get("table") == "1"
    # The walk from outside stops at code made at run time. Where that code has a
    # function table, the walk from inside goes on: they meet in one stack pointer.
    if table:
        for tid, frames in threads.items():
            mine = [(pc, sp) for t, pc, sp in virtual if t == tid]
            stacks = [sp for _, sp in mine]
            if frames and frames[-1][1] in stacks:
                frames += mine[stacks.index(frames[-1][1]) + 1:]
                last[tid] = "ntdll"
    return {tid: (frames, "ntdll" in last[tid]) for tid, frames in threads.items()}


def thread_ids(path):
    """The thread ids of a minidump in the order of its list, for tools that number threads."""
    with open(path, "rb") as f:
        data = f.read(1 << 20)
    count, directory = struct.unpack_from("<II", data, 8)
    for i in range(count):
        kind, _, rva = struct.unpack_from("<III", data, directory + 12 * i)
        if kind == 3:
            n, = struct.unpack_from("<I", data, rva)
            return [struct.unpack_from("<I", data, rva + 4 + 48 * t)[0] for t in range(n)]
    return []


def from_json(out, ids):
    threads = {}
    for t in json.loads(out)["threads"]:
        threads[t["thread_id"]] = [(int(f["ip"], 16), int(f["child_sp"], 16)) for f in t.get("frames") or []]
    return threads


def from_lldb(out, ids):
    threads, order, current = {}, [], None
    for line in out.splitlines():
        if m := re.match(r"[* ] T (0x[0-9a-f]+)", line):
            order.append(int(m.group(1), 16))
        elif m := re.match(r"[* ] thread #(\d+)", line):
            current = threads.setdefault(order[int(m.group(1)) - 1], [])
        elif m := re.match(r"[* ]+ F (0x[0-9a-f]+) (0x[0-9a-f]+)", line):
            frame = (int(m.group(1), 16), int(m.group(2), 16))
            if not current or current[-1] != frame:  # an inlined call repeats its caller's registers
                current.append(frame)
    return threads


def from_stackwalk(out, ids):
    """The text of Breakpad's program and of rust-minidump's, which are alike."""
    threads, current, frame = {}, None, {}

    def close():
        if current is not None and "rip" in frame:
            current.append((frame["rip"], frame["rsp"]))
        frame.clear()

    for line in out.splitlines():
        if m := re.match(r"Thread (\d+)", line):
            close()
            tid = re.search(r"tid: (\d+)", line)
            current = threads.setdefault(int(tid.group(1)) if tid else ids[int(m.group(1))], [])
        elif line.startswith("Loaded modules"):
            close()
            break
        elif re.match(r" ?\d+  \S", line):
            close()
        for name, value in re.findall(r"\b(rip|rsp) = 0x([0-9a-f]+)", line):
            frame[name] = int(value, 16)
    close()
    return threads


def measure(command, runs):
    """Standard output, mean user and whole CPU time in seconds, and peak memory in bytes."""
    user, cpu, peak, out = [], [], 0, ""
    for _ in range(runs):
        with tempfile.TemporaryFile() as f:
            p = subprocess.Popen(command, stdout=f, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            _, status, usage = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
            f.seek(0)
            out = f.read().decode("utf-8", "replace")
        user.append(usage.ru_utime)
        cpu.append(usage.ru_utime + usage.ru_stime)
        peak = max(peak, usage.ru_maxrss * 1024)
    return out, statistics.mean(user), statistics.mean(cpu), peak


def judge(known, shown):
    """Known frames that were shown, frames shown that are none, and whether the whole stack is right."""
    frames, whole = known
    real = set(frames)
    right = len(real & set(shown))
    # Below the end of a list that was cut short, nothing is known.
    false = sum(f not in real and (whole or f[1] <= frames[-1][1]) for f in shown)
    head = shown if whole else shown[:len(frames)]
    return right, false, head == frames


def version(command, pattern):
    out = subprocess.run(command, capture_output=True, text=True).stdout
    m = re.search(pattern, out)
    return m.group(1) if m else "?"


def tools(a):
    images = os.path.join(a.work, "images")
    dumptriage = os.path.join(a.work, "dumptriage")
    ours = [dumptriage, "stacks", "--json", "--quiet"]
    found = [
        ("dumptriage", "images", from_json, lambda d: ours + [d, "--images", images]),
        ("dumptriage", "none", from_json, lambda d: ours + [d]),
    ]
    if a.lldb:
        name = "lldb " + version([a.lldb, "--version"], r"version (\S+)")
        formats = ["-o", 'settings set frame-format "F ${frame.pc} ${frame.sp}\\n"',
                   "-o", 'settings set thread-format "T ${thread.id}\\n"']
        base = [a.lldb, "--no-lldbinit", "-b"] + formats
        tail = lambda d: ["-o", 'target create --core "%s"' % d, "-o", "thread list", "-o", "bt all"]
        found.insert(1, (name, "images", from_lldb,
                         lambda d: base + ["-o", "settings set target.exec-search-paths " + images] + tail(d)))
        found.append((name, "none", from_lldb, lambda d: base + tail(d)))
    if os.path.exists(a.breakpad):
        found.append(("breakpad (npm minidump 0.26.0)", "none", from_stackwalk, lambda d: [a.breakpad, d]))
    if os.path.exists(a.rust):
        name = "rust-minidump " + version([a.rust, "--version"], r"(\d\S+)")
        found.append((name, "none", from_stackwalk, lambda d: [a.rust, "--human", d]))
    return found


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    for option in ("corpus", "work", "breakpad", "rust", "lldb"):
        ap.add_argument("--" + option, default="")
    ap.add_argument("--runs", type=int, default=5)
    a = ap.parse_args()

    dumps = []
    for name in sorted(os.listdir(os.path.join(a.work, "dumps"))):
        folder = next(f for f in ("t64-clang-O1", "mini", "msvc", "node") if name.startswith(f + "-"))
        text = re.sub(r"(\.full)?\.dmp$", ".txt", name[len(folder) + 1:])
        with open(os.path.join(a.corpus, folder, text)) as f:
            known = truth(f)
        if known:
            dumps.append((name, os.path.join(a.work, "dumps", name), known))

    columns = tools(a)
    right, false, whole = collections.Counter(), collections.Counter(), collections.Counter()
    total, stacks, count = collections.Counter(), collections.Counter(), collections.Counter()
    user, cpu, memory = collections.Counter(), collections.Counter(), collections.Counter()
    for name, path, known in dumps:
        group = next(g for g, (_, pattern) in enumerate(GROUPS) if re.search(pattern, name))
        ids = thread_ids(path)
        count[group] += 1
        total[group] += sum(len(f) for f, _ in known.values())
        stacks[group] += len(known)
        for c, (tool, given, parse, command) in enumerate(columns):
            out, seconds, both, peak = measure(command(path), a.runs)
            try:
                threads = parse(out, ids)
            except (ValueError, KeyError, IndexError) as e:
                print("%s: %s: no answer: %r" % (name, tool, e), file=sys.stderr)
                threads = {}
            here = [judge(k, threads.get(tid, [])) for tid, k in known.items()]
            right[c, group] += sum(h[0] for h in here)
            false[c, group] += sum(h[1] for h in here)
            whole[c, group] += sum(h[2] for h in here)
            user[c] += seconds
            cpu[c] += both
            memory[c] = max(memory[c], peak)
            print("%-40s %-32s %-6s right %d of %d, false %d, %.3f s" % (
                name, tool, given, sum(h[0] for h in here), sum(len(f) for f, _ in known.values()),
                sum(h[1] for h in here), seconds), file=sys.stderr)

    def row(title, cells):
        print("| " + " | ".join([title] + [str(c) for c in cells]) + " |")

    n = range(len(columns))
    every = range(len(GROUPS))
    print("%d dumps, %d stacks, %d frames known; %s, %s\n" % (
        len(dumps), sum(stacks.values()), sum(total.values()), platform.machine(), platform.system()))
    row("", [tool for tool, *_ in columns])
    row("---", ["---:"] * len(columns))
    row("given the images", ["yes" if given == "images" else "no" for _, given, *_ in columns])
    for g, (title, _) in enumerate(GROUPS):
        if count[g]:
            row("%s (%d dump%s)" % (title, count[g], "s" * (count[g] > 1)),
                ["%d/%d" % (right[c, g], total[g]) for c in n])
    row("**frames right of frames known**", ["**%d/%d**" % (sum(right[c, g] for g in every), sum(total.values())) for c in n])
    row("frames shown that are none", [sum(false[c, g] for g in every) for c in n])
    row("stacks right from end to end", ["%d/%d" % (sum(whole[c, g] for g in every), sum(stacks.values())) for c in n])
    row("user time, all dumps", ["%.2f s" % user[c] for c in n])
    row("user and system time", ["%.2f s" % cpu[c] for c in n])
    row("peak memory", ["%.0f MB" % (memory[c] / 1e6) for c in n])


if __name__ == "__main__":
    main()
