package machineconfig

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/guest/sandbox"
)

// layered is a node with a configuration and an image of it, under Skip.
func layered(t *testing.T) (c *cluster, image string) {
	t.Helper()
	c = newCluster(t)
	c.rendered("r1", ign{files: files("/etc/a.conf", "1", "/etc/only-1", "1"), units: []map[string]any{{"name": "x.service", "enabled": true, "contents": unitText}}}, func(s map[string]any) { s["kernelArguments"] = []string{"quiet", "nosmt quiet"} })
	image = c.push(files("/etc/os-release", "ID=image-1\n", "/etc/a.conf", "1", "/etc/only-1", "1", unitDir+"/x.service", unitText, unitDir+"/multi-user.target.wants/x.service", "-> /etc/systemd/system/x.service"))
	return c, image
}

// Statement M40: with an image the daemon writes neither files nor units. They are there after the boot,
// from the image, and drift is still watched.
func TestImageCarriesFilesAndUnits(t *testing.T) {
	c, image := layered(t)
	owned := []string{"etc/a.conf", "etc/only-1", "etc/systemd/system"}
	var touched []string
	watch := func() {
		c.noWrites()
		c.system.Watch(func(local sandbox.Tree) {
			for name := range local {
				if slices.ContainsFunc(owned, func(o string) bool { return strings.HasPrefix(name, o) }) {
					touched = append(touched, name)
				}
			}
		})
	}
	watch()
	c.desire("r1", image)
	for c.boot == 1 {
		if _, err := c.daemon.step(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.controllers()
		if got := c.read("/etc/a.conf") + c.read(unitDir+"/x.service") + c.read("/etc/os-release"); got != "--ID=installed\n" {
			t.Fatalf("files before the boot = %q, want none of the image", got)
		}
		if c.reboots > 0 {
			c.nextBoot()
			watch()
		}
		c.clock.Step(time.Second)
	}
	c.wantState("Done")
	if got := c.read("/etc/a.conf") + c.read("/etc/only-1") + c.read(unitDir+"/x.service") + c.read("/etc/os-release"); got != "11"+unitText+"ID=image-1\n" {
		t.Errorf("files after the boot = %q, want those of the image", got)
	}
	if got := c.read("/proc/cmdline"); got != "quiet nosmt quiet\n" {
		t.Errorf("kernel arguments = %q, want those of the configuration, the duplicate too", got)
	}
	if len(touched) > 0 {
		t.Errorf("local copies of the configuration's files: %q", touched)
	}
	layer, err := c.system.Layer()
	if err != nil {
		t.Fatal(err)
	}
	for name := range layer {
		if slices.ContainsFunc(owned, func(o string) bool { return strings.HasPrefix(name, o) }) {
			t.Errorf("%s is a local file: it must be the image's", name)
		}
	}
	if got := c.annotation("currentImage"); got != image {
		t.Errorf("currentImage = %q, want %q", got, image)
	}
	c.edit("/etc/a.conf", "drift", 0o644)
	c.daemon.dirty.Store(true)
	c.wantState(`Degraded content mismatch for file "/etc/a.conf"`)
	if err := c.system.Put(sandbox.Tree{"run/machine-config-daemon-force": sandbox.File(0o644, "")}); err != nil {
		t.Fatal(err)
	}
	c.noWrites()
	c.wantState("Done")
	if got := c.read("/etc/a.conf"); got != "1" {
		t.Errorf("/etc/a.conf = %q after the force file, want the image's", got)
	}

	// A change of files alone comes with another image.
	c.rendered("r2", ign{files: files("/etc/a.conf", "2")})
	second := c.push(files("/etc/os-release", "ID=image-2\n", "/etc/a.conf", "2"))
	c.noWrites()
	c.desire("r2", second)
	c.wantState("Done")
	if got := c.read("/etc/a.conf") + c.read("/etc/only-1") + c.read("/etc/os-release") + c.read("/proc/cmdline"); got != "2-ID=image-2\n\n" {
		t.Errorf("files of the second image = %q", got)
	}

	// Without an image the daemon writes again: the files are there after the revert (statement M37).
	c.desire("r2", "")
	c.startDaemon()
	c.wantState("Done")
	if got := c.read("/etc/a.conf") + c.read("/etc/os-release") + c.annotation("currentImage"); got != "2ID=installed\n" {
		t.Errorf("files after the opt-out = %q, want the configuration's on the installation's root", got)
	}
}

// Under Write the daemon writes files also on a layered node (upstream's behaviour), and a change
// of files with the same image needs no other root.
func TestWriteSwitchWritesFilesOfALayeredNode(t *testing.T) {
	c, image := layered(t)
	c.controllerConfig(machineconfig.Write, map[string]any{})
	c.desire("r1", image)
	c.wantState("Done")
	if layer, err := c.system.Layer(); err != nil || layer["etc/a.conf"].Content == nil {
		t.Errorf("the daemon has not written /etc/a.conf: %v", err)
	}
	boots := c.boot
	c.rendered("r2", ign{files: files("/etc/a.conf", "1", "/etc/only-1", "1", "/etc/nmstate/openshift/x.yml", "x"), units: []map[string]any{{"name": "x.service", "enabled": true, "contents": unitText}}}, func(s map[string]any) { s["kernelArguments"] = []string{"quiet", "nosmt quiet"} })
	c.desire("r2", image)
	c.wantState("Done")
	if c.boot != boots || c.read("/etc/nmstate/openshift/x.yml") != "x" {
		t.Errorf("a change of a file without disruption: %d boots, file %q, want none and x", c.boot-boots, c.read("/etc/nmstate/openshift/x.yml"))
	}
}

// Statement M22: another root than the expected one degrades the node, which recovers when it has booted
// that.
func TestUnexpectedRootDegrades(t *testing.T) {
	c, image := layered(t)
	c.desire("r1", image)
	c.wantState("Done")
	c.rendered("r2", ign{files: files("/etc/a.conf", "2")})
	second := c.push(files("/etc/a.conf", "2"))
	c.desire("r2", second)
	for c.reboots == 0 {
		if _, err := c.daemon.step(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.controllers()
	}
	if err := c.os.Unstage(t.Context()); err != nil { // somebody has removed the root
		t.Fatal(err)
	}
	c.nextBoot()
	c.wantState(fmt.Sprintf("Degraded expected target osImageURL %q, have %q", second, image))
	if got := c.annotation("currentConfig"); got != "r1" {
		t.Errorf("currentConfig = %q, want r1: r2 has not booted", got)
	}
	c.desire("r1", image)
	c.wantState("Done")
}

// Statement M39: a pull is tried seven times, after 10 s to 60 s, and the node is Degraded then.
func TestFailedPullIsRetriedSevenTimes(t *testing.T) {
	c, image := layered(t)
	var times []time.Duration
	begin := c.clock.Now()
	down := true
	c.blocked = func(r *http.Request) int {
		if !down || !strings.Contains(r.URL.Path, "/manifests/") {
			return 0
		}
		times = append(times, c.clock.Now().Sub(begin))
		return http.StatusServiceUnavailable
	}
	c.desire("r1", image)
	c.wantStateWithin("Degraded after 7 attempts", 6*time.Minute)
	want := []time.Duration{0, 10 * time.Second, 30 * time.Second, 70 * time.Second, 130 * time.Second, 190 * time.Second, 250 * time.Second}
	var each []time.Duration // a few requests are one attempt
	for _, x := range times {
		if !slices.Contains(each, x) {
			each = append(each, x)
		}
	}
	if len(each) > len(want) {
		each = each[:len(want)]
	}
	if diff := cmp.Diff(want, each); diff != "" {
		t.Errorf("times of the attempts (-want +got):\n%s", diff)
	}
	if got := c.condition(mcv1.MachineConfigNodeImagePulledFromRegistry); !strings.HasPrefix(got, "False") || !strings.Contains(got, "503") {
		t.Errorf("condition ImagePulledFromRegistry = %q, want False and the status", got)
	}
	if c.boot != 1 {
		t.Error("the node has booted")
	}
	down = false
	c.wantState("Done")
	if got := c.condition(mcv1.MachineConfigNodeImagePulledFromRegistry); !strings.HasPrefix(got, "True") {
		t.Errorf("condition ImagePulledFromRegistry = %q, want True", got)
	}
}

// Nothing that is not verified is booted, and nothing is half unpacked: a wrong digest, an image
// that the registry has lost, a hostile layer, a tag.
func TestUnverifiedImageIsNotBooted(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		break_     func(t *testing.T, c *cluster, image string) (ref string)
	}{
		{"blob that is damaged at its end", "digest mismatch: the registry sends a blob of the digest sha256:", func(_ *testing.T, c *cluster, image string) string {
			c.damage(func(b []byte) { b[len(b)-9] ^= 1 })
			return image
		}},
		{"blob that is no archive", "digest mismatch: the registry sends a blob of the digest sha256:", func(_ *testing.T, c *cluster, image string) string {
			c.damage(func(b []byte) { clear(b) })
			return image
		}},
		{"blob that is cut off", "100 of ", func(_ *testing.T, c *cluster, image string) string {
			c.garble = func(path string, b []byte) []byte {
				if strings.Contains(path, "/blobs/") {
					return b[:min(len(b), 100)]
				}
				return b
			}
			return image
		}},
		{"manifest of another digest", "manifest digest", func(_ *testing.T, c *cluster, image string) string {
			c.garble = func(path string, b []byte) []byte {
				if strings.Contains(path, "/manifests/") {
					return append(slices.Clone(b), ' ')
				}
				return b
			}
			return image
		}},
		{"registry without the image", "MANIFEST_UNKNOWN", func(_ *testing.T, c *cluster, image string) string {
			return image[:len(image)-4] + "0000"
		}},
		{"device", "not stored", func(_ *testing.T, c *cluster, _ string) string {
			return c.push(nil, tar.Header{Name: "dev/x", Typeflag: tar.TypeBlock})
		}},
		{"path out of the root", "leaves the root", func(_ *testing.T, c *cluster, _ string) string {
			return c.push(nil, tar.Header{Name: "../x", Typeflag: tar.TypeReg})
		}},
		{"tag", "a tag is refused", func(_ *testing.T, c *cluster, _ string) string { return repo + ":latest" }},
		{"tag and digest", "has a tag and a digest", func(_ *testing.T, c *cluster, image string) string {
			return strings.Replace(image, "@", ":latest@", 1)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, image := layered(t)
			ref := tt.break_(t, c, image)
			before, err := c.system.Deployments()
			if err != nil {
				t.Fatal(err)
			}
			c.desire("r1", ref)
			c.wantStateWithin("Degraded "+tt.want, 6*time.Minute)
			after, err := c.system.Deployments()
			if diff := cmp.Diff(before, after); diff != "" || err != nil {
				t.Errorf("roots (-before +after):\n%s%v", diff, err)
			}
			c.nextBoot()
			if got := c.read("/etc/os-release"); got != "ID=installed\n" {
				t.Errorf("the node has booted %q", got)
			}
			c.garble = nil
			c.desire("r1", image)
			c.wantStateWithin("Done", 6*time.Minute)
		})
	}
}

// The daemon writes the pull secret of the ControllerConfig and checks it before the pull.
func TestPullSecretIsCheckedBeforeThePull(t *testing.T) {
	c, image := layered(t)
	basic := func(login string) string { return base64.StdEncoding.EncodeToString([]byte(login)) }
	c.blocked = func(r *http.Request) int {
		if r.Header.Get("Authorization") != "Basic "+basic("node:right") {
			return http.StatusUnauthorized
		}
		return 0
	}
	c.desire("r1", image)
	c.wantState("Degraded registry registry.example demands a login, and the pull secret has none for it")
	secret := func(login string) string {
		return fmt.Sprintf(`{"auths":{"registry.example":{"auth":%q}}}`, basic(login))
	}
	c.controllerConfig(machineconfig.Skip, map[string]any{"internalRegistryPullSecret": []byte(secret("node:wrong"))})
	c.wantState("Degraded registry registry.example refuses the login of the pull secret")
	if c.boot != 1 {
		t.Error("the node has booted")
	}
	c.controllerConfig(machineconfig.Skip, map[string]any{"pullSecret": map[string]any{"namespace": "openshift-config", "name": "pull-secret"}})
	c.wantState("Degraded pull secret openshift-config/pull-secret of the ControllerConfig")
	c.api.put("/api/v1/namespaces/openshift-config/secrets/pull-secret", map[string]any{"data": map[string]any{".dockerconfigjson": []byte(secret("node:right"))}})
	c.wantState("Done")
	if got := c.read(pullSecretFile); got != secret("node:right") {
		t.Errorf("%s = %q", pullSecretFile, got)
	}
	if st, err := c.host.Stat(pullSecretFile); err != nil || st.Mode != 0o600 {
		t.Errorf("mode of %s = %v, %v, want 0600", pullSecretFile, st.Mode, err)
	}
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	for _, p := range append(c.api.patches, c.log.String()) {
		for _, s := range []string{basic("node:right"), basic("node:wrong"), "node:right"} {
			if strings.Contains(p, s) {
				t.Errorf("%q is in %s", s, p)
			}
		}
	}
}

// Statement M41: the conditions of the MachineConfigNode become true in order, each once.
func TestConditionsOfTheMachineConfigNodeProgressInOrder(t *testing.T) {
	c, image := layered(t)
	seen := []string{}
	c.desire("r1", image)
	for range 40 {
		_, err := c.daemon.step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.controllers()
		if c.reboots > 0 {
			c.nextBoot()
		}
		c.clock.Step(time.Second)
	}
	last := map[string]string{}
	for _, p := range c.api.patches {
		body, ok := strings.CutPrefix(p, mcnAt+"/status ")
		if !ok {
			continue
		}
		var doc struct {
			Status struct {
				Conditions []struct{ Type, Status string }
			}
		}
		if err := jsonUnmarshal(body, &doc); err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			for _, x := range doc.Status.Conditions {
				if x.Type == string(s) && x.Status == "True" && last[x.Type] != "True" {
					seen = append(seen, x.Type)
				}
			}
		}
		for _, x := range doc.Status.Conditions {
			last[x.Type] = x.Status
		}
	}
	want := []string{"UpdatePrepared", "Cordoned", "Drained", "ImagePulledFromRegistry", "AppliedOSImage", "AppliedFilesAndOS", "UpdateExecuted", "RebootedNode", "UpdatePostActionComplete", "Uncordoned", "Resumed", "UpdateComplete", "Updated"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("conditions that became true (-want +got):\n%s", diff)
	}
	m := &mcv1.MachineConfigNode{}
	c.api.get(mcnAt, m)
	if m.Status.ConfigVersion == nil || m.Status.ConfigVersion.Current != "r1" || m.Status.ConfigVersion.Desired != "r1" || string(m.Status.ConfigImage.CurrentImage) != image {
		t.Errorf("status = %+v, want r1 and the image", m.Status)
	}
	writes := len(c.api.patches)
	if writes > 10 {
		t.Errorf("the daemon has written %d times for one image, want at most 10", writes)
	}
}

