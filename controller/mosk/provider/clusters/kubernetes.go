package clusters

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
)

// kubernetes returns the Secret with the kubeconfig of a Cluster's own API, "" when the Cluster
// shares one, and the condition Kubernetes of a Cluster that asks for its own or has it. A Cluster
// does not change its API: its Nodes, locks and charts would be left behind in the other.
func (r *Reconciler) kubernetes(ctx context.Context, c *clusterv1.Cluster, l *lcmv1.LCMCluster) (secret string, out []baremetalv1.Condition, err error) {
	asked, demands := c.Annotations[workload.Annotation]
	if asked == workload.Own {
		secret = workload.SecretName(c.Name)
	}
	if l != nil {
		secret = l.Spec.KubeconfigSecretName
	}
	if !demands && secret == "" {
		return "", nil, nil
	}
	condition := baremetalv1.Condition{Type: baremetalv1.ConditionKubernetes}
	var mistake *workload.SecretError
	switch {
	case demands && asked != workload.Own:
		condition.Message = fmt.Sprintf("metadata.annotations: %s is %q: give %q, or remove it", workload.Annotation, asked, workload.Own)
	case demands && secret == "":
		condition.Message = fmt.Sprintf("metadata.annotations: %s came after the Cluster was deployed, and does nothing: remove it, or make the Cluster anew", workload.Annotation)
	case !demands:
		condition.Message = fmt.Sprintf("metadata.annotations: the Cluster has a Kubernetes API of its own, and keeps it: set %s to %q again", workload.Annotation, workload.Own)
	default:
		err := workload.Check(ctx, r.Reader, client.ObjectKey{Namespace: c.Namespace, Name: secret})
		if err != nil && !errors.As(err, &mistake) {
			return "", nil, err
		}
		if condition.Ready = err == nil; err != nil {
			condition.Message = err.Error()
		}
	}
	return secret, []baremetalv1.Condition{condition}, nil
}
