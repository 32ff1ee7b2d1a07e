package hoc

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// items returns the two items of a config, without params.
func items(o *kaasv1.HostOSConfiguration, c kaasv1.Config) []lcmv1.LCMStateItem {
	return item.HostOS(o.Name, string(c.Module), string(c.ModuleVersion), lcmv1.PhaseReconfigure)
}

// sorted returns the objects of a namespace in the order of their execution: by their
// creation, then by their names.
func sorted(all []kaasv1.HostOSConfiguration) []*kaasv1.HostOSConfiguration {
	out := make([]*kaasv1.HostOSConfiguration, 0, len(all))
	for i := range all {
		out = append(out, &all[i])
	}
	slices.SortFunc(out, func(a, b *kaasv1.HostOSConfiguration) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return out
}

// inOrder returns the indices of an object's configs in the order of their execution:
// ascending by order, then those without one as they are listed (H17).
func inOrder(o *kaasv1.HostOSConfiguration) []int {
	var out []int
	for i := range o.Spec.Configs {
		out = append(out, i)
	}
	order := func(i int) int {
		if n := o.Spec.Configs[i].Order; n != nil {
			return int(*n)
		}
		return 1 << 16 // above the highest, 1024
	}
	slices.SortStableFunc(out, func(i, j int) int { return order(i) - order(j) })
	return out
}

// clusterItems returns the items of one type of machines in an LCMCluster: those that are
// no host OS items as they are, then those of the objects in the order of their execution.
func clusterItems(current []lcmv1.LCMStateItem, all []*kaasv1.HostOSConfiguration) []lcmv1.LCMStateItem {
	out := make([]lcmv1.LCMStateItem, 0, len(current))
	there := map[string]bool{}
	add := func(its ...lcmv1.LCMStateItem) {
		for _, it := range its {
			if !there[it.Name] {
				there[it.Name] = true
				out = append(out, it)
			}
		}
	}
	for _, it := range current {
		if !item.IsHostOS(it) {
			add(it)
		}
	}
	for _, o := range all {
		switch stageOf(o) {
		case active:
			for _, i := range inOrder(o) {
				add(items(o, o.Spec.Configs[i])...)
			}
		case waiting:
			for _, it := range current {
				if item.IsHostOS(it) && stays(o, it.Name) {
					add(it)
				}
			}
		}
	}
	return out
}

// target is a machine that HostOSConfigurations may select.
type target struct {
	lcm     *lcmv1.LCMMachine
	machine *clusterv1.Machine // nil: it does not exist
	reason  string             // why its items may not change now; "" when they may
}

// newTarget returns a target. Either argument may be nil, but not both.
func newTarget(m *clusterv1.Machine, l *lcmv1.LCMMachine) target {
	t := target{lcm: l, machine: m}
	if l == nil {
		t.lcm = &lcmv1.LCMMachine{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
		t.reason = "it has no LCMMachine yet"
		return t
	}
	t.reason = notReady(m, l)
	return t
}

// overwrites returns the overwrites of a machine: those of the objects, and of other items
// as they are.
func (t target) overwrites(all []*kaasv1.HostOSConfiguration) map[string]map[string]string {
	current := t.lcm.Spec.StateItemsOverwrites
	out := map[string]map[string]string{}
	for name, params := range current {
		if !item.IsHostOSName(name) {
			out[name] = params
		}
	}
	for _, o := range all {
		switch stageOf(o) {
		case active:
			for _, p := range t.plan(o, o.Status.MachinesStates[t.key()].SecretValuesChanged) {
				for _, it := range p.items {
					if _, exists := out[it.Name]; !exists && it.Params != nil {
						out[it.Name] = it.Params
					}
				}
			}
		case waiting:
			for name, params := range current {
				if _, exists := out[name]; !exists && stays(o, name) {
					out[name] = params
				}
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// planned is a config of an object on a machine.
type planned struct {
	config kaasv1.Config
	items  []lcmv1.LCMStateItem // with the params that the machine has to have; nil params: none yet
	wanted []lcmv1.LCMStateItem // with those that it will have once nothing is withheld
	reason string               // why the two differ
}

// plan returns the configs of an object on the machine, nil when the object does not select
// it. reported means that machinesStates shows the change of a Secret already.
func (t target) plan(o *kaasv1.HostOSConfiguration, reported bool) []planned {
	if !t.selected(o) {
		return nil
	}
	var out []planned
	for _, i := range inOrder(o) {
		p := planned{config: o.Spec.Configs[i], wanted: withParams(o, i)}
		var apply bool
		p.reason, apply = t.withhold(p, o.Status.Configs[i], reported)
		if apply {
			p.items = p.wanted
		} else if !strings.HasPrefix(p.reason, unsupported) {
			p.items = t.asTheyAre(p.wanted)
		}
		out = append(out, p)
	}
	return out
}

// selected reports whether an object of its namespace selects the machine. An empty selector
// selects none (H9).
func (t target) selected(o *kaasv1.HostOSConfiguration) bool {
	s := o.Spec.MachineSelector
	if t.machine == nil || !t.machine.DeletionTimestamp.IsZero() || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(&s)
	return err == nil && selector.Matches(labels.Set(t.machine.Labels))
}

// unsupported is the beginning of the only reason for which a machine gets none of a config's
// items. With any other reason it retains its present ones.
const unsupported = "the distribution "

// withhold reports whether the wanted params of a config may be applied now, and the reason if
// not.
func (t target) withhold(p planned, status kaasv1.ConfigStatus, reported bool) (reason string, apply bool) {
	if why := t.unsupported(status.SupportedDistributions); why != "" {
		return why, false
	}
	if t.reason != "" {
		return t.reason, false
	}
	for _, it := range p.wanted {
		before, exists := t.lcm.Spec.StateItemsOverwrites[it.Name]
		if _, executed := t.lcm.Status.StateItemStatuses[it.Name]; executed && !exists {
			// The stored result would count as the result of the new item, which then would not
			// be executed (H28).
			return "the agent has not removed the result of an earlier item " + it.Name, false
		}
		if secretChanged(before, it.Params) && !reported {
			return "the change of a Secret is to be reported first", false // H20
		}
	}
	return "", true
}

// secretChanged reports whether overwrites have another version of a Secret than wanted.
func secretChanged(current, wanted map[string]string) bool {
	return current[item.ParamSecretVersion] != "" && wanted[item.ParamSecretVersion] != "" && current[item.ParamSecretVersion] != wanted[item.ParamSecretVersion]
}

// key returns the machine's key in machinesStates.
func (t target) key() string { return t.lcm.Namespace + "/" + t.lcm.Name }

// asTheyAre returns items with the params that the machine has now.
func (t target) asTheyAre(its []lcmv1.LCMStateItem) []lcmv1.LCMStateItem {
	out := slices.Clone(its)
	for i := range out {
		out[i].Params = t.lcm.Spec.StateItemsOverwrites[out[i].Name]
	}
	return out
}

// unsupported returns why a module of these distributions cannot be applied to the machine,
// "" when it can (H16).
func (t target) unsupported(distributions []string) string {
	if len(distributions) == 0 {
		return ""
	}
	reported := t.lcm.Status.Distribution
	for _, named := range []string{t.lcm.Spec.Distribution, t.machine.Spec.ProviderSpec.Value.Distribution} {
		if len(reported) == 0 && named != "" {
			reported = []string{named}
		}
	}
	if len(reported) == 0 {
		return unsupported + "is not reported yet: the module is for " + strings.Join(distributions, ", ") + " alone"
	}
	if slices.ContainsFunc(reported, func(d string) bool { return slices.Contains(distributions, d) }) {
		return ""
	}
	return unsupported + strings.Join(reported, ", ") + " is not one of " + strings.Join(distributions, ", ")
}

// withParams returns the items of a config with their params. Secrets are referred to: their
// data are never in an LCMMachine (H21).
func withParams(o *kaasv1.HostOSConfiguration, i int) []lcmv1.LCMStateItem {
	c, status := o.Spec.Configs[i], o.Status.Configs[i]
	out := items(o, c)
	path := fmt.Sprintf("%s/%s-%s", item.ModulesDir, c.Module, c.ModuleVersion)
	out[0].Params = map[string]string{item.ParamURL: status.ModuleURL, item.ParamSHA256: status.ModuleHashsum, item.ParamPath: path}
	playbook := map[string]string{
		item.ParamPlaybook: status.ModulePlaybook, item.ParamAnsible: item.AnsiblePlaybook, item.ParamPath: path, item.ParamSHA256: status.ModuleHashsum,
	}
	if c.Values != nil {
		if text := canonical(c.Values.Raw); text != "" {
			playbook[item.ParamValues] = text
		}
	}
	if s := c.SecretValues; s != nil {
		playbook[item.ParamSecretRef] = cmp.Or(s.Namespace, o.Namespace) + "/" + s.Name
		// A status that an earlier controller has written has the first alone.
		playbook[item.ParamSecretVersion] = cmp.Or(status.SecretDataVersion, status.SecretObjectVersion)
	}
	// Another deadline is no change of the items (item.Hash). One that is none makes the object invalid.
	if text, err := item.Timeout(o.Annotations); err == nil && text != "" {
		playbook[item.ParamTimeout] = text
	}
	out[1].Params = playbook
	return out
}

// canonical returns a JSON object with its names sorted and without spaces: another order
// is no change, and executes nothing again. It returns "" for no object.
func canonical(raw []byte) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // with all digits
	var values map[string]any
	if err := d.Decode(&values); err != nil || values == nil {
		return ""
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(values); err != nil {
		return ""
	}
	return strings.TrimSpace(out.String())
}
