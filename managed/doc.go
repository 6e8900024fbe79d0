// Package managed reads the .NET runtime of a dumped process: which method the
// code at an address is of, where it begins and how it is unwound, the managed
// threads, and the exceptions they threw. It needs no DAC and no symbols.
//
// Sources of the layouts, in the order of trust:
//
//   - the runtime's own data contract descriptor (the export
//     DotNetRuntimeContractDescriptor of .NET 9 and later; the public documents
//     docs/design/datacontracts of dotnet/runtime), which tells the offsets of the
//     very build;
//   - where a build has none: the code heap's structures, which the public
//     out-of-process callback of debuggers keeps as they are in all versions, as far
//     as measured on .NET Core 2.2 and .NET 10;
//   - ReadyToRun images by their own tables (docs/design/coreclr/botr/readytorun-format.md
//     of dotnet/runtime): no structure of a process is needed.
//
// What none of these tells is unknown. Method.Source says which of them a name is
// by. Nothing in memory is trusted: each walk has a cap, and each read an error
// that says which field of what structure was not there.
package managed
