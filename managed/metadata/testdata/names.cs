// What the tests of the metadata reader name: one of each way to write a type or a
// method. Built with: mcs -target:library -unsafe -out:names.dll names.cs
using System;
using System.Collections.Generic;
using System.Reflection;
using System.Runtime.InteropServices;

[assembly: AssemblyVersion("1.2.3.4")]
[assembly: AssemblyCulture("")]

public class NoNamespace {
    public static void Global() {}
    public class In { public void M() {} }
}

namespace Shapes.Deep {
    public interface IShape { double Area { get; } void Draw<T>(T on) where T : class; }

    public struct Point : IShape {
        public int X, Y;
        public Point(int x, int y) { X = x; Y = y; }
        public double Area { get { return 0; } }
        void IShape.Draw<T>(T on) {}
        public static Point operator +(Point a, Point b) { return new Point(a.X + b.X, a.Y + b.Y); }
        public static implicit operator long(Point p) { return p.X; }
        public int this[int i, string s] { get { return i; } set { X = value; } }
    }

    public class Empty {}

    public class Box<T> {
        T value;
        public Box(T v) { value = v; }
        public T Get() { return value; }
        public void Set(T v, ref T old, out T other) { old = value; other = v; }
        public U Map<U>(Func<T, U> f) { return f(value); }
        public class Inner {
            public void Go(T t, Box<T> b, Inner self) {}
            public class Third<K, V> { public Dictionary<K, List<V[]>> All(IDictionary<T, K> d) { return null; } }
        }
        public struct Enumerator { public bool MoveNext() { return false; } }
        public Enumerator GetEnumerator() { return new Enumerator(); }
    }

    public static class Prims {
        public static void None() {}
        public static bool A(bool b, char c, sbyte i1, byte u1, short i2, ushort u2) { return b; }
        public static object B(int i4, uint u4, long i8, ulong u8, float r4, double r8, string s, object o) { return o; }
        public static IntPtr C(IntPtr p, UIntPtr q, decimal d, DateTime t, Guid g, TypedReference r) { return p; }
        public static int[] D(int[] v, int[][] jag, int[,] two, string[,,][] mix, List<int>[] l) { return v; }
        public static unsafe void* E(int* p, void** q, char*[] a, Point* pt) { return null; }
        public static void F(ref int i, out string s, ref int[] a, params object[] rest) { s = null; }
        public static int G(__arglist) { return 0; }
        public static int CallsG() { return G(__arglist(1, "x", 2.0)); }
        public static T H<T, U>(T t, U u, T[] ts, ref U ru, Func<T, U> f) { return t; }
        public static void I(int? maybe, KeyValuePair<string, int?> kv, Action<Action<Point>> a) {}
        public static void J(ConsoleKey k, Environment.SpecialFolder f, Box<int>.Inner.Third<string, Point> deep) {}
        [DllImport("kernel32", EntryPoint = "ReadFile")]
        public static extern bool K(IntPtr h, byte[] b, int n, out int read, IntPtr o);
        public static IEnumerable<int> Iterate(int n) { for (int i = 0; i < n; i++) yield return i; }
        public static async System.Threading.Tasks.Task<int> Later(int n) { await System.Threading.Tasks.Task.Delay(n); return n; }
        public static Func<int, int> Lambda(int n) { return x => x + n; }
        public static int Uses() { var b = new Box<string>("x"); H<int, string>(1, "", null, ref s, null); return b.Map<int>(x => x.Length); }
        static string s;
        static volatile int v;
        public static int ReadV() { return v; }
        public static void Übung(string größe) {}
        static Prims() { v = 1; }
    }

    public abstract class Base {
        protected abstract void Must(Base b);
        ~Base() {}
        public event EventHandler<EventArgs> Changed;
        public virtual void Raise() { if (Changed != null) Changed(this, null); }
    }

    public delegate TResult Pick<in T, out TResult>(T from, ref int index);

    public enum Colour : byte { Red, Green }
}
