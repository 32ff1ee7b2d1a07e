package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
)

// Clusters is the webhook of Clusters whose release changes. Its handler is
// ClustersHandler.
var Clusters = Hook{File: "cluster.yaml", Path: "/validate-cluster-k8s-io-v1alpha1-cluster"}

// ClustersHandler returns the HTTP handler of Clusters. check returns why a Cluster may not
// become this one.
func ClustersHandler(check func(ctx context.Context, after *clusterv1.Cluster) error) http.Handler {
	return &admission.Webhook{Handler: admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		after := new(clusterv1.Cluster)
		if err := json.Unmarshal(req.Object.Raw, after); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("webhook: %w", err))
		}
		if err := check(ctx, after); err != nil {
			return admission.Denied(err.Error())
		}
		return admission.Allowed("")
	})}
}
