package machineconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	opv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/metalab-dev/metalab/agent/broker"
	"github.com/metalab-dev/metalab/agent/machineconfig/deployment"
	"github.com/metalab-dev/metalab/agent/machineconfig/registry"
	"github.com/metalab-dev/metalab/controller/machineconfig"
)

// update goes on with the update that is recorded, or begins one.
func (d *daemon) update(ctx context.Context, n *corev1.Node, s onDisk, want target, forced bool) (time.Duration, error) {
	d.unwatch()
	d.dirty.Store(true)
	u := s.update
	var next *content
	if u != nil {
		var err error
		if next, err = d.parsed.content(u.Config); err != nil {
			return 0, degraded(fmt.Errorf("%s: %w", updateState, err))
		}
	}
	if u == nil || next.name != want.config || u.Image != want.image || forced {
		var err error
		if u, next, err = d.begin(ctx, n, s, u, next, want, forced); err != nil {
			return 0, err
		}
	}
	switch u.Phase {
	case booting:
		return d.boot(ctx, n, s, u, next)
	case finishing:
		return d.finish(ctx, n, s, u, next)
	}
	return d.drainAndApply(ctx, n, s, u, next)
}

// begin records an update, after it has found that the change can be applied. It gives up an
// update in progress, given, and records the files that this one may have written, so that the
// new one removes them.
func (d *daemon) begin(ctx context.Context, n *corev1.Node, s onDisk, given *update, gaveUp *content, want target, forced bool) (*update, *content, error) {
	next, err := d.machineConfig(ctx, want.config)
	if err != nil {
		return nil, nil, err
	}
	cc, err := d.controllerConfig(ctx)
	if err != nil {
		return nil, nil, err
	}
	u := &update{Config: next.raw, Image: want.image, Root: want.image, Phase: draining, Forced: forced}
	if u.Root == "" {
		if u.Root = next.spec.OSImageURL; u.Root != "" {
			if err := registry.CheckReference(u.Root); err != nil {
				return nil, nil, degraded(fmt.Errorf("osImageURL of %s: %w", next.name, err))
			}
		}
	}
	u.Skip = want.image != "" && (cc == nil || machineconfig.LayeredFileWritesOf(cc) == machineconfig.Skip)
	m, err := d.machineConfiguration(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := reconcilable(s.config, next, m.IrreconcilableValidationOverrides); err != nil {
		return nil, nil, &failure{machineconfig.Unreconcilable, fmt.Errorf("can't reconcile config %s with %s: %w", s.config.name, next.name, err), 0}
	}
	if given != nil {
		u.Abandoned = given.Abandoned
		for _, name := range gaveUp.paths() {
			if _, ok := s.config.files[name]; !ok && !slices.Contains(u.Abandoned, name) {
				u.Abandoned = append(u.Abandoned, name)
			}
		}
		if err := d.OS.Unstage(ctx); err != nil {
			return nil, nil, degraded(err)
		}
	} else if !forced && s.config.name != "" {
		if err := validate(d.System, s.config, ofCertificates); err != nil {
			return nil, nil, degraded(fmt.Errorf("unexpected on-disk state validating against %s: %w", s.config.name, err))
		}
	}
	d.pull = pull{}
	if err := errors.Join(d.keepInstalled(s.config, next), d.record(u)); err != nil {
		return nil, nil, degraded(err)
	}
	if forced {
		if err := d.System.Remove(ForceFile); err != nil {
			return nil, nil, degraded(err)
		}
	}
	return u, next, d.progress(ctx, n, resetSteps(next.name)...)
}

// plan returns the steps of an update and the root that is booted now.
func (d *daemon) plan(ctx context.Context, s onDisk, u *update, next *content) (plan, deployment.Root, error) {
	m, err := d.machineConfiguration(ctx)
	if err != nil {
		return plan{}, deployment.Root{}, err
	}
	root, err := d.OS.Booted(ctx)
	if err != nil {
		return plan{}, root, degraded(err)
	}
	return planOf(change{s.config, next, root.Image, u.Root, u.Skip, u.Forced}, builtIn().override(m.NodeDisruptionPolicy)), root, nil
}

// drainAndApply waits for the drain of a node that will be disrupted, and then changes it.
func (d *daemon) drainAndApply(ctx context.Context, n *corev1.Node, s onDisk, u *update, next *content) (time.Duration, error) {
	p, root, err := d.plan(ctx, s, u, next)
	if err != nil {
		return 0, err
	}
	cc, err := d.controllerConfig(ctx)
	if err != nil {
		return 0, err
	}
	if p.drain && !singleNode(n, cc) && !drained(n, next.name) {
		return d.drain(ctx, n, u, next)
	}
	if err := d.working(ctx, n, nil); err != nil {
		return 0, err
	}
	auth, err := d.syncCertificates(ctx, cc)
	if err != nil {
		return 0, degraded(err)
	}
	if p.os && u.Root != root.Image && u.Root != "" {
		if wait, err := d.pullImage(ctx, n, u.Root, auth); err != nil || wait > 0 {
			return wait, err
		}
	}
	end, err := d.beginOperation(ctx, n, "update to "+next.name)
	if err != nil {
		return 0, err
	}
	defer end()
	if u.Phase != applying {
		u.Phase = applying
		if err := d.record(u); err != nil {
			return 0, degraded(err)
		}
	}
	if err := d.apply(ctx, s, u, next, p); err != nil {
		return 0, degraded(err)
	}
	var facts []fact
	if isDrain(n) {
		facts = append(facts, yes(mcv1.MachineConfigNodeUpdateCordoned, "the node is cordoned"), yes(mcv1.MachineConfigNodeUpdateDrained, "the node is drained"))
	}
	if p.os && u.Root != root.Image && u.Root != "" {
		facts = append(facts, yes(mcv1.MachineConfigNodeImagePulledFromRegistry, "the image was pulled and verified"))
	}
	if p.write {
		facts = append(facts, yes(mcv1.MachineConfigNodeUpdateFiles, "files and units are written"))
	} else {
		facts = append(facts, fact{mcv1.MachineConfigNodeUpdateFiles, false, "Skipped", "the image carries files and units: the daemon writes none"})
	}
	if p.os {
		facts = append(facts, yes(mcv1.MachineConfigNodeUpdateOS, "the next boot has the root"))
	}
	facts = append(facts, yes(mcv1.MachineConfigNodeUpdateFilesAndOS, "all of the configuration is applied"), yes(mcv1.MachineConfigNodeUpdateExecuted, "the configuration is applied"))
	if err := d.progress(ctx, n, facts...); err != nil {
		d.report(err) // the node goes on without the report
	}
	end()
	if u.Phase == booting {
		if s, err = d.readState(); err != nil {
			return 0, degraded(err)
		}
		return d.boot(ctx, n, s, u, next)
	}
	return d.finish(ctx, n, s, u, next)
}

// singleNode reports whether the cluster has one node for its control plane: nothing could take
// the pods of a drain.
func singleNode(n *corev1.Node, cc *mcv1.ControllerConfig) bool {
	if n.Annotations["machineconfiguration.openshift.io/controlPlaneTopology"] == string(configv1.SingleReplicaTopologyMode) {
		return true
	}
	return cc != nil && cc.Spec.Infra != nil && cc.Spec.Infra.Status.ControlPlaneTopology == configv1.SingleReplicaTopologyMode
}

// drain requests the drain of the node from the controller, and waits for it.
func (d *daemon) drain(ctx context.Context, n *corev1.Node, u *update, next *content) (time.Duration, error) {
	want := machineconfig.DrainVerb + "-" + next.name
	if n.Annotations[machineconfig.DesiredDrain] != want || u.Since.IsZero() {
		u.Since = d.Clock.Now()
		if err := d.record(u); err != nil {
			return 0, degraded(err)
		}
	}
	if err := d.working(ctx, n, map[string]string{machineconfig.DesiredDrain: want}); err != nil {
		return 0, err
	}
	if d.Clock.Now().Sub(u.Since) >= drainTimeout {
		return 0, &failure{machineconfig.Degraded, fmt.Errorf("failed to drain node: %s after 1 hour. Please see machine-config-controller logs for more information", d.Node), drainPoll}
	}
	return drainPoll, nil
}

// beginOperation begins the operation on the host, after those of other agents.
func (d *daemon) beginOperation(ctx context.Context, n *corev1.Node, name string) (end func(), err error) {
	o := broker.Operation{Family: broker.MachineConfig, Name: name}
	end, err = d.Broker.Try(o)
	if blocked := new(broker.BlockedError); !errors.As(err, &blocked) {
		return end, err
	}
	if err := d.working(ctx, n, map[string]string{machineconfig.Reason: err.Error()}); err != nil {
		return nil, err
	}
	d.leave() // the operation that blocks may need time
	defer func() { d.leave = d.Enter() }()
	return d.Broker.Begin(ctx, o)
}

// apply writes what the plan says, and makes the configuration the current one. After a failure
// the present root is as it was, and none is staged.
func (d *daemon) apply(ctx context.Context, s onDisk, u *update, next *content, p plan) error {
	w := &writer{System: d.System, local: p.os}
	err := func() error {
		if p.write {
			if err := d.write(ctx, w, s.config, next, u.Abandoned); err != nil {
				return err
			}
		}
		if err := w.writeKeys(ctx, p, s.config, next); err != nil {
			return err
		}
		if p.os {
			if err := d.stage(ctx, s, u, next); err != nil {
				return err
			}
		}
		if err := d.act(ctx, p); err != nil {
			return err
		}
		boot, err := d.System.Boot()
		if err != nil {
			return err
		}
		if u.Phase = finishing; p.reboot {
			u.Phase, u.Boot = booting, boot.ID
		}
		u.Drained, u.Since = p.drain, time.Time{}
		if err := d.record(u); err != nil {
			return err
		}
		return d.commit(u)
	}()
	if err == nil {
		return nil
	}
	u.Phase = applying
	undo := []error{w.rollback()}
	if p.os {
		undo = append(undo, d.OS.Unstage(context.WithoutCancel(ctx)))
	}
	undo = append(undo, d.record(u))
	if failed := errors.Join(undo...); failed != nil {
		return fmt.Errorf("%w; and the rollback failed: %w", err, failed)
	}
	return err
}

// stage makes the next root. When the image is the only carrier, local copies of the
// configuration's files must not hide its own.
func (d *daemon) stage(ctx context.Context, s onDisk, u *update, next *content) error {
	if extensions := next.spec.Extensions; u.Image == "" && (len(extensions) > 0 || next.kernelType() != "default") {
		return fmt.Errorf("extensions %v and kernelType %s need an image that has them: create a MachineOSConfig for the pool", extensions, next.kernelType())
	}
	r := deployment.Next{Image: u.Root, Remove: s.config.arguments(), Add: next.arguments()}
	if u.Skip {
		r.Drop = slices.Concat(s.config.paths(), next.paths(), u.Abandoned)
		slices.Sort(r.Drop)
		r.Drop = slices.Compact(r.Drop)
	}
	return d.OS.Stage(ctx, r)
}

// act performs the actions of a change that needs no reboot.
func (d *daemon) act(ctx context.Context, p plan) error {
	verbs := map[opv1.NodeDisruptionPolicyStatusActionType]string{
		opv1.ReloadStatusAction: "reload", opv1.RestartStatusAction: "restart", opv1.DaemonReloadStatusAction: "daemon-reload",
	}
	for _, a := range p.actions {
		args := []string{verbs[a.kind]}
		if a.service != "" {
			args = append(args, a.service)
		}
		if err := systemctl(ctx, d.System, args...); err != nil {
			return err
		}
	}
	return nil
}

// boot requests the reboot of an update that is written, and checks the root that has booted.
func (d *daemon) boot(ctx context.Context, n *corev1.Node, s onDisk, u *update, next *content) (time.Duration, error) {
	if s.config.name != next.name || s.image != u.Image { // the daemon was killed before that
		if err := d.commit(u); err != nil {
			return 0, degraded(err)
		}
	}
	booted, err := d.System.Boot()
	if err != nil {
		return 0, degraded(err)
	}
	if booted.ID == u.Boot {
		if err := d.working(ctx, n, map[string]string{postConfigAction: "Rebooting"}); err != nil {
			return 0, err
		}
		err := d.Broker.Reboot(ctx, broker.Operation{Family: broker.MachineConfig, Name: "reboot into " + next.name})
		if err != nil && !errors.As(err, new(*broker.BlockedError)) {
			return 0, degraded(fmt.Errorf("reboot into %s: %w", next.name, err))
		}
		return d.Poll, nil
	}
	root, err := d.OS.Booted(ctx)
	if err != nil {
		return 0, degraded(err)
	}
	if root.Image != u.Root {
		return 0, &failure{machineconfig.Degraded, fmt.Errorf("unexpected on-disk state validating against %s: expected target osImageURL %q, have %q", next.name, u.Root, root.Image), d.Poll}
	}
	left := slices.Clone(root.Arguments)
	for _, a := range next.arguments() {
		i := slices.Index(left, a)
		if i < 0 {
			return 0, &failure{machineconfig.Degraded, fmt.Errorf("unexpected on-disk state validating against %s: missing expected kernel arguments: [%s]", next.name, a), d.Poll}
		}
		left = slices.Delete(left, i, i+1)
	}
	if !u.Skip && !u.Again && validate(d.System, next, ofCertificates) != nil {
		// Files that the image before had, too, went with it: rpm-ostree takes them for
		// unchanged. They are written once more, which costs another boot.
		u.Again, u.Forced, u.Phase = true, true, applying
		if err := d.record(u); err != nil {
			return 0, degraded(err)
		}
		return 0, nil
	}
	return d.finish(ctx, n, s, u, next)
}

// finish checks the files of an update, has the node uncordoned, and reports that it is done.
func (d *daemon) finish(ctx context.Context, n *corev1.Node, s onDisk, u *update, next *content) (time.Duration, error) {
	if err := validate(d.System, next, ofCertificates); err != nil {
		return 0, &failure{machineconfig.Degraded, fmt.Errorf("unexpected on-disk state validating against %s: %w", next.name, err), d.Poll}
	}
	if s.config.name != next.name || s.image != u.Image {
		if err := d.commit(u); err != nil {
			return 0, degraded(err)
		}
	}
	if want := n.Annotations[machineconfig.DesiredDrain]; isDrain(n) || want != "" && want != n.Annotations[machineconfig.LastAppliedDrain] {
		return d.uncordon(ctx, n, u, next)
	}
	facts := []fact{}
	if u.Boot != "" {
		facts = append(facts, yes(mcv1.MachineConfigNodeUpdateRebooted, "the node has booted"))
	}
	facts = append(facts, yes(mcv1.MachineConfigNodeUpdatePostActionComplete, "all actions of the change are done"))
	if u.Drained {
		facts = append(facts, yes(mcv1.MachineConfigNodeUpdateUncordoned, "the node takes pods"))
		facts = append(facts, fact{mcv1.MachineConfigNodeUpdateCordoned, false, "Uncordoned", "the node takes pods"})
	}
	facts = append(facts, yes(mcv1.MachineConfigNodeResumed, "the node works"), yes(mcv1.MachineConfigNodeUpdateComplete, "the update is complete"), yes(mcv1.MachineConfigNodeUpdated, "the node has "+next.name))
	unapplied, err := d.unapplied(next)
	if err != nil {
		return 0, degraded(err)
	}
	if err := d.done(ctx, n, next.name, u.Image, facts, &unapplied); err != nil {
		return 0, err
	}
	if err := d.System.Remove(updateState); err != nil {
		return 0, degraded(err)
	}
	return 0, nil // the next look watches the files
}

// uncordon reports that the node has its configuration, requests in the same patch that it is
// uncordoned, and waits for that.
func (d *daemon) uncordon(ctx context.Context, n *corev1.Node, u *update, next *content) (time.Duration, error) {
	want := machineconfig.UncordonVerb + "-" + next.name
	if n.Annotations[machineconfig.DesiredDrain] != want || u.Since.IsZero() {
		u.Since = d.Clock.Now()
		if err := d.record(u); err != nil {
			return 0, degraded(err)
		}
	}
	late := d.Clock.Now().Sub(u.Since) >= uncordonTime
	values := map[string]string{}
	if !late {
		values = reached(n, next.name, u.Image)
	}
	values[machineconfig.DesiredDrain] = want
	if err := d.annotate(ctx, n, values); err != nil {
		return 0, err
	}
	if late {
		return 0, &failure{machineconfig.Degraded, fmt.Errorf("failed to uncordon node: %s after 10 minutes. Please see machine-config-controller logs for more information", d.Node), drainPoll}
	}
	return drainPoll, nil
}