// Mirrors of registries.conf are tried before the registry, and a registry's certificate comes
// from the ControllerConfig.
func TestMirrorServesTheImage(t *testing.T) {
	c, image := layered(t)
	c.edit("/etc/containers/registries.conf", "[[registry]]\nprefix = \"registry.example\"\nlocation = \"registry.example\"\nblocked = true\n[[registry.mirror]]\nlocation = \"mirror.example\"\n", 0o644)
	var hosts []string
	c.blocked = func(r *http.Request) int {
		hosts = append(hosts, r.URL.Host)
		return 0
	}
	c.controllerConfig(machineconfig.Skip, map[string]any{"imageRegistryBundleUserData": []map[string]any{{"file": "mirror.example..5000", "data": []byte("CERT")}}})
	c.desire("r1", image)
	c.wantState("Done")
	slices.Sort(hosts)
	if diff := cmp.Diff([]string{"mirror.example"}, slices.Compact(hosts)); diff != "" {
		t.Errorf("registries (-want +got):\n%s", diff)
	}
	if got := c.read("/etc/docker/certs.d/mirror.example:5000/ca.crt"); got != "CERT" {
		t.Errorf("certificate of the registry = %q, want CERT", got)
	}
}

// Statement M42: a node that moves to another pool gets that pool's configuration and image.
func TestMovedNodeTakesConfigurationAndImageOfTheOtherPool(t *testing.T) {
	c, image := layered(t)
	c.desire("r1", image)
	c.wantState("Done")
	c.rendered("rendered-infra-1", ign{files: files("/etc/infra", "i")})
	infra := c.push(files("/etc/infra", "i"))
	c.noWrites()
	c.desire("rendered-infra-1", infra)
	c.wantState("Done")
	if got := c.read("/etc/infra") + c.read("/etc/a.conf") + c.annotation("currentConfig") + c.annotation("currentImage"); got != "i-rendered-infra-1"+infra {
		t.Errorf("files and annotations = %q, want those of infra", got)
	}
}

