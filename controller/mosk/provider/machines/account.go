package machines

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/agent/nodeaccount"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/mosk/provider/network/layout"
)

// The names of a Machine's objects are in no public text.

// accountName is the name of the agent's service account, Role and RoleBinding.
func accountName(m *clusterv1.Machine) string { return m.Name + nodeaccount.LCMSuffix }

// tokenName is the name of the Secret with the agent's token, which status.tokenSecret of
// the LCMMachine names.
func tokenName(m *clusterv1.Machine) string { return m.Name + "-lcm-agent-token" }

// userDataName is the name of the Secret with the user data.
func userDataName(m *clusterv1.Machine) string { return m.Name + "-user-data" }

// tokenKey is the key of the token in its Secret.
const tokenKey = "token"

// Annotations of the token's Secret.
const (
	// expiryAnnotation has the time at which the token expires (RFC 3339).
	expiryAnnotation = "metalab.dev/token-expires"
	// accountAnnotation has the UID of the service account: the token ends with it, and an
	// account of the same name has another.
	accountAnnotation = "metalab.dev/service-account-uid"
)

// The defaults of LCMCluster.spec, and the API's minimum of a token's life.
const (
	defaultTokenTTL          = 24 * time.Hour   // tokenTTL
	defaultMinTokenRemaining = time.Hour        // minTokenRemainingTTL
	minTokenTTL              = 10 * time.Minute // TokenRequest.spec.expirationSeconds
)

// meta returns the metadata of an object that the Machine owns.
func (r *Reconciler) meta(f *facts, name string) metav1.ObjectMeta {
	m := f.machine
	return metav1.ObjectMeta{
		Namespace: m.Namespace, Name: name,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(m, clusterv1.GroupVersion.WithKind("Machine"))},
	}
}

// put creates an object of the Machine, or changes the one that is there. An object of the
// name that is not the Machine's stays as it is.
func (r *Reconciler) put(ctx context.Context, f *facts, o, current client.Object, change func(current client.Object)) error {
	switch err := r.Reader.Get(ctx, client.ObjectKeyFromObject(o), current); {
	case apierrors.IsNotFound(err):
		return r.Client.Create(ctx, o)
	case err != nil:
		return err
	case !metav1.IsControlledBy(current, f.machine):
		return fmt.Errorf("%T %s exists, and is not the Machine's: remove it", o, o.GetName())
	}
	before := current.DeepCopyObject().(client.Object)
	if change(current); equality.Semantic.DeepEqual(before, current) {
		return nil
	}
	return r.patch(ctx, before, current)
}

// account makes the agent's service account, with rights to its LCMMachine and the Secrets
// that its items name alone, and a token. It returns the token, and when the account is
// due again.
func (r *Reconciler) account(ctx context.Context, f *facts) (token string, after time.Duration, err error) {
	meta := r.meta(f, accountName(f.machine))
	a, current := &corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: ptr.To(false)}, new(corev1.ServiceAccount)
	if err := r.put(ctx, f, a, current, func(client.Object) {}); err != nil {
		return "", 0, err
	}
	if current.UID != "" { // it was there
		a = current
	}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: rules(f)}
	if err := r.put(ctx, f, role, new(rbacv1.Role), func(current client.Object) { current.(*rbacv1.Role).Rules = role.Rules }); err != nil {
		return "", 0, err
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: meta.Name}},
	}
	if err := r.put(ctx, f, binding, new(rbacv1.RoleBinding), func(current client.Object) { current.(*rbacv1.RoleBinding).Subjects = binding.Subjects }); err != nil {
		return "", 0, err
	}
	return r.token(ctx, f, a)
}

// rules returns the rights of the agent.
func rules(f *facts) []rbacv1.PolicyRule {
	name := []string{f.machine.Name}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{lcmv1.GroupVersion.Group}, Resources: []string{"lcmmachines"}, ResourceNames: name, Verbs: []string{"get", "watch"}},
		{APIGroups: []string{lcmv1.GroupVersion.Group}, Resources: []string{"lcmmachines/status"}, ResourceNames: name, Verbs: []string{"patch"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: secrets(f), Verbs: []string{"get"}},
	}
}

