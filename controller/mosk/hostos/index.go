package hostos

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// vendorLists are the names of HostOSConfigurationModules that a vendor's index may have:
// its releases, and its development versions.
var vendorLists = []string{"mcc-modules", "dev-mcc-modules"}

// indexPeriod is how often the vendor's index is read, when nothing changes.
const indexPeriod = 10 * time.Minute

// vendorsURL returns the URL of a module's archive below that of the index.
func vendorsURL(index string, m kaasv1.Module) (string, error) {
	if index == "" {
		return "", fmt.Errorf("module %s %s has no url, and no vendor's repository is configured: add the url of its archive", m.Name, m.Version)
	}
	u, err := url.Parse(index)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("module %s %s has no url, and the vendor's index is not at a URL: add the url of its archive", m.Name, m.Version)
	}
	u.Path, u.RawQuery = path.Join(path.Dir(u.Path), fmt.Sprintf("%s-%s.tgz", m.Name, m.Version)), ""
	return u.String(), nil
}

// VendorIndex copies the vendor's index to the vendor's HostOSConfigurationModules: an
// edit of it is overwritten (H7).
type VendorIndex struct {
	Config
	retries queue.Retries
}

// NewVendorIndex returns a reconciler, or an error when a required field of c is missing.
func NewVendorIndex(c Config) (*VendorIndex, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Index == "" {
		return nil, errors.New("hostos: Config.Index is empty")
	}
	return &VendorIndex{Config: c}, nil
}

// Setup adds the reconciler to a manager. It reads the index at once, after each change of
// the list, and every ten minutes.
func (r *VendorIndex) Setup(mgr manager.Manager) error {
	index := reconcile.Request{NamespacedName: client.ObjectKey{Name: vendorLists[0]}} // whichever the index names
	return ctrl.NewControllerManagedBy(mgr).
		Named("hostos-index").
		Watches(&kaasv1.HostOSConfigurationModules{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			if !slices.Contains(vendorLists, o.GetName()) {
				return nil
			}
			return []reconcile.Request{index}
		}), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			q.Add(index)
			return nil
		})).
		WithOptions(queue.Options(queue.Config{Clock: r.Clock, Client: r.ClientClock, Workers: 1, Monitor: r.Queues, Retries: &r.retries})).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler for the index.
func (r *VendorIndex) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var unread error
	result, err := queue.Reconcile(r.Enter, func() (err error) {
		unread, err = r.reconcile(ctx)
		return err
	})
	if unread != nil {
		ctrl.LoggerFrom(ctx).Error(unread, "the vendor's index cannot be read", "index", r.Index)
		r.retries.Failed(req, 1)
		result.RequeueAfter = retryAfter
		return result, err
	}
	r.retries.Succeeded(req)
	if err == nil && result.RequeueAfter == 0 { // else a conflict is due earlier
		result.RequeueAfter = indexPeriod
	}
	return result, err
}

// reconcile returns as unread the reason why the index cannot be used.
func (r *VendorIndex) reconcile(ctx context.Context) (unread, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	x, unread := module.ReadIndex(ctx, r.HTTP, r.Index)
	if unread != nil {
		return unread, nil
	}
	if !slices.Contains(vendorLists, x.Metadata.Name) {
		return fmt.Errorf("metadata.name %q: use one of %s", x.Metadata.Name, strings.Join(vendorLists, ", ")), nil
	}
	x.Sort()
	o := &kaasv1.HostOSConfigurationModules{}
	o.Name = x.Metadata.Name
	err = r.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
	exists := err == nil
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("hostos: the vendor's modules: %w", err)
	}
	before := o.DeepCopy()
	if o.Spec.Modules, err = r.wanted(ctx, x, before); err != nil {
		return nil, err
	}
	switch {
	case !exists:
		err = r.Client.Create(ctx, o)
	case !equality.Semantic.DeepEqual(before.Spec, o.Spec):
		err = r.Client.Patch(ctx, o, patch.IfUnchanged(before))
	}
	if err != nil {
		return nil, fmt.Errorf("hostos: the vendor's modules: %w", err)
	}
	return nil, nil
}

// wanted returns the modules that the list must have. A module that the index no longer has
// stays while a configuration uses it. An entry never changes: when the index has other
// content for a version, the old entry is removed, and the next pass adds the new one. An
// entry in use stays, too. A new one that another list has with other content is left out.
func (r *VendorIndex) wanted(ctx context.Context, x *module.Index, current *kaasv1.HostOSConfigurationModules) ([]kaasv1.Module, error) {
	users, err := moduleUsers(ctx, r.Client, r.Namespaces, current)
	if err != nil {
		return nil, err
	}
	var lists kaasv1.HostOSConfigurationModulesList
	if err := r.Client.List(ctx, &lists); err != nil {
		return nil, fmt.Errorf("hostos: modules: %w", err)
	}
	slices.SortFunc(lists.Items, byAge)
	out := make([]kaasv1.Module, 0, len(x.Spec.Modules))
	for _, e := range x.Spec.Modules {
		m := kaasv1.Module{Name: kaasv1.ModuleName(e.Name), Version: kaasv1.SemVer(e.Version), SHA256Sum: e.SHA256, URL: e.URL}
		other := otherContent(lists.Items, current.Name, m)
		switch i := slices.IndexFunc(current.Spec.Modules, sameModule(m)); {
		case i < 0 && other != "": // the webhook would refuse the whole list for it
			if message := taken(m, other); current.UID != "" {
				r.warn(ctx, current, "ModuleTaken", message)
			} else {
				ctrl.LoggerFrom(ctx).Info("a module of the vendor's index is left out", "reason", message)
			}
		case i < 0 || current.Spec.Modules[i] == m:
			out = append(out, m)
		}
	}
	for _, m := range current.Spec.Modules {
		if by := users[nameVersion{m.Name, m.Version}]; len(by) > 0 && !slices.Contains(out, m) {
			ctrl.LoggerFrom(ctx).Info("a module that differs from the vendor's index stays: it is used", "module", m.Name, "version", m.Version, "by", by)
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b kaasv1.Module) int {
		if a.Name != b.Name {
			return strings.Compare(string(a.Name), string(b.Name))
		}
		return module.Compare(string(a.Version), string(b.Version))
	})
	return out, nil
}
