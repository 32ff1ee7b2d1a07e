package kube

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericfilters "k8s.io/apiserver/pkg/endpoints/filters"
	genericserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/util/notfoundhandler"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/scale"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/kubernetes/pkg/controlplane/apiserver/samples/generic/server"
	"k8s.io/kubernetes/pkg/controlplane/reconcilers"
	kubeletclient "k8s.io/kubernetes/pkg/kubelet/client"
)

// nodeGroups are the group versions that Config.Nodes adds, with the priorities that
// kube-apiserver registers them with: by these kubectl resolves a resource name that
// several groups have. core/v1 is served without the switch, too, but without the kinds of
// nodeKinds. policy/v1 is how a pod is evicted.
//
// scheduling.k8s.io and storage.k8s.io are for the references of pods and claims:
// PriorityClass and StorageClass. discovery.k8s.io has the EndpointSlices that
// upstream's storage of Services reads.
var nodeGroups = map[schema.GroupVersion]controlplaneserver.APIServicePriority{
	{Group: "apps", Version: "v1"}:              {Group: 17800, Version: 15},
	{Group: "batch", Version: "v1"}:             {Group: 17400, Version: 15},
	{Group: "networking.k8s.io", Version: "v1"}: {Group: 17200, Version: 15},
	{Group: "policy", Version: "v1"}:            {Group: 17100, Version: 15},
	{Group: "storage.k8s.io", Version: "v1"}:    {Group: 16800, Version: 15},
	{Group: "scheduling.k8s.io", Version: "v1"}: {Group: 16600, Version: 15},
	{Group: "discovery.k8s.io", Version: "v1"}:  {Group: 16200, Version: 12},
}

// kubeletPort is the port at which kubelets listen. No kubelet runs here: a request for
// a pod's log or a shell in it fails at the connection.
const kubeletPort = 10250

// serverChain makes the three servers from their configuration: definitions of custom
// resources, built-in kinds, and the aggregator in front of both.
func serverChain(c *server.Config, nodes bool) (*aggregator.APIAggregator, error) {
	if !nodes {
		completed, err := c.Complete()
		if err != nil {
			return nil, err
		}
		return server.CreateServerChain(completed)
	}
	return nodeChain(c)
}

// nodeChain makes the same chain as upstream's sample, but with kube-apiserver's built-in
// kinds in the place of the sample's. kube-apiserver's defaults apply: services get
// addresses of 10.0.0.0/24, and the Service kubernetes stands in the namespace default.
//
// Upstream's sample has no option for more kinds. Upgrade check: see upstream.go.
func nodeChain(c *server.Config) (*aggregator.APIAggregator, error) {
	served, ok := c.ControlPlane.APIResourceConfigSource.(*serverstorage.ResourceConfig)
	if !ok {
		return nil, fmt.Errorf("the served kinds are a %T, not a ResourceConfig", c.ControlPlane.APIResourceConfigSource)
	}
	priorities := controlplaneserver.DefaultGenericAPIServicePriorities()
	maps.Copy(priorities, nodeGroups)
	for gv := range nodeGroups {
		served.EnableVersions(gv)
	}
	definitions, err := c.APIExtensions.Complete().New(genericserver.NewEmptyDelegateWithCustomHandler(
		notfoundhandler.New(c.ControlPlane.Generic.Serializer, genericfilters.NoMuxAndDiscoveryIncompleteKey)))
	if err != nil {
		return nil, err
	}
	native := &controlplane.Config{
		ControlPlane: *c.ControlPlane,
		Extra: controlplane.Extra{
			KubeletClientConfig:    kubeletclient.KubeletClientConfig{Port: kubeletPort},
			APIServerServicePort:   443,
			EndpointReconcilerType: reconcilers.NoneEndpointReconcilerType, // the server listens on loopback: no endpoint of a Service
		},
	}
	kinds, err := native.Complete().New(definitions.GenericAPIServer)
	if err != nil {
		return nil, err
	}
	return controlplaneserver.CreateAggregatorServer(c.Aggregator.Complete(), kinds.ControlPlane.GenericAPIServer,
		definitions.Informers.Apiextensions().V1().CustomResourceDefinitions(), true, priorities)
}

// startDisruption starts upstream's controller that computes how many pods each
// PodDisruptionBudget lets go. Without it a budget lets none go: the API evicts no pod
// that is in a budget whose status is not current.
func startDisruption(ctx context.Context, all *sync.WaitGroup, c *rest.Config, client kubernetes.Interface, mapper meta.RESTMapper, typed informers.SharedInformerFactory) error {
	scales, err := scale.NewForConfig(rest.AddUserAgent(rest.CopyConfig(c), "disruption-controller"), mapper,
		dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(client.Discovery()))
	if err != nil {
		return fmt.Errorf("disruption budgets: %w", err)
	}
	budgets := disruption.NewDisruptionController(ctx, typed.Core().V1().Pods(), typed.Policy().V1().PodDisruptionBudgets(),
		typed.Core().V1().ReplicationControllers(), typed.Apps().V1().ReplicaSets(), typed.Apps().V1().Deployments(),
		typed.Apps().V1().StatefulSets(), client, mapper, scales, client.Discovery())
	all.Go(func() { budgets.Run(ctx, 1) })
	return nil
}
