package steps

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// helmController is the name of the chart of a Helm controller, and of its release in an API of the
// Cluster's own.
const helmController = "helm-controller"

// registerHelmControllers binds the steps on the Helm controllers of Clusters.
func (s *scenario) registerHelmControllers(sc *stepRegistry) {
	sc.Step(`^the clusters "([^"]*)" without machines share the Kubernetes API of the lab$`, "creates releases and Clusters", s.createSharing)
	sc.Step(`^the cluster "([^"]*)" without machines has a Kubernetes API of its own$`, "creates releases and a Cluster with the annotation metalab.dev/kubernetes-api", s.createWithOwnAPI)
	sc.Step(`^the chart of the Helm controller of "([^"]*)" is installed as "([^"]*)"$`, "waits until the HelmBundle of this Cluster has this release of the chart, and the release is ready", func(ctx context.Context, cluster, name string) error {
		return s.awaitRelease(ctx, name, cluster, func(status lcmv1.HelmReleaseStatus) bool {
			return status.Success && status.Ready && status.Chart == helmController
		})
	})
	sc.Step(`^the Helm controller of "([^"]*)" has (\d+) pods?, which (?:is|are) (Ready|not Ready: '[^']*')$`, "waits until the API of this Cluster has so many pods of the chart, all of which are Ready, or none with this message", s.helmPodsAre)
	sc.Step(`^nothing of the Helm controller of "([^"]*)" is left$`, "waits until the API of this Cluster has no object of the chart: Deployment, ReplicaSets, pods, Secrets, accounts and rights", s.helmControllerIsGone)
	sc.Step(`^the operator asks for a highly available Helm controller of "([^"]*)"$`, "sets helmControllerHAEnabled of the LCMCluster", func(ctx context.Context, cluster string) error {
		return s.merge(ctx, &lcmv1.LCMCluster{ObjectMeta: day2Meta(cluster)}, `{"spec":{"helmControllerHAEnabled":true}}`)
	})
	sc.Step(`^the operator deletes the pods of the Helm controller of "([^"]*)"$`, "deletes the pods of the chart in the API of this Cluster, and waits until they are gone", s.deleteHelmPods)
}

func (s *scenario) createSharing(ctx context.Context, names string) error {
	if err := s.createReleases(ctx); err != nil {
		return err
	}
	for _, name := range fields(names) {
		if err := s.create(ctx, sharingCluster(name)); err != nil {
			return err
		}
	}
	return nil
}

// sharingCluster returns a Cluster of the first release.
func sharingCluster(name string) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: day2Meta(name)}
	c.Labels = map[string]string{clusterv1.ProviderLabel: clusterv1.ProviderBareMetal}
	c.Spec.ProviderSpec.Value = baremetalv1.ClusterProviderSpec{Release: releases[0].name}
	return c
}

func (s *scenario) createWithOwnAPI(ctx context.Context, name string) error {
	c := sharingCluster(name)
	c.Annotations = map[string]string{"metalab.dev/kubernetes-api": "own"}
	if err := s.createReleases(ctx); err != nil {
		return err
	}
	return s.create(ctx, c)
}

// apiOf returns a client of the API of a Cluster: its own, or the lab's.
func (s *scenario) apiOf(ctx context.Context, cluster string) (client.Client, error) {
	c := &clusterv1.Cluster{ObjectMeta: day2Meta(cluster)}
	if err := s.kube.Get(ctx, client.ObjectKeyFromObject(c), c); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if c.Annotations["metalab.dev/kubernetes-api"] == "own" {
		return s.workload(ctx, cluster)
	}
	return s.kube, nil
}

// ofHelmController selects the objects of the release of the chart that a Cluster has.
func (s *scenario) ofHelmController(ctx context.Context, cluster string) (client.Client, client.MatchingLabels, error) {
	api, err := s.apiOf(ctx, cluster)
	if err != nil {
		return nil, nil, err
	}
	out := client.MatchingLabels{"app.kubernetes.io/name": helmController, "app.kubernetes.io/instance": helmController + "-" + cluster}
	if api != s.kube {
		out["app.kubernetes.io/instance"] = helmController
	}
	return api, out, nil
}

func (s *scenario) helmPodsAre(ctx context.Context, cluster string, want int, state string) error {
	api, labels, err := s.ofHelmController(ctx, cluster)
	if err != nil {
		return err
	}
	message, stopped := strings.CutPrefix(state, "not Ready: '")
	message = strings.TrimSuffix(message, "'")
	return eventually(ctx, "the pods of the Helm controller of "+cluster, func(ctx context.Context) (bool, string, error) {
		var list corev1.PodList
		err := api.List(ctx, &list, labels)
		ok, seen := len(list.Items) == want, []string{fmt.Sprintf("%d pods", len(list.Items))}
		for _, p := range list.Items {
			for _, c := range p.Status.Conditions {
				if c.Type != corev1.PodReady {
					continue
				}
				seen = append(seen, fmt.Sprintf("%s: Ready is %s, %s: %s", p.Name, c.Status, c.Reason, c.Message))
				ok = ok && (c.Status == corev1.ConditionFalse) == stopped && (!stopped || strings.Contains(c.Message, message))
			}
		}
		return ok && len(seen) == want+1, strings.Join(seen, "; "), err
	})
}

// helmControllerKinds are the kinds of the objects of the chart, and of those that follow from them.
var helmControllerKinds = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "ReplicaSet"}, {Version: "v1", Kind: "Pod"},
	{Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "ServiceAccount"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
}

func (s *scenario) helmControllerIsGone(ctx context.Context, cluster string) error {
	api, labels, err := s.ofHelmController(ctx, cluster)
	if err != nil {
		return err
	}
	return eventually(ctx, "nothing of the Helm controller of "+cluster+" is left", func(ctx context.Context) (bool, string, error) {
		var left []string
		for _, kind := range helmControllerKinds {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			if err := api.List(ctx, list, labels); err != nil {
				return false, kind.Kind, err
			}
			for _, o := range list.Items {
				left = append(left, kind.Kind+" "+o.Name)
			}
		}
		return len(left) == 0, strings.Join(left, ", "), nil
	})
}

func (s *scenario) deleteHelmPods(ctx context.Context, cluster string) error {
	api, labels, err := s.ofHelmController(ctx, cluster)
	if err != nil {
		return err
	}
	var list corev1.PodList
	if err := api.List(ctx, &list, labels); err != nil {
		return err
	}
	if meta.LenList(&list) == 0 {
		return fmt.Errorf("%s has no pod of a Helm controller", cluster)
	}
	for i := range list.Items {
		if err := api.Delete(ctx, &list.Items[i]); err != nil {
			return err
		}
	}
	return eventually(ctx, "the pods are gone", func(ctx context.Context) (bool, string, error) {
		var now corev1.PodList
		err := api.List(ctx, &now, labels)
		for _, p := range now.Items {
			for _, old := range list.Items {
				if p.UID == old.UID {
					return false, p.Name, err
				}
			}
		}
		return err == nil, "", err
	})
}
