// Built by make.sh. No C runtime, so that the images stay small.
__attribute__((noinline)) static int leaf(const int *p, int n)
{
	int s = 0;
	for (int i = 0; i < n; i++)
		s += p[i] * i;
	return s;
}

static inline int square(int x)
{
	return x * x + leaf(&x, 1);
}

static inline int both(int x, int y)
{
	return square(x) + square(y);
}

int deep(int n)
{
	int a[4] = {n, n + 1, n + 2, n + 3};
	return both(a[n & 3], n) + leaf(a, 4);
}

int start(void)
{
	return deep(5);
}
