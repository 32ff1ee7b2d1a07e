package event

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// Change is what has happened to a host at once, as its subscribers are told.
type Change struct {
	Number uint64 // of the event that tells it; it grows
	At     time.Time
	// The views before and after.
	WasMachine, Machine *machine.View
	WasBMC, BMC         *bmc.View
	Events              []bmc.Event
}

// Delivery is an event that is to be posted to a subscriber.
type Delivery struct {
	Subscription string // ID
	At           time.Time
	Body         []byte
}

// record is one thing that has happened, as an event tells it.
type record struct {
	at           time.Time
	message      message.Message
	kind         string          // Event.EventType
	origin       string          // address of the resource that it comes from; "" none
	resourceType string          // type of that resource, without its version
	gone         bool            // the resource is not there any longer
	log          string          // address of the log entry; "" none
	user         string          // who brought it about; "" nobody
	from         string          // his address
	lessSpecific bool            // another record of the step says the same more closely
	subscription string          // ID of the one subscription that it is for; "" all
	submitted    resource.Object // properties, instead of all that is above but at
}

// records are what a step tells: what its events say, and then the resources
// that it has made, changed and removed.
func (s *Notifier) records(h resource.Host, st Change) []record {
	was := &resource.Snapshot{Host: h, Dialect: h.Dialect(), Machine: st.WasMachine, BMC: st.WasBMC, Now: st.At.Truncate(time.Second)}
	is := &resource.Snapshot{Host: h, Dialect: h.Dialect(), Machine: st.Machine, BMC: st.BMC, Now: was.Now}
	var out []record
	for _, ev := range st.Events {
		if r, ok := s.modelRecord(was, is, ev); ok {
			out = append(out, r)
		}
	}
	said := map[string]bool{}
	for _, r := range out {
		said[r.origin] = true
	}
	for _, r := range s.changes(was, is) {
		r.at = st.At
		r.lessSpecific = r.message.Key == message.ResourceChanged.Key && said[r.origin]
		said[r.origin] = true
		out = append(out, r)
	}
	return out
}

// taskMessages are the messages that tell of jobs.
var taskMessages = map[bmc.TaskState]message.Entry{
	bmc.TaskRunning:   message.TaskStarted,
	bmc.TaskCompleted: message.TaskCompletedOK,
	bmc.TaskException: message.TaskAborted,
	bmc.TaskCancelled: message.TaskCancelled,
	bmc.TaskSuspended: message.TaskPaused,
}

// modelRecord is the record of an event; false when it speaks of nothing that
// resources do not show.
func (s *Notifier) modelRecord(was, is *resource.Snapshot, ev bmc.Event) (record, bool) {
	r := record{at: ev.Time(), kind: resource.Other}
	switch ev := ev.(type) {
	case bmc.Logged:
		s.fillLogRecord(&r, was, is, ev.Entry, event.EventEntry)
	case bmc.Audited:
		if ev.Entry.Kind == event.RequestAudited { // what came of it is told
			return r, false
		}
		s.fillLogRecord(&r, was, is, ev.Entry, event.AuditEntry)
	case bmc.TaskChanged:
		says, ok := taskMessages[ev.Task.State]
		if !ok {
			return r, false
		}
		if ev.Task.State == bmc.TaskRunning && ev.Task.Begun.Before(ev.At) {
			says = message.TaskResumed
		}
		r.message, r.origin, r.kind = message.Fill(says, ev.Task.ID), resource.TaskURI(ev.Task.ID), resource.StatusChange
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

// origin is the address of what something happened to, and whether that is not
// there any longer.
func (s *Notifier) origin(was, is *resource.Snapshot, of event.Subject) (uri string, gone bool) {
	if uri, ok := (resource.View{Dialect: is.Dialect, Machine: is.Machine, BMC: is.BMC}).OriginOfCondition(of); ok {
		return uri, false
	}
	uri, gone = resource.View{Dialect: was.Dialect, Machine: was.Machine, BMC: was.BMC}.OriginOfCondition(of)
	return uri, gone
}

// fillLogRecord fills the record of an entry of a log.
func (s *Notifier) fillLogRecord(r *record, was, is *resource.Snapshot, e bmc.Entry, in event.Part) {
	v, w := resource.View{Dialect: is.Dialect, Machine: is.Machine, BMC: is.BMC}, resource.EventMessages[e.Kind]
	r.message, r.user, r.from = v.EventMessage(e.Note), resource.ExpandArgument(w.User, e.Note), resource.ExpandArgument(w.From, e.Note)
	r.origin, r.gone = s.origin(was, is, e.Subject)
	r.log, _ = v.OriginOfCondition(event.Subject{Part: in, ID: strconv.FormatUint(e.ID, 10)})
}

// changes are the resources that differ between two snapshots of a host: made,
// removed, or changed in more than what changes by itself.
func (s *Notifier) changes(was, is *resource.Snapshot) []record {
	changed := resource.ChangedParts(was, is)
	var out []record
	for i := range s.tree.Rows {
		r := &s.tree.Rows[i]
		// A collection changes when its members come and go, which is told of
		// them, and an entry of a log tells what is told anyway.
		if r.DependsOn&changed == 0 || r.Read == nil || r.NoEvents || resource.TypeName(r.Schema) == "LogEntry" {
			continue
		}
		for _, m := range s.tree.Instances(r, was, is) {
			at := record{origin: m.URI, resourceType: resource.TypeName(r.Schema)}
			old, now := s.renderer.Representation(m, was), s.renderer.Representation(m, is)
			switch {
			case old == nil && now == nil:
			case old == nil:
				at.message, at.kind = message.ResourceCreated.With(), resource.ResourceAdded
				out = append(out, at)
			case now == nil:
				at.message, at.kind, at.gone = message.ResourceRemoved.With(), resource.ResourceRemoved, true
				out = append(out, at)
			case now.Tag() != old.Tag(), now.Tag() == "" && !bytes.Equal(now.Body, old.Body): // some write none
				out = append(out, statusChanges(at, old, now)...)
				at.message, at.kind = message.ResourceChanged.With(), resource.ResourceUpdated
				out = append(out, at)
			}
		}
	}
	return out
}

// health says how a turn of a resource's health is told.
var health = map[string]message.Entry{
	"OK":       message.ResourceStatusChangedOK,
	"Warning":  message.ResourceStatusChangedWarning,
	"Critical": message.ResourceStatusChangedCritical,
}

// statusChanges are the statusChanges of a resource's health and state between two pages.
func statusChanges(at record, was, is *render.Representation) []record {
	type shown struct {
		Name   string
		Status struct{ State, Health string }
	}
	var a, b shown
	if json.Unmarshal(was.Body, &a) != nil || json.Unmarshal(is.Body, &b) != nil {
		return nil // a document of another kind
	}
	at.kind = resource.StatusChange
	var out []record
	if says, ok := health[b.Status.Health]; ok && a.Status.Health != b.Status.Health {
		at.message = message.Fill(says, b.Name, b.Status.Health)
		out = append(out, at)
	}
	if b.Status.State != "" && a.Status.State != b.Status.State {
		at.message = message.ResourceStateChanged.With(b.Name, b.Status.State)
		out = append(out, at)
	}
	return out
}
