// Package workload finds the Kubernetes API in which the nodes of a cluster are: its own, when
// LCMCluster.spec.kubeconfigSecretName names a Secret with a kubeconfig, else the one that all
// clusters without an API of their own share. Drains, workload locks, charts and Nodes of a
// cluster are there.
//
// The package knows Secrets, kubeconfigs and LCMClusters. It starts no API.
package workload

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/reconcile/breaker"
)

// The words of Clusters and Secrets.
const (
	// Annotation of a Cluster asks for a Kubernetes API of its own, with the value Own. It
	// counts when the Cluster gets its LCMCluster.
	Annotation = "metalab.dev/kubernetes-api"
	Own        = "own"
	// KubeconfigKey is the key of the kubeconfig in its Secret.
	KubeconfigKey = "kubeconfig"
	// SecretTypeAnnotation of a Secret says which of a cluster's Secrets it is.
	SecretTypeAnnotation = "lcm.mirantis.com/cluster-secret-type"
)

// SecretName returns the name of the Secret with the kubeconfig of a Cluster's own API.
func SecretName(cluster string) string { return cluster + "-kubeconfig" }

// API is the Kubernetes API of a cluster.
type API struct {
	Client client.Client // reads past any cache
	Config *rest.Config
	Own    bool // no other cluster is there
}

// APIs finds the APIs of clusters. It keeps a client of each, for as long as the kubeconfig stays
// the same.
type APIs struct {
	clusters, secrets client.Reader
	scheme            *runtime.Scheme
	shared            API
	breakers          breaker.Breakers

	mu   sync.Mutex
	kept map[client.ObjectKey]kept // by the cluster's key
}

type kept struct {
	sum [sha256.Size]byte // checksum of the kubeconfig
	api API
}

// New returns the APIs of clusters. clusters reads LCMClusters, secrets reads Secrets past the
// cache, and shared is the API of clusters without one of their own.
func New(clusters, secrets client.Reader, scheme *runtime.Scheme, shared API) (*APIs, error) {
	if clusters == nil || secrets == nil || scheme == nil || shared.Client == nil {
		return nil, errors.New("workload: a reader, the scheme or the shared API is nil")
	}
	return &APIs{clusters: clusters, secrets: secrets, scheme: scheme, shared: shared, kept: map[client.ObjectKey]kept{}}, nil
}

// SecretError says why the Secret of a cluster's kubeconfig cannot be used: it does not exist yet,
// or its writer has to correct it.
type SecretError struct{ text string }

// Error implements error.
func (e *SecretError) Error() string { return e.text }

func mistake(format string, args ...any) error { return &SecretError{fmt.Sprintf(format, args...)} }

// Of returns the API of a cluster, or a SecretError.
func (a *APIs) Of(ctx context.Context, namespace, cluster string) (API, error) {
	key := client.ObjectKey{Namespace: namespace, Name: cluster}
	var l lcmv1.LCMCluster
	if err := a.clusters.Get(ctx, key, &l); client.IgnoreNotFound(err) != nil {
		return API{}, fmt.Errorf("workload: LCMCluster %s: %w", key, err)
	}
	if l.Spec.KubeconfigSecretName == "" {
		a.forget(key)
		return a.shared, nil
	}
	secret := client.ObjectKey{Namespace: namespace, Name: l.Spec.KubeconfigSecretName}
	text, err := readKubeconfig(ctx, a.secrets, secret)
	if err != nil {
		return API{}, fmt.Errorf("workload: Kubernetes API of cluster %s: %w", key, err)
	}
	sum := sha256.Sum256(text)
	a.mu.Lock()
	defer a.mu.Unlock()
	if k, ok := a.kept[key]; ok && k.sum == sum {
		return k.api, nil
	}
	config, err := parse(secret, text)
	if err != nil {
		return API{}, fmt.Errorf("workload: Kubernetes API of cluster %s: %w", key, err)
	}
	a.breakers.Wrap(config, key) // a cluster that is down must not hold the controllers
	c, err := client.New(config, client.Options{Scheme: a.scheme})
	if err != nil {
		return API{}, fmt.Errorf("workload: Kubernetes API of cluster %s: %w", key, err)
	}
	out := API{Client: c, Config: config, Own: true}
	a.kept[key] = kept{sum, out}
	return out, nil
}

