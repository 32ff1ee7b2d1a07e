package cache

import "testing"

func TestCacheIsBounded(t *testing.T) {
	k := New[int](100, func(string) int { return 10 })
	for i := range 1000 {
		k.Put(i, "x")
		if _, ok := k.Get(0); !ok {
			t.Fatalf("0, which is in use, was dropped after %d", i)
		}
		if n := len(k.young) + len(k.old); n > 22 {
			t.Fatalf("%d are cached", n)
		}
	}
}
