package steps

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/registry"
)

// registerMachineConfig binds the steps on machine configuration. Each scenario has a pool of its
// own, whose one node is the server.
func (s *scenario) registerMachineConfig(sc *stepRegistry) {
	sc.Step(`^the server is the node of a pool with a machine-config daemon$`, "gives the server user data with the node agent and the daemon, the lab's image, a MachineConfigPool, and waits until the node is Done", s.joinPool)
	sc.Step(`^the operator creates a MachineConfig with the file "([^"]+)" of "([^"]*)", the unit "([^"]+)" and the kernel argument "([^"]+)"$`, "creates it for the pool", func(ctx context.Context, file, text, unit, argument string) error {
		return s.createMachineConfig(ctx, "10-story", ignitionOf(file, text, unit), argument)
	})
	sc.Step(`^the operator creates a MachineConfig "([^"]+)" with the file "([^"]+)" of "([^"]*)"$`, "creates it for the pool", func(ctx context.Context, name, file, text string) error {
		return s.createMachineConfig(ctx, name, ignitionOf(file, text, ""))
	})
	sc.Step(`^the operator creates a MachineConfig "([^"]+)" with a disk$`, "creates one that only an installation applies", func(ctx context.Context, name string) error {
		return s.createMachineConfig(ctx, name, `{"ignition":{"version":"3.5.0"},"storage":{"disks":[{"device":"/dev/sdb"}]}}`)
	})
	sc.Step(`^the operator deletes the MachineConfig "([^"]+)"$`, "deletes it", func(ctx context.Context, name string) error {
		return s.kube.Delete(ctx, &mcv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: s.pool() + "-" + name}})
	})
	sc.Step(`^the operator creates the pool's MachineOSConfig$`, "makes the pool layered, with the lab's registry", s.createOSConfig)
	sc.Step(`^the operator deletes the pool's MachineOSConfig$`, "makes the pool one that is not layered", func(ctx context.Context) error {
		return s.kube.Delete(ctx, &mcv1.MachineOSConfig{ObjectMeta: metav1.ObjectMeta{Name: s.pool()}})
	})
	sc.Step(`^the operator (pauses|resumes) the pool$`, "sets spec.paused", func(ctx context.Context, verb string) error {
		return s.changePool(ctx, func(p *mcv1.MachineConfigPool) { p.Spec.Paused = verb == "pauses" })
	})
	sc.Step(`^the pool's image is built$`, "waits until a MachineOSBuild of the pool's present configuration has succeeded, and the MachineOSConfig has its image", func(ctx context.Context) error {
		return s.awaitBuild(ctx, mcv1.MachineOSBuildSucceeded)
	})
	sc.Step(`^the pool is Updated with an image$`, "waits until the pool is Updated, and its node Done with the present configuration and an image", func(ctx context.Context) error { return s.poolIsUpdated(ctx, true) })
	sc.Step(`^the pool is Updated without an image$`, "waits until the pool is Updated, and its node Done with the present configuration and no image", func(ctx context.Context) error { return s.poolIsUpdated(ctx, false) })
	sc.Step(`^the node is (Done|Working)$`, "waits until the daemon reports this state", func(ctx context.Context, state string) error { return s.nodeStateIs(ctx, state, "") })
	sc.Step(`^the node is (Degraded|Unreconcilable): "([^"]+)"$`, "waits until the daemon reports this state with a reason that contains the text", s.nodeStateIs)
	sc.Step(`^the server's file "([^"]+)" comes from its image$`, "asserts that the file is there, and is none of the local ones", func(ctx context.Context, file string) error {
		return s.fileIsLocal(ctx, file, false)
	})
	sc.Step(`^the operator writes "([^"]*)" to the server's file "([^"]+)"$`, "writes it in the running system as labctl host cp does", func(ctx context.Context, text, file string) error {
		return s.lab.Control().PutFile(ctx, s.server.Name, control.File{Path: file, Mode: 0o644, Content: []byte(text)})
	})
}

