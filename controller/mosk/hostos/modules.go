package hostos

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/watch"
)

// Modules reconciles HostOSConfigurationModules: it loads their modules and writes their
// status.
type Modules struct {
	Config
	retries queue.Retries // retries of objects with a module that cannot be loaded
}

// NewModules returns a reconciler, or an error when a required field of c is nil.
func NewModules(c Config) (*Modules, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Modules{Config: c}, nil
}

// Setup adds the reconciler to a manager.
func (r *Modules) Setup(mgr manager.Manager) error {
	// A module may deprecate those of other objects, and keeps its name and version from them.
	others := predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*kaasv1.HostOSConfigurationModules), e.ObjectNew.(*kaasv1.HostOSConfigurationModules)
			return before.Generation != after.Generation || !equality.Semantic.DeepEqual(deprecated(before), deprecated(after))
		},
	}
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return watch.Requests[*kaasv1.HostOSConfigurationModules](ctx, r.Client, &kaasv1.HostOSConfigurationModulesList{}, nil)
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("hostos-modules").
		For(&kaasv1.HostOSConfigurationModules{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&kaasv1.HostOSConfigurationModules{}, all, builder.WithPredicates(others)).
		WithOptions(r.RetryOptions(&r.retries)).
		Complete(r)
}

// deprecated returns the module versions that the modules of an object deprecate.
func deprecated(o *kaasv1.HostOSConfigurationModules) (out [][]kaasv1.ModuleReference) {
	for _, m := range o.Status.Modules {
		if m.State != kaasv1.ModuleError && m.Deprecates != nil {
			out = append(out, append(slices.Clone(m.Deprecates), kaasv1.ModuleReference{Name: m.Name, Version: m.Version}))
		}
	}
	return out
}

// Reconcile implements reconcile.Reconciler for HostOSConfigurationModules.
func (r *Modules) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	failed := false
	result, err := queue.Reconcile(r.Enter, func() (err error) {
		failed, err = r.reconcile(ctx, req)
		return err
	})
	if err == nil && failed {
		r.retries.Failed(req, 1)
		result.RequeueAfter = retryAfter
	} else {
		r.retries.Succeeded(req)
	}
	return result, err
}

// reconcile reports whether a module could not be loaded.
func (r *Modules) reconcile(ctx context.Context, req ctrl.Request) (failed bool, err error) {
	var o kaasv1.HostOSConfigurationModules
	if err := r.Client.Get(ctx, req.NamespacedName, &o); err != nil {
		return false, queue.Deleted(err)
	}
	if !o.DeletionTimestamp.IsZero() {
		return false, nil
	}
	var list kaasv1.HostOSConfigurationModulesList
	if err := r.Client.List(ctx, &list); err != nil {
		return false, fmt.Errorf("hostos: modules: %w", err)
	}
	slices.SortFunc(list.Items, byAge)
	first := older(list.Items, o.Name)
	before := o.DeepCopy()
	status := kaasv1.HostOSConfigurationModulesStatus{ObservedGeneration: o.Generation}
	for _, m := range o.Spec.Modules {
		if other := otherContent(first, o.Name, m); other != "" {
			s := kaasv1.ModuleStatus{Name: m.Name, Version: m.Version, URL: m.URL, State: kaasv1.ModuleError, Error: short(taken(m, other))}
			if !slices.ContainsFunc(before.Status.Modules, func(known kaasv1.ModuleStatus) bool { return equality.Semantic.DeepEqual(known, s) }) {
				r.warn(ctx, &o, "ModuleTaken", s.Error)
			}
			status.Modules = append(status.Modules, s)
			continue
		}
		s := r.load(ctx, m, o.Status.Modules)
		failed = failed || s.State == kaasv1.ModuleError
		status.Modules = append(status.Modules, s)
	}
	o.Status = status
	for i := range list.Items {
		if list.Items[i].Name == o.Name {
			list.Items[i] = o // with the modules that were loaded just now
		}
	}
	deprecate(&o, list.Items)
	o.Status.Summary = summary(o.Status.Modules)
	if equality.Semantic.DeepEqual(before.Status, o.Status) {
		return failed, nil
	}
	err = r.Client.Status().Patch(ctx, &o, client.MergeFrom(before))
	if err != nil && !apierrors.IsNotFound(err) {
		return failed, fmt.Errorf("hostos: status of modules %s: %w", o.Name, err)
	}
	return failed, nil
}

