package rack

import (
	"context"
	"errors"
	"fmt"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/store"
)

// errReset cancels the work of a host that is reset to its profile.
var errReset = errors.New("the server is reset to its profile")

// ResetToProfile resets the host to what its profile says, with empty disks, as
// ResetHosts does in a rack that is not open. AC power is cut first, so that the system
// and the BMC stop; other hosts go on. Faults and quirks remain.
func (h *Host) ResetToProfile(ctx context.Context) error {
	if err := h.Apply(ctx, machine.CutAC{}); err != nil && !errors.Is(err, machine.ErrPower) { // it may be cut already
		return err
	}
	for {
		done, err := h.resetIdle()
		if done {
			return nil
		}
		if err == nil {
			pauseBriefly(ctx)
			err = context.Cause(ctx)
		}
		if err != nil {
			return errors.Join(err, h.Apply(context.WithoutCancel(ctx), machine.RestoreAC{}))
		}
	}
}

// resetIdle replaces the models of a host without AC power. It returns false while
// fetches and tasks of the BMC are under way, which it cancels, and while events of the
// machine are being handled: their handlers read the host's disks and media.
func (h *Host) resetIdle() (done bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, cancel := range h.running {
		cancel(errReset)
	}
	for _, f := range h.fetches {
		f.cancel(errReset)
	}
	if len(h.running)+len(h.fetches) > 0 || h.rack.delivery.busy(h) {
		return false, nil
	}
	was, name := h.state(), h.Name()
	m, b, err := h.newModels(name, nil)
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	keys, err := h.rack.store.Keys(store.Hosts, name+"/")
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, storageFull(err))
	}
	puts := make([]store.Put, 0, len(keys))
	for _, k := range keys { // a host without a stored state is as its profile says
		puts = append(puts, store.Put{Kind: store.Hosts, Key: k, Value: store.Gone})
	}
	now := h.Now()
	err = h.rack.save(now, puts...)
	if h.rack.reportSpace(err); err != nil {
		return false, fmt.Errorf("%s: %w", name, storageFull(err))
	}
	h.disks.Lock()
	defer h.disks.Unlock()
	h.volumes.close()
	h.removeContent()
	if was.BMC.Subscriptions != nil {
		for _, s := range was.BMC.Subscriptions.List {
			h.rack.poster.Forget(eventSource{h}, s.ID)
		}
	}
	// IPMI ends the sessions of a BMC that has come up since (IPMI v2.0 rev 1.1, §6.12).
	started := b.State()
	started.Life = &bmc.Life{Phase: bmc.Up, Up: now}
	b.Restore(started)
	h.machine, h.bmc = m, b
	h.machine.SetClientTime(h.ClientNow())
	h.bmc.SetClientTime(h.ClientNow())
	h.previousMachine.Store(nil)
	h.previousBMC.Store(nil)
	h.tokens.Store(nil)
	h.installedTLS.Store(nil)
	h.publish()
	if was.BMC.Net != nil {
		h.moveEndpoints()
	}
	h.schedule()
	for _, changed := range h.watchers {
		(*changed)()
	}
	h.rack.journal.Add(journal.Entry{At: now, Kind: journal.Control, Host: name, What: "host.reset"})
	return true, nil
}

// removeContent removes the files of a host's drives, virtual media and firmware
// updates. The caller holds h.disks.
func (h *Host) removeContent() {
	remove := func(what, name string, err error) {
		if err != nil {
			h.rack.log.Warn("file of a reset host not deleted", "host", h.Name(), what, name, "err", err)
		}
	}
	remove("directory", store.DisksDir, h.rack.store.RemoveDisks(h.Name()))
	for _, s := range h.BMC().Slots {
		remove("slot", s.ID, h.rack.store.RemoveMedia(h.Name(), s.ID))
	}
	for _, u := range h.Machine().Firmware.Updates() {
		if !u.Restore {
			remove("update", u.ID, h.rack.store.RemoveUpdate(h.Name(), u.ID))
		}
	}
}

// busy reports whether events of a host wait, or one is being handled.
func (d *eventDelivery) busy(h *Host) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, busy := d.queues[h]
	return busy && d.serving
}
