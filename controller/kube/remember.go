package kube

import (
	"bytes"
	"hash/maphash"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// remembered is how many objects of a kind are kept as they were decoded last:
// all that is in work at a time, and little memory.
const remembered = 128

// rememberingOptions has the storage of each kind remember what it decoded.
// Whatever is written is decoded by all that see it: who wrote it, each watcher
// and the next who changes it. The object is the same, but to read it out of its
// JSON and to bring it into its schema takes ten times as long as to copy it. A
// watch cache would spare that, too, but holds the history of every object.
type rememberingOptions struct{ generic.RESTOptionsGetter }

// GetRESTOptions implements generic.RESTOptionsGetter. By the time the decorator
// is called, the codec is the one of the kind's schema: another schema has another
// storage.
func (g rememberingOptions) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	o, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return o, err
	}
	decorate := o.Decorator
	o.Decorator = func(c *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
		one, list func() runtime.Object, attrs storage.AttrFunc, trigger storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		with := *c
		with.Codec = newRememberingCodec(c.Codec)
		return decorate(&with, prefix, key, one, list, attrs, trigger, indexers)
	}
	return o, nil
}

// rememberingCodec decodes what it has decoded lately by copying it.
type rememberingCodec struct {
	runtime.Codec
	seed maphash.Seed

	mu   sync.Mutex
	kept map[uint64]*decoded // by the hash of its bytes
	ring [remembered]uint64  // in the order of keeping
	next int
}

// decoded is an object that nobody changes any more.
type decoded struct {
	data   []byte
	object *unstructured.Unstructured
	kind   schema.GroupVersionKind
}

func newRememberingCodec(c runtime.Codec) *rememberingCodec {
	return &rememberingCodec{Codec: c, seed: maphash.MakeSeed(), kept: map[uint64]*decoded{}}
}

// Decode implements runtime.Decoder.
func (c *rememberingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	target, ok := into.(*unstructured.Unstructured)
	if !ok && into != nil || defaults != nil {
		return c.Codec.Decode(data, defaults, into)
	}
	sum := maphash.Bytes(c.seed, data)
	if d := c.find(sum, data); d != nil {
		if target == nil {
			target = new(unstructured.Unstructured)
		}
		target.Object = d.object.DeepCopy().Object
		kind := d.kind
		return target, &kind, nil
	}
	object, kind, err := c.Codec.Decode(data, defaults, into)
	if u, ok := object.(*unstructured.Unstructured); ok && err == nil && kind != nil {
		c.keep(sum, &decoded{bytes.Clone(data), u.DeepCopy(), *kind})
	}
	return object, kind, err
}

func (c *rememberingCodec) find(sum uint64, data []byte) *decoded {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.kept[sum]; d != nil && bytes.Equal(d.data, data) {
		return d
	}
	return nil
}

// keep puts an object in the place of the oldest.
func (c *rememberingCodec) keep(sum uint64, d *decoded) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, again := c.kept[sum]; !again {
		delete(c.kept, c.ring[c.next])
		c.ring[c.next] = sum
		c.next = (c.next + 1) % remembered
	}
	c.kept[sum] = d
}
