package machines

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/userdata"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
)

// nodeTokenTTL is the life of a node agent's token. Its user data are written once: the token lasts as
// long as a server keeps its image, and ends with the account.
const nodeTokenTTL = 365 * 24 * time.Hour

// node returns the account of the node agent in the Cluster's own API. It is nil for a Cluster that
// shares an API, whose release installs what registers Nodes, and for an API without node agents.
func (r *Reconciler) node(ctx context.Context, f *facts) (*userdata.Node, error) {
	api, err := r.workload(ctx, f)
	if err != nil || !api.Own {
		return nil, err
	}
	var namespace corev1.Namespace
	if err := api.Client.Get(ctx, client.ObjectKey{Name: workload.NodeAccounts}, &namespace); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("Kubernetes API of the Cluster: %w", err)
	}
	a := nodeAccount(f)
	if err := api.Client.Create(ctx, a); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("ServiceAccount %s/%s: %w", a.Namespace, a.Name, err)
	}
	req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(nodeTokenTTL / time.Second))}}
	if err := api.Client.SubResource("token").Create(ctx, a, req); err != nil {
		return nil, fmt.Errorf("token of ServiceAccount %s/%s: %w", a.Namespace, a.Name, err)
	}
	return &userdata.Node{Server: api.Config.Host, CA: api.Config.CAData, Token: req.Status.Token}, nil
}

// removeNodeAccount removes the account of the node agent. An API whose Secret is gone has none, and
// the policy forced waits for no API.
func (r *Reconciler) removeNodeAccount(ctx context.Context, f *facts) error {
	api, err := r.workload(ctx, f)
	if err == nil && api.Own {
		err = client.IgnoreNotFound(api.Client.Delete(ctx, nodeAccount(f)))
	}
	if errors.As(err, new(*workload.SecretError)) || f.machine.Spec.ProviderSpec.Value.DeletionPolicy == baremetalv1.DeletionForced {
		return nil
	}
	return err
}

func nodeAccount(f *facts) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: workload.NodeAccounts, Name: f.machine.Name}, AutomountServiceAccountToken: ptr.To(false)}
}

// workload returns the API of the Machine's cluster.
func (r *Reconciler) workload(ctx context.Context, f *facts) (workload.API, error) {
	if r.Workload == nil {
		return workload.API{}, nil
	}
	return r.Workload(ctx, f.machine.Namespace, f.machine.Labels[clusterv1.ClusterNameLabel])
}
