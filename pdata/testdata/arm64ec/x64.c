extern int ec_outer(int, int(*)(int));
__attribute__((noinline)) static int cbk(int a){ volatile int b[30]; b[a&7]=a; return b[1]; }
int x64_inner(int a){ volatile int b[20]; b[a&7]=a; return b[1]; }
int x64_main(int a){ volatile int b[20]; b[0]=ec_outer(a, cbk); return b[0]+1; }
