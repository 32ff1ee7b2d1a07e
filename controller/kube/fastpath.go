package kube

import (
	"os"

	apiextensionsoptions "k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/controlplane/apiserver/options"
	"k8s.io/kubernetes/pkg/controlplane/apiserver/samples/generic/server"
)

// PlainEnv is the environment variable that, set to 1, makes labctl, labs and the tests
// start upstream's plain API: to find out whether the fast paths cause a difference.
const PlainEnv = "METALAB_KUBE_PLAIN"

// FastPathsWanted returns the value for Config.FastPaths: true unless PlainEnv is 1.
func FastPathsWanted() bool { return os.Getenv(PlainEnv) != "1" }

// useFastPaths is everything that Config.FastPaths switches on. It exists for speed and
// memory alone: without it the API is upstream's and behaves the same. `make check` runs
// the API tests of this package and the reconcile tests of lab both ways.
//
// Custom resources have a decodeCache in the place of the watch cache, which holds every
// change of every object in the last 75 s, decoded: of hosts that are being provisioned,
// up to a megabyte each. Here the store is on the same machine, and a kind has hardly
// more than one watcher. Without the watch cache alone, each write would cost more than
// with it; see decodeCache. Together they take 7 to 11 % off the processor time of a
// host's life (BenchmarkLife/100 of lab: 209 ms per host instead of 225 ms and
// 196 ms instead of 220 ms, two pairs run side by side).
//
// Custom resources and events call etcd through an inProcessStore instead of gRPC. It
// takes another 10 to 13 % off the life of many hosts at once (BenchmarkLife/1000: 164 ms
// per host instead of 188 ms and 166 ms instead of 185 ms) and 5 % off that of 100.
func useFastPaths(c *server.Config, o options.CompletedOptions, s *inProcessStore) {
	uncached := *o.Etcd
	uncached.EnableWatchCache, uncached.SkipHealthEndpoints = false, true
	custom := c.APIExtensions.GenericConfig
	c.APIExtensions.ExtraConfig.CRDRESTOptionsGetter = inProcessKinds{
		RESTOptionsGetter: apiextensionsoptions.NewCRDRESTOptionsGetter(uncached, custom.ResourceTransformers, custom.StorageObjectCountTracker),
		store:             s,
		kinds:             func(schema.GroupResource) bool { return true },
		codec:             func(c runtime.Codec) runtime.Codec { return newDecodeCache(c) },
	}
	// Of the built-in kinds, upstream has no watch cache for events alone.
	c.ControlPlane.Generic.RESTOptionsGetter = inProcessKinds{
		RESTOptionsGetter: c.ControlPlane.Generic.RESTOptionsGetter,
		store:             s,
		kinds:             func(r schema.GroupResource) bool { return r.Resource == "events" },
		codec:             func(c runtime.Codec) runtime.Codec { return c },
	}
}