// secrets returns the names of the Secrets that the agent reads: its next token, the proxy,
// and those of its items that are in the namespace. Overwrites reach the items a moment later: their
// Secrets are readable before.
func secrets(f *facts) []string {
	set := map[string]bool{tokenName(f.machine): true}
	if f.lcm != nil {
		if name := f.lcm.Spec.ProxySecretName; name != "" {
			set[name] = true
		}
		allParams := slices.Collect(maps.Values(f.lcm.Spec.StateItemsOverwrites))
		for _, it := range f.lcm.Spec.StateItems {
			allParams = append(allParams, it.Params)
		}
		for _, params := range allParams {
			if namespace, name, ok := strings.Cut(params[item.ParamSecretRef], "/"); ok && namespace == f.machine.Namespace {
				set[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// token returns the agent's token. It is renewed when less than minTokenRemainingTTL of its
// life is left, and when it is that of an account which was deleted.
func (r *Reconciler) token(ctx context.Context, f *facts, a *corev1.ServiceAccount) (string, time.Duration, error) {
	ttl, remaining, err := r.tokenTTL(ctx, f)
	if err != nil {
		return "", 0, err
	}
	var s corev1.Secret
	err = r.Reader.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: tokenName(f.machine)}, &s)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", 0, err
	}
	expires, parseErr := time.Parse(time.RFC3339, s.Annotations[expiryAnnotation])
	left := expires.Sub(r.Wall.Now())
	if err == nil && parseErr == nil && metav1.IsControlledBy(&s, f.machine) && s.Annotations[accountAnnotation] == string(a.UID) && left > remaining {
		return string(s.Data[tokenKey]), left - remaining, nil
	}
	req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(ttl / time.Second))}}
	if err := r.Client.SubResource("token").Create(ctx, a, req); err != nil {
		return "", 0, fmt.Errorf("token of ServiceAccount %s: %w", a.Name, err)
	}
	next := &corev1.Secret{ObjectMeta: r.meta(f, tokenName(f.machine)), Data: map[string][]byte{tokenKey: []byte(req.Status.Token)}}
	next.Annotations = map[string]string{expiryAnnotation: req.Status.ExpirationTimestamp.UTC().Format(time.RFC3339), accountAnnotation: string(a.UID)}
	return req.Status.Token, ttl - remaining, r.put(ctx, f, next, new(corev1.Secret), func(current client.Object) {
		current.(*corev1.Secret).Data = next.Data
		for name, value := range next.Annotations {
			metav1.SetMetaDataAnnotation(&current.(*corev1.Secret).ObjectMeta, name, value)
		}
	})
}

// tokenTTL returns the life of a token, and the rest of it with which it is renewed: at most
// half of the life.
func (r *Reconciler) tokenTTL(ctx context.Context, f *facts) (ttl, remaining time.Duration, err error) {
	var c lcmv1.LCMCluster
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: f.machine.Namespace, Name: f.machine.Labels[clusterv1.ClusterNameLabel]}, &c)
	if client.IgnoreNotFound(err) != nil {
		return 0, 0, err
	}
	positive := func(d *metav1.Duration, or time.Duration) time.Duration {
		if d != nil && d.Duration > 0 {
			return d.Duration
		}
		return or
	}
	ttl = max(positive(c.Spec.TokenTTL, defaultTokenTTL), minTokenTTL)
	return ttl, min(positive(c.Spec.MinTokenRemainingTTL, defaultMinTokenRemaining), ttl/2), nil
}

// removeAccount removes the agent's objects: its token ends with the service account. Then
// it removes the provider's ID, so that the host is released.
func removeAccount(ctx context.Context, r *Reconciler, f *facts) error {
	named := func(o client.Object, name string) client.Object {
		o.SetNamespace(f.machine.Namespace)
		o.SetName(name)
		return o
	}
	account := accountName(f.machine)
	for _, o := range []client.Object{
		named(new(corev1.ServiceAccount), account), named(new(rbacv1.RoleBinding), account), named(new(rbacv1.Role), account),
		named(new(corev1.Secret), tokenName(f.machine)), named(new(corev1.Secret), userDataName(f.machine)),
		named(new(corev1.Secret), layout.SecretName(f.machine.Name)),
	} {
		err := r.Reader.Get(ctx, client.ObjectKeyFromObject(o), o)
		if err == nil && metav1.IsControlledBy(o, f.machine) {
			err = r.Client.Delete(ctx, o)
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if err := r.removeNodeAccount(ctx, f); err != nil {
		return err
	}
	return onMachine(func(m *clusterv1.Machine, _ *facts) { m.Spec.ProviderID = nil })(ctx, r, f)
}
