package redfish

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
)

// Step is what has happened to a host at once, as its subscribers are told.
type Step struct {
	Number uint64 // of the event that tells it; it grows
	At     time.Time
	// The views before and after.
	WasMachine, Machine *machine.View
	WasBMC, BMC         *bmc.View
	Events              []bmc.Event
}

// Letter is an event that is to be posted to a subscriber.
type Letter struct {
	Subscription string // ID
	At           time.Time
	Body         []byte
}

// record is one thing that has happened, as an event tells it.
type record struct {
	at       time.Time
	is       message.Message
	kind     string // Event.EventType
	origin   string // address of the resource that it comes from; "" none
	of       string // type of that resource, without its version
	gone     bool   // the resource is not there any longer
	log      string // address of the log entry; "" none
	user     string // who brought it about; "" nobody
	from     string // his address
	general  bool   // another record of the step says the same more closely
	only     string // ID of the one subscription that it is for; "" all
	dictated object // properties, instead of all that is above but at
}

// records are what a step tells: what its events say, and then the resources
// that it has made, changed and removed.
func (s *Events) records(h Host, st Step) []record {
	was := &snapshot{h: h, d: h.Dialect(), m: st.WasMachine, b: st.WasBMC, now: st.At.Truncate(time.Second)}
	is := &snapshot{h: h, d: h.Dialect(), m: st.Machine, b: st.BMC, now: was.now}
	var out []record
	for _, ev := range st.Events {
		if r, ok := s.saying(was, is, ev); ok {
			out = append(out, r)
		}
	}
	said := map[string]bool{}
	for _, r := range out {
		said[r.origin] = true
	}
	for _, r := range s.changes(was, is) {
		r.at = st.At
		r.general = r.is.Key == message.ResourceChanged.Key && said[r.origin]
		said[r.origin] = true
		out = append(out, r)
	}
	return out
}

// jobSays are the messages that tell of jobs.
var jobSays = map[bmc.TaskState]message.Entry{
	bmc.TaskRunning:   message.TaskStarted,
	bmc.TaskCompleted: message.TaskCompletedOK,
	bmc.TaskException: message.TaskAborted,
	bmc.TaskCancelled: message.TaskCancelled,
	bmc.TaskSuspended: message.TaskPaused,
}

// saying is the record of an event; false when it speaks of nothing that
// resources do not show.
func (s *Events) saying(was, is *snapshot, ev bmc.Event) (record, bool) {
	r := record{at: ev.Time(), kind: other}
	switch ev := ev.(type) {
	case bmc.Logged:
		s.noted(&r, was, is, ev.Entry, event.EventEntry)
	case bmc.Audited:
		if ev.Entry.Kind == event.RequestAudited { // what came of it is told
			return r, false
		}
		s.noted(&r, was, is, ev.Entry, event.AuditEntry)
	case bmc.TaskChanged:
		says, ok := jobSays[ev.Task.State]
		if !ok {
			return r, false
		}
		if ev.Task.State == bmc.TaskRunning && ev.Task.Begun.Before(ev.At) {
			says = message.TaskResumed
		}
		r.is, r.origin, r.kind = message.Fill(says, ev.Task.ID), taskURI(ev.Task.ID), statusChange
	case bmc.Subscribed:
		r.is, r.origin, r.kind = message.ResourceCreated.With(), subscriptionsURI+"/"+ev.Subscription.ID, resourceAdded
	case bmc.Unsubscribed:
		r.is, r.origin, r.kind, r.gone = message.ResourceRemoved.With(), subscriptionsURI+"/"+ev.ID, resourceRemoved, true
	case bmc.HeartbeatDue:
		r.is, r.only = message.RedfishServiceFunctional.With(), ev.ID
	case bmc.TestEvent:
		r.dictated = ev.Fields
		r.is = message.Message{Severity: message.Severity(value(values(ev.Fields), "MessageSeverity", ""))}
		r.origin = value(values(ev.Fields), "OriginOfCondition", "")
		r.kind = value(values(ev.Fields), "EventType", other)
	default:
		return r, false
	}
	if r.is.Severity == message.Warning || r.is.Severity == message.Critical {
		r.kind = alert
	}
	if m := s.tree.find(&url.URL{Path: r.origin}); m != nil {
		r.of = typeName(m.schema)
	}
	return r, true
}

// origin is the address of what something happened to, and whether that is not
// there any longer.
func (s *Events) origin(was, is *snapshot, of event.Subject) (uri string, gone bool) {
	if uri, ok := (view{d: is.d, m: is.m, b: is.b}).origin(of); ok {
		return uri, false
	}
	uri, gone = view{d: was.d, m: was.m, b: was.b}.origin(of)
	return uri, gone
}

// noted fills the record of an entry of a log.
func (s *Events) noted(r *record, was, is *snapshot, e bmc.Entry, in event.Part) {
	v, w := view{d: is.d, m: is.m, b: is.b}, wordings[e.Kind]
	r.is, r.user, r.from = v.word(e.Note), filled(w.user, e.Note), filled(w.from, e.Note)
	r.origin, r.gone = s.origin(was, is, e.Subject)
	r.log, _ = v.origin(event.Subject{Part: in, ID: strconv.FormatUint(e.ID, 10)})
}

// changes are the resources that differ between two snapshots of a host: made,
// removed, or changed in more than what changes by itself.
func (s *Events) changes(was, is *snapshot) []record {
	changed := changedParts(was, is)
	var out []record
	for i := range s.tree.rows {
		r := &s.tree.rows[i]
		// A collection changes when its members come and go, which is told of
		// them, and an entry of a log tells what is told anyway.
		if r.shows&changed == 0 || r.read == nil || r.untold || typeName(r.schema) == "LogEntry" {
			continue
		}
		for _, m := range s.tree.instances(r, was, is) {
			at := record{origin: m.uri, of: typeName(r.schema)}
			old, now := s.renderer.representation(m, was), s.renderer.representation(m, is)
			switch {
			case old == nil && now == nil:
			case old == nil:
				at.is, at.kind = message.ResourceCreated.With(), resourceAdded
				out = append(out, at)
			case now == nil:
				at.is, at.kind, at.gone = message.ResourceRemoved.With(), resourceRemoved, true
				out = append(out, at)
			case now.tag() != old.tag(), now.tag() == "" && !bytes.Equal(now.body, old.body): // some write none
				out = append(out, turns(at, old, now)...)
				at.is, at.kind = message.ResourceChanged.With(), resourceUpdated
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

// turns are the turns of a resource's health and state between two pages.
func turns(at record, was, is *representation) []record {
	type shown struct {
		Name   string
		Status struct{ State, Health string }
	}
	var a, b shown
	if json.Unmarshal(was.body, &a) != nil || json.Unmarshal(is.body, &b) != nil {
		return nil // a document of another kind
	}
	at.kind = statusChange
	var out []record
	if says, ok := health[b.Status.Health]; ok && a.Status.Health != b.Status.Health {
		at.is = message.Fill(says, b.Name, b.Status.Health)
		out = append(out, at)
	}
	if b.Status.State != "" && a.Status.State != b.Status.State {
		at.is = message.ResourceStateChanged.With(b.Name, b.Status.State)
		out = append(out, at)
	}
	return out
}
