package kube

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// counting is a codec that counts its calls of Decode.
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

func newCounting() (*counting, *decodeCache) {
	c := &counting{Codec: runtime.NewCodec(unstructured.UnstructuredJSONScheme, unstructured.UnstructuredJSONScheme)}
	return c, newDecodeCache(c)
}

func stored(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Host","metadata":{"name":%[1]q,"uid":%[1]q},"spec":{"nics":["a","b"]}}`, name)
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

func TestDecodeOfTheSameJSONReturnsACopy(t *testing.T) {
	inner, c := newCounting()
	first := decode(t, c, stored("a"), nil)
	want := first.DeepCopy()
	first.Object["spec"].(map[string]any)["nics"].([]any)[0] = "changed" // the caller may change it
	first.SetResourceVersion("1")
	into := &unstructured.Unstructured{Object: map[string]any{"old": true}}
	second := decode(t, c, stored("a"), into)
	if second != into {
		t.Error("Decode did not return the object to decode into")
	}
	if diff := cmp.Diff(want.Object, second.Object); diff != "" {
		t.Errorf("the second object differs from the first (-want +got):\n%s", diff)
	}
	second.SetName("changed")
	if third := decode(t, c, stored("a"), nil); third.GetName() != "a" {
		t.Errorf("name of the third object = %q, want a", third.GetName())
	}
	if inner.n != 1 {
		t.Errorf("decoded %d times, want once", inner.n)
	}
	if other := decode(t, c, stored("b"), nil); other.GetName() != "b" || inner.n != 2 {
		t.Errorf("another object: name = %q, after %d decodes, want b after 2", other.GetName(), inner.n)
	}
}

func TestOldestObjectIsEvicted(t *testing.T) {
	inner, c := newCounting()
	for i := range maxObjects + 1 {
		decode(t, c, stored(fmt.Sprint(i)), nil)
	}
	if len(c.byJSON) != maxObjects || len(c.newest) != maxObjects {
		t.Errorf("%d versions of %d objects cached, want %d", len(c.byJSON), len(c.newest), maxObjects)
	}
	before := inner.n
	decode(t, c, stored(fmt.Sprint(maxObjects)), nil)
	decode(t, c, stored("1"), nil)
	if inner.n != before {
		t.Error("a recent object was decoded again")
	}
	if decode(t, c, stored("0"), nil); inner.n != before+1 {
		t.Error("the oldest object was still cached")
	}
}

func TestOldVersionsAreEvictedBeforeOtherObjects(t *testing.T) {
	inner, c := newCounting()
	form := func(i int) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Host","metadata":{"uid":"a"},"spec":{"n":%d}}`, i)
	}
	decode(t, c, stored("b"), nil)
	for i := range maxOldVersions + 2 {
		decode(t, c, form(i), nil)
	}
	if want := maxOldVersions + 2; len(c.byJSON) != want {
		t.Errorf("%d versions cached, want %d: %d old ones and two objects", len(c.byJSON), want, maxOldVersions)
	}
	before := inner.n
	decode(t, c, stored("b"), nil)
	decode(t, c, form(1), nil)
	decode(t, c, form(maxOldVersions+1), nil)
	if inner.n != before {
		t.Errorf("%d decoded again, want none", inner.n-before)
	}
	if decode(t, c, form(0), nil); inner.n != before+1 {
		t.Error("the oldest version was still cached")
	}
}

func TestLargeObjectsAreEvictedByBytes(t *testing.T) {
	_, c := newCounting()
	text := strings.Repeat("x", maxBytes/4)
	large := func(uid string, i int) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Host","metadata":{"uid":%q},"spec":{"n":%d,"text":%q}}`, uid, i, text)
	}
	for i := range 3 {
		decode(t, c, large("a", i), nil)
	}
	decode(t, c, large("b", 0), nil)
	if len(c.byJSON) != 3 || len(c.newest) != 2 {
		t.Errorf("%d versions of %d objects cached, want 3 of 2, without the oldest version of the first", len(c.byJSON), len(c.newest))
	}
	for i := range 4 {
		decode(t, c, large(fmt.Sprint(i), i), nil)
	}
	if len(c.byJSON) != 3 || len(c.newest) != 3 || c.bytes > maxBytes {
		t.Errorf("%d versions of %d objects cached, %d bytes, want 3 of 3, at most %d bytes", len(c.byJSON), len(c.newest), c.bytes, maxBytes)
	}
	decode(t, c, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Host","metadata":{"uid":"z"},"spec":{"text":%q}}`, strings.Repeat("x", maxBytes)), nil)
	if len(c.byJSON) != 0 || c.bytes != 0 {
		t.Errorf("%d versions, %d bytes cached of an object larger than the cache, want none", len(c.byJSON), c.bytes)
	}
}

