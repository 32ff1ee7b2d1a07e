package rack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/rack/space"
	redfishevent "github.com/metalab-dev/metalab/emulator/redfish/event"
)

// Every change of a host is a step: begin advances the models to the current time,
// the caller applies its command to one of them, and commit carries out what
// follows. This file is the whole of it, in the order in which it happens.

// errBMCDown cancels the work of a BMC that goes down.
var errBMCDown = errors.New("the BMC went down")

// step is one step of a host: the state that it began with, and the events of the
// models in it.
type step struct {
	now     time.Time
	was     hostState       // when the step began
	is      hostState       // set by commit
	overdue bool            // something had become due before the step
	machine []machine.Event // events of the machine, in order
	bmc     []bmc.Event     // events of the BMC, in order

	heardByBMC   int               // how many of machine the BMC knows already
	released     []machine.Event   // that a fault withheld from the BMC until now
	auditContext *bmc.AuditContext // audit log entry of the request that asked for the step; nil for none
	refusable    bool              // it is refused when little space is left
	auditEntry   uint64            // ID of the audit log's entry for that request; 0 for none
	eventNumber  uint64            // number of the Redfish event of the step; 0 when nobody subscribes
	wasMachine   *machine.View     // views from before the step
	wasBMC       *bmc.View
}

// newStep returns a step at the current time, which the models get to know. The
// caller holds h.mu.
func (h *Host) newStep() *step {
	client := h.ClientNow()
	h.machine.SetClientTime(client)
	h.bmc.SetClientTime(client)
	st := &step{now: h.Now(), was: h.state()}
	st.overdue = due(h.machine, st.now, client) || due(h.bmc, st.now, client)
	return st
}

// begin starts a step. It advances the models to the current time first. The
// caller holds h.mu.
func (h *Host) begin() *step {
	st := h.newStep()
	if st.overdue {
		st.machine = h.machine.Advance(st.now)
		st.bmc = h.bmc.Advance(st.now)
	}
	return st
}

// beginRequest starts a step for a request. The audit log gets an entry for it when
// the context carries one.
func (h *Host) beginRequest(ctx context.Context) *step {
	st := h.begin()
	st.auditContext = bmc.AuditOf(ctx)
	st.refusable = st.auditContext != nil
	return st
}

// deadlines is a model with deadlines in lab time and in client time.
type deadlines interface {
	Deadline() (time.Time, bool)
	ClientDeadline() (time.Time, bool)
}

// due reports whether a model must be advanced.
func due(m deadlines, now, client time.Time) bool {
	if at, ok := m.Deadline(); ok && !now.Before(at) {
		return true
	}
	at, ok := m.ClientDeadline()
	return ok && !client.Before(at)
}

func (h *Host) state() hostState {
	return hostState{Machine: h.machine.State(), BMC: h.bmc.State()}
}

// commit ends a step. It completes the step (the bytes on the drives, the audit
// entry, what the BMC makes of the machine's events), stores it, publishes the new
// views, and only then tells anybody: a step that cannot be stored has not
// happened. The caller holds h.mu.
func (h *Host) commit(st *step) error {
	if st.refusable {
		if err := h.rack.space.Writable(); err != nil {
			h.rollBack(st)
			return fmt.Errorf("%s: %w: %w", h.Name(), bmc.ErrStorageFull, err)
		}
	}
	unlockDrives, err := h.workOnDrives(st)
	defer unlockDrives()
	h.complete(st)
	if err == nil {
		err = h.save(st)
	}
	if err != nil {
		h.rollBack(st)
		return err
	}
	h.publishStep(st)      // what services show
	h.notifyWatchers(st)   // consoles
	h.removeDriveFiles(st) // files of drives that are gone
	h.forgetImages(st)     // images of updates that have ended
	unlockDrives()
	h.recordEvents(st)         // in the journal
	h.closeBootGate()          // a system that lost its machine loses its drives
	h.schedule()               // the next deadlines
	h.applyNetworkSettings(st) // listeners, and connections to old addresses
	h.applyEffects(st)         // media, jobs and connections, by events of the BMC
	h.notifySubscribers(st)    // Redfish event subscribers, IPMI alerts
	h.rack.delivery.push(h, externalEvents(st.machine))
	return nil
}