// A second target while the first is under way: the node ends with the second.
func TestRetargetedUpdateLeavesNothingOfTheFirst(t *testing.T) {
	for steps := 1; steps < 8; steps++ {
		c := newCluster(t)
		c.rendered("r1", ign{files: files("/etc/a", "1")})
		c.desire("r1", "")
		c.wantState("Done")
		c.rendered("r2", ign{files: files("/etc/a", "2", "/etc/only-2", "2")})
		c.rendered("r3", ign{files: files("/etc/a", "3")})
		image := c.push(files("/etc/a", "3"))
		c.desire("r2", "")
		for range steps {
			if _, err := c.daemon.step(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.controllers()
			if c.reboots > 0 {
				c.nextBoot()
			}
		}
		c.desire("r3", image)
		c.wantState("Done")
		if got := c.read("/etc/a") + c.read("/etc/only-2") + c.annotation("currentConfig"); got != "3-r3" {
			t.Errorf("after %d steps of r2: files = %q, want 3, none and r3", steps, got)
		}
	}
}

// The next steps are those of an image that is larger than a node takes.
func TestPullStopsWithTheDaemon(t *testing.T) {
	c, image := layered(t)
	ctx, cancel := context.WithCancel(t.Context())
	c.blocked = func(r *http.Request) int {
		cancel()
		return http.StatusServiceUnavailable
	}
	c.desire("r1", image)
	for range 5 {
		_, _ = c.daemon.step(ctx) // it ends with its context
		c.controllers()
	}
	if got := c.annotation("state"); got != "Working" {
		t.Errorf("state = %q, want Working: a daemon that ends reports no failure", got)
	}
}

func jsonUnmarshal(text string, out any) error {
	return decode(bytes.NewReader([]byte(text)), out)
}
