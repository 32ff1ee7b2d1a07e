package kube

import (
	"sync"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/client-go/tools/cache"
)

// store is etcd as the storage of kinds calls it: it runs in this process, so
// that nothing need be marshalled and sent through a socket.
type store struct{ client *kubernetes.Client }

// newStore returns a store that is closed after the API server and before etcd.
func newStore(e *embed.Etcd) store {
	c := &kubernetes.Client{Client: v3client.New(e.Server)}
	c.KV = etcd3.NewETCDLatencyTracker(c.KV) // as upstream's storage measures its requests
	c.Kubernetes = c
	return store{c}
}

func (s store) close() error {
	_ = s.client.Close() // says that its context has ended, always
	return nil
}

// directOptions has the storage of those kinds call etcd directly that have no
// watch cache between.
type directOptions struct {
	generic.RESTOptionsGetter
	store store
	kinds func(schema.GroupResource) bool
	codec func(runtime.Codec) runtime.Codec
}

// customKinds keeps the objects of definitions, all of which have no watch cache,
// and remembers them.
func (s store) customKinds(g generic.RESTOptionsGetter) generic.RESTOptionsGetter {
	return directOptions{
		RESTOptionsGetter: g, store: s,
		kinds: func(schema.GroupResource) bool { return true },
		codec: func(c runtime.Codec) runtime.Codec { return newRememberingCodec(c) },
	}
}

// events keeps events, of the built-in kinds the one without a watch cache.
func (s store) events(g generic.RESTOptionsGetter) generic.RESTOptionsGetter {
	return directOptions{
		RESTOptionsGetter: g, store: s,
		kinds: func(r schema.GroupResource) bool { return r.Resource == "events" },
		codec: func(c runtime.Codec) runtime.Codec { return c },
	}
}

// GetRESTOptions implements generic.RESTOptionsGetter. By the time the decorator
// is called, the codec is the one of the kind's schema: another schema has another
// storage.
func (d directOptions) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	o, err := d.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil || !d.kinds(resource) {
		return o, err
	}
	o.Decorator = func(c *storagebackend.ConfigForResource, prefix string, _ func(runtime.Object) (string, error),
		one, list func() runtime.Object, _ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		return d.store.open(c, d.codec(c.Codec), prefix, one, list)
	}
	return o, nil
}

// open makes the storage of one kind. Compaction is left to that of the kinds that
// upstream opens: it is etcd's, not a kind's.
func (s store) open(c *storagebackend.ConfigForResource, codec runtime.Codec, prefix string, one, list func() runtime.Object) (storage.Interface, factory.DestroyFunc, error) {
	transformer := c.Transformer
	if transformer == nil {
		transformer = identity.NewEncryptCheckTransformer()
	}
	versioner := storage.APIObjectVersioner{}
	opened, err := etcd3.New(s.client, nil, codec, one, list, c.Prefix, prefix, c.GroupResource,
		etcd3.WithCorruptObjErrorHandlingTransformer(transformer), c.LeaseManagerConfig,
		etcd3.WithCorruptObjErrorHandlingDecoder(etcd3.NewDefaultDecoder(codec, versioner)), versioner)
	if err != nil {
		return nil, nil, err
	}
	// It is destroyed once for each subresource.
	return etcd3.NewStoreWithUnsafeCorruptObjectDeletion(opened, c.GroupResource), sync.OnceFunc(opened.Close), nil
}
