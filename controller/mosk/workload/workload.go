// Package workload finds the Kubernetes API in which the nodes of a cluster are: its own, when
// LCMCluster.spec.kubeconfigSecretName names a Secret with a kubeconfig, else the one that all
// clusters without an API of their own share. Drains, workload locks, charts and Nodes of a
// cluster are there.
//
// The package knows Secrets, kubeconfigs and LCMClusters. It starts no API.
package workload

import (
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
)

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

// Of returns the API of a cluster, or an error that names the Secret and what is wrong with it.
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
	text, err := Kubeconfig(ctx, a.secrets, client.ObjectKey{Namespace: namespace, Name: l.Spec.KubeconfigSecretName})
	if err != nil {
		return API{}, fmt.Errorf("workload: Kubernetes API of cluster %s: %w", key, err)
	}
	sum := sha256.Sum256(text)
	a.mu.Lock()
	defer a.mu.Unlock()
	if k, ok := a.kept[key]; ok && k.sum == sum {
		return k.api, nil
	}
	config, err := Parse(text)
	if err != nil {
		return API{}, fmt.Errorf("workload: Secret %s/%s: %w", namespace, l.Spec.KubeconfigSecretName, err)
	}
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

// Kubeconfig returns the kubeconfig in a Secret. The error names the Secret.
func Kubeconfig(ctx context.Context, r client.Reader, key client.ObjectKey) ([]byte, error) {
	var s corev1.Secret
	err := r.Get(ctx, key, &s)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("Secret %s does not exist yet: it has the kubeconfig, with the key %s", key, KubeconfigKey)
	case err != nil:
		return nil, fmt.Errorf("Secret %s: %w", key, err)
	case len(s.Data[KubeconfigKey]) == 0:
		return nil, fmt.Errorf("Secret %s has no key %s: put the kubeconfig there", key, KubeconfigKey)
	}
	return s.Data[KubeconfigKey], nil
}

// Parse returns the configuration of clients that a kubeconfig of a Secret describes. Whoever
// writes the Secret must get no more than that from the controllers: a kubeconfig that names
// files of theirs, or a program that they would run, is refused with the field.
func Parse(text []byte) (*rest.Config, error) {
	k, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", KubeconfigKey, err)
	}
	context, ok := k.Contexts[k.CurrentContext]
	if !ok {
		return nil, fmt.Errorf("%s: current-context %q is none of its contexts", KubeconfigKey, k.CurrentContext)
	}
	if err := errors.Join(checkUser(context.AuthInfo, k.AuthInfos[context.AuthInfo]), checkCluster(context.Cluster, k.Clusters[context.Cluster])); err != nil {
		return nil, err
	}
	c, err := clientcmd.NewDefaultClientConfig(*k, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", KubeconfigKey, err)
	}
	c.QPS = -1 // the callers limit themselves
	return c, nil
}

func checkUser(name string, u *clientcmdapi.AuthInfo) error {
	if u == nil {
		return fmt.Errorf("%s: there is no user %q, which the current context names", KubeconfigKey, name)
	}
	for field, set := range map[string]bool{
		"exec": u.Exec != nil, "auth-provider": u.AuthProvider != nil, "tokenFile": u.TokenFile != "",
		"client-certificate": u.ClientCertificate != "", "client-key": u.ClientKey != "",
	} {
		if set {
			return fmt.Errorf("%s: %s of user %q: give client-certificate-data with client-key-data, or a token: the controllers run no program and read no file for it", KubeconfigKey, field, name)
		}
	}
	return nil
}

func checkCluster(name string, c *clientcmdapi.Cluster) error {
	switch {
	case c == nil:
		return fmt.Errorf("%s: there is no cluster %q, which the current context names", KubeconfigKey, name)
	case c.CertificateAuthority != "":
		return fmt.Errorf("%s: certificate-authority of cluster %q: give certificate-authority-data: the controllers read no file for it", KubeconfigKey, name)
	case !strings.HasPrefix(c.Server, "https://"):
		return fmt.Errorf("%s: server %q of cluster %q: give an https URL", KubeconfigKey, c.Server, name)
	}
	return nil
}
