// The source of inline-x64.pdb and inline-x86.pdb; see README.md.

namespace shapes {

struct Point {
  int x;
  int y : 5;
  int z : 27;
  const char *name;
};

struct Base {
  virtual ~Base() {}
  long long id;
};

struct Box : Base {
  Point corner[2];
  unsigned short depth[3][4];
  union {
    float f;
    unsigned u;
  } tag;
  static int count;
  __forceinline int area(int scale) const {
    int w = corner[1].x - corner[0].x;
    int h = corner[1].y - corner[0].y;
    return w * h * scale;
  }
};

int Box::count;

} // namespace shapes

static volatile int sink;

static __forceinline int square(int v) {
  sink = v;
  return v * v;
}

static __forceinline int twice(int v) {
  int s = square(v);
  sink = s;
  return s + square(v + 1);
}

extern "C" __declspec(noinline) int leaf(int v) {
  if (v > 3)
    sink = twice(v);
  return square(v) + 7;
}

extern "C" __declspec(noinline) int measure(const shapes::Box *b, int scale) {
  int a = b->area(scale);
  sink = a;
  return leaf(a) + b->area(scale + 1);
}

void operator delete(void *, decltype(sizeof(0))) noexcept {}
void operator delete(void *) noexcept {}
extern "C" int _fltused = 0;

extern "C" int entry() {
  shapes::Box box = {};
  box.corner[1].x = sink;
  box.corner[1].y = 3;
  shapes::Box::count = measure(&box, sink);
  return leaf(shapes::Box::count);
}
