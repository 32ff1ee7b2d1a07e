package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controlplane/apiserver/options"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// readLateAccounts makes the server read a service account that its cache does not have yet. The
// generic control plane looks in the cache alone, unlike kube-apiserver: it refused tokens of
// accounts that were created just now, and all tokens in the first moment of a start.
func readLateAccounts(o *options.Options, client kubernetes.Interface) {
	cached := o.Authentication.ServiceAccounts.OptionalTokenGetter
	o.Authentication.ServiceAccounts.OptionalTokenGetter = func(f informers.SharedInformerFactory) serviceaccount.ServiceAccountTokenGetter {
		return lateAccounts{cached(f), client}
	}
}

// lateAccounts reads service accounts from the API when the cache does not have them.
type lateAccounts struct {
	serviceaccount.ServiceAccountTokenGetter
	client kubernetes.Interface // authenticates by a certificate, so that no request leads to another
}

// GetServiceAccount implements serviceaccount.ServiceAccountTokenGetter.
func (a lateAccounts) GetServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	out, err := a.ServiceAccountTokenGetter.GetServiceAccount(ctx, namespace, name)
	if apierrors.IsNotFound(err) {
		out, err = a.client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	return out, err
}