// complete adds to a step what follows from it within the two models.
func (h *Host) complete(st *step) {
	st.auditEntry = h.appendAuditEntry(st)
	h.informBMC(st)
	h.notifyBMCReset(st)
	st.eventNumber, _ = h.bmc.NextEvent()
	st.wasMachine, st.wasBMC = h.Machine(), h.BMC()
	st.is = h.state()
}

// appendAuditEntry writes the request that a step is for into the audit log, once,
// and returns the entry's ID. It returns 0 when there is nothing to write.
func (h *Host) appendAuditEntry(st *step) uint64 {
	if st.auditContext == nil || st.auditContext.ID != 0 {
		return 0
	}
	evs, err := h.bmc.Apply(st.now, bmc.AddAuditRecord{AuditRecord: st.auditContext.Record})
	if err != nil {
		h.rack.log.Error("request not audited", "host", h.Name(), "err", err)
	}
	st.bmc = append(st.bmc, evs...)
	for _, ev := range evs {
		if audited, ok := ev.(bmc.Audited); ok {
			return audited.Entry.ID
		}
	}
	return 0 // the log is full
}

// informBMC lets the BMC react to the machine's events, except to those that a
// fault withholds from it.
func (h *Host) informBMC(st *step) {
	heard := append(h.withoutHeldTasks(st.machine[st.heardByBMC:]), st.released...)
	st.bmc = append(st.bmc, h.bmc.ObserveMachine(st.now, heard)...)
}

// notifyBMCReset tells the machine when its BMC has gone down to restart.
func (h *Host) notifyBMCReset(st *step) {
	for _, ev := range st.bmc {
		if l, ok := ev.(bmc.LifeChanged); !ok || l.Phase != bmc.Offline {
			continue
		}
		if _, err := h.machine.Apply(st.now, machine.BMCReset{}); err != nil {
			panic(err) // the machine accepts this command in every state
		}
	}
}

