package hostos

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// CheckRemoval returns an error that names the modules that a list would lose while
// HostOSConfigurations use them, and names these configurations (H8). after is nil when the
// list is deleted. A module that another list has may be removed. namespaces bounds the
// configurations; none means all.
func CheckRemoval(ctx context.Context, r client.Reader, namespaces []string, before, after *kaasv1.HostOSConfigurationModules) error {
	var modules []kaasv1.Module
	if after != nil {
		modules = after.Spec.Modules
	}
	var removed []kaasv1.Module
	for _, m := range before.Spec.Modules {
		if !slices.ContainsFunc(modules, sameModule(m)) {
			removed = append(removed, m)
		}
	}
	if len(removed) == 0 {
		return nil
	}
	users, err := moduleUsers(ctx, r, namespaces, before)
	if err != nil {
		return err
	}
	var used []string
	for _, m := range removed {
		if by := users[nameVersion{m.Name, m.Version}]; len(by) > 0 {
			used = append(used, fmt.Sprintf("module %s %s is used by %s", m.Name, m.Version, strings.Join(by, ", ")))
		}
	}
	if len(used) == 0 {
		return nil
	}
	return &InUseError{List: before.Name, Modules: used}
}

// InUseError reports modules that cannot be removed from a list.
type InUseError struct {
	List    string
	Modules []string // each with the configurations that use it
}

// Error implements error.
func (e *InUseError) Error() string {
	return fmt.Sprintf("hostosconfigurationmodules.kaas.mirantis.com %q is forbidden: spec.modules: %s: remove it from the configurations first", e.List, strings.Join(e.Modules, "; "))
}

// nameVersion identifies a module.
type nameVersion struct {
	name    kaasv1.ModuleName
	version kaasv1.SemVer
}

func sameModule(m kaasv1.Module) func(kaasv1.Module) bool {
	return func(other kaasv1.Module) bool { return other.Name == m.Name && other.Version == m.Version }
}

// moduleUsers returns the HostOSConfigurations that use each module of a list, sorted, without
// the modules that they have, or would have, from another list: an older one, or one with the
// same content. A configuration that is being deleted uses none.
func moduleUsers(ctx context.Context, r client.Reader, namespaces []string, list *kaasv1.HostOSConfigurationModules) (map[nameVersion][]string, error) {
	var lists kaasv1.HostOSConfigurationModulesList
	if err := r.List(ctx, &lists); err != nil {
		return nil, fmt.Errorf("hostos: modules: %w", err)
	}
	slices.SortFunc(lists.Items, byAge)
	first := older(lists.Items, list.Name)
	elsewhere := map[nameVersion]bool{}
	for i, o := range lists.Items {
		if o.Name == list.Name || !o.DeletionTimestamp.IsZero() {
			continue
		}
		for _, m := range o.Spec.Modules {
			same := func(own kaasv1.Module) bool { return sameModule(m)(own) && own.SHA256Sum == m.SHA256Sum }
			if i < len(first) || slices.ContainsFunc(list.Spec.Modules, same) {
				elsewhere[nameVersion{m.Name, m.Version}] = true
			}
		}
	}
	if len(namespaces) == 0 {
		namespaces = []string{""} // all
	}
	out := map[nameVersion][]string{}
	for _, in := range namespaces {
		var all kaasv1.HostOSConfigurationList
		if err := r.List(ctx, &all, client.InNamespace(in)); err != nil {
			return nil, fmt.Errorf("hostos: configurations: %w", err)
		}
		for _, o := range all.Items {
			if !o.DeletionTimestamp.IsZero() {
				continue
			}
			for _, c := range o.Spec.Configs {
				if m := (nameVersion{c.Module, c.ModuleVersion}); !elsewhere[m] {
					out[m] = append(out[m], o.Namespace+"/"+o.Name)
				}
			}
		}
	}
	for m, by := range out { // in any order: each list is sorted alone
		slices.SortFunc(by, cmp.Compare)
		out[m] = slices.Compact(by)
	}
	return out, nil
}
