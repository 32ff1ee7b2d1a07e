package object

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestPatchWritesWhatDiffers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*corev1.Node)
		want   []string
	}{
		{"nothing", func(*corev1.Node) {}, nil},
		{"metadata", func(n *corev1.Node) { delete(n.Labels, "a") }, []string{"object"}},
		{"spec", func(n *corev1.Node) { n.Spec.ProviderID = "x" }, []string{"object"}},
		{"status", func(n *corev1.Node) { n.Status.Phase = corev1.NodeRunning }, []string{"status"}},
		{"both", func(n *corev1.Node) { n.Labels["b"], n.Status.Phase = "", corev1.NodeRunning }, []string{"object", "status"}},
		{"the last finalizer", func(n *corev1.Node) { n.Finalizers, n.Status.Phase = nil, corev1.NodeRunning }, []string{"object", "status"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			c := interceptor.NewClient(fake.NewClientBuilder().WithStatusSubresource(&corev1.Node{}).WithObjects(
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "1"}, Finalizers: []string{"f/f"}}},
			).Build(), interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					got = append(got, "object")
					return c.Patch(ctx, o, p, opts...)
				},
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
					got = append(got, sub)
					return c.SubResource(sub).Patch(ctx, o, p, opts...)
				},
			})
			read := func() *corev1.Node {
				n := new(corev1.Node)
				if err := c.Get(t.Context(), client.ObjectKey{Name: "n"}, n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			before := read()
			after := before.DeepCopy()
			tt.change(after)
			if err := Patch(t.Context(), c, before, after); err != nil {
				t.Fatalf("Patch: %v", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(read(), after); diff != "" {
				t.Errorf("after is not the object of the API (-API +after):\n%s", diff)
			}
			if len(tt.want) > 0 { // before is old now
				again := before.DeepCopy()
				again.Labels["late"] = ""
				if err := Patch(t.Context(), c, before, again); !apierrors.IsConflict(err) {
					t.Errorf("Patch of an object that has changed = %v, want a conflict", err)
				}
				again = before.DeepCopy()
				again.Status.Phase = corev1.NodeTerminated
				if err := Patch(t.Context(), c, before, again); !apierrors.IsConflict(err) {
					t.Errorf("Patch of a status that has changed = %v, want a conflict", err)
				}
			}
		})
	}
}

func TestStatusIsWrittenFirst(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	var got []string
	c := interceptor.NewClient(fake.NewClientBuilder().WithStatusSubresource(n).WithObjects(n).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			got = append(got, "object")
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			got = append(got, sub)
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	before := new(corev1.Node)
	if err := c.Get(t.Context(), client.ObjectKey{Name: "n"}, before); err != nil {
		t.Fatal(err)
	}
	after := before.DeepCopy()
	after.Labels, after.Status.Phase = map[string]string{"a": "b"}, corev1.NodeRunning
	if err := PatchStatusFirst(t.Context(), c, before, after); err != nil {
		t.Fatalf("PatchStatusFirst: %v", err)
	}
	if diff := cmp.Diff([]string{"status", "object"}, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if after.Labels["a"] != "b" || after.Status.Phase != corev1.NodeRunning {
		t.Errorf("after has labels %v and phase %s", after.Labels, after.Status.Phase)
	}
}

// An object that goes with its last finalizer has no status to write.
func TestLastFinalizerEndsTheObject(t *testing.T) {
	now := metav1.Now()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Finalizers: []string{"f/f"}, DeletionTimestamp: &now}}
	c := fake.NewClientBuilder().WithStatusSubresource(n).WithObjects(n).Build()
	before := new(corev1.Node)
	if err := c.Get(t.Context(), client.ObjectKey{Name: "n"}, before); err != nil {
		t.Fatal(err)
	}
	after := before.DeepCopy()
	after.Finalizers, after.Status.Phase = nil, corev1.NodeTerminated
	if err := Patch(t.Context(), c, before, after); err != nil {
		t.Errorf("Patch: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "n"}, before); !apierrors.IsNotFound(err) {
		t.Errorf("Get = %v, want not found", err)
	}
}
