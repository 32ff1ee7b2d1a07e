package helm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// hashLabel is the label of a Helm release with the beginning of the hash that it was
// installed with: after a crash before the status is written, it is not installed again.
const hashLabel = "metalab.dev/hash"

const (
	// hookTimeout limits the wait for the hooks of a chart, in real time.
	hookTimeout = time.Minute
	maxHistory  = 5 // revisions of a release
)

// shortHash shortens a hash to the length of a label's value.
func shortHash(hash string) string { return hash[:min(len(hash), 63)] }

// target is the API of the cluster that releases are installed in, for one namespace. It
// implements what Helm needs of it.
type target struct {
	config    *rest.Config
	discovery discovery.CachedDiscoveryInterface
	namespace string
}

func newTarget(config *rest.Config, namespace string) (*target, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("helm: %w", err)
	}
	return &target{config, memory.NewMemCacheClient(d), namespace}, nil
}

// ToRESTConfig implements genericclioptions.RESTClientGetter.
func (t *target) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(t.config), nil }

// ToDiscoveryClient implements genericclioptions.RESTClientGetter.
func (t *target) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return t.discovery, nil
}

// ToRESTMapper implements genericclioptions.RESTClientGetter.
func (t *target) ToRESTMapper() (meta.RESTMapper, error) {
	return restmapper.NewDeferredDiscoveryRESTMapper(t.discovery), nil
}

// ToRawKubeConfigLoader implements genericclioptions.RESTClientGetter: objects without a
// namespace are in the release's.
func (t *target) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(clientcmdapi.Config{}, &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: t.namespace}})
}

// installer installs releases in a namespace.
type installer struct {
	action.Configuration
	namespace string
	owner     owner // the bundle
	client    *kubernetes.Clientset
	// createNamespace has Helm create the namespace, which needs a right to create namespaces.
	createNamespace bool
}

func newInstaller(config *rest.Config, namespace string, by owner, log func(string, ...any)) (*installer, error) {
	t, err := newTarget(config, namespace)
	if err != nil {
		return nil, err
	}
	i := &installer{namespace: namespace, owner: by}
	if i.client, err = kubernetes.NewForConfig(config); err == nil {
		err = i.Init(t, namespace, "secret", log)
	}
	if err != nil {
		return nil, fmt.Errorf("helm: %w", err)
	}
	return i, nil
}

// last returns the latest revision of a release, nil when there is none.
func (i *installer) last(name string) (*release.Release, error) {
	r, err := i.Releases.Last(name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	return r, err
}

// recover ends an operation that a killed controller has left, so that another can begin:
// one that was never deployed is uninstalled.
func (i *installer) recover(r *release.Release) (*release.Release, error) {
	if r == nil || r.Info == nil {
		return r, nil
	}
	if r.Info.Status.IsPending() {
		r.SetStatus(release.StatusFailed, "the operation was interrupted")
		if err := i.Releases.Update(r); err != nil {
			return nil, err
		}
	}
	if _, err := i.Releases.Deployed(r.Name); err == nil || r.Info.Status == release.StatusDeployed {
		return r, nil
	} else if !errors.Is(err, driver.ErrNoDeployedReleases) && !errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, err
	}
	return nil, i.uninstall(r.Name)
}

// apply installs or upgrades a release.
func (i *installer) apply(ctx context.Context, p planned, ch *chart.Chart, values map[string]any) (*release.Release, error) {
	last, err := i.last(p.Name)
	if err == nil {
		last, err = i.recover(last)
	}
	if err != nil {
		return nil, err
	}
	labels := map[string]string{hashLabel: shortHash(p.hash), bundleNamespaceLabel: i.owner.namespace, bundleLabel: i.owner.name}
	for name, value := range p.Labels {
		labels[name] = value
	}
	if last == nil {
		in := action.NewInstall(&i.Configuration)
		in.ReleaseName, in.Namespace, in.CreateNamespace, in.Labels, in.Timeout = p.Name, i.namespace, i.createNamespace, labels, hookTimeout
		return in.RunWithContext(ctx, ch, values)
	}
	up := action.NewUpgrade(&i.Configuration)
	up.Namespace, up.Labels, up.Timeout, up.MaxHistory, up.ResetValues = i.namespace, labels, hookTimeout, maxHistory, true
	return up.RunWithContext(ctx, p.Name, ch, values)
}

// uninstall removes a release and its history. One that does not exist is no error, and one of
// another bundle stays.
func (i *installer) uninstall(name string) error {
	last, err := i.last(name)
	if err != nil || last == nil || i.foreign(last) != "" {
		return err
	}
	un := action.NewUninstall(&i.Configuration)
	un.IgnoreNotFound, un.Timeout = true, hookTimeout
	_, err = un.Run(name)
	return err
}

// ready reports whether all objects of a release are there, and its workloads run.
func (i *installer) ready(ctx context.Context, r *release.Release) (bool, error) {
	list, err := i.KubeClient.Build(bytesOf(r.Manifest), false)
	if err != nil {
		return false, err
	}
	check := kube.NewReadyChecker(i.client, i.Log, kube.PausedAsReady(false), kube.CheckJobs(true))
	for _, o := range list {
		if err := o.Get(); err != nil {
			return false, fmt.Errorf("%s %s: %w", o.Mapping.GroupVersionKind.Kind, o.Name, err)
		}
		if ok, err := check.IsReady(ctx, o); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

func now(t time.Time) *metav1.Time { return &metav1.Time{Time: t.Truncate(time.Second)} }