func (a *APIs) forget(key client.ObjectKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.kept, key)
}

// Check returns a SecretError unless the Secret has a kubeconfig that can be used.
func Check(ctx context.Context, r client.Reader, secret client.ObjectKey) error {
	text, err := readKubeconfig(ctx, r, secret)
	if err == nil {
		_, err = parse(secret, text)
	}
	return err
}

func readKubeconfig(ctx context.Context, r client.Reader, secret client.ObjectKey) ([]byte, error) {
	var s corev1.Secret
	err := r.Get(ctx, secret, &s)
	switch {
	case apierrors.IsNotFound(err):
		return nil, mistake("Secret %s does not exist yet: it has the kubeconfig, with the key %s", secret, KubeconfigKey)
	case err != nil:
		return nil, fmt.Errorf("Secret %s: %w", secret, err)
	case len(s.Data[KubeconfigKey]) == 0:
		return nil, mistake("Secret %s has no key %s: put the kubeconfig there", secret, KubeconfigKey)
	}
	return s.Data[KubeconfigKey], nil
}

// parse returns the configuration of clients that a kubeconfig of a Secret describes. Whoever
// writes the Secret must get no more than that from the controllers: a kubeconfig that names
// files of theirs, or a program that they would run, is refused with the field.
func parse(secret client.ObjectKey, text []byte) (*rest.Config, error) {
	k, err := clientcmd.Load(text)
	if err != nil {
		return nil, mistake("Secret %s: %s: %v", secret, KubeconfigKey, err)
	}
	context, ok := k.Contexts[k.CurrentContext]
	if !ok {
		return nil, mistake("Secret %s: %s: current-context %q is none of its contexts", secret, KubeconfigKey, k.CurrentContext)
	}
	if why := cmp.Or(wrongUser(context.AuthInfo, k.AuthInfos[context.AuthInfo]), wrongCluster(context.Cluster, k.Clusters[context.Cluster])); why != "" {
		return nil, mistake("Secret %s: %s: %s", secret, KubeconfigKey, why)
	}
	c, err := clientcmd.NewDefaultClientConfig(*k, nil).ClientConfig()
	if err != nil {
		return nil, mistake("Secret %s: %s: %v", secret, KubeconfigKey, err)
	}
	c.QPS = -1 // the callers limit themselves
	return c, nil
}

// wrongUser returns the mistake in the user of a kubeconfig, "" for none.
func wrongUser(name string, u *clientcmdapi.AuthInfo) string {
	if u == nil {
		return fmt.Sprintf("there is no user %q, which the current context names", name)
	}
	for field, set := range map[string]bool{
		"exec": u.Exec != nil, "auth-provider": u.AuthProvider != nil, "tokenFile": u.TokenFile != "",
		"client-certificate": u.ClientCertificate != "", "client-key": u.ClientKey != "",
	} {
		if set {
			return fmt.Sprintf("%s of user %q: give client-certificate-data with client-key-data, or a token: the controllers run no program and read no file for it", field, name)
		}
	}
	return ""
}

// wrongCluster returns the mistake in the cluster of a kubeconfig, "" for none.
func wrongCluster(name string, c *clientcmdapi.Cluster) string {
	switch {
	case c == nil:
		return fmt.Sprintf("there is no cluster %q, which the current context names", name)
	case c.CertificateAuthority != "":
		return fmt.Sprintf("certificate-authority of cluster %q: give certificate-authority-data: the controllers read no file for it", name)
	case !strings.HasPrefix(c.Server, "https://"):
		return fmt.Sprintf("server %q of cluster %q: give an https URL", c.Server, name)
	}
	return ""
}
