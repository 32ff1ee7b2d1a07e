// Package layout computes the network of a server from its L2Template and Subnets: which
// template it is, which addresses it needs, the netplan configuration, and the same as
// OpenStack's network data. It reads no object and allocates nothing.
package layout

import (
	"fmt"
	"slices"
	"strings"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
)

// SecretName is the name of the Secret with the network data of a Machine's host. It is in
// no public text.
func SecretName(machine string) string { return machine + "-network-data" }

// Choose returns the L2Template of a Machine: the one that its selector names or labels,
// else the cluster's default. It returns nil for a cluster without a default: its servers'
// networks are not the provider's.
func Choose(all []ipamv1.L2Template, cluster string, selector *baremetalv1.L2TemplateSelector) (*ipamv1.L2Template, error) {
	const field = "spec.providerSpec.value.l2TemplateSelector"
	var found []*ipamv1.L2Template
	fits := func(t *ipamv1.L2Template) bool { return defaultOf(t) }
	missing := ""
	switch {
	case selector != nil && selector.Name != "":
		fits = func(t *ipamv1.L2Template) bool { return t.Name == selector.Name }
		missing = fmt.Sprintf("%s.name: Cluster %q has no L2Template %q", field, cluster, selector.Name)
	case selector != nil && selector.Label != "":
		fits = func(t *ipamv1.L2Template) bool { _, has := t.Labels[selector.Label]; return has }
		missing = fmt.Sprintf("%s.label: Cluster %q has no L2Template with the label %q", field, cluster, selector.Label)
	}
	for i := range all {
		if t := &all[i]; t.Cluster() == cluster && t.DeletionTimestamp.IsZero() && fits(t) {
			found = append(found, t)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && missing == "":
		return nil, nil
	case len(found) == 0:
		return nil, fmt.Errorf("%s", missing)
	}
	var names []string
	for _, t := range found {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("the L2Templates %s fit: give one in %s.name", strings.Join(names, ", "), field)
}

// defaultOf reports whether a template is its cluster's default.
func defaultOf(t *ipamv1.L2Template) bool {
	v, has := t.Labels[ipamv1.DefaultForClusterLabel]
	return has && v != "0" && v != "false"
}

// Subnets returns the Subnets of an L2Template, by the names that the template has for them.
func Subnets(t *ipamv1.L2Template, all []ipamv1.Subnet) (map[string]*ipamv1.Subnet, error) {
	out := map[string]*ipamv1.Subnet{}
	for i, l := range t.Spec.L3Layout {
		if l.Scope == ipamv1.ScopeGlobal && t.Namespace != ipamv1.GlobalNamespace { // an IPaddr, which makes an address unique, is the Machine's
			return nil, fmt.Errorf("L2Template %q: spec.l3Layout[%d].scope: global Subnets are in the namespace %q, and Machines of %q get no addresses there: create the Subnet here, and give namespace", t.Name, i, ipamv1.GlobalNamespace, t.Namespace)
		}
		var found []*ipamv1.Subnet
		for j := range all {
			s := &all[j]
			if fits := s.Name == l.SubnetName; len(l.LabelSelector) == 0 && fits || len(l.LabelSelector) > 0 && labelled(s, l.LabelSelector) {
				found = append(found, s)
			}
		}
		if len(found) != 1 {
			return nil, fmt.Errorf("L2Template %q: spec.l3Layout[%d]: %d Subnets of the namespace fit, want one for %q", t.Name, i, len(found), l.SubnetName)
		}
		out[l.SubnetName] = found[0]
	}
	return out, nil
}

func labelled(s *ipamv1.Subnet, want map[string]string) bool {
	for name, value := range want { // in any order: each label is compared alone
		if v, has := s.Labels[name]; !has || v != value {
			return false
		}
	}
	return true
}

// Interfaces returns the NICs in the order in which a template numbers them.
func Interfaces(t *ipamv1.L2Template, h *ipamv1.IpamHost) ([]ipamv1.NIC, error) {
	mapping := t.Spec.IfMapping
	field := fmt.Sprintf("L2Template %q: spec.ifMapping", t.Name)
	if len(h.Spec.IfMappingOverride) > 0 {
		mapping, field = h.Spec.IfMappingOverride, fmt.Sprintf("IpamHost %q: spec.ifMappingOverride", h.Name)
	}
	if len(mapping) == 0 {
		out := slices.Clone(h.Spec.NICMACMap)
		slices.SortStableFunc(out, func(a, b ipamv1.NIC) int {
			if d := rank(a.Name, t.Spec.AutoIfMappingPrio) - rank(b.Name, t.Spec.AutoIfMappingPrio); d != 0 {
				return d
			}
			return strings.Compare(a.Name, b.Name)
		})
		return out, nil
	}
	var out []ipamv1.NIC
	for i, name := range mapping {
		index := slices.IndexFunc(h.Spec.NICMACMap, func(n ipamv1.NIC) bool { return n.Name == name })
		if index < 0 {
			return nil, fmt.Errorf("%s[%d]: the server has no interface %q", field, i, name)
		}
		out = append(out, h.Spec.NICMACMap[index])
	}
	return out, nil
}

// rank returns the first of prefixes that a name begins with, or their number.
func rank(name string, prefixes []string) int {
	if i := slices.IndexFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }); i >= 0 {
		return i
	}
	return len(prefixes)
}
