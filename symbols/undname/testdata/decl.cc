// Declarations of every kind that the decoration of names tells apart. Compiled by
// clang 19 for x86_64 and i686-pc-windows-msvc (-std=c++20 -fms-extensions); the
// names it made and what llvm-undname 19 says of them are names.tsv.
namespace std { using nullptr_t = decltype(nullptr); typedef decltype(sizeof 0) size_t; enum class align_val_t : size_t {}; struct strong_ordering{}; template<class R,class...A> struct coroutine_traits; }
void *operator new(std::size_t, void*);
namespace { struct Anon { int m; virtual void v(); }; struct Anon2{}; void Anon::v(){} template<class T> T anonT(T t, Anon*, Anon2&){ return t; } }
namespace ns { namespace inner {
template<class T, class U=int> struct Tpl { T t; U u; Tpl(); ~Tpl(); Tpl(Tpl&&); Tpl(const Tpl&); template<class V> Tpl(V); template<class V> operator V(); operator T*(); static T s; T& operator[](int); Tpl& operator=(const Tpl&); Tpl*operator->(); T operator()(int, ...) const volatile; struct In { void f(Tpl, In*, U) const &; void g() &&; void h() volatile; void n() noexcept; }; };
template<class T,class U> Tpl<T,U>::Tpl(){} template<class T,class U> Tpl<T,U>::~Tpl(){} template<class T,class U> Tpl<T,U>::Tpl(Tpl&&){} template<class T,class U> Tpl<T,U>::Tpl(const Tpl&){}
template<class T,class U> template<class V> Tpl<T,U>::Tpl(V){} template<class T,class U> template<class V> Tpl<T,U>::operator V(){ return V(); } template<class T,class U> Tpl<T,U>::operator T*(){return nullptr;}
template<class T,class U> T Tpl<T,U>::s{}; template<class T,class U> T& Tpl<T,U>::operator[](int){return t;} template<class T,class U> auto Tpl<T,U>::operator=(const Tpl&)->Tpl&{return *this;}
template<class T,class U> auto Tpl<T,U>::operator->()->Tpl*{return this;} template<class T,class U> T Tpl<T,U>::operator()(int,...) const volatile {return T();}
template<class T,class U> void Tpl<T,U>::In::f(Tpl,In*,U) const & {} template<class T,class U> void Tpl<T,U>::In::g() && {} template<class T,class U> void Tpl<T,U>::In::h() volatile {} template<class T,class U> void Tpl<T,U>::In::n() noexcept {}
template struct Tpl<int>; template struct Tpl<Tpl<char const*>, double>; template struct Tpl<Anon*,Anon2*>; template struct Tpl<void(*)(int,char),int Anon::*>; template struct Tpl<bool,void (Anon::*)(Anon) const>;
template Tpl<int>::Tpl(long); template Tpl<int>::operator double(); template Tpl<int>::operator Tpl<char>*();
} }
using namespace ns::inner;
enum E1 { A }; enum class E2 : char { B }; union Un { int a; float b; }; class Cl;
void prims(signed char, unsigned char, char, short, unsigned short, int, unsigned, long, unsigned long, long long, unsigned long long, float, double, long double, bool, wchar_t, char16_t, char32_t, std::nullptr_t){}
void tags(E1,E2,Un,Cl*,const Cl&,volatile Cl*,Cl*const,E1*,E1&&,const E2*const*){}
void arrs(int (*)[3], int (&)[2][4], const char (&)[5], int (*(*)[2])(int), char const*const(*)[1]){}
int (*retfp(int))(char){return 0;} int (&retarr())[3]{ static int x[3]; return x; } auto retmp() -> int (Anon::*)(int) const {return 0;}
void fps(void (*)(void(*)(int),void(*)(int)), int (__stdcall *)(int), int (__vectorcall*)(float), int (*)(...), int (*)(int,...), void (*&)(void), void (* const*)(void)){}
void mps(int Anon::*, void (Anon::*)(), void (Anon::*)() const, int (Tpl<int>::*)(int,...) volatile, int const Anon::*, int Anon::**){}
void nothr() noexcept {} void fnnothr(void (*)() noexcept){}
void __vectorcall vc(float,double){} void __fastcall fc(int){} void __stdcall sc(int){} void __regcall rc(int){}
int gv; const int gc=1; extern const int gce; const int gce=1; int*gp; const int*gcp; int*const gpc=0; extern int*const gpce; int*const gpce=0; int garr[3][4]; const int gcarr[2]={}; int (*gfp)(int); int Anon::*gmp; void (Tpl<int>::*gmfp)(int); volatile int gvol; int (*gparr)[3]; int &gref=gv; int&&grref=3; Tpl<int> gt; E1 ge; Un gu; Cl*gcl; namespace {int ganon;} const volatile Cl*const volatile*gcv;
extern "C" { int ec_var; void ec_fn(int){ struct L{ void m(){} }; L().m(); static int ls=gv; (void)&ls; } }
inline int &locals(){ static int a=gv; static Tpl<int> t; { static int b=gv; static Tpl<double> d; return b; } }
void uses(){ locals(); auto l=[](int x){ static int q=gv; return x+q; }; l(3); auto m=[&](auto x){ struct InL{ void z(){} }; InL().z(); return [=](char c){ return c; }(1); }; m(1); m("a"); struct Loc { struct Deep { virtual void q(){} }; Deep d; }; Loc lo; lo.d.q(); (new Loc::Deep)->q(); anonT(1,nullptr,*(Anon2*)0); Tpl<Loc>(); new Anon; ganon=1; }
struct B1{virtual ~B1(); virtual void f(int); int b1;}; struct B2{virtual ~B2(); virtual void g(); virtual B2*cov(); int b2;}; struct D:B1,B2{ ~D(); void f(int); void g(); D*cov(); }; struct VB: virtual B1, virtual B2 { VB(); ~VB(); void f(int); void g(); VB*cov();  }; struct VD: VB, virtual D { VD(); ~VD(); void f(int); void g(); VD*cov(); };
B1::~B1(){} void B1::f(int){} B2::~B2(){} void B2::g(){} B2*B2::cov(){return this;} D::~D(){} void D::f(int){} void D::g(){} D*D::cov(){return this;} VB::VB(){} VB::~VB(){} void VB::f(int){} void VB::g(){} VB*VB::cov(){return this;} VD::VD(){} VD::~VD(){} void VD::f(int){} void VD::g(){} VD*VD::cov(){return this;}
void (B1::*vpm)(int)=&B1::f; void (B2::*vpm2)()=&B2::g; void (VB::*vpm3)()=&VB::g;
struct Ops { Ops operator+(Ops); Ops operator-(); Ops operator*(Ops); Ops operator/(Ops); Ops operator%(Ops); Ops operator^(Ops); Ops operator&(Ops); Ops operator|(Ops); Ops operator~(); Ops operator!(); bool operator<(Ops); bool operator>(Ops); bool operator==(Ops); bool operator!=(Ops); bool operator<=(Ops); bool operator>=(Ops); Ops operator+=(Ops); Ops operator-=(Ops); Ops operator*=(Ops); Ops operator/=(Ops); Ops operator%=(Ops); Ops operator^=(Ops); Ops operator&=(Ops); Ops operator|=(Ops); Ops operator<<(Ops); Ops operator>>(Ops); Ops operator<<=(Ops); Ops operator>>=(Ops); bool operator&&(Ops); bool operator||(Ops); Ops operator++(); Ops operator++(int); Ops operator--(); Ops operator,(Ops); Ops operator->*(Ops); std::strong_ordering operator<=>(Ops); static void*operator new(std::size_t); static void*operator new[](std::size_t); static void operator delete(void*); static void operator delete[](void*); explicit operator bool() const; operator const char*() const; typedef void(*FP)(int); operator FP();  private: static int ps; void pf(); static void psf(); virtual void pvf(); protected: static int prs; void prf(); static void prsf(); virtual void prvf(); };
#define O(op) Ops Ops::operator op(Ops x){return x;}
O(+) O(*) O(/) O(%) O(^) O(&) O(|) O(+=) O(-=) O(*=) O(/=) O(%=) O(^=) O(&=) O(|=) O(<<) O(>>) O(<<=) O(>>=) Ops Ops::operator,(Ops x){return x;} O(->*)
#define P(op) bool Ops::operator op(Ops x){return 1;}
P(<) P(>) P(==) P(!=) P(<=) P(>=) P(&&) P(||)
Ops Ops::operator-(){return *this;} Ops Ops::operator~(){return *this;} Ops Ops::operator!(){return *this;} Ops Ops::operator++(){return *this;} Ops Ops::operator++(int){return *this;} Ops Ops::operator--(){return *this;} std::strong_ordering Ops::operator<=>(Ops){return {};} void*Ops::operator new(std::size_t){return 0;} void*Ops::operator new[](std::size_t){return 0;} void Ops::operator delete(void*){} void Ops::operator delete[](void*){} Ops::operator bool() const{return 1;} Ops::operator const char*() const{return 0;}
int Ops::ps=gv; int Ops::prs=gv; void Ops::pf(){} void Ops::psf(){} void Ops::pvf(){} void Ops::prf(){} void Ops::prsf(){} void Ops::prvf(){}
long double operator""_km(long double x){return x;} int operator""_s(const char*,std::size_t){return 0;}
template<int I> void ti(){} template void ti<0>(); template void ti<-1>(); template void ti<12345>(); template<unsigned long long I> void tu(){} template void tu<~0ull>(); template<bool B> void tb(){} template void tb<true>(); template<E2 e> void te(){} template void te<E2::B>();
template<int*P> void tp(){} template void tp<&gv>(); template void tp<nullptr>(); template<int&P> void tr(){} template void tr<gv>(); template<void(*F)(int)> void tf(){} void tfn(int){} template void tf<tfn>(); template void tf<nullptr>(); template<int Anon::*P> void tm(){} template void tm<&Anon::m>(); template void tm<nullptr>(); template<void (B1::*F)(int)> void tmf(){} template void tmf<&B1::f>(); template void tmf<nullptr>(); template<void (VB::*F)()> void tmv(){} template void tmv<&VB::g>(); template<void (D::*F)()> void tmd(){} template void tmd<&D::g>();
template<class...T> void tv(T...){} template void tv<>(); template void tv<int,char*>(int,char*); template<class T,class...U> struct Pk{ void f(U...); }; template<class T,class...U> void Pk<T,U...>::f(U...){} template struct Pk<int>; template struct Pk<int,Pk<char>,Pk<int>>; 
template<template<class...> class TT> void ttt(){} template void ttt<Pk>(); template<auto V> void ta(){} template void ta<5>(); template void ta<'c'>(); template void ta<&gv>(); template void ta<true>(); template<class T> void tt(){} template void tt<int[3]>(); template void tt<const int>(); template void tt<int[]>(); template void tt<void(int)>(); template void tt<void() const>(); template void tt<int const[2][3]>(); template void tt<const Cl>(); template void tt<int&>(); template void tt<int&&>(); template void tt<void(&)(int)>(); template void tt<Cl*volatile>(); template void tt<std::nullptr_t>(); template void tt<void() noexcept>(); template void tt<int (Anon::*)() const &>();
template<class T> int vt=sizeof(T)+gv; template int vt<int>; template int vt<Tpl<char>>;
const char*strs[]={"abc","","a\n\t\\\"'","0123456789012345678901234567890123456789","\xff\x80\1","?"}; const wchar_t*ws[]={L"wide",L"",L"0123456789012345678901234567890123456789",L"\x1234\xff"}; const char16_t*u16[]={u"u16",u"x",u"01234567890123456789"}; const char32_t*u32[]={U"u32",U"x",U"01234567890123456789"};
struct Ret{}; const Ret cr(){return {};} Ret*const crp(){return 0;} const Ret*volatile vr(){return 0;} const int ci(){return 1;}
void many(Cl*,Ret*,Un*,B1*,B2*,D*,VB*,VD*,Ops*,Anon*,E1*,Cl*,Anon*,E1*,E1*,Ret*){}
struct Uu{ static const int k; static thread_local int tl; int f() const &; int g() const &&; int h() &;}; const int Uu::k=1; thread_local int Uu::tl=gv; int Uu::f() const & {return tl;} int Uu::g() const&&{return 0;} int Uu::h()&{return 0;} thread_local int tls=gv; int usetls(){return tls;}
void restr(int*__restrict,int __unaligned*, int*__restrict*){}
struct { int unn; void f(){} } unnamed; enum { UNE } unenum; void useun(){ unnamed.f(); tt<decltype(unnamed)>(); tt<decltype(unenum)>(); }
void thr(){ try{ throw D(); }catch(B1&){} try { throw 1; } catch(const char*){} catch(int*const&){} throw Tpl<int>(); }
Ops::operator FP(){return 0;}
