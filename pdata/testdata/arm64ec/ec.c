typedef int (*cb)(int);
extern int x64_inner(int);
__attribute__((noinline)) int ec_leafy(int a){ volatile int buf[16]; buf[a&15]=a; return buf[(a+1)&15]; }
__attribute__((noinline)) int ec_outer(int a, cb f){ volatile int buf[40]; buf[a&15]=x64_inner(a)+f(a); return buf[(a+1)&15]+ec_leafy(a); }
int entry(void){ return 0; }
