package clusters

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// clustersOfProxy enqueues the Clusters that name a Proxy.
func (r *Reconciler) clustersOfProxy(ctx context.Context, o client.Object) (out []reconcile.Request) {
	var list clusterv1.ClusterList
	if err := r.Client.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the resync finds them
	}
	for i := range list.Items {
		if list.Items[i].Spec.ProviderSpec.Value.Proxy == o.GetName() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// proxySecret is the Secret that agents read, as LCMCluster.spec names it. hash changes with
// its content, but is not computed from it: a reader of the hash could guess passwords
// offline.
type proxySecret struct{ name, hash string }

// proxy writes the Secret with the values of the Proxy that a Cluster names, and returns it
// with the condition. Without a Proxy it removes the Secret.
func (r *Reconciler) proxy(ctx context.Context, c *clusterv1.Cluster) (proxySecret, []baremetalv1.Condition, error) {
	current := new(corev1.Secret)
	key := client.ObjectKey{Namespace: c.Namespace, Name: item.ProxySecret(c.Name)}
	name := c.Spec.ProviderSpec.Value.Proxy
	created := false
	if name != "" || hasProxy(c) { // else there was none
		err := r.Reader.Get(ctx, key, current)
		if client.IgnoreNotFound(err) != nil {
			return proxySecret{}, nil, err
		}
		created = err == nil
	}
	if name == "" {
		if created && metav1.IsControlledBy(current, c) {
			return proxySecret{}, nil, client.IgnoreNotFound(r.Client.Delete(ctx, current))
		}
		return proxySecret{}, nil, nil
	}
	wait := func(format string, args ...any) []baremetalv1.Condition {
		return []baremetalv1.Condition{{Type: ConditionProxy, Message: fmt.Sprintf(format, args...)}}
	}
	var p kaasv1.Proxy
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, &p); apierrors.IsNotFound(err) {
		return proxySecret{}, wait("spec.providerSpec.value.proxy: there is no Proxy %q in the namespace", name), nil
	} else if err != nil {
		return proxySecret{}, nil, fmt.Errorf("Proxy %s: %w", name, err)
	}
	if created && !metav1.IsControlledBy(current, c) {
		return proxySecret{}, wait("Secret %q exists, and is not the Cluster's: remove it", key.Name), nil
	}
	if ca := p.Spec.CACertificate; ca != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(ca)) {
		return proxySecret{}, wait("spec.caCertificate of Proxy %q has no certificate: give certificates in PEM", name), nil
	}
	want := current.DeepCopy()
	want.Data = map[string][]byte{}
	for field, value := range map[string]string{
		item.ProxyHTTPKey: string(p.Spec.HTTPProxy), item.ProxyHTTPSKey: string(p.Spec.HTTPSProxy), item.ProxyNoneKey: p.Spec.NoProxy,
		item.ProxyCAKey: p.Spec.CACertificate,
	} {
		if value != "" {
			want.Data[field] = []byte(value)
		}
	}
	var err error
	switch {
	case !created:
		want.Namespace, want.Name = key.Namespace, key.Name
		want.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c, clusterv1.GroupVersion.WithKind("Cluster"))}
		err = r.Client.Create(ctx, want)
	case !equality.Semantic.DeepEqual(current.Data, want.Data):
		err = r.patch(ctx, current, want)
	}
	if err != nil {
		return proxySecret{}, nil, fmt.Errorf("Secret %s: %w", key.Name, err)
	}
	sum := sha256.Sum256([]byte(string(want.UID) + "/" + want.ResourceVersion))
	return proxySecret{want.Name, hex.EncodeToString(sum[:])}, []baremetalv1.Condition{{Type: ConditionProxy, Ready: true}}, nil
}

// blocked reports whether one of the conditions is not ready.
func blocked(conditions []baremetalv1.Condition) bool {
	return slices.ContainsFunc(conditions, func(c baremetalv1.Condition) bool { return !c.Ready })
}

// hasProxy reports whether a Cluster's status has a condition of a proxy.
func hasProxy(c *clusterv1.Cluster) bool {
	if p := c.Status.ProviderStatus; p != nil {
		for _, x := range p.Conditions {
			if x.Type == ConditionProxy {
				return true
			}
		}
	}
	return false
}

// removeProxy deletes the Secret of a Cluster.
func (r *Reconciler) removeProxy(ctx context.Context, c *clusterv1.Cluster) error {
	current := new(corev1.Secret)
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: item.ProxySecret(c.Name)}, current)
	if err == nil && metav1.IsControlledBy(current, c) {
		err = r.Client.Delete(ctx, current)
	}
	return client.IgnoreNotFound(err)
}
