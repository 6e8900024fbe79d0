// Functions for which clang lays every kind of ARM64 frame that it knows.
// Built by build.sh; nothing of it needs a C library.

#include <stdarg.h>

typedef unsigned long long u64;

// The suffix tells the functions of one build from those of the other.
#define JOIN(a, b) a##b
#define EXPAND(a, b) JOIN(a, b)
#define NAME(a) EXPAND(a, SUFFIX)

static volatile u64 sink;
__attribute__((noinline)) static u64 callee(u64 a, u64 b) { return sink += a ^ b; }
__attribute__((noinline)) static double dcallee(double a) { sink++; return a * 1.5; }
__attribute__((noinline)) static void touch(void *p) { sink += (u64)p; *(volatile char *)p = 1; }

#define EXPORT __declspec(dllexport) __attribute__((noinline))

EXPORT u64 NAME(leaf)(u64 a) { return a * 3; }
EXPORT u64 NAME(one)(u64 a) { return callee(a, 1) + 1; }
EXPORT u64 NAME(kept1)(u64 a) { u64 x = callee(a, 1); callee(x, 2); return x; }
EXPORT u64 NAME(kept2)(u64 a, u64 b) { u64 x = callee(a, 1), y = callee(b, x); callee(x, 2); return x + y; }
EXPORT u64 NAME(kept3)(u64 a, u64 b, u64 c) { u64 x = callee(a, 1), y = callee(b, x), z = callee(c, y); callee(x, 2); return x + y - z; }
EXPORT u64 NAME(kept10)(u64 *p) {
	u64 a = callee(p[0], 1), b = callee(p[1], a), c = callee(p[2], b), d = callee(p[3], c), e = callee(p[4], d);
	u64 f = callee(p[5], 1), g = callee(p[6], f), h = callee(p[7], g), i = callee(p[8], h), j = callee(p[9], i);
	callee(a, 2);
	return (a ^ b) + (c ^ d) + (e ^ f) + (g ^ h) + (i ^ j) + p[10];
}
EXPORT double NAME(floats1)(double a) { double x = dcallee(a); dcallee(x); return x; }
EXPORT double NAME(floats8)(double *p) {
	double a = dcallee(p[0]), b = dcallee(p[1]), c = dcallee(p[2]), d = dcallee(p[3]);
	double e = dcallee(p[4]), f = dcallee(p[5]), g = dcallee(p[6]), h = dcallee(p[7]);
	dcallee(a);
	return a * b + c * d + e * f + g * h;
}
EXPORT double NAME(mixed)(double *p, u64 n) {
	double a = dcallee(p[0]), b = dcallee(p[n]), c = dcallee(a);
	u64 x = callee(n, 1), y = callee(x, n);
	dcallee(b);
	return a + b * c + x + y;
}
EXPORT u64 NAME(homes)(u64 n, ...) {
	va_list ap;
	va_start(ap, n);
	u64 sum = 0;
	while (n--) sum += callee(va_arg(ap, u64), n);
	va_end(ap);
	return sum;
}
EXPORT u64 NAME(homes_leaf)(u64 n, ...) {
	va_list ap;
	va_start(ap, n);
	u64 x = va_arg(ap, u64);
	va_end(ap);
	return x + n;
}
EXPORT u64 NAME(frame512)(u64 a) { char b[512]; touch(b); return callee(a, b[3]); }
EXPORT u64 NAME(frame4000)(u64 a) { char b[4000]; touch(b); return callee(a, b[3]); }
EXPORT u64 NAME(frame4080)(u64 a) { char b[4080]; touch(b + a % 9); return callee(a, b[3]); }
EXPORT u64 NAME(frame20k)(u64 a) { char b[20000]; touch(b); return callee(a, b[3]); }
EXPORT u64 NAME(frame1m)(u64 a) { char b[1 << 20]; touch(b); return callee(a, b[3]); }
EXPORT u64 NAME(variable)(u64 n) { char *b = __builtin_alloca(n & 0xff0); touch(b); return callee(n, b[0]); }
EXPORT u64 NAME(aligned)(u64 n) { _Alignas(128) char b[256]; touch(b); return callee(n, b[1]); }
EXPORT u64 NAME(leaf_frame)(u64 n) { volatile char b[64]; b[n & 63] = 1; return b[0]; }
EXPORT u64 NAME(tail)(u64 a, u64 b) { u64 x = callee(a, b); touch(&sink); return callee(x, b); }
EXPORT u64 NAME(early)(u64 *p) { // with a way that needs no frame
	if (!p) return 1;
	u64 x = callee(p[0], 1), y = callee(x, p[1]);
	if (x > y) return callee(p[2], x) + y;
	for (u64 i = 0; i < x; i++) y += callee(i, p[3]);
	return x + y;
}
EXPORT u64 NAME(many)(u64 a, u64 b) {
	switch (a) {
	case 0: return callee(b, 3);
	case 1: return callee(b, 7) + callee(b, 5);
	case 2: touch(&sink); return b;
	case 3: return callee(b, 9) * 3;
	case 4: return dcallee(b);
	case 5: touch(&sink); return callee(b, 11) + b;
	case 6: return callee(callee(b, 1), 2);
	}
	return 0;
}
__attribute__((target("branch-protection=pac-ret"))) EXPORT u64 NAME(signed1)(u64 a) { u64 x = callee(a, 1); callee(x, 2); return x; }
__attribute__((target("branch-protection=pac-ret"))) EXPORT u64 NAME(signed_early)(u64 *p) { if (!p) return 1; u64 x = callee(*p, 1); return x > 3 ? callee(x, *p) : x + callee(1, 2); }
__attribute__((target("branch-protection=pac-ret"))) EXPORT u64 NAME(signed_tail)(u64 a) { callee(a, 1); return callee(a, 2); }
