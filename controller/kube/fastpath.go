package kube

import (
	"os"

	apiextensionsoptions "k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
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
// the API tests of this package and the reconcile tests of scenarios/world both ways.
//
// It replaces the watch cache of custom resources by a decodeCache. The watch cache holds
// every change of every object in the last 75 s, decoded: of hosts that are being
// provisioned, up to a megabyte each. Here the store is on the same machine, and a kind has
// hardly more than one watcher. Both together take 7 to 11 % off the processor time of a
// host's life: BenchmarkLife/100 of scenarios/world, 209 ms per host instead of 225 ms and
// 196 ms instead of 220 ms, two pairs run side by side. Without the watch cache alone, each write would cost more than with it;
// see decodeCache.
func useFastPaths(c *server.Config, o options.CompletedOptions) {
	uncached := *o.Etcd
	uncached.EnableWatchCache, uncached.SkipHealthEndpoints = false, true
	generic := c.APIExtensions.GenericConfig
	c.APIExtensions.ExtraConfig.CRDRESTOptionsGetter = cachedDecoding{
		apiextensionsoptions.NewCRDRESTOptionsGetter(uncached, generic.ResourceTransformers, generic.StorageObjectCountTracker),
	}
}

// cachedDecoding gives the storage of each kind a decodeCache.
type cachedDecoding struct{ generic.RESTOptionsGetter }

// GetRESTOptions implements generic.RESTOptionsGetter. It wraps the codec in the decorator,
// because only there the codec is that of the kind's schema. The API server opens another
// storage for another schema.
func (d cachedDecoding) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	o, err := d.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return o, err
	}
	open := o.Decorator
	o.Decorator = func(c *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
		newObject, newList func() runtime.Object, attrs storage.AttrFunc, trigger storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		cached := *c
		cached.Codec = newDecodeCache(c.Codec)
		return open(&cached, prefix, key, newObject, newList, attrs, trigger, indexers)
	}
	return o, nil
}
