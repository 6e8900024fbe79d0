package undname

import "testing"

func BenchmarkDemangle(b *testing.B) {
	facts := readFacts(b)
	b.Run("both", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			if _, _, err := DemangleBoth(facts[i%len(facts)].mangled); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, bm := range []struct {
		name string
		opt  Options
	}{{"whole", Options{}}, {"name", Options{NameOnly: true}}} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				if _, err := Demangle(facts[i%len(facts)].mangled, bm.opt); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
