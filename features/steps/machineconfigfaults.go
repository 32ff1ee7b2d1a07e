package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/scenarios/registry"
)

// registerMachineConfigFaults binds the steps on what interrupts the update of a node.
func (s *scenario) registerMachineConfigFaults(sc *stepRegistry) {
	sc.Step(`^the registry (stalls|sends damaged blobs)$`, "makes the lab's registry answer no request, or send other bytes than those of a blob's digest", func(what string) {
		r, _ := s.lab.Registry()
		r.SetFault(map[string]registry.Fault{"stalls": registry.Stalled, "sends damaged blobs": registry.Damaged}[what])
	})
	sc.Step(`^the (controller|daemon) is killed once (the build exists|the image is built|the node has the image|the node is drained|the server boots)$`, "waits until the update of the node has come so far, or farther, ends the controllers, or the daemon in the server's system, and starts them again", s.killOnce)
	sc.Step(`^minutes pass until the node is Degraded$`, "lets ten minutes of the lab's time pass, again and again: the daemon waits for real time otherwise", func(ctx context.Context) error {
		return eventually(ctx, "the node is Degraded", func(ctx context.Context) (bool, string, error) {
			n := &corev1.Node{}
			if err := s.kube.Get(ctx, client.ObjectKey{Name: s.server.Name}, n); err != nil || n.Annotations[machineconfig.State] == machineconfig.Degraded {
				return err == nil, "", err
			}
			return false, fmt.Sprint(n.Annotations), s.pass(ctx, 10*time.Minute)
		})
	})
	sc.Step(`^the pool's image is being built$`, "waits until a MachineOSBuild of the pool's present configuration is Building", func(ctx context.Context) error {
		return s.awaitBuild(ctx, mcv1.MachineOSBuilding)
	})
	sc.Step(`^one build of the pool has made one image$`, "waits until the pool has one MachineOSBuild, which has succeeded, and the registry one image of the pool, which is that of the build", s.oneImage)
	sc.Step(`^the server's pool is not Updating: "([^"]*)"$`, "waits until its condition Updating is False with this text in its message", func(ctx context.Context, text string) error {
		return eventually(ctx, "the pool is not Updating", func(ctx context.Context) (bool, string, error) {
			p := &mcv1.MachineConfigPool{}
			if err := s.kube.Get(ctx, client.ObjectKey{Name: s.pool()}, p); err != nil {
				return false, "", err
			}
			c := machineconfig.Condition(p, mcv1.MachineConfigPoolUpdating)
			return c != nil && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, text), fmt.Sprintf("%+v", p.Status.Conditions), nil
		})
	})
	sc.NegativeStep(`^the node keeps its configuration$`, "asserts, once each controller has reconciled every object, that the Node has the configuration and the image of when the pool was last Updated", func(ctx context.Context) error {
		if err := s.letControllersAct(ctx); err != nil {
			return err
		}
		n := &corev1.Node{}
		err := s.kube.Get(ctx, client.ObjectKey{Name: s.server.Name}, n)
		if target := targetOf(n); err == nil && target != s.updatedTo {
			err = fmt.Errorf("it has %+v, and had %+v", target, s.updatedTo)
		}
		return err
	})
	sc.Step(`^the node has the image of before$`, "asserts that the Node has another configuration than when the pool was Updated the time before, and the same image", func() error {
		if before, after := s.updatedBefore, s.updatedTo; after.image != before.image || after.config == before.config || after.image == "" {
			return fmt.Errorf("it has %+v, and had %+v", after, before)
		}
		return nil
	})
	sc.Step(`^the server's file "([^"]+)" is written by the daemon$`, "asserts that the file is there as a local one", func(ctx context.Context, file string) error {
		return s.fileIsLocal(ctx, file, true)
	})
	sc.Step(`^the MachineConfigNode is (\w+): "([^"]*)"$`, "waits until a condition of the server's MachineConfigNode is True with this text in its message", func(ctx context.Context, conditionType, text string) error {
		return eventually(ctx, "the MachineConfigNode is "+conditionType, func(ctx context.Context) (bool, string, error) {
			m := &mcv1.MachineConfigNode{}
			if err := s.kube.Get(ctx, client.ObjectKey{Name: s.server.Name}, m); err != nil {
				return false, "", client.IgnoreNotFound(err)
			}
			c := apimeta.FindStatusCondition(m.Status.Conditions, conditionType)
			return c != nil && c.Status == "True" && strings.Contains(c.Message, text), fmt.Sprintf("%+v", m.Status.Conditions), nil
		})
	})
}

// nodeTarget is the configuration and the image of a node.
type nodeTarget struct{ config, image string }

func targetOf(n *corev1.Node) nodeTarget {
	return nodeTarget{n.Annotations[machineconfig.DesiredConfig], n.Annotations[machineconfig.DesiredOSImage]}
}

// moments are when programs are killed. Each stays true once it is: at full speed a step may see
// it late.
var moments = map[string]func(ctx context.Context, s *scenario, n *corev1.Node) (bool, error){
	"the build exists": func(ctx context.Context, s *scenario, _ *corev1.Node) (bool, error) {
		all, err := s.builds(ctx)
		return len(all) > 0, err
	},
	"the image is built": func(ctx context.Context, s *scenario, _ *corev1.Node) (bool, error) {
		all, err := s.builds(ctx)
		return len(all) > 0 && apimeta.IsStatusConditionTrue(all[0].Status.Conditions, string(mcv1.MachineOSBuildSucceeded)), err
	},
	"the node has the image": func(_ context.Context, _ *scenario, n *corev1.Node) (bool, error) {
		return targetOf(n).image != "", nil
	},
	"the node is drained": func(_ context.Context, _ *scenario, n *corev1.Node) (bool, error) {
		t := targetOf(n)
		return t.image != "" && strings.HasSuffix(n.Annotations[machineconfig.LastAppliedDrain], t.config), nil
	},
	"the server boots": func(_ context.Context, s *scenario, _ *corev1.Node) (bool, error) {
		return s.machine().Boots > s.updatedBoots, nil
	},
}

