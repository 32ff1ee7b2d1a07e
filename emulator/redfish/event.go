package redfish

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// Schemas of what subscribers are told.
const (
	eventSchema  = "Event.v1_13_0"
	reportSchema = "MetricReport.v1_5_2"
)

// passes says whether a subscription is told of a record (DSP2046,
// EventDestination).
func (r *record) passes(s *bmc.Subscription, spoken message.Versions) bool {
	if r.only != "" {
		return r.only == s.ID
	}
	registry, key := unversioned(r.messageID(spoken))
	f := &s.Filter
	named := len(f.Registries)+len(f.Messages) == 0 ||
		slices.Contains(f.Registries, registry) || contains(f.Messages, registry, key)
	return named && !slices.Contains(f.NotRegistries, registry) && !contains(f.NotMessages, registry, key) &&
		allows(f.Types, r.of) && allows(f.Kinds, r.kind) && allows(f.Severities, string(r.is.Severity)) &&
		(len(f.Origins) == 0 || slices.ContainsFunc(f.Origins, func(o string) bool {
			return o == r.origin || f.Subordinate && strings.HasPrefix(r.origin, strings.TrimSuffix(o, "/")+"/")
		}))
}

func allows(all []string, one string) bool { return len(all) == 0 || slices.Contains(all, one) }

func contains(ids []string, registry, key string) bool {
	return slices.ContainsFunc(ids, func(id string) bool {
		r, k := unversioned(id)
		return r == registry && k == key
	})
}

func (r *record) messageID(spoken message.Versions) string {
	if r.dictated != nil {
		return value(values(r.dictated), "MessageId", "")
	}
	return spoken.ID(r.is)
}

// happening are records with the number of the event that tells them.
type happening struct {
	number  uint64
	opens   string // ID of the subscription that was made
	records []record
	reports []machine.MetricReport
	at      *snapshot // right after
}

// payloads are what a subscription is told.
func (s *Events) payloads(t *happening, to *bmc.Subscription) [][]byte {
	if !to.Reports {
		if body := s.event(t, to); body != nil {
			return [][]byte{body}
		}
		return nil
	}
	var all [][]byte
	for _, r := range t.reports {
		if allows(to.Filter.Reports, telemetryURI+"/MetricReportDefinitions/"+r.ID) {
			o := reported(view{d: t.at.d, m: t.at.m, b: t.at.b, now: t.at.now}, r)
			o["@odata.id"], o["@odata.type"], o["Id"] = telemetryURI+"/MetricReports/"+r.ID, odataType(reportSchema), r.ID
			o["Context"] = to.Context
			all = append(all, encode(o))
		}
	}
	return all
}

// event is the payload for a subscription; nil when there is nothing for it
// (DSP2046, Event).
func (s *Events) event(t *happening, to *bmc.Subscription) []byte {
	spoken := t.at.d.Protocol.Registries
	var all []object
	number := strconv.FormatUint(t.number, 10)
	for i := range t.records {
		r := &t.records[i]
		if !r.passes(to, spoken) {
			continue
		}
		o := r.object(t.at)
		o["MemberId"] = strconv.Itoa(len(all))
		if _, ok := o["EventId"]; !ok {
			o["EventId"] = number + "." + strconv.Itoa(i)
		}
		if len(t.records) > 1 && r.dictated == nil {
			o["EventGroupId"] = int(t.number)
		}
		if uri, ok := o["OriginOfCondition"].(object); ok && to.IncludeOriginOfCondition && !r.gone {
			o["OriginOfCondition"] = s.whole(t.at, to, uri)
		}
		all = append(all, o)
	}
	if len(all) == 0 {
		return nil
	}
	o := object{
		"@odata.type": odataType(eventSchema), "Id": number, "Name": "Event Array", "Context": to.Context,
		"Events": all, "Events@odata.count": len(all),
	}
	return encode(s.vendors.Of(t.at.d).Render(o, t.at))
}

// object is a record as an event holds it.
func (r *record) object(at *snapshot) object {
	if r.dictated != nil {
		o := object{"EventType": other} // which DSP2046 requires
		for name, v := range r.dictated {
			o[name] = v
		}
		if r.origin != "" {
			o["OriginOfCondition"] = ref(r.origin)
		}
		return o
	}
	v := view{d: at.d, b: at.b}
	spoken := v.spoken()
	m := spoken.In(r.is)
	o := object{
		"EventType": r.kind, "EventTimestamp": v.local(r.at.Add(at.b.Clock.Skew())), "MessageId": spoken.ID(m), "Message": m.Text,
		"MessageSeverity": string(m.Severity), "Severity": string(m.Severity), "Resolution": m.Resolution,
	}
	if len(m.Args) > 0 {
		o["MessageArgs"] = m.Args
	}
	if r.origin != "" {
		o["OriginOfCondition"] = ref(r.origin)
	}
	if r.gone {
		o["OriginOfConditionUnavailable"] = true
	}
	if r.log != "" {
		o["LogEntry"] = ref(r.log)
	}
	if r.user != "" {
		o["Username"] = r.user
	}
	if r.from != "" {
		o["OriginAddress"] = "https://" + r.from
	}
	if r.general {
		o["SpecificEventExistsInGroup"] = true
	}
	return o
}

// whole is what a link leads to, if the owner of the subscription may read it,
// else the link.
func (s *Events) whole(at *snapshot, to *bmc.Subscription, link object) object {
	uri, _ := link["@odata.id"].(string)
	m := s.tree.find(&url.URL{Path: uri})
	if m == nil || m.read == nil || m.action != nil || m.members || s.renderer.representation(m, at) == nil {
		return link
	}
	owner := pick(at.b.Accounts, to.Owner, func(a bmc.Account) string { return a.ID })
	if who := actorOf(owner, "", at.b); !who.may("GET", m, at) {
		return link
	}
	return m.object(m.view(at))
}
