package redfish

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// logRows: the event log stands under the system, the audit log under the
// manager.
func logRows() []resource {
	return slices.Concat(
		logsBelow("/redfish/v1/Systems/{system}", "systemlog", "entry", ofComponents, PartLog),
		logsBelow("/redfish/v1/Managers/{manager}", "managerlog", "auditentry", ofManager, PartAudit),
	)
}

// logsBelow are the rows of a log under a resource: the log is what one
// variable stands for, its entries what the other does.
func logsBelow(above, log, entry string, n needs, s shows) []resource {
	all := above + "/LogServices"
	one := all + "/{" + log + "}"
	entries := one + "/Entries"
	var set *patch
	if entry == "entry" {
		set = &logPatch
	}
	return []resource{
		{uri: all, schema: "LogServiceCollection", name: "Log Services", of: log},
		{uri: one, schema: "LogService.v1_9_0", shows: s | PartClock | PartTime,
			read: logService, patch: set, actions: logActions, volatile: []string{"DateTime"}},
		{uri: entries, schema: "LogEntryCollection", shows: s, name: "Log Entries", of: entry, whole: true},
		{uri: entries + "/{" + entry + "}", schema: "LogEntry.v1_21_0", shows: s | PartClock | PartDumps, origins: true,
			read: logEntry, patch: &logEntryPatch, remove: removeEntry, spares: sparesEntry},
		{uri: entries + "/{" + entry + "}/Attachment", needs: n, shows: s | PartDumps, link: "-",
			when: hasDump, raw: attachment},
	}
}

// book is the log that the view is in, and how it is kept.
func (v view) book() (bmc.LogName, *bmc.Log, bmc.LogSpec) {
	if v.ids["managerlog"] != "" {
		return bmc.AuditLog, v.b.Audit, v.b.Spec.Audit
	}
	return bmc.EventLog, v.b.Log, v.b.Spec.Log
}

// logPurposes and logNames are what the logs are for.
var (
	logPurposes = map[bmc.LogName][]string{bmc.EventLog: {"Operations"}, bmc.AuditLog: {"Security"}}
	logNames    = map[bmc.LogName]string{bmc.EventLog: "System Event Log", bmc.AuditLog: "Manager Log"}
)

// entryType is what the entries of a log are: those of the event log can be
// records as IPMI has them.
func (v view) entryType(b bmc.LogName) string {
	if b == bmc.EventLog && v.d.Logs.SEL {
		return "SEL"
	}
	return "Event"
}

func logService(v view) object {
	book, log, spec := v.book()
	state := map[bool]string{true: "Enabled", false: "Disabled"}[log.Takes()]
	o := object{
		"Name": logNames[book], "ServiceEnabled": log.Takes(), "Status": status(state),
		"LogEntryType": v.entryType(book), "LogPurposes": logPurposes[book],
		"MaxNumberOfRecords": spec.Size, "OverWritePolicy": string(spec.Full), "Overflow": log != nil && log.Lost > 0,
		"Persistency": true, "AutoClearResolvedEntries": "None",
		"DateTime": v.clockTime(), "DateTimeLocalOffset": v.localOffset(),
	}
	if collects(v) {
		o["DiagnosticDataDetails"] = []object{{"DiagnosticDataType": "Manager", "EstimatedDuration": isoDuration(v.b.Spec.Collect)}}
	}
	return o
}

// logPatch switches the event log off, and on: the audit log cannot be.
var logPatch = patch{
	inputs: []input{{name: "ServiceEnabled", kind: boolean}},
	apply: func(ctx context.Context, c operation) (reply, error) {
		book, log, _ := c.view.book()
		_, err := c.host.ApplyBMC(ctx, bmc.EnableLog{Log: book, On: value(c.set, "ServiceEnabled", log.Takes())})
		return reply{}, err
	},
}

// collects says whether diagnostic data can be collected here: of the manager,
// into its own log.
func collects(v view) bool {
	book, _, _ := v.book()
	return book == bmc.AuditLog
}

var logActions = []action{
	{
		name:   "LogService.ClearLog",
		inputs: []input{{name: "LogEntriesETag", kind: text}},
		apply: func(ctx context.Context, c operation) (reply, error) {
			book, _, _ := c.view.book()
			entries := c.view.tree.find(&url.URL{Path: c.view.uri + "/Entries"})
			if tag, ok := c.set["LogEntriesETag"].(string); ok && !c.x.HoldsETag(tag, entries) {
				// As DSP2046 has it (LogService.ClearLog).
				return reply{}, decline(http.StatusPreconditionRequired, message.PreconditionRequired.With().About("#/LogEntriesETag"))
			}
			_, err := c.host.ApplyBMC(ctx, bmc.ClearLog{Log: book})
			return reply{}, err
		},
	},
	{
		name:   "LogService.CollectDiagnosticData",
		inputs: []input{{name: "DiagnosticDataType", kind: text, required: true, values: oneOf("Manager")}},
		when:   collects,
		apply: func(ctx context.Context, c operation) (reply, error) {
			book, _, _ := c.view.book()
			return c.work(ctx, bmc.CollectDump{Task: c.job("Collect diagnostic data"), Log: book})
		},
	},
}

