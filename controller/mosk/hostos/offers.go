package hostos

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// CheckChange returns an error that says why a list may not become after: it loses a module
// that is in use (H8), or offers one that another list has with other content. before is
// empty when the list is created, after is nil when it is deleted. namespaces bounds the
// configurations; none means all.
func CheckChange(ctx context.Context, r client.Reader, namespaces []string, before, after *kaasv1.HostOSConfigurationModules) error {
	if after != nil {
		if err := checkOffers(ctx, r, before, after); err != nil {
			return err
		}
	}
	return CheckRemoval(ctx, r, namespaces, before, after)
}

// checkOffers refuses new entries of a list that another list has with other content:
// machines may have that one already.
func checkOffers(ctx context.Context, r client.Reader, before, after *kaasv1.HostOSConfigurationModules) error {
	var added []kaasv1.Module
	for _, m := range after.Spec.Modules {
		if !slices.ContainsFunc(before.Spec.Modules, sameModule(m)) {
			added = append(added, m)
		}
	}
	if len(added) == 0 {
		return nil
	}
	var lists kaasv1.HostOSConfigurationModulesList
	if err := r.List(ctx, &lists); err != nil {
		return fmt.Errorf("hostos: modules: %w", err)
	}
	slices.SortFunc(lists.Items, byAge)
	var refused []string
	for _, m := range added {
		if other := otherContent(lists.Items, after.Name, m); other != "" {
			refused = append(refused, taken(m, other))
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return &OfferedError{List: after.Name, Modules: refused}
}

// OfferedError reports modules that another list has with other content.
type OfferedError struct {
	List    string
	Modules []string // each with the list that has it
}

// Error implements error.
func (e *OfferedError) Error() string {
	return fmt.Sprintf("hostosconfigurationmodules.kaas.mirantis.com %q is forbidden: spec.modules: %s", e.List, strings.Join(e.Modules, "; "))
}

// taken says that another list has a module with other content, and what to do.
func taken(m kaasv1.Module, list string) string {
	return fmt.Sprintf("HostOSConfigurationModules %s has module %s %s with another sha256sum: use another version for this content", list, m.Name, m.Version)
}

// byAge compares lists: the first of them keeps a module that several offer. Creation times
// have a resolution of a second; within one second the name decides.
func byAge(a, b kaasv1.HostOSConfigurationModules) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// otherContent returns the first of lists, which are in the order of byAge, that offers the
// name and version of m, when its content is another than that of m, else "". The list of this
// name does not count.
func otherContent(lists []kaasv1.HostOSConfigurationModules, name string, m kaasv1.Module) string {
	for _, o := range lists {
		if o.Name == name || !o.DeletionTimestamp.IsZero() {
			continue
		}
		if i := slices.IndexFunc(o.Spec.Modules, sameModule(m)); i >= 0 {
			if o.Spec.Modules[i].SHA256Sum == m.SHA256Sum {
				return ""
			}
			return o.Name
		}
	}
	return ""
}

// older returns the lists that came before the named one, of lists in the order of byAge.
func older(lists []kaasv1.HostOSConfigurationModules, name string) []kaasv1.HostOSConfigurationModules {
	i := slices.IndexFunc(lists, func(o kaasv1.HostOSConfigurationModules) bool { return o.Name == name })
	return lists[:max(i, 0)]
}

// warn publishes an Event about a list.
func (c *Config) warn(ctx context.Context, o *kaasv1.HostOSConfigurationModules, reason, message string) {
	c.events.About(ctx, "hostos-modules", o, corev1.EventTypeWarning, reason, message)
}
