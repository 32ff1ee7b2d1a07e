package machineconfig

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/guest/sandbox"
)

const crioUnit = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/systemctl daemon-reload\nExecReload=/usr/bin/systemctl daemon-reload\n"

// Statements M17 and M18: which actions a change needs.
func TestActionsOfAChange(t *testing.T) {
	const digest = "[[registry]]\nlocation = \"a.example\"\n[[registry.mirror]]\nlocation = \"m.example\"\npull-from-mirror = \"digest-only\"\n"
	const tag = "[[registry]]\nlocation = \"a.example\"\n[[registry.mirror]]\nlocation = \"m.example\"\n"
	policyOf := func(path string, actions ...map[string]any) map[string]any {
		return map[string]any{"files": []map[string]any{{"path": path, "actions": actions}}}
	}
	for _, tt := range []struct {
		name      string
		was, next ign
		policy    map[string]any
		want      string // systemctl's calls; drain, reboot
	}{
		{name: "registries.conf gets a digest-only mirror", next: ign{files: files(registriesFile, digest)}, want: "reload crio.service"},
		{name: "registries.conf gets a tag mirror", next: ign{files: files(registriesFile, tag)}, want: "drain, reload crio.service"},
		{name: "registries.conf loses a mirror", was: ign{files: files(registriesFile, digest)}, next: ign{files: files(registriesFile, "")}, want: "drain, reload crio.service"},
		{name: "registries.conf blocks a registry", next: ign{files: files(registriesFile, "[[registry]]\nlocation = \"a.example\"\nblocked = true\n")}, want: "drain, reload crio.service"},
		{name: "registries.conf with another search list", next: ign{files: files(registriesFile, "unqualified-search-registries = [\"b.example\"]\n")}, want: "drain, reload crio.service"},
		{name: "policy.json", next: ign{files: files("/etc/containers/policy.json", "{}")}, want: "reload crio.service"},
		{name: "a file of registries.d", next: ign{files: files("/etc/containers/registries.d/x.yaml", "{}")}, want: "reload crio.service"},
		{name: "pull secret of the kubelet", next: ign{files: files("/etc/nmstate/openshift/cluster.yml", "{}")}, want: ""},
		{name: "another file", next: ign{files: files("/etc/other", "1")}, want: "drain, reboot"},
		{name: "a unit", next: ign{units: []map[string]any{{"name": "y.service", "contents": unitText}}}, want: "drain, reboot"},
		{name: "SSH key alone", next: ign{users: []map[string]any{{"name": "core", "sshAuthorizedKeys": []string{"ssh-ed25519 AAAA"}}}}, want: ""},
		{name: "policy of the user for a file", next: ign{files: files("/etc/other", "1")}, policy: policyOf("/etc/other", map[string]any{"type": "None"}), want: ""},
		{name: "policy of the user for a directory", next: ign{files: files("/etc/d/e/f", "1")}, policy: policyOf("/etc/d", map[string]any{"type": "Restart", "restart": map[string]any{"serviceName": "crio.service"}}), want: "restart crio.service"},
		{name: "the nearest path decides", next: ign{files: files("/etc/containers/registries.d/mine/x", "1")}, policy: policyOf("/etc/containers/registries.d/mine", map[string]any{"type": "Drain"}), want: "drain"},
		{name: "the user's policy overrides the default", next: ign{files: files("/etc/containers/policy.json", "1")}, policy: policyOf("/etc/containers/policy.json", map[string]any{"type": "Reboot"}), want: "drain, reboot"},
		{name: "a neighbour of the path", next: ign{files: files("/etc/other2", "1")}, policy: policyOf("/etc/other", map[string]any{"type": "None"}), want: "drain, reboot"},
		{name: "unit of the user's policy", next: ign{units: []map[string]any{{"name": "y.service", "contents": unitText}}}, policy: map[string]any{"units": []map[string]any{{"name": "y.service", "actions": []map[string]any{{"type": "DaemonReload"}}}}}, want: "daemon-reload"},
		{name: "SSH keys of the user's policy", next: ign{users: []map[string]any{{"name": "core", "sshAuthorizedKeys": []string{"ssh-ed25519 AAAA"}}}}, policy: map[string]any{"sshkey": map[string]any{"actions": []map[string]any{{"type": "Drain"}}}}, want: "drain"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t)
			if err := c.system.Put(sandbox.Tree{"etc/systemd/system/crio.service": sandbox.File(0o644, crioUnit)}); err != nil {
				t.Fatal(err)
			}
			if tt.policy != nil {
				c.api.put(operatorPath+"/machineconfigurations/cluster", map[string]any{"spec": map[string]any{"nodeDisruptionPolicy": tt.policy}})
			}
			c.rendered("r1", tt.was)
			c.desire("r1", "")
			c.wantState("Done")
			boots := c.boot
			c.annotate(map[string]any{"desiredDrain": nil, "lastAppliedDrain": nil})
			c.host.ran = nil
			c.rendered("r2", tt.next)
			c.desire("r2", "")
			c.wantState("Done")
			var got []string
			if strings.HasPrefix(c.annotation("desiredDrain"), "uncordon") {
				got = append(got, "drain")
			}
			if c.boot > boots {
				got = append(got, "reboot")
			} else {
				ran := slices.Clone(c.host.ran)
				if unit := tt.next.units != nil; unit && len(ran) > 0 && ran[0] == "systemctl daemon-reload" { // the write of units reloads systemd, too
					ran = ran[1:]
				}
				for _, line := range ran {
					got = append(got, strings.TrimPrefix(line, "systemctl "))
				}
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			if tt.next.users != nil {
				if got := c.read(keysFile); got != "ssh-ed25519 AAAA\n" {
					t.Errorf("%s = %q", keysFile, got)
				}
			}
		})
	}
}

// A service that does not reload degrades the node, and the files are as they were.
func TestFailedActionIsRolledBack(t *testing.T) {
	c := newCluster(t)
	c.rendered("r1", ign{})
	c.desire("r1", "")
	c.wantState("Done")
	c.rendered("r2", ign{files: files("/etc/containers/policy.json", "{}")})
	c.desire("r2", "")
	c.wantState("Degraded systemctl reload crio.service ended with code 5: Failed to reload crio.service: Unit crio.service not found.")
	if got := c.read("/etc/containers/policy.json"); got != "-" {
		t.Errorf("policy.json = %q, want none", got)
	}
}

// The image, arguments, kernel, extensions and FIPS mode of a system always need a reboot.
func TestChangeOfTheSystemReboots(t *testing.T) {
	c := newCluster(t)
	c.rendered("r1", ign{})
	c.desire("r1", "")
	c.wantState("Done")
	boots := c.boot
	c.rendered("r2", ign{}, func(s map[string]any) { s["kernelArguments"] = []string{"nosmt"} })
	c.desire("r2", "")
	c.wantState("Done")
	if got := fmt.Sprint(c.boot-boots, c.read("/proc/cmdline")); got != "1nosmt\n" && got != "1 nosmt\n" {
		t.Errorf("boots and arguments = %q, want 1 and nosmt", got)
	}
	c.rendered("r3", ign{}, func(s map[string]any) { s["kernelType"] = "realtime" })
	c.desire("r3", "")
	c.wantState("Degraded need an image that has them")
}
