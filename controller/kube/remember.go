package kube

import (
	"bytes"
	"hash/maphash"
	"io"
	"math"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// remembered is how many objects of a kind are kept in their newest form: as
	// many as are in work at a time, and no more memory than a large lab's work
	// takes anyway.
	remembered      = 2048
	rememberedBytes = 32 << 20 // of their JSON
	// superseded is how many older forms are kept for watchers that lag behind.
	superseded = 128
)

// rememberingCodec decodes what it has decoded or encoded lately by copying it.
// Whatever is written is decoded by all that see it: who wrote it, each watcher
// and the next who changes it. The object is the same, but to read it out of its
// JSON and to bring it into its schema takes ten times as long as to copy it. A
// watch cache would spare some of that, too, but holds the history of every object.
type rememberingCodec struct {
	runtime.Codec
	seeds [2]maphash.Seed

	mu     sync.Mutex
	size   int // bytes of the JSON of kept
	kept   map[digest]*decoded
	newest map[types.UID]digest // which of them is an object's newest
	order  queue[types.UID]     // of newest, the one that came first in front
	old    queue[digest]        // of kept, what is nobody's newest
}

// digest stands for the bytes of an object. Their seeds are drawn anew by each
// process: nobody can make two objects of one digest, and chance needs 2^64.
type digest [2]uint64

// decoded is an object that nobody changes any more.
type decoded struct {
	object map[string]any
	kind   schema.GroupVersionKind
	size   int // of its JSON, in bytes
}

func newRememberingCodec(c runtime.Codec) *rememberingCodec {
	return &rememberingCodec{
		Codec: c, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		kept: map[digest]*decoded{}, newest: map[types.UID]digest{},
	}
}

func (c *rememberingCodec) digest(data []byte) digest {
	return digest{maphash.Bytes(c.seeds[0], data), maphash.Bytes(c.seeds[1], data)}
}

// Encode implements runtime.Encoder. What is written is read next, so it is kept:
// the object has been through its schema when it was taken from a request.
func (c *rememberingCodec) Encode(object runtime.Object, w io.Writer) error {
	u, plain := object.(*unstructured.Unstructured)
	buffer, whole := w.(*bytes.Buffer)
	if !plain || !whole {
		return c.Codec.Encode(object, w)
	}
	before := buffer.Len()
	if err := c.Codec.Encode(object, w); err != nil {
		return err
	}
	data := buffer.Bytes()[before:]
	if !writtenAs(data, u.GetAPIVersion()) {
		return nil // it was converted, and would be converted back
	}
	if same, ok := copyOfJSON(u.Object); ok && normalized(u.Object) {
		d := &decoded{same.(map[string]any), u.GroupVersionKind(), len(data)}
		if whenEncoded != nil {
			whenEncoded(c.Codec, data, d)
		}
		c.keep(c.digest(data), d)
	}
	return nil
}

// whenEncoded is where tests look at what is kept unread.
var whenEncoded func(c runtime.Codec, data []byte, d *decoded)

// normalized says whether nothing in an object's metadata is empty: a schema drops
// such fields from what it reads.
func normalized(object map[string]any) bool {
	metadata, ok := object["metadata"].(map[string]any)
	for _, v := range metadata {
		switch v := v.(type) {
		case nil:
			return false
		case string:
			ok = ok && v != ""
		case map[string]any:
			ok = ok && len(v) > 0
		case []any:
			ok = ok && len(v) > 0
		}
	}
	return ok
}

// writtenAs says whether the JSON of an object begins with that apiVersion, as
// its first key in the order of the alphabet.
func writtenAs(data []byte, version string) bool {
	rest, ok := bytes.CutPrefix(data, []byte(`{"apiVersion":"`))
	return ok && len(rest) > len(version) && string(rest[:len(version)]) == version && rest[len(version)] == '"'
}

// Decode implements runtime.Decoder.
func (c *rememberingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	target, ok := into.(*unstructured.Unstructured)
	if !ok && into != nil || defaults != nil {
		return c.Codec.Decode(data, defaults, into)
	}
	sum := c.digest(data)
	if d := c.find(sum); d != nil {
		if target == nil {
			target = new(unstructured.Unstructured)
		}
		target.Object = runtime.DeepCopyJSON(d.object)
		kind := d.kind
		return target, &kind, nil
	}
	object, kind, err := c.Codec.Decode(data, defaults, into)
	if u, ok := object.(*unstructured.Unstructured); ok && err == nil && kind != nil {
		c.keep(sum, &decoded{runtime.DeepCopyJSON(u.Object), *kind, len(data)})
	}
	return object, kind, err
}

func (c *rememberingCodec) find(sum digest) *decoded {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept[sum]
}

// keep puts a form of an object in the place of the one before, which stays for
// a while.
func (c *rememberingCodec) keep(sum digest, d *decoded) {
	uid, _, _ := unstructured.NestedString(d.object, "metadata", "uid")
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, again := c.kept[sum]; again {
		return
	}
	c.kept[sum] = d
	c.size += d.size
	before, known := c.newest[types.UID(uid)]
	c.newest[types.UID(uid)] = sum
	if known {
		c.old.push(before)
	} else {
		c.order.push(types.UID(uid))
	}
	for c.old.len() > superseded || c.size > rememberedBytes && c.old.len() > 0 {
		c.forget(c.old.pop())
	}
	for c.order.len() > remembered || c.size > rememberedBytes && c.order.len() > 0 {
		first := c.order.pop()
		c.forget(c.newest[first])
		delete(c.newest, first)
	}
}

func (c *rememberingCodec) forget(sum digest) {
	if d := c.kept[sum]; d != nil {
		c.size -= d.size
		delete(c.kept, sum)
	}
}

// queue is first in, first out.
type queue[T any] struct {
	items []T
	first int
}

func (q *queue[T]) len() int { return len(q.items) - q.first }
func (q *queue[T]) push(v T) { q.items = append(q.items, v) }

func (q *queue[T]) pop() T {
	v := q.items[q.first]
	if q.first++; q.first*2 > len(q.items) {
		q.items = append(q.items[:0], q.items[q.first:]...)
		q.first = 0
	}
	return v
}

// copyOfJSON copies a value that is the same when it was written as JSON and read
// again, and says whether it is one: a float without a fraction comes back as an
// integer, a nil map as null.
func copyOfJSON(v any) (any, bool) {
	switch v := v.(type) {
	case nil, string, bool, int64:
		return v, true
	case float64:
		return v, v != math.Trunc(v)
	case map[string]any:
		if v == nil {
			return nil, false
		}
		m := make(map[string]any, len(v))
		for k, e := range v {
			same, ok := copyOfJSON(e)
			if !ok {
				return nil, false
			}
			m[k] = same
		}
		return m, true
	case []any:
		if v == nil {
			return nil, false
		}
		l := make([]any, len(v))
		for i, e := range v {
			same, ok := copyOfJSON(e)
			if !ok {
				return nil, false
			}
			l[i] = same
		}
		return l, true
	}
	return nil, false
}
