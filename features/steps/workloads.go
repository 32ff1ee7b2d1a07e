package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// registerWorkloads binds the steps on Clusters that have a Kubernetes API of their own.
func (s *scenario) registerWorkloads(sc *stepRegistry) {
	sc.Step(`^the provider has deployed the clusters "([^"]*)" with Kubernetes APIs of their own$`, "creates Clusters with the annotation metalab.dev/kubernetes-api, each with a Machine, CLUSTER-w, and waits until they are Ready", s.deployClusters)
	sc.Step(`^the Kubernetes API of "([^"]*)" has the nodes "([^"]*)"$`, "waits until the API that the Secret CLUSTER-kubeconfig names has these Nodes, and no others, which are Ready", s.hasNodes)
	sc.Step(`^the Kubernetes API of "([^"]*)" has the Helm release "([^"]*)"$`, "waits until Helm's Secret of a release is in the namespace default of a Cluster's API", func(ctx context.Context, cluster, name string) error {
		return eventually(ctx, "the Helm release "+name, func(ctx context.Context) (bool, string, error) {
			names, err := s.helmReleases(ctx, cluster)
			b := &lcmv1.HelmBundle{ObjectMeta: day2Meta(cluster)}
			err = errors.Join(err, s.kube.Get(ctx, client.ObjectKeyFromObject(b), b))
			return slices.Contains(names, name), fmt.Sprintf("it has %s; the HelmBundle has the release %s, status %+v", strings.Join(names, ", "), b.Spec.Release, b.Status), err
		})
	})
	sc.NegativeStep(`^the Kubernetes API of "([^"]*)" does not have the Helm release "([^"]*)"$`, "asserts, once each controller has reconciled every object, that this release is not installed in a Cluster's API", func(ctx context.Context, cluster, name string) error {
		if err := s.letDay2ControllersAct(ctx); err != nil {
			return err
		}
		names, err := s.helmReleases(ctx, cluster)
		if err == nil && slices.Contains(names, name) {
			err = fmt.Errorf("it has %s", strings.Join(names, ", "))
		}
		return err
	})
	sc.Step(`^the workload lock of the cluster "([^"]*)" is (active|inactive)$`, "creates a ClusterWorkloadLock in the Cluster's API, or writes its state", s.lockCluster)
	sc.Step(`^the operator upgrades the cluster "([^"]*)" to "([^"]*)"$`, "sets the release of this Cluster", func(ctx context.Context, cluster, to string) error {
		c := &clusterv1.Cluster{ObjectMeta: day2Meta(cluster)}
		return s.kube.Patch(ctx, c, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"providerSpec":{"value":{"release":%q}}}}`, to)))
	})
	sc.Step(`^the upgrade of "([^"]*)" waits for the locks of its cluster$`, "waits until the LCMMachine's node is being taken out of service, and its Cluster's API has a ClusterMaintenanceRequest and no NodeMaintenanceRequest", s.waitsForClusterLocks)
	sc.Step(`^the cluster "([^"]*)" is Ready$`, "waits until providerStatus.ready of the Cluster is true", s.clusterIsReady)
	sc.Step(`^the operator deletes the cluster "([^"]*)"$`, "deletes this Cluster without waiting", func(ctx context.Context, name string) error {
		return s.kube.Delete(ctx, &clusterv1.Cluster{ObjectMeta: day2Meta(name)})
	})
	sc.Step(`^the cluster "([^"]*)", its machine "([^"]*)" and its Kubernetes API no longer exist$`, "waits until both objects and the Secret with the kubeconfig are gone, and no API runs for the Cluster", func(ctx context.Context, cluster, machine string) error {
		if err := errors.Join(s.awaitDeletion(ctx, &clusterv1.Machine{ObjectMeta: day2Meta(machine)}), s.awaitDeletion(ctx, &clusterv1.Cluster{ObjectMeta: day2Meta(cluster)}),
			s.awaitDeletion(ctx, &corev1.Secret{ObjectMeta: day2Meta(cluster + "-kubeconfig")})); err != nil {
			return err
		}
		return eventually(ctx, "the API of "+cluster+" has ended", func(ctx context.Context) (bool, string, error) {
			st, err := s.lab.Control().Status(ctx)
			for _, a := range st.ClusterAPIs {
				if a.Cluster == day2Meta(cluster).Namespace+"/"+cluster {
					return false, fmt.Sprintf("%+v", a), err
				}
			}
			return err == nil, "", err
		})
	})
}