// save stores the parts of the host's state that the step has changed.
func (h *Host) save(st *step) error {
	puts := st.is.changedParts(h.Name(), &st.was)
	if len(puts) == 0 {
		return nil
	}
	err := h.rack.save(st.now, puts...)
	h.rack.reportSpace(err)
	if space.Full(err) {
		return fmt.Errorf("%s: %w: %w", h.Name(), bmc.ErrStorageFull, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", h.Name(), err)
	}
	return nil
}

// rollBack undoes a step that could not be stored.
func (h *Host) rollBack(st *step) {
	h.machine.Restore(st.was.Machine)
	h.bmc.Restore(st.was.BMC)
	h.publish()
	h.schedule()
}

// publish replaces the views that services see.
func (h *Host) publish() {
	h.machineView.Store(new(h.machine.View()))
	h.bmcView.Store(new(h.bmc.View()))
}

// publishStep replaces the views that the step has changed, and keeps the old
// ones for faults that serve stale data.
func (h *Host) publishStep(st *step) {
	if st.is.Machine != st.was.Machine {
		h.previousMachine.Store(st.wasMachine)
		h.machineView.Store(new(h.machine.View()))
	}
	if st.is.BMC != st.was.BMC {
		h.previousBMC.Store(st.wasBMC)
	}
	if st.auditEntry != 0 {
		st.auditContext.ID = st.auditEntry
	}
	h.bmcView.Store(new(h.bmc.View())) // always: it shows more than the stored state
}

// closeBootGate takes the drives from a system whose boot is over.
func (h *Host) closeBootGate() {
	if os := h.Machine().OS; h.bootGate != nil && (os == nil || os.Boot != h.bootGate.boot) {
		h.bootGate.close()
		h.bootGate = nil
	}
}

// schedule sets the host's deadlines in the rack's schedules.
func (h *Host) schedule() {
	at, ok := h.machine.Deadline()
	if soon, awaited := h.bmc.AwaitedDeadline(); awaited && (!ok || soon.Before(at)) {
		at, ok = soon, true
	}
	h.rack.machines.set(&h.machineDue, at, ok)
	at, ok = h.bmc.Deadline()
	h.rack.bmcs.set(&h.bmcDue, at, ok)
	at, ok = h.machine.ClientDeadline()
	if soon, waits := h.bmc.ClientDeadline(); waits && (!ok || soon.Before(at)) {
		at, ok = soon, true
	}
	h.rack.clients.set(&h.clientDue, at, ok)
}

// applyNetworkSettings moves the BMC's endpoints when its network settings have
// changed.
func (h *Host) applyNetworkSettings(st *step) {
	if st.is.BMC.Net != st.was.BMC.Net {
		h.moveEndpoints()
	}
}

// applyEffects does outside of the models what the BMC's events ask for: it removes
// ejected media, runs jobs that are due, and ends the work and the connections of a
// BMC that goes down.
func (h *Host) applyEffects(st *step) {
	for _, ev := range st.bmc {
		switch ev := ev.(type) {
		case bmc.MediaEjected:
			h.mediaEjected(ev.Slot)
		case bmc.JobDue:
			h.runJob(ev.Job)
		case bmc.LifeChanged:
			if ev.Phase == bmc.Offline || ev.Phase == bmc.NoPower {
				for _, cancel := range h.running {
					cancel(errBMCDown)
				}
				h.rack.connections.ResetAt(h.index, ev.Phase == bmc.Offline, func(netip.AddrPort) bool { return true })
			}
		}
	}
}

// notifySubscribers gives the step to the event service of Redfish, which makes
// the events of it, posts those, and gives the BMC's events to IPMI, which sends
// alerts.
func (h *Host) notifySubscribers(st *step) {
	if st.eventNumber > 0 && h.rack.service != nil {
		evs := st.bmc
		for _, ev := range st.machine {
			if ev, ok := ev.(machine.MetricReportReady); ok {
				evs = append(evs[:len(evs):len(evs)], ev)
			}
		}
		letters := h.rack.service.Notify(h, redfishevent.Change{
			Number: st.eventNumber, At: st.now, WasMachine: st.wasMachine, Machine: h.Machine(), WasBMC: st.wasBMC, BMC: h.BMC(), Events: evs,
		})
		for _, l := range letters {
			if !h.BMC().Life.Serves() { // a BMC that is down sends nothing
				break
			}
			h.rack.poster.Post(eventSource{h}, l.Subscription, l.At, l.Body)
		}
	}
	if h.rack.ipmi != nil {
		h.rack.ipmi.FilterEvents(h, st.now, st.bmc)
	}
	for _, ev := range st.bmc {
		switch ev := ev.(type) {
		case bmc.SubscriptionResumed:
			h.rack.poster.Resume(eventSource{h}, ev.ID, ev.Since)
		case bmc.Unsubscribed:
			h.rack.poster.Forget(eventSource{h}, ev.ID)
		}
	}
}

// externalEvents returns the events of a machine that Config.Events gets: all but
// those that are meant for its BMC alone.
func externalEvents(evs []machine.Event) []machine.Event {
	var out []machine.Event
	for _, ev := range evs {
		switch ev.(type) {
		case event.Note, event.TaskMessage, event.Boot, event.TaskRunning, event.TaskWaiting, event.TaskPaused, event.TaskDone, event.Restart, storage.Work, machine.MetricReportReady:
		default:
			out = append(out, ev)
		}
	}
	return out
}
