package kube

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"google.golang.org/grpc/metadata"
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

// inProcessStore opens the storage of kinds on the etcd of this process: requests are
// function calls, which marshal nothing and use no socket.
type inProcessStore struct{ client *kubernetes.Client }

// newInProcessStore returns a store. The caller closes it after the API server and
// before etcd.
func newInProcessStore(e *embed.Etcd) *inProcessStore {
	c := &kubernetes.Client{Client: v3client.New(e.Server)}
	c.Watcher = &streamPerWatch{Watcher: c.Watcher}
	c.KV = etcd3.NewETCDLatencyTracker(c.KV) // for the metrics of requests, as upstream's storage does
	c.Kubernetes = c
	return &inProcessStore{c}
}

// streamPerWatch gives each watch a stream. Watches that share one can block it for ever:
// its two ends are goroutines that hand each message over to the other (etcd's
// proxy/grpcproxy/adapter), so that when many watches end at once, as those of a killed
// controller do, each end waits for the other to receive. By gRPC a buffer is in between.
type streamPerWatch struct {
	clientv3.Watcher
	watches atomic.Uint64
}

// Watch implements clientv3.Watcher. The client opens a stream for each value of a
// context's metadata, and closes it with its last watch.
func (w *streamPerWatch) Watch(ctx context.Context, key string, o ...clientv3.OpOption) clientv3.WatchChan {
	ctx = metadata.AppendToOutgoingContext(ctx, "watch", strconv.FormatUint(w.watches.Add(1), 10))
	return w.Watcher.Watch(ctx, key, o...)
}

func (s *inProcessStore) close() error {
	_ = s.client.Close() // always returns that its context has ended
	return nil
}

// inProcessKinds replaces the storage of some kinds, which have no watch cache, by an
// inProcessStore.
type inProcessKinds struct {
	generic.RESTOptionsGetter
	store *inProcessStore
	kinds func(schema.GroupResource) bool
	codec func(runtime.Codec) runtime.Codec
}

// GetRESTOptions implements generic.RESTOptionsGetter. It wraps the codec in the decorator,
// because only there the codec is that of the kind's schema. The API server opens another
// storage for another schema.
func (k inProcessKinds) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	o, err := k.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil || !k.kinds(resource) {
		return o, err
	}
	o.Decorator = func(c *storagebackend.ConfigForResource, prefix string, _ func(runtime.Object) (string, error),
		newObject, newList func() runtime.Object, _ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		return k.store.open(c, k.codec(c.Codec), prefix, newObject, newList)
	}
	return o, nil
}

// open opens the storage of one kind. It starts no compaction: upstream's storage of the
// other kinds compacts all of etcd.
func (s *inProcessStore) open(c *storagebackend.ConfigForResource, codec runtime.Codec, prefix string, newObject, newList func() runtime.Object) (storage.Interface, factory.DestroyFunc, error) {
	transformer := c.Transformer
	if transformer == nil {
		transformer = identity.NewEncryptCheckTransformer()
	}
	versioner := storage.APIObjectVersioner{}
	opened, err := etcd3.New(s.client, nil, codec, newObject, newList, c.Prefix, prefix, c.GroupResource,
		etcd3.WithCorruptObjErrorHandlingTransformer(transformer), c.LeaseManagerConfig,
		etcd3.WithCorruptObjErrorHandlingDecoder(etcd3.NewDefaultDecoder(codec, versioner)), versioner)
	if err != nil {
		return nil, nil, err
	}
	// The API server destroys it once for each subresource.
	return etcd3.NewStoreWithUnsafeCorruptObjectDeletion(opened, c.GroupResource), sync.OnceFunc(opened.Close), nil
}
