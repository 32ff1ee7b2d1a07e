package rack

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/ipmi"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
	"github.com/metalab-dev/metalab/emulator/rack/exchange"
	"github.com/metalab-dev/metalab/emulator/rack/faults"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/redfish"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// recordRequest writes a request that the Redfish service has answered into the
// journal. A request that a fault rule has hit has an entry already, which gets what
// the service knows.
func (l *Rack) recordRequest(ctx context.Context, e redfish.Entry) {
	exchange.Note(ctx, e.At, e.Status)
	if l.faults.Has(fault.Request) {
		if entry := faults.Entry(ctx); entry != nil {
			entry.User, entry.Session, entry.In = e.User, e.Session, e.In
			return
		}
	}
	h := hostOfEntry(e.Host)
	l.metrics.count(h.index, h.Dialect().Name, e.Method, e.Status, e.Took, e.In, e.Out)
	l.journal.Add(journal.Entry{
		At: e.At, Host: h.Name(), Kind: journal.Request, From: e.From, Method: e.Method, Path: e.Path, Status: e.Status,
		User: e.User, Session: e.Session, Took: fault.Duration{Duration: e.Took}, In: e.In, Out: e.Out,
	})
}

// recordCommand writes an IPMI command into the journal.
func (l *Rack) recordCommand(e ipmi.Entry) {
	name := e.Command
	if name == "" {
		name = fmt.Sprintf("%02X/%02X", e.NetFn, e.Cmd)
	}
	if h, ok := e.Host.(*Host); ok {
		l.metrics.kinds.add(RequestKind{Dialect: h.Dialect().Name, Command: true, Method: cmp.Or(e.Command, otherCommands), Code: int(e.Code)})
		l.metrics.sessions.note(h.index, e.Session)
	}
	entry := journal.Entry{
		At: e.At, Host: e.Host.Name(), Kind: journal.Request, From: e.From.Addr().Unmap().String(), Method: "IPMI", Path: name,
		Status: int(e.Code), User: e.User,
	}
	entry.Took.Duration = e.Took
	if e.Session != 0 {
		entry.Session = fmt.Sprint(e.Session) // not the IDs on the wire, which are random
	}
	l.journal.Add(entry)
}

// hostOfEntry returns the rack's host for one that a Redfish service knows.
func hostOfEntry(h resource.Host) *Host {
	if stale, ok := h.(previousHost); ok {
		return stale.Host
	}
	return h.(*Host)
}

// recordEvents writes the events of a step into the journal.
func (h *Host) recordEvents(st *step) {
	for _, evs := range [][]event.Event{st.machine, st.released, st.bmc} {
		for _, ev := range evs {
			what, text := describe(ev)
			if what != "" {
				h.rack.journal.Add(journal.Entry{At: ev.Time(), Host: h.Name(), Kind: journal.Event, What: what, Text: text})
			}
		}
	}
}

// RecordIgnored writes into the journal what the first boot of the host's operating system has left
// undone, and why.
func (h *Host) RecordIgnored(text string) {
	h.rack.journal.Add(journal.Entry{At: h.rack.clock.Now(), Host: h.Name(), Kind: journal.Event, What: "cloud-init.ignored", Text: text})
}

// RecordService writes into the journal what the system of the host says about one of its services.
func (h *Host) RecordService(text string) {
	h.rack.journal.Add(journal.Entry{At: h.rack.clock.Now(), Host: h.Name(), Kind: journal.Event, What: "os.service", Text: text})
}

// RecordCrash writes into the journal why the host's operating system has crashed.
func (h *Host) RecordCrash(cause string) {
	h.rack.journal.Add(journal.Entry{At: h.rack.clock.Now(), Host: h.Name(), Kind: journal.Event, What: "os.crashed", Text: cause})
}

// describe returns the kind and the text of an event's journal entry. The kind is ""
// for events that another event covers, or that the machine itself handles.
func describe(ev event.Event) (what, text string) {
	switch ev := ev.(type) {
	case bmc.Logged:
		return string(ev.Entry.Kind), ev.Entry.Text()
	case event.Note, event.Boot, event.TaskRunning, event.TaskWaiting, event.TaskPaused, event.TaskMessage, event.TaskDone, bmc.Audited, bmc.MediaRequested, storage.Work,
		bmc.CertificateRequested, bmc.RetryDelivery, bmc.HeartbeatDue, firmware.ResetWanted, thermal.Fed, thermal.Overheated:
		return "", ""
	case bmc.LifeChanged:
		return "bmc.life", string(ev.Phase)
	case bmc.AccountCreated:
		return "account.created", "account " + ev.ID
	case bmc.CertificateInstalled:
		return "certificate.installed", "certificate " + ev.ID
	case bmc.Subscribed:
		return "subscription.created", "subscription " + ev.Subscription.ID
	case bmc.TestEvent:
		return "event.test", ""
	case bmc.PostponeExpired:
		return "pef.postpone.expired", fmt.Sprintf("log entries from %d", ev.First)
	case bmc.JobCreated:
		return "job.created", "job " + ev.ID
	case bmc.JobDue:
		return "job.due", "job " + ev.Job.ID
	case bmc.Unsubscribed:
		return "subscription.ended", "subscription " + ev.ID
	case bmc.SubscriptionResumed:
		return "subscription.resumed", "subscription " + ev.ID
	case event.ACPower:
		return "mains", map[bool]string{true: "on", false: "off"}[ev.On]
	case machine.MetricReportReady:
		return "report.ready", "metric report " + ev.Report.ID
	case event.Restart:
		return "part.restarted", strings.TrimSpace(string(ev.Subject.Part) + " " + ev.Subject.ID)
	case machine.SystemPaused:
		return "os.halted", ev.OS.Name
	case machine.SystemResumed:
		return "os.resumed", ev.OS.Name
	case machine.PowerChanged:
		return "power.state", string(ev.Power)
	case machine.BootAttempted:
		return "boot.tried", sourceName(ev.Source)
	case machine.SystemStarted:
		return "os.started", fmt.Sprintf("%s from %s", ev.OS.Name, sourceName(ev.OS.Source))
	case machine.SystemStopping:
		return "os.stopping", ev.OS.Name
	case machine.SystemStopped:
		return "os.stopped", ev.OS.Name
	case bmc.SessionOpened:
		return "session.opened", fmt.Sprintf("session %s of %s", ev.Session.ID, ev.Session.User)
	case bmc.MediaInserted:
		return "media.inserted", ev.Slot
	case bmc.MediaEjected:
		return "media.ejected", ev.Slot
	case bmc.TaskOpened:
		return "task.opened", fmt.Sprintf("task %s: %s", ev.Task.ID, ev.Task.Name)
	case bmc.TaskChanged:
		return "task.changed", strings.TrimSuffix(fmt.Sprintf("task %s: %s: %s", ev.Task.ID, ev.Task.State, ev.Task.Fault), ": ")
	}
	// TestEveryEventHasAJournalName keeps this table complete.
	return fmt.Sprintf("%T", ev), ""
}

func sourceName(s machine.Source) string {
	if s.Device == "" {
		return string(s.Kind)
	}
	return string(s.Kind) + " " + s.Device
}
