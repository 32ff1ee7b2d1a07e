package event

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// Change is one change of a host: the model's events, and the views before and
// after them.
type Change struct {
	Number uint64 // number of the event that reports it; it grows with each change
	At     time.Time
	// The views before and after the change.
	WasMachine, Machine *machine.View
	WasBMC, BMC         *bmc.View
	Events              []bmc.Event
}

// Delivery is a body to POST to the destination of a subscription.
type Delivery struct {
	Subscription string // EventDestination.Id
	At           time.Time
	Body         []byte
}

// record is one element of Event.Events before it is encoded (DSP2046, Event).
type record struct {
	at           time.Time
	message      message.Message
	kind         string          // Event.EventType
	origin       string          // URI in OriginOfCondition; "" none
	resourceType string          // type of that resource, without its version
	gone         bool            // the resource does not exist any longer
	log          string          // URI in LogEntry; "" none
	user         string          // Username: who caused it; "" nobody
	from         string          // address of that user's client
	lessSpecific bool            // another record of the change describes the same more closely
	subscription string          // ID of the only subscription that receives it; "" all
	submitted    resource.Object // properties of SubmitTestEvent, in place of all above but at
}

// records returns the event records of a change: those of the model's events
// first, then one for each resource that was created, changed or removed.
func (s *Notifier) records(h resource.Host, c Change) []record {
	was := &resource.Snapshot{Host: h, Dialect: h.Dialect(), Machine: c.WasMachine, BMC: c.WasBMC, Now: c.At.Truncate(time.Second)}
	is := &resource.Snapshot{Host: h, Dialect: h.Dialect(), Machine: c.Machine, BMC: c.BMC, Now: was.Now}
	var out []record
	for _, ev := range c.Events {
		if r, ok := s.modelRecord(was, is, ev); ok {
			out = append(out, r)
		}
	}
	reported := map[string]bool{} // origins
	for _, r := range out {
		reported[r.origin] = true
	}
	for _, r := range s.changes(was, is) {
		r.at = c.At
		r.lessSpecific = r.message.Key == message.ResourceChanged.Key && reported[r.origin]
		reported[r.origin] = true
		out = append(out, r)
	}
	return out
}

// taskMessages maps the state that a task has entered to its message.
var taskMessages = map[bmc.TaskState]message.Entry{
	bmc.TaskRunning:   message.TaskStarted,
	bmc.TaskCompleted: message.TaskCompletedOK,
	bmc.TaskException: message.TaskAborted,
	bmc.TaskCancelled: message.TaskCancelled,
	bmc.TaskSuspended: message.TaskPaused,
}

// modelRecord returns the record of an event of the model; false when the records
// of changed resources already cover the event.
func (s *Notifier) modelRecord(was, is *resource.Snapshot, ev bmc.Event) (record, bool) {
	r := record{at: ev.Time(), kind: resource.Other}
	switch ev := ev.(type) {
	case bmc.Logged:
		s.fillLogRecord(&r, was, is, ev.Entry, event.EventEntry)
	case bmc.Audited:
		if ev.Entry.Kind == event.RequestAudited { // the request's effect is reported
			return r, false
		}
		s.fillLogRecord(&r, was, is, ev.Entry, event.AuditEntry)
	case bmc.TaskChanged:
		entry, ok := taskMessages[ev.Task.State]
		if !ok {
			return r, false
		}
		if ev.Task.State == bmc.TaskRunning && ev.Task.Begun.Before(ev.At) {
			entry = message.TaskResumed
		}
		r.message, r.origin, r.kind = message.Fill(entry, ev.Task.ID), resource.TaskURI(ev.Task.ID), resource.StatusChange
	case bmc.Subscribed:
		r.message, r.origin, r.kind = message.ResourceCreated.With(), resource.SubscriptionsURI+"/"+ev.Subscription.ID, resource.ResourceAdded
	case bmc.Unsubscribed:
		r.message, r.origin, r.kind, r.gone = message.ResourceRemoved.With(), resource.SubscriptionsURI+"/"+ev.ID, resource.ResourceRemoved, true
	case bmc.HeartbeatDue:
		r.message, r.subscription = message.RedfishServiceFunctional.With(), ev.ID
	case bmc.TestEvent:
		r.submitted = ev.Fields
		r.message = message.Message{Severity: message.Severity(resource.Value(resource.Values(ev.Fields), "MessageSeverity", ""))}
		r.origin = resource.Value(resource.Values(ev.Fields), "OriginOfCondition", "")
		r.kind = resource.Value(resource.Values(ev.Fields), "EventType", resource.Other)
	default:
		return r, false
	}
	if r.message.Severity == message.Warning || r.message.Severity == message.Critical {
		r.kind = resource.Alert
	}
	if m := s.tree.Find(&url.URL{Path: r.origin}); m != nil {
		r.resourceType = resource.TypeName(m.Schema)
	}
	return r, true
}

