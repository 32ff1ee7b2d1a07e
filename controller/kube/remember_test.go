package kube

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// counting is a codec that counts what it decodes.
type counting struct {
	runtime.Codec
	mu sync.Mutex
	n  int
}

func (c *counting) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
	return c.Codec.Decode(data, defaults, into)
}

func newCounting() (*counting, *rememberingCodec) {
	c := &counting{Codec: runtime.NewCodec(unstructured.UnstructuredJSONScheme, unstructured.UnstructuredJSONScheme)}
	return c, newRememberingCodec(c)
}

func stored(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Host","metadata":{"name":%q},"spec":{"nics":["a","b"]}}`, name)
}

func decode(t *testing.T, c runtime.Decoder, data []byte, into runtime.Object) *unstructured.Unstructured {
	t.Helper()
	o, kind, err := c.Decode(data, nil, into)
	if err != nil {
		t.Fatal(err)
	}
	if want := (schema.GroupVersionKind{Version: "v1", Kind: "Host"}); *kind != want {
		t.Errorf("kind %v, want %v", kind, want)
	}
	return o.(*unstructured.Unstructured)
}

func TestWhatWasDecodedIsCopied(t *testing.T) {
	inner, c := newCounting()
	first := decode(t, c, stored("a"), nil)
	want := first.DeepCopy()
	first.Object["spec"].(map[string]any)["nics"].([]any)[0] = "changed" // it is its caller's
	first.SetResourceVersion("1")
	into := &unstructured.Unstructured{Object: map[string]any{"old": true}}
	second := decode(t, c, stored("a"), into)
	if second != into {
		t.Error("the object was not decoded into the one that was given")
	}
	if diff := cmp.Diff(want.Object, second.Object); diff != "" {
		t.Errorf("the second is not as the first was (-want +got):\n%s", diff)
	}
	second.SetName("changed")
	if third := decode(t, c, stored("a"), nil); third.GetName() != "a" {
		t.Errorf("the third is called %q, want a", third.GetName())
	}
	if inner.n != 1 {
		t.Errorf("decoded %d times, want once", inner.n)
	}
	if other := decode(t, c, stored("b"), nil); other.GetName() != "b" || inner.n != 2 {
		t.Errorf("another is called %q and was the %dth to be decoded, want b and the second", other.GetName(), inner.n)
	}
}

func TestTheOldestIsForgotten(t *testing.T) {
	inner, c := newCounting()
	for i := range remembered + 1 {
		decode(t, c, stored(fmt.Sprint(i)), nil)
	}
	if len(c.kept) != remembered {
		t.Errorf("%d kept, want %d", len(c.kept), remembered)
	}
	before := inner.n
	decode(t, c, stored(fmt.Sprint(remembered)), nil)
	decode(t, c, stored("1"), nil)
	if inner.n != before {
		t.Error("one of the last was decoded again")
	}
	if decode(t, c, stored("0"), nil); inner.n != before+1 {
		t.Error("the oldest was still kept")
	}
}

func TestWhatCannotBeDecodedIsNotKept(t *testing.T) {
	inner, c := newCounting()
	for range 2 {
		if o, _, err := c.Decode([]byte(`{"kind":`), nil, nil); err == nil {
			t.Errorf("decoded %v", o)
		}
	}
	if inner.n != 2 || len(c.kept) != 0 {
		t.Errorf("decoded %d times and kept %d, want 2 and none", inner.n, len(c.kept))
	}
}

func TestOtherKindsOfObjectsAreNotRemembered(t *testing.T) {
	inner, c := newCounting()
	list := []byte(`{"apiVersion":"v1","kind":"HostList","items":[]}`)
	for range 2 {
		if _, _, err := c.Decode(list, nil, new(unstructured.UnstructuredList)); err != nil {
			t.Fatal(err)
		}
	}
	if inner.n != 2 {
		t.Errorf("decoded %d times, want 2", inner.n)
	}
}

func TestManyDecodeAtATime(t *testing.T) {
	_, c := newCounting()
	var all sync.WaitGroup
	errs := make(chan error, 16)
	for w := range 16 {
		all.Go(func() {
			for i := range 500 {
				name := fmt.Sprint((i*7 + w) % (2 * remembered))
				o, _, err := c.Decode(stored(name), nil, nil)
				if err == nil && o.(*unstructured.Unstructured).GetName() != name {
					err = errors.New("another object than asked for")
				}
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
}
