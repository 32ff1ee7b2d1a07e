package kube

// This file holds everything that depends on a detail of Kubernetes or etcd which
// upstream does not promise to keep: variables for tests, the sample server, structs
// between its stages, constants and the order of events. Each entry says what the
// detail does for this package and how an upgrade shows that it no longer does.
//
// The following details have their code elsewhere, for the reason given:
//   - etcdquiet changes the logger of etcd's clients before the API server's packages
//     are initialised, which takes a package of its own. Upgrade check: when a test stops
//     an API, etcd's clients write warnings to standard error.
//   - fastpath*.go rely on the options of custom resources and events, on the codec that
//     the API server passes to their storage, and on etcd3.New, which upstream's own
//     factory calls. Upgrade check: all API tests run with and without them, and TestMain
//     compares each cached object with the decoded one.
//   - apiServer.waitReady does not stop the server while its start hooks run, because
//     upstream exits the process when one of them fails (PostStartHook, klog.Fatalf).
//     Upgrade check: TestStartReturnsWhenItsContextEnds.
//   - etcdConfig gives etcd an address for peers, which it requires of a single member,
//     too; and API.close releases the state folder after etcd has closed, because etcd
//     removes its sockets by name, and so those of a successor. Upgrade check:
//     TestRestartKeepsObjectsAndKubeconfig, TestStopEndsEveryGoroutine.
//   - nodes.go makes the chain of servers itself, with kube-apiserver's built-in kinds.
//     Upgrade check: the compiler, and TestNodes.
//   - nodeagents.go asks upstream's admission plugin NodeRestriction for Nodes, Leases and the statuses
//     of Pods, for which it needs no informer. Upgrade check: TestAccountOfANodeWritesThatNodeAlone.
//   - tools.go names the staging modules of k8s.io/kubernetes. Upgrade check: go list
//     -m all fails when one is missing, and go mod tidy removes one too many.

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-base/compatibility"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controlplane/apiserver/options"
	"k8s.io/kubernetes/pkg/controlplane/apiserver/samples/generic/server"
)

// gitVersion is the version that the API reports. Upstream stamps it into its binaries
// while linking; without a stamp kubectl cannot parse the version, and go install has no
// stamps. Upgrade check: TestReadyAfterStart compares it with go.mod.
const gitVersion = "v1.37.1+metalab"

// stampedVersion is an EffectiveVersion with gitVersion.
type stampedVersion struct{ compatibility.EffectiveVersion }

func (v stampedVersion) Info() *apimachineryversion.Info {
	info := v.EffectiveVersion.Info()
	info.GitVersion = gitVersion
	return info
}

// buildMutex serializes buildServer: upstream registers metrics and feature gates of the
// process on the way. Upgrade check: TestStopEndsEveryGoroutine starts two APIs at a time.
var buildMutex sync.Mutex

// buildServer makes upstream's sample of a generic control plane from its options. The
// sample is no API of a library: its stages (NewConfig, Complete, CreateServerChain,
// PrepareRun) and the fields between them change with releases. Upgrade check: the
// compiler, and all API tests.
func buildServer(ctx context.Context, o *options.Options, fast *inProcessStore, nodes kubernetes.Interface, space func() error) (run func(context.Context) error, err error) {
	buildMutex.Lock()
	defer buildMutex.Unlock()
	wording, err := webhookRefusals()
	if err != nil {
		return nil, err
	}
	o.Admission.GenericAdmission.Decorators = append(o.Admission.GenericAdmission.Decorators, wording)
	complete, err := o.Complete(ctx, nil, nil)
	if err != nil {
		return nil, err
	}
	if errs := complete.Validate(); len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	c, err := server.NewConfig(complete)
	if err != nil {
		return nil, err
	}
	for _, v := range []*compatibility.EffectiveVersion{
		&c.ControlPlane.Generic.EffectiveVersion,
		&c.Aggregator.GenericConfig.EffectiveVersion,
		&c.APIExtensions.GenericConfig.EffectiveVersion,
	} {
		*v = stampedVersion{*v}
	}
	// The sample sets 3 masters. With more than one, the API establishes each definition
	// 5 s late, so that the other servers have seen it. Upgrade check: BenchmarkStart
	// takes 5 s longer.
	c.APIExtensions.ExtraConfig.MasterCount = 1
	if nodes != nil {
		for _, g := range []*genericserver.Config{c.ControlPlane.Generic, &c.Aggregator.GenericConfig.Config, &c.APIExtensions.GenericConfig.Config} {
			g.Authorization.Authorizer = podsOfNodeAgents{g.Authorization.Authorizer, nodes}
		}
	}
	if fast != nil {
		useFastPaths(c, complete, fast)
	}
	// The aggregator is the first of the three servers, and the only one that serves the
	// chain. Upgrade check: TestWritesAreRefusedWithoutSpace.
	build := c.Aggregator.GenericConfig.BuildHandlerChainFunc
	c.Aggregator.GenericConfig.BuildHandlerChainFunc = func(h http.Handler, c *genericserver.Config) http.Handler {
		return refuseWithoutSpace(space, tolerateUnknown(build(h, c)))
	}
	chain, err := serverChain(c, nodes != nil)
	if err != nil {
		return nil, err
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return nil, err
	}
	return prepared.Run, nil
}