// pool returns the name of the scenario's pool.
func (s *scenario) pool() string { return "pool-" + s.server.Name }

// deleteMachineConfig deletes the objects of pools of scenarios.
func (b *testLab) deleteMachineConfig(ctx context.Context) error {
	r, _ := b.lab.Registry()
	r.SetFault(registry.None)
	ours := client.HasLabels{poolLabel}
	var errs []error
	for _, o := range []client.Object{&mcv1.MachineOSConfig{}, &mcv1.MachineConfig{}, &mcv1.MachineConfigPool{}} {
		errs = append(errs, b.kube.DeleteAllOf(ctx, o, ours))
	}
	return errors.Join(append(errs, b.kube.DeleteAllOf(ctx, &corev1.Node{}, ours))...)
}

// poolLabel marks the objects of scenarios about machine configuration.
const poolLabel = "metalab.dev/pool-of"

func (s *scenario) ofScenario(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{poolLabel: s.server.Name, mcv1.MachineConfigRoleLabelKey: s.pool()}}
}

func (s *scenario) joinPool(ctx context.Context) error {
	text, err := s.nodeData(ctx, s.server.Name, "lab-agent-node", "lab-agent-mcd")
	if err != nil {
		return err
	}
	return s.joinPoolWith(ctx, text)
}

// joinPoolWith provisions the server with user data, and makes it the node of the pool.
func (s *scenario) joinPoolWith(ctx context.Context, userData string) error {
	if err := s.createConfigSecrets(ctx, userData, s.server.Name); err != nil {
		return err
	}
	if err := s.requestLabImage(ctx); err != nil {
		return err
	}
	p := &mcv1.MachineConfigPool{ObjectMeta: s.ofScenario(s.pool()), Spec: mcv1.MachineConfigPoolSpec{
		MachineConfigSelector: &metav1.LabelSelector{MatchLabels: map[string]string{mcv1.MachineConfigRoleLabelKey: s.pool()}},
		NodeSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{poolLabel: s.server.Name}},
	}}
	if err := s.create(ctx, p); err != nil {
		return err
	}
	if err := s.createMachineConfig(ctx, "00-first", `{"ignition":{"version":"3.5.0"}}`); err != nil {
		return err
	}
	if err := s.nodeShows(ctx, s.server.Name, "Ready"); err != nil {
		return err
	}
	if err := s.watchTargets(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.server.Name}}
	label := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, poolLabel, s.server.Name)
	if err := s.kube.Patch(ctx, n, client.RawPatch("application/merge-patch+json", label)); err != nil {
		return err
	}
	return s.poolIsUpdated(ctx, false)
}

// ignitionOf is a configuration with a file and a unit.
func ignitionOf(file, text, unit string) string {
	units := ""
	if unit != "" {
		units = fmt.Sprintf(`{"name":%q,"enabled":true,"contents":"[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"}`, unit)
	}
	return fmt.Sprintf(`{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":%q,"mode":420,"overwrite":true,"contents":{"source":"data:,%s"}}]},"systemd":{"units":[%s]}}`, file, url.PathEscape(text), units)
}

func (s *scenario) createMachineConfig(ctx context.Context, name, ignition string, arguments ...string) error {
	return s.create(ctx, &mcv1.MachineConfig{ObjectMeta: s.ofScenario(s.pool() + "-" + name), Spec: mcv1.MachineConfigSpec{
		Config: runtime.RawExtension{Raw: []byte(ignition)}, KernelArguments: arguments,
	}})
}