func (s *scenario) deployClusters(ctx context.Context, names string) (err error) {
	if err := s.createReleases(ctx); err != nil {
		return err
	}
	if s.executions, err = watchExecutions(s.kube); err != nil {
		return err
	}
	s.deployedBoots = map[string]uint64{}
	for _, name := range fields(names) {
		c := &clusterv1.Cluster{ObjectMeta: day2Meta(name)}
		c.Labels = map[string]string{clusterv1.ProviderLabel: clusterv1.ProviderBareMetal}
		c.Annotations = map[string]string{"metalab.dev/kubernetes-api": "own"}
		c.Spec.ProviderSpec.Value = baremetalv1.ClusterProviderSpec{Release: releases[0].name}
		if err := s.kube.Create(ctx, c); err != nil {
			return err
		}
		if err := s.addMachineWith(ctx, name+"-w", func(m *clusterv1.Machine) { m.Labels[clusterv1.ClusterNameLabel] = name }); err != nil {
			return err
		}
	}
	for _, name := range fields(names) {
		if err := errors.Join(s.clusterIsReady(ctx, name), s.hasExecuted(ctx, name+"-w", []string{deployItem}, 0)); err != nil {
			return err
		}
		v, err := s.machineOf(name + "-w")
		if err != nil {
			return err
		}
		s.deployedBoots[name+"-w"] = v.Boots
	}
	return nil
}

func (s *scenario) clusterIsReady(ctx context.Context, name string) error {
	return eventually(ctx, "the cluster "+name+" is Ready", func(ctx context.Context) (bool, string, error) {
		c := &clusterv1.Cluster{ObjectMeta: day2Meta(name)}
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil || c.Status.ProviderStatus == nil {
			return false, "no status", err
		}
		return c.Status.ProviderStatus.Ready, fmt.Sprintf("%+v", c.Status.ProviderStatus.Conditions), nil
	})
}

// workload returns a client of a Cluster's own API.
func (s *scenario) workload(ctx context.Context, cluster string) (client.Client, error) {
	secret := &corev1.Secret{ObjectMeta: day2Meta(cluster + "-kubeconfig")}
	if err := s.kube.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: s.kube.Scheme()})
}

func (s *scenario) hasNodes(ctx context.Context, cluster, want string) error {
	c, err := s.workload(ctx, cluster)
	if err != nil {
		return err
	}
	return eventually(ctx, "the nodes of "+cluster, func(ctx context.Context) (bool, string, error) {
		var list corev1.NodeList
		err := c.List(ctx, &list)
		var ready []string
		for _, n := range list.Items {
			if slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			}) {
				ready = append(ready, n.Name)
			}
		}
		return len(list.Items) == len(ready) && slices.Equal(ready, fields(want)), fmt.Sprintf("%d Nodes, of which are Ready: %s", len(list.Items), strings.Join(ready, ", ")), err
	})
}

// helmReleases returns the names of the releases that Helm has installed in a Cluster's API.
func (s *scenario) helmReleases(ctx context.Context, cluster string) (out []string, err error) {
	c, err := s.workload(ctx, cluster)
	if err != nil {
		return nil, err
	}
	var list corev1.SecretList
	err = c.List(ctx, &list, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"owner": "helm", "status": "deployed"})
	for _, x := range list.Items {
		out = append(out, x.Labels["name"])
	}
	return out, err
}

func (s *scenario) lockCluster(ctx context.Context, cluster, state string) error {
	c, err := s.workload(ctx, cluster)
	if err != nil {
		return err
	}
	o := &lcmv1.ClusterWorkloadLock{ObjectMeta: metav1.ObjectMeta{Name: "storage"}, Spec: lcmv1.ClusterWorkloadLockSpec{ControllerName: "storage"}}
	if err := c.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	o.Status.State = lcmv1.WorkloadLockState(state)
	return c.Status().Update(ctx, o)
}

func (s *scenario) waitsForClusterLocks(ctx context.Context, machine string) error {
	m := &lcmv1.LCMMachine{ObjectMeta: day2Meta(machine)}
	return eventually(ctx, "the upgrade of "+machine+" waits", func(ctx context.Context) (bool, string, error) {
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
			return false, "", err
		}
		c, err := s.workload(ctx, m.Spec.ClusterName)
		if err != nil {
			return false, "", err
		}
		var clusters lcmv1.ClusterMaintenanceRequestList
		var nodes lcmv1.NodeMaintenanceRequestList
		if err := errors.Join(c.List(ctx, &clusters), c.List(ctx, &nodes)); err != nil {
			return false, "", err
		}
		waits := m.Status.KubernetesCordonDrain == lcmv1.CordonDraining && len(clusters.Items) == 1 && len(nodes.Items) == 0
		return waits, fmt.Sprintf("%q, %d and %d requests", m.Status.KubernetesCordonDrain, len(clusters.Items), len(nodes.Items)), nil
	})
}
