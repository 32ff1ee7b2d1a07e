package machineconfig

import (
	"path"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	opv1 "github.com/openshift/api/operator/v1"
)

// action is a step that a change needs beside the change itself, such as a reload or a reboot.
type action struct {
	kind    opv1.NodeDisruptionPolicyStatusActionType
	service string
}

const crio = "crio.service"

// registriesFile has the registries' mirrors (containers-registries.conf(5)).
const registriesFile = "/etc/containers/registries.conf"

// policy says which actions the change of a file, unit or SSH key needs.
type policy struct {
	files, units map[string][]action
	sshKey       []action
}

// builtIn is the policy of a cluster whose MachineConfiguration has none.
func builtIn() policy {
	nothing := []action{{kind: opv1.NoneStatusAction}}
	reload := []action{{opv1.ReloadStatusAction, crio}}
	kubelet := []action{{opv1.DaemonReloadStatusAction, ""}, {opv1.RestartStatusAction, "kubelet.service"}}
	return policy{
		files: map[string][]action{
			"/var/lib/kubelet/config.json":                            nothing,
			"/etc/nmstate/openshift":                                  nothing,
			"/etc/machine-config-daemon/no-reboot/containers-gpg.pub": reload,
			"/etc/containers/policy.json":                             reload,
			"/etc/containers/registries.d":                            reload,
			"/etc/crio/policies":                                      reload,
			registriesFile:                                            {{kind: opv1.SpecialStatusAction}},
			"/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt": {{opv1.RestartStatusAction, "coreos-update-ca-trust.service"}, {opv1.RestartStatusAction, crio}},
			"/etc/kubernetes/credential-providers":                                 kubelet,
		},
		units:  map[string][]action{},
		sshKey: nothing,
	}
}

// override applies the policy that a MachineConfiguration declares.
func (p policy) override(c opv1.NodeDisruptionPolicyConfig) policy {
	for _, f := range c.Files {
		p.files[strings.TrimSuffix(f.Path, "/")] = actionsOf(f.Actions)
	}
	for _, u := range c.Units {
		p.units[string(u.Name)] = actionsOf(u.Actions)
	}
	if len(c.SSHKey.Actions) > 0 {
		p.sshKey = actionsOf(c.SSHKey.Actions)
	}
	return p
}

func actionsOf(in []opv1.NodeDisruptionPolicySpecAction) (out []action) {
	for _, a := range in {
		x := action{kind: opv1.NodeDisruptionPolicyStatusActionType(a.Type)}
		switch {
		case a.Reload != nil:
			x.service = string(a.Reload.ServiceName)
		case a.Restart != nil:
			x.service = string(a.Restart.ServiceName)
		}
		out = append(out, x)
	}
	return out
}

var reboot = []action{{kind: opv1.RebootStatusAction}}

// ofFile returns the actions of a file: those of its path, or of the nearest directory above.
func (p policy) ofFile(name string) []action {
	for at := name; ; at = path.Dir(at) {
		if a, ok := p.files[at]; ok {
			return a
		}
		if at == "/" || at == "." {
			return reboot
		}
	}
}

func (p policy) ofUnit(name string) []action {
	if a, ok := p.units[name]; ok {
		return a
	}
	return reboot
}

// registries is the part of registries.conf that decides on a drain.
type registries struct {
	Search   []string   `toml:"unqualified-search-registries"`
	Registry []mirrored `toml:"registry"`
}

// mirrored is a registry with its mirrors.
type mirrored struct {
	Prefix       string   `toml:"prefix"`
	Location     string   `toml:"location"`
	Insecure     bool     `toml:"insecure"`
	Blocked      bool     `toml:"blocked"`
	MirrorDigest bool     `toml:"mirror-by-digest-only"`
	Mirror       []mirror `toml:"mirror"`
}

type mirror struct {
	Location string `toml:"location"`
	Insecure bool   `toml:"insecure"`
	Pull     string `toml:"pull-from-mirror"`
}

func (r mirrored) key() string {
	if r.Prefix != "" {
		return r.Prefix
	}
	return r.Location
}

// digestOnly reports whether a mirror serves images by digest alone, so that it cannot serve
// another image than the registry.
func (r mirrored) digestOnly(m mirror) bool { return r.MirrorDigest || m.Pull == "digest-only" }

// safeMirrors reports whether a change of registries.conf adds mirrors by digest and nothing
// else: running pods are not affected then, and the node needs no drain.
func safeMirrors(was, next []byte) bool {
	var a, b registries
	if toml.Unmarshal(was, &a) != nil || toml.Unmarshal(next, &b) != nil || !slices.Equal(a.Search, b.Search) {
		return false
	}
	before := map[string]mirrored{}
	for _, r := range a.Registry {
		before[r.key()] = r
	}
	for _, r := range b.Registry {
		old, known := before[r.key()]
		delete(before, r.key())
		if known && (old.Location != r.Location || old.Insecure != r.Insecure || old.Blocked != r.Blocked || old.MirrorDigest && !r.MirrorDigest) {
			return false
		}
		if !known && (r.Blocked || len(r.Mirror) == 0) {
			return false
		}
		for _, m := range r.Mirror {
			if !r.digestOnly(m) && !slices.Contains(old.Mirror, m) {
				return false
			}
		}
		for _, m := range old.Mirror {
			if !slices.Contains(r.Mirror, m) {
				return false
			}
		}
	}
	return len(before) == 0
}
