package machineconfig

import (
	"bytes"
	"maps"
	"reflect"
	"slices"

	opv1 "github.com/openshift/api/operator/v1"
)

// plan lists the steps of an update.
type plan struct {
	write   bool     // files and units are written to the present root
	changed []string // files that differ, sorted
	keys    bool     // SSH keys of core differ
	hash    bool     // the password hash of core differs
	os      bool     // a root is staged: another image or other arguments of the kernel
	reboot  bool
	drain   bool
	actions []action // actions on services, if the node does not reboot
}

// change is the change that a plan is made for.
type change struct {
	was, next           *content
	wasImage, nextImage string
	skip                bool // the image is the only carrier of files and units
	forced              bool
}

// planOf returns the steps of an update. The image, arguments, kernel, extensions and FIPS mode of
// a system need a reboot; of files, units and keys the policy decides.
func planOf(c change, p policy) plan {
	out := plan{write: !c.skip}
	need := map[action]bool{}
	add := func(actions []action) {
		for _, a := range actions {
			need[a] = true
		}
	}
	for name := range maps.Keys(union(c.was.files, c.next.files)) {
		before, had := c.was.files[name]
		after, has := c.next.files[name]
		if had == has && before.equal(after) {
			continue
		}
		out.changed = append(out.changed, name)
		unit := before.unit
		if has {
			unit = after.unit
		}
		if unit != "" {
			add(p.ofUnit(unit))
			continue
		}
		for _, a := range p.ofFile(name) {
			if a.kind != opv1.SpecialStatusAction {
				add([]action{a})
				continue
			}
			add([]action{{opv1.ReloadStatusAction, crio}})
			if !safeMirrors(before.Content, after.Content) {
				add([]action{{kind: opv1.DrainStatusAction}})
			}
		}
	}
	slices.Sort(out.changed)
	for _, u := range c.next.units { // enabled or disabled, with the same content
		old, had := c.was.unitOf(u.Name)
		if !had && (u.Enabled != nil) || had && !reflect.DeepEqual(old.Enabled, u.Enabled) {
			add(p.ofUnit(u.Name))
		}
	}
	keys, hash := c.next.core()
	oldKeys, oldHash := c.was.core()
	if out.keys = !slices.Equal(keys, oldKeys); out.keys {
		add(p.sshKey)
	}
	if out.hash = hash != oldHash; out.hash {
		add([]action{{kind: opv1.NoneStatusAction}})
	}
	out.os = c.wasImage != c.nextImage || !slices.Equal(c.was.arguments(), c.next.arguments()) || c.was.kernelType() != c.next.kernelType() ||
		!slices.Equal(c.was.spec.Extensions, c.next.spec.Extensions) || c.skip && len(out.changed) > 0
	out.os = out.os || c.forced && c.skip
	out.reboot = out.os || c.forced || c.was.spec.FIPS != c.next.spec.FIPS || need[action{kind: opv1.RebootStatusAction}]
	out.drain = out.reboot || need[action{kind: opv1.DrainStatusAction}]
	if out.reboot {
		return out
	}
	for a := range need {
		switch a.kind {
		case opv1.ReloadStatusAction, opv1.RestartStatusAction, opv1.DaemonReloadStatusAction:
			out.actions = append(out.actions, a)
		}
	}
	slices.SortFunc(out.actions, func(a, b action) int { // daemon-reload first
		return slices.Compare([]string{string(a.kind), a.service}, []string{string(b.kind), b.service})
	})
	return out
}

func union(a, b map[string]file) map[string]file {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func (f file) equal(other file) bool {
	return f.Mode == other.Mode && f.Link == other.Link && f.UID == other.UID && f.GID == other.GID && bytes.Equal(f.Content, other.Content)
}
