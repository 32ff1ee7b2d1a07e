package lab

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	hostprofilev1 "github.com/metalab-dev/metalab/controller/api/hostprofile/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
)

// Pass moves the lab's time forward by d, and returns when each controller has reconciled
// every object in a reconcile that began after the present state of the API had reached
// the controllers, and after the time had moved. Earlier writes of a scenario, and
// everything that falls due in that time, have then had their effect on the objects. Without
// controllers it moves the time only.
func (l *Lab) Pass(ctx context.Context, d time.Duration) error {
	l.clock.Advance(d)
	if err := l.awaitDueTimers(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	c := l.controllers
	l.mu.Unlock()
	if c == nil {
		return nil
	}
	if err := l.awaitCache(ctx, c.set.Cache()); err != nil {
		return err
	}
	if err := c.queues.Pass(ctx); err != nil {
		return fmt.Errorf("the controllers have not reconciled every object: %w", err)
	}
	return nil
}

// barrierPoll is how often, in real time, the barrier looks whether it is reached.
const barrierPoll = 5 * time.Millisecond

// awaitDueTimers returns when the timers that Advance has made due have fired.
func (l *Lab) awaitDueTimers(ctx context.Context) error {
	now := l.clock.Now()
	err := wait.PollUntilContextCancel(ctx, barrierPoll, true, func(context.Context) (bool, error) {
		due, some := l.clock.Next()
		return !some || due.After(now), nil
	})
	if err != nil {
		return fmt.Errorf("the timers that are due have not fired: %w", err)
	}
	return nil
}

// watchedKinds returns a list of each kind whose changes make controllers reconcile, with
// those of families.
func watchedKinds(families []string) []client.ObjectList {
	out := []client.ObjectList{
		&metal3.BareMetalHostList{}, &metal3.HostFirmwareSettingsList{}, &metal3.HostFirmwareComponentsList{}, &metal3.HostUpdatePolicyList{},
		&metal3.DataImageList{}, &metal3.BMCEventSubscriptionList{}, &metal3.HardwareDataList{}, &metal3.FirmwareSchemaList{}, &corev1.SecretList{},
	}
	if slices.Contains(families, config.HOC) {
		out = append(out, &kaasv1.HostOSConfigurationList{}, &kaasv1.HostOSConfigurationModulesList{}, &lcmv1.LCMClusterList{}, &lcmv1.LCMMachineList{}, &lcmv1.LCMClusterStateList{}, &clusterv1.MachineList{}, &clusterv1.ClusterList{},
			&kaasv1.KaaSReleaseList{}, &kaasv1.ClusterReleaseList{}, &kaasv1.PublicKeyList{}, &kaasv1.ProxyList{}, &kaasv1.GracefulRebootRequestList{}, &kaasv1.ClusterUpdatePlanList{}, &kaasv1.UpdateGroupList{},
			&kaasv1.BareMetalHostInventoryList{}, &kaasv1.BareMetalHostCredentialList{}, &kaasv1.ClusterDeploymentStatusList{},
			&ipamv1.SubnetList{}, &ipamv1.L2TemplateList{}, &ipamv1.IpamHostList{}, &ipamv1.IPaddrList{}, &hostprofilev1.BareMetalHostProfileList{})
	}
	if slices.Contains(families, config.MachineConfig) {
		out = append(out, &mcv1.MachineConfigList{}, &mcv1.MachineConfigPoolList{}, &mcv1.MachineOSConfigList{}, &mcv1.MachineOSBuildList{}, &mcv1.ControllerConfigList{}, &corev1.NodeList{})
	}
	return out
}

// awaitCache returns when the controllers' cache has each object as the API has it now,
// or newer.
func (l *Lab) awaitCache(ctx context.Context, cache client.Reader) error {
	api, err := l.Kubernetes()
	if err != nil {
		return err
	}
	for _, kind := range watchedKinds(l.cfg.Settings.Families()) {
		stored, err := versions(ctx, api, kind)
		if err != nil {
			return err
		}
		missing := ""
		err = wait.PollUntilContextCancel(ctx, barrierPoll, true, func(ctx context.Context) (bool, error) {
			cached, err := versions(ctx, cache, kind)
			if err != nil {
				return false, err
			}
			missing, err = firstBehind(ctx, api, stored, cached)
			return missing == "", err
		})
		if err != nil {
			return fmt.Errorf("the controllers have not seen %T %s: %w", kind, missing, err)
		}
	}
	return nil
}

// version is an object and the number of its resourceVersion.
type version struct {
	object client.Object
	number uint64
}

// versions lists the objects of a kind by namespace and name.
func versions(ctx context.Context, from client.Reader, kind client.ObjectList) (map[client.ObjectKey]version, error) {
	list := kind.DeepCopyObject().(client.ObjectList)
	var in []client.ListOption
	switch kind.(type) {
	case *kaasv1.HostOSConfigurationModulesList, *kaasv1.KaaSReleaseList, *kaasv1.ClusterReleaseList,
		*mcv1.MachineConfigList, *mcv1.MachineConfigPoolList, *mcv1.MachineOSConfigList, *mcv1.MachineOSBuildList, *mcv1.ControllerConfigList, *corev1.NodeList: // cluster-scoped: a cache has none of them in a namespace
	default:
		in = append(in, client.InNamespace(Namespace))
	}
	if err := from.List(ctx, list, in...); err != nil {
		return nil, fmt.Errorf("list %T: %w", kind, err)
	}
	out := map[client.ObjectKey]version{}
	err := meta.EachListItem(list, func(o runtime.Object) error {
		object := o.(client.Object)
		n, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
		out[client.ObjectKeyFromObject(object)] = version{object, n}
		return err
	})
	return out, err
}

// firstBehind returns an object of which the cache has an older version than the stored
// one, or of which it does not know that it exists or was deleted; "" when there is none.
func firstBehind(ctx context.Context, api client.Reader, stored, cached map[client.ObjectKey]version) (string, error) {
	for key, current := range stored {
		if has, ok := cached[key]; ok && has.number >= current.number {
			continue
		}
		if exists, err := exists(ctx, api, current.object); err != nil || exists {
			return key.String(), err
		}
	}
	for key, has := range cached {
		if _, ok := stored[key]; ok {
			continue
		}
		if exists, err := exists(ctx, api, has.object); err != nil || !exists {
			return key.String(), err
		}
	}
	return "", nil
}

// exists reports whether the API has an object.
func exists(ctx context.Context, api client.Reader, o client.Object) (bool, error) {
	err := api.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object))
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