func TestDecodeOfAnEncodedObjectReturnsACopy(t *testing.T) {
	inner, c := newCounting()
	host := decode(t, c, stored("a"), nil)
	host.SetLabels(map[string]string{"new": "yes"})
	want := host.DeepCopy()
	data, err := runtime.Encode(c, host)
	if err != nil {
		t.Fatal(err)
	}
	host.SetName("changed") // the caller may change it
	before := inner.n
	if diff := cmp.Diff(want.Object, decode(t, c, data, nil).Object); diff != "" {
		t.Errorf("the decoded object differs from the encoded one (-want +got):\n%s", diff)
	}
	if inner.n != before {
		t.Error("the encoded object was decoded from JSON")
	}
}

// An object that differs after encoding and decoding must be decoded from its JSON.
func TestObjectsThatDecodeDifferentlyAreNotCached(t *testing.T) {
	for name, change := range map[string]func(map[string]any){
		"a float without fraction":   func(o map[string]any) { o["spec"] = map[string]any{"n": 1.0} },
		"a nil map":                  func(o map[string]any) { o["spec"] = map[string]any(nil) },
		"a nil list":                 func(o map[string]any) { o["spec"] = []any{[]any(nil)} },
		"a value that is not JSON's": func(o map[string]any) { o["spec"] = map[string]any{"n": []string{"a"}} },
		"an empty list in metadata":  func(o map[string]any) { o["metadata"].(map[string]any)["finalizers"] = []any{} },
		"an empty map in metadata":   func(o map[string]any) { o["metadata"].(map[string]any)["labels"] = map[string]any{} },
		"an empty text in metadata":  func(o map[string]any) { o["metadata"].(map[string]any)["namespace"] = "" },
		"a null in metadata":         func(o map[string]any) { o["metadata"].(map[string]any)["creationTimestamp"] = nil },
	} {
		t.Run(name, func(t *testing.T) {
			_, c := newCounting()
			host := &unstructured.Unstructured{}
			if err := host.UnmarshalJSON(stored("a")); err != nil {
				t.Fatal(err)
			}
			change(host.Object)
			if _, err := runtime.Encode(c, host); err != nil {
				t.Fatal(err)
			}
			if len(c.byJSON) != 0 {
				t.Errorf("cached %v", host.Object)
			}
		})
	}
}

// upgrading writes each object as v2.
type upgrading struct{ runtime.Codec }

func (u upgrading) Encode(o runtime.Object, w io.Writer) error {
	v2 := o.DeepCopyObject().(*unstructured.Unstructured)
	v2.SetAPIVersion("v2")
	return u.Codec.Encode(v2, w)
}

func TestConvertedObjectsAreNotCached(t *testing.T) {
	c := newDecodeCache(upgrading{runtime.NewCodec(unstructured.UnstructuredJSONScheme, unstructured.UnstructuredJSONScheme)})
	host := &unstructured.Unstructured{}
	if err := host.UnmarshalJSON(stored("a")); err != nil {
		t.Fatal(err)
	}
	data, err := runtime.Encode(c, host)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.byJSON) != 0 {
		t.Errorf("cached %s as %s", data, host.GetAPIVersion())
	}
}

// encoded counts the objects that the API has encoded and cached during the tests of this
// package, and holds the differences between the cached object and the one that decoding
// its JSON returns. TestMain fails when there are any.
var encoded struct {
	mu          sync.Mutex
	compared    int
	differences []string
}

func init() {
	onEncode = func(c runtime.Codec, data []byte, d *cachedObject) {
		o, kind, err := c.Decode(data, nil, nil)
		encoded.mu.Lock()
		defer encoded.mu.Unlock()
		encoded.compared++
		if err != nil {
			encoded.differences = append(encoded.differences, fmt.Sprintf("cannot be decoded: %v\n%s", err, data))
		} else if diff := cmp.Diff(o.(*unstructured.Unstructured).Object, d.object); diff != "" || *kind != d.kind {
			encoded.differences = append(encoded.differences, fmt.Sprintf("%s: the cached object differs from the decoded one (-decoded +cached):\n%s", kind, diff))
		}
	}
}

//go:embed testdata/shapes.yaml
var shapes []byte

