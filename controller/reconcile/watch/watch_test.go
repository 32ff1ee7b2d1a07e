package watch_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/reconcile/watch"
)

// cache lists nodes, and then has an error, if any.
type cache struct {
	client.Reader
	nodes []string
	err   error
	asked client.ListOptions
}

func (c *cache) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.asked.ApplyOptions(opts)
	var items []runtime.Object
	for _, n := range c.nodes {
		items = append(items, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: n}})
	}
	return errors.Join(meta.SetList(list, items), c.err)
}

func TestRequests(t *testing.T) {
	failed := errors.New("no connection")
	for _, tt := range []struct {
		name      string
		nodes     []string
		err       error
		concerned func(*corev1.Node) bool
		want      []string
		log       []string // what the line has
	}{
		{"none", nil, nil, nil, nil, nil},
		{"all, in the list's order", []string{"b", "a"}, nil, nil, []string{"ns/b", "ns/a"}, nil},
		{"those concerned", []string{"b", "a"}, nil, func(n *corev1.Node) bool { return n.Name == "a" }, []string{"ns/a"}, nil},
		{"an error", nil, failed, nil, nil, []string{"no connection", "*v1.NodeList"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log []string
			ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(prefix, args string) { log = append(log, prefix+args) }, funcr.Options{}))
			c := &cache{nodes: tt.nodes, err: tt.err}
			var got []string
			for _, r := range watch.Requests(ctx, c, &corev1.NodeList{}, tt.concerned, client.InNamespace("ns")) {
				got = append(got, r.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if c.asked.Namespace != "ns" || c.asked.UnsafeDisableDeepCopy == nil || !*c.asked.UnsafeDisableDeepCopy {
				t.Errorf("listed with %+v, want the caller's options and no copies", c.asked)
			}
			if (len(log) == 1) != (tt.err != nil) {
				t.Fatalf("log = %q, want a line for an error alone", log)
			}
			for _, want := range tt.log {
				if !strings.Contains(log[0], want) {
					t.Errorf("the log's line is %q, want %q in it", log[0], want)
				}
			}
		})
	}
}
