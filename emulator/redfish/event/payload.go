package event

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// The schemas of event bodies.
const (
	EventSchema  = "Event.v1_13_0"
	reportSchema = "MetricReport.v1_5_2"
)

// passes reports whether the filters of a subscription let a record through
// (DSP2046, EventDestination). MessageIds have the registry versions of the
// service.
func (r *record) passes(s *bmc.Subscription, versions message.Versions) bool {
	if r.subscription != "" {
		return r.subscription == s.ID
	}
	registry, key := resource.Unversioned(r.messageID(versions))
	f := &s.Filter
	named := len(f.Registries)+len(f.Messages) == 0 ||
		slices.Contains(f.Registries, registry) || contains(f.Messages, registry, key)
	return named && !slices.Contains(f.NotRegistries, registry) && !contains(f.NotMessages, registry, key) &&
		allows(f.Types, r.resourceType) && allows(f.Kinds, r.kind) && allows(f.Severities, string(r.message.Severity)) &&
		(len(f.Origins) == 0 || slices.ContainsFunc(f.Origins, func(o string) bool {
			return o == r.origin || f.Subordinate && strings.HasPrefix(r.origin, strings.TrimSuffix(o, "/")+"/")
		}))
}

// allows reports whether a list of allowed values, which is empty when every value
// is allowed, has a value.
func allows(allowed []string, value string) bool {
	return len(allowed) == 0 || slices.Contains(allowed, value)
}

// contains reports whether a list of MessageIds has a message, whatever the
// versions of the registries.
func contains(ids []string, registry, key string) bool {
	return slices.ContainsFunc(ids, func(id string) bool {
		r, k := resource.Unversioned(id)
		return r == registry && k == key
	})
}

// messageID returns the MessageId of a record: that of SubmitTestEvent's request, or
// that of the message in the registry version of the service.
func (r *record) messageID(versions message.Versions) string {
	if r.submitted != nil {
		return resource.Value(resource.Values(r.submitted), "MessageId", "")
	}
	return versions.ID(r.message)
}

// Notification is one event of a host before the filters of a subscription apply.
type Notification struct {
	Number     uint64 // Event.Id; it grows with each event of the host
	subscribed string // ID of the subscription that the change created; "" none
	records    []record
	reports    []machine.MetricReport
	at         *resource.Snapshot // the host right after the change
}

// Payloads returns the bodies that a subscription receives of an event: at most one
// Event, or each MetricReport that the subscription asks for.
func (s *Notifier) Payloads(t *Notification, to *bmc.Subscription) [][]byte {
	if !to.Reports {
		if body := s.event(t, to); body != nil {
			return [][]byte{body}
		}
		return nil
	}
	var all [][]byte
	for _, r := range t.reports {
		if allows(to.Filter.Reports, resource.TelemetryURI+"/MetricReportDefinitions/"+r.ID) {
			o := resource.MetricReportBody(resource.View{Dialect: t.at.Dialect, Machine: t.at.Machine, BMC: t.at.BMC, Now: t.at.Now}, r)
			o["@odata.id"], o["@odata.type"], o["Id"] = resource.TelemetryURI+"/MetricReports/"+r.ID, resource.OdataType(reportSchema), r.ID
			o["Context"] = to.Context
			all = append(all, resource.Encode(o))
		}
	}
	return all
}

// event returns the encoded Event with the records that pass a subscription's
// filters (DSP2046, Event); nil when none does.
func (s *Notifier) event(t *Notification, to *bmc.Subscription) []byte {
	versions := s.vendors.Of(t.at.Dialect).Registries()
	var all []resource.Object
	number := strconv.FormatUint(t.Number, 10)
	for i := range t.records {
		r := &t.records[i]
		if !r.passes(to, versions) {
			continue
		}
		o := r.object(t.at)
		o["MemberId"] = strconv.Itoa(len(all))
		if _, ok := o["EventId"]; !ok {
			o["EventId"] = number + "." + strconv.Itoa(i)
		}
		if len(t.records) > 1 && r.submitted == nil {
			o["EventGroupId"] = int(t.Number)
		}
		if uri, ok := o["OriginOfCondition"].(resource.Object); ok && to.IncludeOriginOfCondition && !r.gone {
			o["OriginOfCondition"] = s.originBody(t.at, to, uri)
		}
		all = append(all, o)
	}
	if len(all) == 0 {
		return nil
	}
	o := resource.Object{
		"@odata.type": resource.OdataType(EventSchema), "Id": number, "Name": "Event Array", "Context": to.Context,
		"Events": all, "Events@odata.count": len(all),
	}
	return resource.Encode(s.vendors.Of(t.at.Dialect).Render(o, t.at))
}

// object returns a record as an element of Event.Events.
func (r *record) object(at *resource.Snapshot) resource.Object {
	if r.submitted != nil {
		o := resource.Object{"EventType": resource.Other} // DSP2046 requires EventType
		for name, v := range r.submitted {
			o[name] = v
		}
		if r.origin != "" {
			o["OriginOfCondition"] = resource.Ref(r.origin)
		}
		return o
	}
	v := resource.View{Dialect: at.Dialect, BMC: at.BMC}
	versions := v.MessageVersions()
	m := versions.In(r.message)
	o := resource.Object{
		"EventType": r.kind, "EventTimestamp": v.Local(r.at.Add(at.BMC.Clock.Skew())), "MessageId": versions.ID(m), "Message": m.Text,
		"MessageSeverity": string(m.Severity), "Severity": string(m.Severity), "Resolution": m.Resolution,
	}
	if len(m.Args) > 0 {
		o["MessageArgs"] = m.Args
	}
	if r.origin != "" {
		o["OriginOfCondition"] = resource.Ref(r.origin)
	}
	if r.gone {
		o["OriginOfConditionUnavailable"] = true
	}
	if r.log != "" {
		o["LogEntry"] = resource.Ref(r.log)
	}
	if r.user != "" {
		o["Username"] = r.user
	}
	if r.from != "" {
		o["OriginAddress"] = "https://" + r.from
	}
	if r.lessSpecific {
		o["SpecificEventExistsInGroup"] = true
	}
	return o
}

// originBody returns the resource that OriginOfCondition links to, or the link itself
// when the resource does not exist or the owner of the subscription may not read it
// (DSP2046, EventDestination, IncludeOriginOfCondition).
func (s *Notifier) originBody(at *resource.Snapshot, to *bmc.Subscription, link resource.Object) resource.Object {
	uri, _ := link["@odata.id"].(string)
	m := s.tree.Find(&url.URL{Path: uri})
	if m == nil {
		m = s.vendors.Of(at.Dialect).Route("GET", &url.URL{Path: uri}) // an OEM resource
	}
	if m == nil || m.Read == nil || m.Action != nil || m.Members || s.renderer.Representation(m, at) == nil {
		return link
	}
	owner := resource.Find(at.BMC.Accounts, to.Owner, func(a bmc.Account) string { return a.ID })
	reader := resource.NewActor(owner, "", at.BMC)
	if !reader.Authorized("GET", m, at) {
		return link
	}
	o := m.Object(m.View(at))
	if !reader.ReadsURISecrets(m, at) {
		o = resource.Decode(resource.HideURISecretsInBody(resource.Encode(o)))
	}
	return o
}
