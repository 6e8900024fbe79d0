// Prints what Mono.Cecil, a reader that shares nothing with ours, reads of an assembly:
// every method, type reference, constructed type, member reference and instantiated method.
//   mcs -r:Mono.Cecil.dll -out:oracle.exe oracle.cs
//   mono oracle.exe names.dll >names.txt
// (Mono.Cecil 0.11 beside it.) It cannot show type variables outside a type or method:
// such rows are left out.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using Mono.Cecil;

static class Oracle {
    static readonly Dictionary<MetadataType, string> simple = new Dictionary<MetadataType, string> {
        {MetadataType.Void, "Void"}, {MetadataType.Boolean, "Boolean"}, {MetadataType.Char, "Char"}, {MetadataType.SByte, "SByte"},
        {MetadataType.Byte, "Byte"}, {MetadataType.Int16, "Int16"}, {MetadataType.UInt16, "UInt16"}, {MetadataType.Int32, "Int32"},
        {MetadataType.UInt32, "UInt32"}, {MetadataType.Int64, "Int64"}, {MetadataType.UInt64, "UInt64"}, {MetadataType.Single, "Single"},
        {MetadataType.Double, "Double"}, {MetadataType.String, "System.String"}, {MetadataType.Object, "System.Object"},
        {MetadataType.IntPtr, "IntPtr"}, {MetadataType.UIntPtr, "UIntPtr"}, {MetadataType.TypedByReference, "TypedReference"},
    };

    // Show is a type within a signature.
    static string Show(TypeReference t) {
        string s;
        if (simple.TryGetValue(t.MetadataType, out s)) return s;
        var mod = t as IModifierType;
        if (mod != null) return Show(mod.ElementType);
        if (t is PinnedType || t is SentinelType) return Show(((TypeSpecification)t).ElementType);
        if (t is PointerType) return Show(((PointerType)t).ElementType) + "*";
        if (t is ByReferenceType) return Show(((ByReferenceType)t).ElementType) + " ByRef";
        var a = t as ArrayType;
        if (a != null) return Show(a.ElementType) + (a.IsVector ? "[]" : a.Rank == 1 ? "[*]" : "[" + new string(',', a.Rank - 1) + "]");
        var g = t as GenericInstanceType;
        if (g != null) return Show(g.ElementType) + "<" + string.Join(",", g.GenericArguments.Select(Show)) + ">";
        var p = t as GenericParameter;
        if (p != null) return (p.MetadataType == MetadataType.Var ? "!" : "!!") + p.Position;
        var f = t as FunctionPointerType;
        if (f != null) return "method " + Show(f.ReturnType) + " *(" + Params(f.Parameters) + ")";
        return t.DeclaringType == null && t.Namespace != "" ? t.Namespace + "." + t.Name : t.Name;
    }

    static string Params(IEnumerable<ParameterDefinition> ps) { return string.Join(", ", ps.Select(p => Show(p.ParameterType))); }

    // Full is the type that has a member: all that it is nested in, no arguments.
    static string Full(TypeReference t) {
        var g = t as GenericInstanceType;
        if (g != null) return Full(g.ElementType);
        if (t is TypeSpecification || t is GenericParameter) return Show(t);
        if (t.DeclaringType != null) return Full(t.DeclaringType) + "+" + t.Name;
        return t.Namespace == "" ? t.Name : t.Namespace + "." + t.Name;
    }

    static string Scope(TypeReference t) {
        if (t is GenericInstanceType) return Scope(((GenericInstanceType)t).ElementType);
        if (t is TypeSpecification || t is GenericParameter || t is TypeDefinition || t.Scope == null || t.Scope is ModuleDefinition) return "-";
        return t.Scope.Name == "" ? "-" : t.Scope.Name;
    }

    static string Method(MethodReference m, string owner) {
        return (m.HasThis ? "instance" : "static") + " " + m.GenericParameters.Count + " " + owner + "." + m.Name + "(" + Params(m.Parameters) + ") " + Show(m.ReturnType);
    }

    static int Main(string[] args) {
        var output = new System.IO.StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false)) { NewLine = "\n" };
        var module = ModuleDefinition.ReadModule(args[0]);
        output.WriteLine("module {0} {1}", module.Name, module.Mvid);
        if (module.Assembly != null) output.WriteLine("assembly {0} {1}", module.Assembly.Name.Name, module.Assembly.Name.Version);
        foreach (var r in module.AssemblyReferences) output.WriteLine("ref {0} {1}", r.Name, r.Version);
        foreach (var t in module.GetTypes()) output.WriteLine("{0:x8} type {1}", t.MetadataToken.ToInt32(), Full(t));
        foreach (var m in module.GetTypes().SelectMany(t => t.Methods).OrderBy(m => m.MetadataToken.RID))
            output.WriteLine("{0:x8} {1:x} {2}", m.MetadataToken.ToInt32(), m.RVA, Method(m, Full(m.DeclaringType)));
        foreach (var t in module.GetTypeReferences().OrderBy(t => t.MetadataToken.RID))
            output.WriteLine("{0:x8} type {1} {2}", t.MetadataToken.ToInt32(), Full(t), Scope(t));
        foreach (var r in module.GetMemberReferences().OfType<MethodReference>().OrderBy(t => t.MetadataToken.RID))
            output.WriteLine("{0:x8} 0 {1} {2}", r.MetadataToken.ToInt32(), Method(r, Full(r.DeclaringType)), Scope(r.DeclaringType));
        for (int rid = 1; ; rid++) {
            TypeReference t;
            try { t = module.LookupToken((int)TokenType.TypeSpec | rid) as TypeReference; } catch (NotSupportedException) { continue; }
            if (t == null) break;
            output.WriteLine("{0:x8} type {1}", (int)TokenType.TypeSpec | rid, Full(t));
        }
        for (int rid = 1; ; rid++) {
            GenericInstanceMethod s;
            try { s = module.LookupToken((int)TokenType.MethodSpec | rid) as GenericInstanceMethod; } catch (NotSupportedException) { continue; }
            if (s == null) break;
            output.WriteLine("{0:x8} spec {1} <{2}>", (int)TokenType.MethodSpec | rid, Full(s.DeclaringType) + "." + s.Name, string.Join(",", s.GenericArguments.Select(Show)));
        }
        output.Flush();
        return 0;
    }
}
