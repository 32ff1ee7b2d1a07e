package host

import (
	"context"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// performers maps the actions of package phase to functions. Each can be repeated
// safely.
var performers = map[phase.Action]func(*Reconciler, context.Context, *metal3.BareMetalHost, *observation) error{
	phase.PowerOn:  (*Reconciler).powerOn,
	phase.PowerOff: (*Reconciler).powerOff,
	phase.SoftOff:  (*Reconciler).powerSoftOff,
	phase.InsertMedia: func(r *Reconciler, ctx context.Context, _ *metal3.BareMetalHost, o *observation) error {
		return o.client.InsertMedia(ctx, r.Boot.Media(o.boot)...)
	},
	phase.EjectMedia: func(_ *Reconciler, ctx context.Context, _ *metal3.BareMetalHost, o *observation) error {
		return o.client.EjectMedia(ctx)
	},
	phase.BootCD: func(_ *Reconciler, ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
		return o.client.SetBoot(ctx, bmc.Boot{Device: bmc.BootCD, Mode: agentMode(h)})
	},
	phase.BootNet: (*Reconciler).bootNetwork,
	phase.BootDisk: func(_ *Reconciler, ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
		return o.client.SetBoot(ctx, bmc.Boot{Device: bmc.BootDisk, Mode: bmc.BootMode(h.Status.Provisioning.BootMode), Persistent: true})
	},
	phase.BootAny: func(_ *Reconciler, ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
		return o.client.SetBoot(ctx, bmc.Boot{Mode: agentMode(h)})
	},
	phase.OfferInspect: func(r *Reconciler, _ context.Context, h *metal3.BareMetalHost, o *observation) error {
		return r.offer(h, o, job.Job{ID: jobID(o.boot, jobInspect), Kind: job.Inventory, Inspect: &job.InspectSpec{ListenSeconds: listenSeconds}})
	},
	phase.OfferClean: func(r *Reconciler, _ context.Context, h *metal3.BareMetalHost, o *observation) error {
		return r.offer(h, o, job.Job{ID: o.cleanJobID, Kind: job.Clean, Clean: &job.CleanSpec{Arrays: arrays(h)}})
	},
	phase.OfferWrite: (*Reconciler).offerWrite,
	phase.InsertLive: (*Reconciler).insertLive,
	phase.BootLive:   (*Reconciler).bootLive,
	phase.Release:    (*Reconciler).release,
	phase.EndReboot:  (*Reconciler).endReboot,
	phase.BeginAgain: (*Reconciler).endReboot,
	phase.Restart: func(r *Reconciler, ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
		if err := o.client.SetPower(ctx, bmc.PowerReset); err != nil {
			return fmt.Errorf("Reboot operation failed: %w", err) // as the other power operations (B-124)
		}
		return r.endReboot(ctx, h, o)
	},
	phase.AttachData:  (*Reconciler).attachData,
	phase.DetachData:  (*Reconciler).detachData,
	phase.RestartBoot: (*Reconciler).restartBoot,
	phase.BeginPart:   (*Reconciler).stepPart,
	phase.StepPart:    (*Reconciler).stepPart,
	phase.Detach: func(r *Reconciler, _ context.Context, h *metal3.BareMetalHost, _ *observation) error {
		r.forget(h)
		return nil
	},

	// Recording these completes them.
	phase.StoreHardware: nil,
	phase.Attach:        nil,
	phase.EndOperation:  nil,
	phase.BeginService:  nil,
	phase.EndService:    nil,
	phase.None:          nil,
}

// agentMode returns the boot mode of the agent: never secure boot, which is for
// the image (B-140).
func agentMode(h *metal3.BareMetalHost) bmc.BootMode {
	if m := bmc.BootMode(h.Status.Provisioning.BootMode); m != bmc.UEFISecure {
		return m
	}
	return bmc.UEFI
}

func (r *Reconciler) perform(ctx context.Context, h *metal3.BareMetalHost, o *observation, a phase.Action) error {
	do, known := performers[a]
	if !known {
		return fmt.Errorf("host: no action %q", a)
	}
	if do == nil {
		return nil
	}
	return do(r, ctx, h, o)
}

// offer offers a job to the agent of the boot that the pass has begun with. It does
// nothing if the status that the pass has written ends that boot: the next pass offers the
// job to the agent of the next boot.
func (r *Reconciler) offer(h *metal3.BareMetalHost, o *observation, j job.Job) error {
	if now, _ := currentBoot(h); now != o.boot {
		return nil
	}
	return r.Inband.Offer(o.boot, j)
}

// arrays returns how cleaning treats software RAID: a host keeps the arrays
// that it was prepared with until deprovisioning, which deletes them in any case
// (B-170).
func arrays(h *metal3.BareMetalHost) job.Arrays {
	some, _ := softRAID(h)
	switch {
	case some && h.Status.Provisioning.State == metal3.StateProvisioning:
		return job.ArraysPreserved
	case h.Spec.AutomatedCleaningMode == metal3.CleaningModeDisabled:
		return job.ArraysOnly
	}
	return job.ArraysDeleted
}

func (r *Reconciler) powerOn(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	if err := o.client.SetPower(ctx, bmc.PowerOn); err != nil {
		return fmt.Errorf("PowerOn operation failed: %w", err)
	}
	if !r.requestPower(h.UID, bmc.On) {
		return nil
	}
	r.metrics.power.WithLabelValues(h.Namespace, h.Name, "on").Inc()
	r.announcePower(ctx, h, "PowerOn", "Host powered on")
	return nil
}

func (r *Reconciler) powerOff(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	if err := o.client.SetPower(ctx, bmc.PowerOff); err != nil {
		if _, asked := r.askedOff(h.UID); asked { // B-123
			err = fmt.Errorf("Continuing with hard poweroff after soft poweroff fails. More details: %w", err) // upstream's text
		}
		return fmt.Errorf("PowerOff operation failed: %w", err)
	}
	if !r.requestPower(h.UID, bmc.Off) {
		return nil
	}
	r.metrics.power.WithLabelValues(h.Namespace, h.Name, "off").Inc()
	r.announcePower(ctx, h, "PowerOff", "Host powered off")
	return nil
}

// announcePower publishes the event of a power change requested by the user or by
// deletion (B-122). Power changes within an operation are covered by the
// operation's own events.
func (r *Reconciler) announcePower(ctx context.Context, h *metal3.BareMetalHost, reason, message string) {
	if s := h.Status.Provisioning.State; polled[s] || s == metal3.StatePoweringOffBeforeDelete {
		r.publish(ctx, h, eventList{{reason, message}})
	}
}

// powerSoftOff asks the operating system to shut down. If the BMC cannot ask it,
// the power is cut at once (B-123).
func (r *Reconciler) powerSoftOff(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	now := r.Clock.Now()
	r.memory.update(h.UID, func(m *hostMemory) { m.softOff = &now })
	if err := o.client.SetPower(ctx, bmc.PowerSoftOff); err != nil {
		return r.powerOff(ctx, h, o)
	}
	r.metrics.power.WithLabelValues(h.Namespace, h.Name, "off").Inc()
	r.announcePower(ctx, h, "PowerOff", "Host soft powered off")
	return nil
}

// forget drops everything that the controller holds for a server: its agent's
// jobs, its boots, its memory and that of the parts.
func (r *Reconciler) forget(h *metal3.BareMetalHost) {
	r.Inband.Forget(string(h.UID))
	r.Boot.Forget(string(h.UID))
	r.memory.forget(h.UID)
	for _, p := range r.Parts {
		if f, ok := p.(Forgetter); ok {
			f.Forget(h.UID)
		}
	}
}

// endReboot removes the plain reboot annotation when the reboot is done (B-95).
func (r *Reconciler) endReboot(ctx context.Context, h *metal3.BareMetalHost, _ *observation) error {
	if _, ok := h.Annotations[metal3.RebootAnnotationPrefix]; !ok {
		return nil
	}
	delete(h.Annotations, metal3.RebootAnnotationPrefix)
	if err := r.Client.Update(ctx, h); err != nil {
		return err
	}
	r.read.Wrote(h)
	return nil
}

// release removes the finalizers of the object and of the objects that belong to it
// (B-71).
func (r *Reconciler) release(ctx context.Context, h *metal3.BareMetalHost, _ *observation) error {
	r.forget(h)
	r.read.Forget(h)
	for _, name := range hostSecrets(h) {
		if err := r.releaseSecret(ctx, h, name); err != nil {
			return err
		}
	}
	if err := r.releaseHardware(ctx, h); err != nil {
		return err
	}
	if err := r.releaseImage(ctx, h); err != nil {
		return err
	}
	if !controllerutil.RemoveFinalizer(h, metal3.BareMetalHostFinalizer) {
		return nil
	}
	return client.IgnoreNotFound(r.Client.Update(ctx, h))
}
