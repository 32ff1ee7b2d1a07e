package kube

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BenchmarkStart starts an API and creates a host, and then stops the API. It shows at an
// upgrade whether one of the waits that upstream.go avoids has come back: each of them
// takes 1 s to 5 s.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		api, err := Start(b.Context(), Config{Dir: b.TempDir(), FastPaths: FastPathsWanted()})
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
		b.StopTimer()
		if err := api.Stop(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
