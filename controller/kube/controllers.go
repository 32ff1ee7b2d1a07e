package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
)

const (
	// resync is upstream's default resync period for the informers of these controllers.
	resync = 12 * time.Hour
	// namespaceResync is upstream's default, too.
	namespaceResync = 5 * time.Minute
	// collectPeriod is how often the garbage collector looks for new definitions. Upstream's
	// 30 s are for large clusters.
	collectPeriod = 5 * time.Second
	// workers is the number of workers of the garbage collector and of the namespace
	// controller.
	workers = 4
)

// startControllers starts three of upstream's controllers: the garbage collector deletes
// the dependents of deleted owners, the namespace controller deletes the contents of
// deleted namespaces, and the service-account controller creates the default account of
// each namespace. With nodes there is the controller of disruption budgets, too.
//
// They end by stop, which waits for them: of ctx they use the values only.
func startControllers(ctx context.Context, c *rest.Config, nodes bool, r *reporter) (stop func() error, err error) {
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(c), "controllers"))
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	meta, err := metadata.NewForConfig(rest.AddUserAgent(rest.CopyConfig(c), "garbage-collector"))
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	discovery := client.Discovery()
	// The collector resets its mapper when discovery lists a new resource, so the mapper
	// must not share a cache with that discovery client.
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery))
	typed := informers.NewSharedInformerFactory(client, resync)
	untyped := metadatainformer.NewSharedInformerFactory(meta, resync)

	ctx, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), r.logger()))
	started := make(chan struct{})
	collector, err := garbagecollector.NewGarbageCollector(ctx, client, meta, mapper,
		garbagecollector.DefaultIgnoredResources(), informerfactory.NewInformerFactory(typed, untyped), started)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("garbage collector: %w", err)
	}
	namespaces := namespace.NewNamespaceController(ctx, client, meta, discovery.ServerPreferredNamespacedResources,
		typed.Core().V1().Namespaces(), namespaceResync, corev1.FinalizerKubernetes)
	accounts, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx),
		typed.Core().V1().ServiceAccounts(), typed.Core().V1().Namespaces(), client,
		serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		cancel()
		return nil, fmt.Errorf("service accounts: %w", err)
	}
	var all sync.WaitGroup
	if nodes {
		if err := startDisruption(ctx, &all, c, client, mapper, typed); err != nil {
			cancel()
			return nil, err
		}
	}
	typed.Start(ctx.Done())
	untyped.Start(ctx.Done())
	close(started)

	all.Go(func() { collector.Run(ctx, workers, collectPeriod) })
	all.Go(func() { collector.Sync(ctx, discovery, collectPeriod) })
	all.Go(func() { namespaces.Run(ctx, workers) })
	all.Go(func() { accounts.Run(ctx, 1) })
	return func() error {
		cancel()
		all.Wait()
		typed.Shutdown()
		untyped.Shutdown()
		return nil
	}, nil
}
