package kube

import (
	"runtime"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BenchmarkStart starts an API and creates a host, and then stops the API; with Config.Nodes
// it creates a node, too. It shows at an upgrade whether one of the waits that upstream.go
// avoids has come back: each of them takes 1 s to 5 s. idle-MB is the heap of the API that
// then has nothing to do, without the packages' tables, which a first API leaves behind.
func BenchmarkStart(b *testing.B) {
	for _, nodes := range []bool{false, true} {
		name := "hosts"
		if nodes {
			name = "nodes"
		}
		b.Run(name, func(b *testing.B) { benchmarkStart(b, nodes) })
	}
}

func benchmarkStart(b *testing.B, nodes bool) {
	var idle float64
	startOnce := func() {
		before := heap()
		b.StartTimer()
		api, err := Start(b.Context(), Config{Dir: b.TempDir(), FastPaths: FastPathsWanted(), Nodes: nodes})
		if err != nil {
			b.Fatal(err)
		}
		c, err := client.New(api.RESTConfig(), client.Options{Scheme: testScheme(b)})
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Create(b.Context(), host("default", "first")); err != nil {
			b.Fatal(err)
		}
		if nodes {
			if err := c.Create(b.Context(), node("first")); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		idle += float64(heap()-before) / (1 << 20)
		if err := api.Stop(); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	startOnce()
	idle = 0
	b.ResetTimer()
	for range b.N {
		startOnce()
	}
	b.ReportMetric(idle/float64(b.N), "idle-MB")
}

// heap returns the bytes that are in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