func (s *scenario) createOSConfig(ctx context.Context) error {
	_, host := s.lab.Registry()
	return s.create(ctx, &mcv1.MachineOSConfig{ObjectMeta: s.ofScenario(s.pool()), Spec: mcv1.MachineOSConfigSpec{
		MachineConfigPool:       mcv1.MachineConfigPoolReference{Name: s.pool()},
		ImageBuilder:            mcv1.MachineOSImageBuilder{ImageBuilderType: mcv1.JobBuilder},
		BaseImagePullSecret:     &mcv1.ImageSecretObjectReference{Name: lab.PullSecret},
		RenderedImagePushSecret: mcv1.ImageSecretObjectReference{Name: lab.PushSecret},
		RenderedImagePushSpec:   mcv1.ImageTagFormat(host + "/" + s.pool() + "/os:latest"),
	}})
}

func (s *scenario) changePool(ctx context.Context, change func(*mcv1.MachineConfigPool)) error {
	return retry.RetryOnConflict(conflictBackoff, func() error {
		p := &mcv1.MachineConfigPool{}
		if err := s.kube.Get(ctx, client.ObjectKey{Name: s.pool()}, p); err != nil {
			return err
		}
		before := p.DeepCopy()
		change(p)
		return s.kube.Patch(ctx, p, client.MergeFrom(before))
	})
}

// rendered reports whether the rendered configuration of the pool is that of the scenario's
// present MachineConfigs.
func (s *scenario) rendered(ctx context.Context, p *mcv1.MachineConfigPool) (bool, error) {
	var all mcv1.MachineConfigList
	if err := s.kube.List(ctx, &all, client.MatchingLabels{poolLabel: s.server.Name}); err != nil {
		return false, err
	}
	var want, have []string
	for _, m := range all.Items {
		want = append(want, m.Name)
	}
	for _, r := range p.Spec.Configuration.Source {
		if strings.HasPrefix(r.Name, s.pool()) {
			have = append(have, r.Name)
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	return slices.Equal(want, have), nil
}

// poolIsUpdated waits until the node has the pool's present configuration. No version of the Node
// has had a configuration without its image meanwhile; see targetWatch.
func (s *scenario) poolIsUpdated(ctx context.Context, layered bool) error {
	return eventually(ctx, "the pool is Updated", func(ctx context.Context) (bool, string, error) {
		p, n := &mcv1.MachineConfigPool{}, &corev1.Node{}
		if err := errors.Join(s.kube.Get(ctx, client.ObjectKey{Name: s.pool()}, p), s.kube.Get(ctx, client.ObjectKey{Name: s.server.Name}, n)); err != nil {
			return false, "", err
		}
		a := n.Annotations
		text := fmt.Sprintf("annotations %v, conditions %v", a, p.Status.Conditions)
		if ok, err := s.rendered(ctx, p); !ok || err != nil {
			return false, "it is not rendered", err
		}
		name := p.Spec.Configuration.Name
		c := machineconfig.Condition(p, mcv1.MachineConfigPoolUpdated)
		updated := c != nil && c.Status == corev1.ConditionTrue && a[machineconfig.State] == machineconfig.Done && a[machineconfig.CurrentConfig] == name &&
			a[machineconfig.CurrentImage] == a[machineconfig.DesiredOSImage] && (a[machineconfig.CurrentImage] != "") == layered
		if updated {
			builds, err := s.builds(ctx)
			if err != nil {
				return false, "", err
			}
			if done, err := s.targetWatch.check(n.ResourceVersion, layered, builds); !done || err != nil {
				return false, "the watch on the Node is behind", err
			}
			s.updatedBefore, s.updatedTo, s.updatedBoots = s.updatedTo, targetOf(n), s.machine().Boots
		}
		return updated, text, nil
	})
}

func (s *scenario) nodeStateIs(ctx context.Context, state, reason string) error {
	last := ""
	err := s.awaitNode(ctx, s.server.Name, func(n *corev1.Node) bool {
		last = fmt.Sprint(n.Annotations)
		return n.Annotations[machineconfig.State] == state && strings.Contains(n.Annotations[machineconfig.Reason], reason)
	})
	if err != nil {
		err = fmt.Errorf("%w; annotations %s", err, last)
	}
	return err
}
