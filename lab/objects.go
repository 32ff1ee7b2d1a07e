package lab

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/scenarios/view"
)

// objects implements view.Objects with the lab's Kubernetes API.
type objects struct{ *Lab }

// ready returns when the Kubernetes API answers; false when the lab has none.
func (o objects) ready(ctx context.Context) bool {
	if !o.cfg.Settings.Kube {
		return false
	}
	select {
	case <-o.kubeStarted:
		return true
	case <-ctx.Done():
		return false
	}
}

// Watch implements view.Objects.
func (o objects) Watch(ctx context.Context, changed func(view.Object)) error {
	if !o.ready(ctx) {
		return nil
	}
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	c, err := cache.New(o.kube.api, cache.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("the page's objects: %w", err)
	}
	informer, err := c.GetInformer(ctx, &metal3.BareMetalHost{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("the page's objects: %w", err)
	}
	show := func(obj any) {
		if h, ok := obj.(*metal3.BareMetalHost); ok {
			changed(o.object(ctx, c, h))
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    show,
		UpdateFunc: func(_, obj any) { show(obj) },
		DeleteFunc: func(obj any) {
			if late, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = late.Obj
			}
			if h, ok := obj.(*metal3.BareMetalHost); ok {
				changed(view.Object{Host: o.serverOf(h)})
			}
		},
	})
	if err != nil {
		return fmt.Errorf("the page's objects: %w", err)
	}
	return c.Start(ctx)
}

// object returns the data of a host's object for the page.
func (o objects) object(ctx context.Context, c client.Reader, h *metal3.BareMetalHost) view.Object {
	out := view.Object{Host: o.serverOf(h), State: string(h.Status.Provisioning.State), Error: string(h.Status.ErrorType)}
	switch by := h.Spec.ConsumerRef; {
	case by == nil:
	case by.Kind == "Machine" && strings.HasPrefix(by.APIVersion, clusterv1.GroupVersion.Group+"/") && slices.Contains(o.cfg.Settings.Families(), config.HOC):
		out.Role = "worker"
		var m clusterv1.Machine
		if err := c.Get(ctx, types.NamespacedName{Namespace: by.Namespace, Name: by.Name}, &m); err == nil && m.Labels[clusterv1.ControlPlaneLabel] != "" {
			out.Role = "control-plane"
		}
	default:
		out.Role = by.Kind
	}
	return out
}

// serverOf returns the name of the server that an object is of: the one at the address of its
// BMC, or else the one of its name.
func (l *Lab) serverOf(h *metal3.BareMetalHost) string {
	address := h.Spec.BMC.Address
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	address, _, _ = strings.Cut(address, "/")
	if at, err := netip.ParseAddrPort(address); err == nil {
		if host, ok := l.rack.At(at); ok {
			return host.Machine().Identity.Name
		}
	}
	return h.Name
}

// described are the kinds of the objects that have the name of a host.
var described = []schema.GroupVersionKind{
	metal3.GroupVersion.WithKind("BareMetalHost"), metal3.GroupVersion.WithKind("HostFirmwareSettings"), metal3.GroupVersion.WithKind("HostFirmwareComponents"),
	metal3.GroupVersion.WithKind("HostUpdatePolicy"), metal3.GroupVersion.WithKind("PreprovisioningImage"), metal3.GroupVersion.WithKind("DataImage"),
	metal3.GroupVersion.WithKind("HardwareData"),
}

// describeTimeout bounds how long the page waits for the objects of a host.
const describeTimeout = 10 * time.Second

// Describe implements view.Objects.
func (o objects) Describe(ctx context.Context, server string) ([]view.Described, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	if !o.ready(ctx) {
		return nil, nil
	}
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(o.kube.api, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("the objects of %s: %w", server, err)
	}
	var hosts metal3.BareMetalHostList
	if err := c.List(ctx, &hosts); err != nil {
		return nil, fmt.Errorf("the objects of %s: %w", server, err)
	}
	i := slices.IndexFunc(hosts.Items, func(h metal3.BareMetalHost) bool { return o.serverOf(&h) == server })
	if i < 0 {
		return nil, nil
	}
	h := &hosts.Items[i]
	var out []view.Described
	add := func(kind schema.GroupVersionKind, namespace, name string) error {
		var u unstructured.Unstructured
		u.SetGroupVersionKind(kind)
		err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &u)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", kind.Kind, name, err)
		}
		text, err := shown(&u)
		out = append(out, view.Described{Kind: kind.Kind, Name: namespace + "/" + name, YAML: text})
		return err
	}
	for _, kind := range described {
		if err := add(kind, h.Namespace, h.Name); err != nil {
			return nil, err
		}
	}
	if by := h.Spec.ConsumerRef; by != nil && by.Kind != "Secret" {
		if err := add(schema.FromAPIVersionAndKind(by.APIVersion, by.Kind), by.Namespace, by.Name); err != nil {
			return nil, err
		}
	}
	events, err := eventsOf(ctx, c, h)
	return append(out, events...), err
}

// eventsOf returns the events of an object as one text.
func eventsOf(ctx context.Context, c client.Client, h *metal3.BareMetalHost) ([]view.Described, error) {
	var all corev1.EventList
	if err := c.List(ctx, &all, client.InNamespace(h.Namespace)); err != nil {
		return nil, fmt.Errorf("the events of %s: %w", h.Name, err)
	}
	mine := slices.DeleteFunc(all.Items, func(e corev1.Event) bool { return e.InvolvedObject.UID != h.UID })
	if len(mine) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(mine, func(a, b corev1.Event) int { return b.LastTimestamp.Compare(a.LastTimestamp.Time) })
	var b strings.Builder
	for _, e := range mine {
		fmt.Fprintf(&b, "%s  %s  %s: %s\n", e.LastTimestamp.UTC().Format(time.DateTime), e.Type, e.Reason, e.Message)
	}
	return []view.Described{{Kind: "Events", Name: h.Namespace + "/" + h.Name, YAML: redacted(b.String())}}, nil
}

// shown returns an object as YAML, without managed fields and without passwords.
func shown(u *unstructured.Unstructured) (string, error) {
	u.SetManagedFields(nil)
	if a := u.GetAnnotations(); a[corev1.LastAppliedConfigAnnotation] != "" {
		delete(a, corev1.LastAppliedConfigAnnotation)
		u.SetAnnotations(a)
	}
	b, err := yaml.Marshal(u.Object)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return redacted(string(b)), nil
}

// withPassword matches a URL that has a password.
var withPassword = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/@"']*:[^\s/@"']*@[^\s"']*`)

// hiddenURL replaces a URL with a password that cannot be taken out of it.
const hiddenURL = "(a URL with a password)"

// redacted replaces the passwords in the URLs of a text.
func redacted(text string) string {
	return withPassword.ReplaceAllStringFunc(text, func(s string) string {
		u, err := url.Parse(s)
		if err != nil {
			return hiddenURL
		}
		return u.Redacted()
	})
}