func (s *scenario) killOnce(ctx context.Context, program, moment string) error {
	err := eventually(ctx, moment, func(ctx context.Context) (bool, string, error) {
		n := &corev1.Node{}
		if err := s.kube.Get(ctx, client.ObjectKey{Name: s.server.Name}, n); err != nil {
			return false, "", err
		}
		ok, err := moments[moment](ctx, s, n)
		return ok, fmt.Sprint(n.Annotations), err
	})
	if err != nil {
		return err
	}
	if program == "daemon" {
		return eventually(ctx, "the daemon starts again", func(ctx context.Context) (bool, string, error) {
			var out strings.Builder
			code, err := s.lab.Control().Exec(ctx, s.server.Name, control.Command{Args: []string{"systemctl", "restart", "lab-agent-mcd"}, Stdout: &out, Stderr: &out})
			return err == nil && code == 0, fmt.Sprintf("code %d, %v, %s", code, err, out.String()), nil // the system may be booting
		})
	}
	s.lab.KillControllers()
	err = eventually(ctx, "the controller is dead", func(context.Context) (bool, string, error) { return !s.lab.ControllersRunning(), "", nil })
	if err != nil {
		return err
	}
	return s.lab.StartControllers(context.WithoutCancel(ctx))
}

// builds returns the builds of the pool.
func (s *scenario) builds(ctx context.Context) (out []mcv1.MachineOSBuild, err error) {
	var all mcv1.MachineOSBuildList
	if err := s.kube.List(ctx, &all); err != nil {
		return nil, err
	}
	for _, b := range all.Items {
		if b.Spec.MachineOSConfig.Name == s.pool() {
			out = append(out, b)
		}
	}
	return out, nil
}

func (s *scenario) oneImage(ctx context.Context) error {
	return eventually(ctx, "one build and one image", func(ctx context.Context) (bool, string, error) {
		all, err := s.builds(ctx)
		if err != nil {
			return false, "", err
		}
		r, host := s.lab.Registry()
		repository := s.pool() + "/os"
		var digests, specs []string
		for _, reference := range r.References(repository) {
			if strings.HasPrefix(reference, "sha256:") {
				digests = append(digests, host+"/"+repository+"@"+reference)
			}
		}
		for _, b := range all {
			specs = append(specs, string(b.Status.DigestedImagePushSpec))
		}
		return len(specs) == 1 && len(digests) == 1 && specs[0] == digests[0], fmt.Sprintf("builds of %q, images %q", specs, digests), nil
	})
}

// awaitBuild waits until a build of the pool's present configuration has a condition.
func (s *scenario) awaitBuild(ctx context.Context, progress mcv1.BuildProgress) error {
	return eventually(ctx, "the pool's image is "+string(progress), func(ctx context.Context) (bool, string, error) {
		p := &mcv1.MachineConfigPool{}
		if err := s.kube.Get(ctx, client.ObjectKey{Name: s.pool()}, p); err != nil {
			return false, "", err
		}
		if ok, err := s.rendered(ctx, p); !ok || err != nil {
			return false, "it is rendered", err
		}
		all, err := s.builds(ctx)
		text := "no build"
		for _, b := range all {
			if b.Spec.MachineConfig.Name != p.Spec.Configuration.Name {
				continue
			}
			text = fmt.Sprint(b.Status.Conditions)
			if !apimeta.IsStatusConditionTrue(b.Status.Conditions, string(progress)) {
				continue
			}
			if progress != mcv1.MachineOSBuildSucceeded {
				return true, "", nil
			}
			return s.isAdopted(ctx, &b)
		}
		return false, text, err
	})
}

// isAdopted looks whether the pool's MachineOSConfig has the image of a build. Until then the
// controller asks the registry for it.
func (s *scenario) isAdopted(ctx context.Context, b *mcv1.MachineOSBuild) (bool, string, error) {
	c := &mcv1.MachineOSConfig{}
	err := s.kube.Get(ctx, client.ObjectKey{Name: s.pool()}, c)
	adopted := c.Annotations[machineconfig.CurrentBuildAnnotation] == b.Name && c.Status.CurrentImagePullSpec == b.Status.DigestedImagePushSpec
	return err == nil && adopted, fmt.Sprintf("%s has succeeded; %v %+v", b.Name, c.Annotations, c.Status), err
}

// fileIsLocal looks whether a file of the running system was changed there, or is that of the
// image.
func (s *scenario) fileIsLocal(ctx context.Context, file string, want bool) error {
	_, exists := s.lab.Control().Files(ctx, s.server.Name, file)
	changes, err := s.lab.Control().FileChanges(ctx, s.server.Name)
	if err := errors.Join(exists, err); err != nil {
		return err
	}
	for _, c := range changes {
		if c.Path == file {
			if !want {
				return fmt.Errorf("%s was %s on the server: it is no file of the image", file, c.Change)
			}
			return nil
		}
	}
	if want {
		return fmt.Errorf("%s is a file of the image: the server has changed %d others", file, len(changes))
	}
	return nil
}
