package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/helmcontroller"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// The life of a Helm controller's token, and the rest of it with which it is renewed: the defaults
// of LCMCluster.spec.tokenTTL and minTokenRemainingTTL.
const (
	helmTokenTTL       = 24 * time.Hour
	helmTokenRemaining = time.Hour
)

// Annotations of the Secret with the token.
const (
	tokenExpires = "metalab.dev/token-expires" // RFC 3339
	tokenAccount = "metalab.dev/service-account-uid"
)

// credential writes the account of a Cluster's Helm controller to the Secret that the pods of its
// chart mount, in the cluster's API, and returns when the token is due. A bundle without the chart
// needs none. The Secret is the chart's: it comes and goes with the release.
func (r *Reconciler) credential(ctx context.Context, c *clusterv1.Cluster, b *lcmv1.HelmBundle) (time.Duration, error) {
	release := controllerRelease(b)
	if release == nil || r.Workload == nil {
		return 0, nil
	}
	api, err := r.Workload(ctx, c.Namespace, c.Name)
	if errors.As(err, new(*workload.SecretError)) {
		return queue.SecretWait, nil // the condition Kubernetes has the reason
	} else if err != nil {
		return 0, err
	}
	account := new(corev1.ServiceAccount)
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: helmcontroller.Name(c.Name)}, account); err != nil {
		return 0, err
	}
	s := &corev1.Secret{}
	s.Namespace, s.Name = cmp.Or(release.Namespace, b.Namespace), helmcontroller.SecretName(release.Name)
	switch err := api.Client.Get(ctx, client.ObjectKeyFromObject(s), s); {
	case apierrors.IsNotFound(err) && !b.Status.ReleaseStatuses[release.Name].Success:
		return 0, nil // Helm makes it: the watch of the bundle reports that
	case apierrors.IsNotFound(err): // someone has deleted it
		adopt(s, release.Name)
	case err != nil:
		return 0, fmt.Errorf("Secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	bundle := b.Namespace + "/" + b.Name
	if owner, exists := s.Data[helmcontroller.BundleKey]; exists && string(owner) != bundle || !ofRelease(s, release.Name) {
		return 0, fmt.Errorf("Secret %s/%s exists, and is not that of HelmBundle %s: remove it, or rename the release", s.Namespace, s.Name, bundle)
	}
	expires, parseErr := time.Parse(time.RFC3339, s.Annotations[tokenExpires])
	if left := expires.Sub(r.Wall.Now()); parseErr == nil && s.Annotations[tokenAccount] == string(account.UID) && left > helmTokenRemaining {
		return left - helmTokenRemaining, nil
	}
	req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(helmTokenTTL / time.Second))}}
	if err := r.Client.SubResource("token").Create(ctx, account, req); err != nil {
		return 0, fmt.Errorf("token of ServiceAccount %s: %w", account.Name, err)
	}
	kubeconfig, err := r.kubeconfigOf()
	if err != nil {
		return 0, err
	}
	before := s.DeepCopy()
	s.Data = map[string][]byte{helmcontroller.KubeconfigKey: kubeconfig, helmcontroller.TokenKey: []byte(req.Status.Token), helmcontroller.BundleKey: []byte(bundle)}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, tokenExpires, r.Wall.Now().Add(helmTokenTTL).UTC().Format(time.RFC3339))
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, tokenAccount, string(account.UID))
	if before.ResourceVersion != "" {
		err = api.Client.Patch(ctx, s, client.MergeFrom(before))
	} else {
		err = api.Client.Create(ctx, s)
	}
	if err != nil {
		return 0, fmt.Errorf("Secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	return helmTokenTTL - helmTokenRemaining, nil
}

// adopt marks a Secret as one that Helm has made for a release in its namespace.
func adopt(s *corev1.Secret, name string) {
	s.Labels = maps.Clone(helmcontroller.Labels)
	s.Labels[helmcontroller.InstanceLabel], s.Labels["app.kubernetes.io/managed-by"] = name, "Helm"
	s.Annotations = map[string]string{helmcontroller.ReleaseAnnotation: name, helmcontroller.NamespaceAnnotation: s.Namespace}
}

// ofRelease reports whether Helm has made a Secret for a release in its namespace.
func ofRelease(s *corev1.Secret, name string) bool {
	return s.Annotations[helmcontroller.ReleaseAnnotation] == name && s.Annotations[helmcontroller.NamespaceAnnotation] == s.Namespace
}

// kubeconfigOf returns a kubeconfig of the management cluster, whose token is in a file beside it.
func (r *Reconciler) kubeconfigOf() ([]byte, error) {
	const name = "management"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: r.Server, CertificateAuthorityData: r.CA}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {TokenFile: helmcontroller.TokenKey}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
}