// maxSummary limits the summary of a list, in bytes: a column of kubectl is one line.
const maxSummary = 1024

// summary returns each module with its state, those with errors first, then by state.
func summary(modules []kaasv1.ModuleStatus) string {
	var parts []string
	for _, state := range []kaasv1.ModuleState{kaasv1.ModuleError, kaasv1.ModuleDeprecated, kaasv1.ModuleAvailable} {
		for _, m := range modules {
			if m.State == state {
				parts = append(parts, fmt.Sprintf("%s %s %s", m.Name, m.Version, state))
			}
		}
	}
	text, used := "", 0
	for i, part := range parts {
		if used+len(part) > maxSummary {
			return fmt.Sprintf("%s and %d more", text, len(parts)-i)
		}
		if i > 0 {
			text += ", "
		}
		text += part
		used = len(text)
	}
	return text
}

// load returns the status of a module: the known one if its archive was loaded, else the
// result of loading it now.
func (r *Modules) load(ctx context.Context, m kaasv1.Module, known []kaasv1.ModuleStatus) kaasv1.ModuleStatus {
	var unresolved error
	if m.URL == "" {
		m.URL, unresolved = vendorsURL(r.Index, m)
	}
	i := slices.IndexFunc(known, func(s kaasv1.ModuleStatus) bool { return s.Name == m.Name && s.Version == m.Version })
	if i >= 0 && known[i].State != kaasv1.ModuleError && known[i].SHA256Sum == m.SHA256Sum && known[i].URL == m.URL {
		return known[i]
	}
	s := kaasv1.ModuleStatus{Name: m.Name, Version: m.Version, URL: m.URL, State: kaasv1.ModuleAvailable}
	var loaded *module.Module
	err := unresolved
	if err == nil {
		loaded, s.SHA256Sum, err = r.fetch(ctx, m)
	}
	if err != nil {
		s.State, s.Error = kaasv1.ModuleError, short(err.Error())
		return s
	}
	s.DocURL, s.Description, s.PlaybookName, s.ValuesValidationSchema = loaded.DocURL, loaded.Description, loaded.Playbook, loaded.SchemaText
	s.SupportedDistributions = loaded.SupportedDistributions
	for _, d := range loaded.Deprecates {
		s.Deprecates = append(s.Deprecates, kaasv1.ModuleReference{Name: kaasv1.ModuleName(d.Name), Version: kaasv1.SemVer(d.Version)})
	}
	return s
}

// fetch fetches and reads the archive of a module. It returns the archive's digest also
// with an error, once there is an archive.
func (r *Modules) fetch(ctx context.Context, m kaasv1.Module) (*module.Module, string, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	archive, err := module.Fetch(ctx, r.HTTP, m.URL)
	if err != nil {
		return nil, "", err
	}
	loaded, err := module.LoadExpected(archive, module.Expected{Name: string(m.Name), Version: string(m.Version), SHA256: m.SHA256Sum})
	return loaded, module.Sum(archive), err
}

// deprecate sets deprecatedBy and the states of the modules of o from the deprecations that
// the modules of all objects list.
func deprecate(o *kaasv1.HostOSConfigurationModules, all []kaasv1.HostOSConfigurationModules) {
	for i := range o.Status.Modules {
		m := &o.Status.Modules[i]
		m.DeprecatedBy = deprecatedBy(m.Name, m.Version, all)
		switch {
		case m.State == kaasv1.ModuleError:
		case len(m.DeprecatedBy) > 0:
			m.State = kaasv1.ModuleDeprecated
		default:
			m.State = kaasv1.ModuleAvailable
		}
	}
}

// deprecatedBy returns the modules that deprecate a version of a module, sorted.
func deprecatedBy(name kaasv1.ModuleName, version kaasv1.SemVer, all []kaasv1.HostOSConfigurationModules) (out []kaasv1.ModuleReference) {
	old := kaasv1.ModuleReference{Name: name, Version: version}
	for _, o := range all {
		for _, m := range o.Status.Modules {
			if m.State != kaasv1.ModuleError && slices.Contains(m.Deprecates, old) {
				out = append(out, kaasv1.ModuleReference{Name: m.Name, Version: m.Version})
			}
		}
	}
	slices.SortFunc(out, func(a, b kaasv1.ModuleReference) int {
		return cmp.Or(strings.Compare(string(a.Name), string(b.Name)), module.Compare(string(a.Version), string(b.Version)))
	})
	return slices.Compact(out) // two objects may have the same module
}