// origin returns the URI of an event's subject. It looks the URI up in the
// snapshot before the change when the one after it has no such resource; gone
// reports that.
func (s *Notifier) origin(was, is *resource.Snapshot, of event.Subject) (uri string, gone bool) {
	if uri, ok := (resource.View{Dialect: is.Dialect, Machine: is.Machine, BMC: is.BMC}).OriginOfCondition(of); ok {
		return uri, false
	}
	uri, gone = resource.View{Dialect: was.Dialect, Machine: was.Machine, BMC: was.BMC}.OriginOfCondition(of)
	return uri, gone
}

// fillLogRecord sets the message, the user and the origin of a record from a log
// entry, and its link to the entry.
func (s *Notifier) fillLogRecord(r *record, was, is *resource.Snapshot, e bmc.Entry, in event.Part) {
	v, w := resource.View{Dialect: is.Dialect, Machine: is.Machine, BMC: is.BMC}, resource.EventMessages[e.Kind]
	r.message, r.user, r.from = v.EventMessage(e.Note), resource.ExpandArgument(w.User, e.Note), resource.ExpandArgument(w.From, e.Note)
	r.origin, r.gone = s.origin(was, is, e.Subject)
	r.log, _ = v.OriginOfCondition(event.Subject{Part: in, ID: strconv.FormatUint(e.ID, 10)})
}

// changes returns a record for each resource that differs between two snapshots of
// a host: created, removed, or changed in a property that is not volatile.
func (s *Notifier) changes(was, is *resource.Snapshot) []record {
	changed, vendor := resource.ChangedParts(was, is), s.vendors.Of(is.Dialect)
	var out []record
	for i := range s.tree.Rows {
		r := &s.tree.Rows[i]
		// A collection changes with its members, and a log entry repeats an event:
		// both have records already.
		if (r.DependsOn|vendor.DependsOn(r.Schema))&changed == 0 || r.Read == nil || r.NoEvents || resource.TypeName(r.Schema) == "LogEntry" {
			continue
		}
		for _, m := range s.tree.Instances(r, was, is) {
			out = append(out, s.change(m, was, is)...)
		}
	}
	for _, m := range vendor.OEMInstances(changed, was, is) {
		if !strings.HasSuffix(resource.TypeName(m.Schema), "Collection") {
			out = append(out, s.change(m, was, is)...)
		}
	}
	return out
}

// change returns the records of a resource that differs between two snapshots.
func (s *Notifier) change(m *resource.Match, was, is *resource.Snapshot) (out []record) {
	at := record{origin: m.URI, resourceType: resource.TypeName(m.Schema)}
	old, now := s.renderer.Representation(m, was), s.renderer.Representation(m, is)
	switch {
	case old == nil && now == nil:
	case old == nil:
		at.message, at.kind = message.ResourceCreated.With(), resource.ResourceAdded
		out = append(out, at)
	case now == nil:
		at.message, at.kind, at.gone = message.ResourceRemoved.With(), resource.ResourceRemoved, true
		out = append(out, at)
	case now.Tag() != old.Tag(), now.Tag() == "" && !bytes.Equal(now.Body, old.Body): // a vendor without ETags
		out = append(out, statusChanges(at, old, now)...)
		at.message, at.kind = message.ResourceChanged.With(), resource.ResourceUpdated
		out = append(out, at)
	}
	return out
}

// health maps the health that a resource has entered to its message.
var health = map[string]message.Entry{
	"OK":       message.ResourceStatusChangedOK,
	"Warning":  message.ResourceStatusChangedWarning,
	"Critical": message.ResourceStatusChangedCritical,
}

// statusChanges returns a record for the health and one for the state of a resource
// where two representations differ in them.
func statusChanges(at record, was, is *render.Representation) []record {
	type resourceStatus struct {
		Name   string
		Status struct{ State, Health string }
	}
	var a, b resourceStatus
	if json.Unmarshal(was.Body, &a) != nil || json.Unmarshal(is.Body, &b) != nil {
		return nil // a representation without Status
	}
	at.kind = resource.StatusChange
	var out []record
	if entry, ok := health[b.Status.Health]; ok && a.Status.Health != b.Status.Health {
		at.message = message.Fill(entry, b.Name, b.Status.Health)
		out = append(out, at)
	}
	if b.Status.State != "" && a.Status.State != b.Status.State {
		at.message = message.ResourceStateChanged.With(b.Name, b.Status.State)
		out = append(out, at)
	}
	return out
}