// TestCachedObjectsOfEveryShapeEqualDecodedOnes writes objects that their schema changes:
// by defaults, by dropping unknown fields, and by normalizing numbers. onEncode compares
// them, and TestMain reports the differences.
func TestCachedObjectsOfEveryShapeEqualDecodedOnes(t *testing.T) {
	c := clientFor(t, sharedAPI(t).RESTConfig())
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(shapes, &definition.Object); err != nil {
		t.Fatal(err)
	}
	create(t, c, definition)
	ns := freshNamespace(t, c)
	spec := map[string]any{
		"number": int64(1), "whole": int64(2), "fraction": 1.5, "text": nil, "dropped": "is not in the schema",
		"anything": map[string]any{"null": nil, "none": []any{}, "empty": map[string]any{}, "float": 3.0},
		"embedded": map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "inner", "creationTimestamp": nil, "labels": map[string]any{}},
			"data":     map[string]any{"a": "b"},
		},
		"rows": []any{map[string]any{"key": "a"}, map[string]any{"key": "b", "value": int64(1)}},
	}
	shape := func(version, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": runtime.DeepCopyJSON(spec)}}
		u.SetAPIVersion("shapes.test/" + version)
		u.SetKind("Shape")
		u.SetNamespace(ns)
		u.SetName(name)
		return u
	}
	eventually(t, "the new kind", func(ctx context.Context) (bool, error) {
		err := c.Create(ctx, shape("v1", "first"))
		return err == nil, nil
	})
	before := comparedSoFar()
	for _, version := range []string{"v1", "v1beta1"} {
		u := shape(version, "of-"+version)
		create(t, c, u)
		for name, change := range map[string]client.Patch{
			"merge":  client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"},"finalizers":["shapes.test/hold"]},"spec":{"number":2.0,"defaulted":null}}`)),
			"json":   client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/metadata/finalizers","value":[]},{"op":"replace","path":"/metadata/labels","value":{}}]`)),
			"apply":  client.RawPatch(types.ApplyPatchType, fmt.Appendf(nil, `{"apiVersion":"shapes.test/%s","kind":"Shape","metadata":{"name":%q},"spec":{"rows":[{"key":"c","value":3}],"fraction":2.0}}`, version, u.GetName())),
			"status": client.RawPatch(types.MergePatchType, []byte(`{"status":{"seen":1.0,"note":null}}`)),
		} {
			var err error
			switch name {
			case "status":
				err = c.Status().Patch(t.Context(), u, change)
			case "apply":
				err = c.Patch(t.Context(), u, change, client.FieldOwner("applier"), client.ForceOwnership)
			default:
				err = c.Patch(t.Context(), u, change)
			}
			if err != nil {
				t.Errorf("%s of %s: %v", name, version, err)
			}
		}
		got := shape(version, u.GetName())
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), got); err != nil {
			t.Fatal(err)
		}
		for field, want := range map[string]any{"defaulted": "by the schema", "number": int64(2), "text": nil} {
			if value := got.Object["spec"].(map[string]any)[field]; value != want {
				t.Errorf("%s: spec.%s = %v (%T), want %v", version, field, value, value, want)
			}
		}
	}
	if got := comparedSoFar() > before; got != FastPathsWanted() {
		t.Errorf("objects were cached and compared: %v, want %v", got, FastPathsWanted())
	}
}

func comparedSoFar() int {
	encoded.mu.Lock()
	defer encoded.mu.Unlock()
	return encoded.compared
}

func TestInvalidJSONIsNotCached(t *testing.T) {
	inner, c := newCounting()
	for range 2 {
		if o, _, err := c.Decode([]byte(`{"kind":`), nil, nil); err == nil {
			t.Errorf("decoded %v", o)
		}
	}
	if inner.n != 2 || len(c.byJSON) != 0 {
		t.Errorf("decoded %d times and cached %d versions, want 2 and none", inner.n, len(c.byJSON))
	}
}

func TestListsAreNotCached(t *testing.T) {
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

func TestConcurrentDecodes(t *testing.T) {
	_, c := newCounting()
	var all sync.WaitGroup
	errs := make(chan error, 16)
	for w := range 16 {
		all.Go(func() {
			for i := range 500 {
				name := fmt.Sprint((i*7 + w) % (2 * maxObjects))
				o, _, err := c.Decode(stored(name), nil, nil)
				if err == nil && o.(*unstructured.Unstructured).GetName() != name {
					err = errors.New("Decode returned another object")
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