// walSegment is the size in bytes of the files of etcd's write-ahead log. etcd allocates
// two of them before it writes: with upstream's 64 MB, an API without objects would take
// 128 MB of the disk. Each write of more is a file of its own. Upgrade check:
// TestDiskUsageOfAnEmptyAPI.
const walSegment = 8 << 20

func init() {
	wal.SegmentSizeBytes = walSegment // upstream has no option for it
}

// watchGrace is how long watches get to end when the server stops: upstream asks them to
// end at once. With a grace of 0 it does not ask them, and the stop waits a minute for
// them. Upgrade check: TestStopEndsWithOpenWatch.
const watchGrace = time.Second

// tuneOptions sets the options whose defaults do not suit a server inside another
// program.
func tuneOptions(o *options.Options) {
	o.GenericServerRunOptions.ShutdownWatchTerminationGracePeriod = watchGrace
	// Applying the metrics options logs an error about a file that nobody named. Upgrade
	// check: the error is in the logs of the tests.
	o.Metrics = nil
}

// policyPeriod is how often the API server looks for changed admission policies. It only
// checks a flag. With upstream's second, awaitPolicies is most of the time that Start
// takes. Upgrade check: BenchmarkStart takes up to 1 s longer.
const policyPeriod = 50 * time.Millisecond

func init() {
	// Upstream has no other way to set the period.
	generic.SetPolicyRefreshIntervalForTests(policyPeriod)
}

// haGrace is the age that a definition must have, or upstream delays each creation of its
// objects by 2 s, so that other servers of the cluster have seen the definition (see
// crdHandler.ServeHTTP, justCreated). Upgrade check: BenchmarkStart, which creates a host,
// takes 2 s longer; TestRestartKeepsObjectsAndKubeconfig compares the ages with haGrace.
const haGrace = 2 * time.Second

// backdateDefinitions sets the time at which the definitions of a cluster with a single
// server were established to long ago, so that no creation waits for other servers; see
// haGrace.
func backdateDefinitions(ctx context.Context, c *rest.Config) error {
	client, err := clientset.NewForConfig(c)
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	list, err := crds.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	for _, crd := range list.Items {
		// Upstream's controllers write this status, too.
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			crd, err := crds.Get(ctx, crd.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			established := apihelpers.FindCRDCondition(crd, apiextensionsv1.Established)
			if established == nil || time.Since(established.LastTransitionTime.Time) > haGrace {
				return nil
			}
			established.LastTransitionTime = metav1.NewTime(established.LastTransitionTime.Add(-2 * haGrace))
			_, err = crds.UpdateStatus(ctx, crd, metav1.UpdateOptions{FieldManager: fieldManager})
			return err
		})
		if err != nil {
			return fmt.Errorf("install %s: %w", crd.Name, err)
		}
	}
	return nil
}

var (
	redirectOnce sync.Once
	// latestReporter gets the errors that do not say which API they belong to.
	latestReporter atomic.Pointer[reporter]
)

// redirectLogs makes the Kubernetes components of this process log errors only, and to
// the reporter of the latest API. Upstream logs to standard error as if the process were
// its own, and has one logger and one handler of API warnings per process. Upgrade check:
// the components write to the standard error of the tests again.
func redirectLogs(r *reporter) {
	latestReporter.Store(r)
	redirectOnce.Do(func() {
		klog.SetLogger(logr.New(errorSink{to: latestReporter.Load}))
		// Warnings are for people at a terminal; kubectl shows them itself.
		rest.SetDefaultWarningHandler(rest.NoWarnings{})
	})
}