// entry is the log entry that the view is of.
func (v view) entry() *bmc.Entry {
	_, log, _ := v.book()
	id := v.ids["entry"]
	if id == "" {
		id = v.ids["auditentry"]
	}
	n, _ := strconv.ParseUint(id, 10, 64)
	if e, ok := log.Entry(n); ok {
		return e
	}
	return new(bmc.Entry)
}

func logEntry(v view) object {
	e := v.entry()
	book, _, _ := v.book()
	kind := v.entryType(book)
	w, m := wordings[e.Kind], v.word(e.Note)
	o := object{
		"Name": "Log Entry " + strconv.FormatUint(e.ID, 10), "EntryType": kind, "Severity": string(e.Severity()),
		"Created": v.local(e.At), "EventTimestamp": v.local(e.At), "Message": m.Text, "Resolution": m.Resolution, "Resolved": e.Resolved,
		"Persistency": true, "OriginatorType": "Internal",
	}
	switch {
	case e.Record != nil:
		recorded(o, e)
	case kind == "SEL":
		showRecord(o, sel.Of(e.Note))
	default:
		m = v.spoken().In(m)
		o["MessageId"], o["MessageArgs"] = v.spoken().ID(m), append([]string{}, m.Args...)
	}
	if user := filled(w.user, e.Note); user != "" {
		o["Username"], o["OriginatorType"] = user, "Client"
	}
	if from := filled(w.from, e.Note); from != "" {
		o["OriginAddress"] = "https://" + from
	}
	if d, ok := v.b.Dumps.Find(e.Dump); ok {
		o["AdditionalDataURI"], o["AdditionalDataSizeBytes"] = v.uri+"/Attachment", len(d.Data)
		o["DiagnosticDataType"] = "Manager"
	}
	if uri, ok := v.origin(e.Subject); ok {
		o["Links"] = object{"OriginOfCondition": ref(uri)}
	} else if origins[e.Subject.Part] != "" {
		o["OriginOfConditionUnavailable"] = true
	}
	return o
}

var logEntryPatch = patch{
	inputs: []input{{name: "Resolved", kind: boolean}},
	apply: func(ctx context.Context, c operation) (reply, error) {
		book, _, _ := c.view.book()
		e := c.view.entry()
		_, err := c.host.ApplyBMC(ctx, bmc.ResolveEntry{Log: book, ID: e.ID, Resolved: value(c.set, "Resolved", e.Resolved)})
		return reply{}, err
	},
}

func removeEntry(ctx context.Context, c operation) (reply, error) {
	book, _, _ := c.view.book()
	_, err := c.host.ApplyBMC(ctx, bmc.RemoveEntry{Log: book, ID: c.view.entry().ID})
	return reply{}, err
}

func sparesEntry(v view, method string) bool {
	return method == http.MethodDelete && !v.d.Logs.DeletableEntries
}

func hasDump(v view) bool {
	_, ok := v.b.Dumps.Find(v.entry().Dump)
	return ok
}

// attachment is what was collected, as it is downloaded.
func attachment(v view) (mime, []byte) {
	d, _ := v.b.Dumps.Find(v.entry().Dump)
	return gzipType, d.Data
}

// entryIDs are the IDs of the entries of a log.
func entryIDs(l *bmc.Log) []string {
	ids := make([]string, 0, l.Len())
	for e := range l.Entries() {
		ids = append(ids, strconv.FormatUint(e.ID, 10))
	}
	return ids
}

// hasEntry says whether a log has an entry, without looking at all of them.
func hasEntry(l *bmc.Log, id string) bool {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || strings.HasPrefix(id, "0") || strings.HasPrefix(id, "+") {
		return false
	}
	_, ok := l.Entry(n)
	return ok
}

// clockTime is what the BMC takes the time for.
func (v view) clockTime() string { return v.local(v.now.Add(v.b.Clock.Skew())) }

// local is a time of the BMC's clock as it shows it.
func (v view) local(t time.Time) string { return v.b.Clock.Local(t).Format(time.RFC3339) }

// localOffset is how far local time is ahead of UTC.
func (v view) localOffset() string { return v.b.Clock.Local(v.now).Format("-07:00") }
