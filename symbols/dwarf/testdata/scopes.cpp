// Built by make.sh: names in namespaces and classes, mangled and not.
namespace app {
struct Job {
	int n;
	int run(int by);
};
namespace {
struct Local {
	__attribute__((noinline)) int go(int k) { return k > 2 ? go(k - 1) * k : k; }
};
} // namespace
__attribute__((noinline)) int Job::run(int by)
{
	Local l;
	return l.go(n) + by;
}
template <typename T> __attribute__((noinline)) T twice(T v) { return v + v; }
} // namespace app

extern "C" int start(int n)
{
	app::Job j;
	j.n = n;
	return j.run(2) + app::twice(n);
}
