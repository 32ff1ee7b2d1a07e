package resource

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

// logRows returns the rows of the event log, which belongs to the system, and of
// the audit log, which belongs to the manager.
func logRows() []Row {
	return slices.Concat(
		logServiceRows("/redfish/v1/Systems/{system}", "systemlog", "entry", componentPrivileges, partLog),
		logServiceRows("/redfish/v1/Managers/{manager}", "managerlog", "auditentry", managerPrivileges, partAudit),
	)
}

// logServiceRows returns the rows of a log below the resource above. log and
// entry are the path variables of the log and its entries.
func logServiceRows(above, log, entry string, n Privileges, s Parts) []Row {
	all := above + "/LogServices"
	one := all + "/{" + log + "}"
	entries := one + "/Entries"
	var set *Patch
	if entry == "entry" {
		set = &logPatch
	}
	return []Row{
		{URI: all, Schema: "LogServiceCollection", collectionName: "Log Services", memberVariable: log},
		{URI: one, Schema: "LogService.v1_9_0", DependsOn: s | partClock | partTime,
			Read: logService, Patch: set, Actions: logActions, Volatile: []string{"DateTime"}},
		{URI: entries, Schema: "LogEntryCollection", DependsOn: s, collectionName: "Log Entries", memberVariable: entry, autoExpand: true},
		{URI: entries + "/{" + entry + "}", Schema: "LogEntry.v1_21_0", DependsOn: s | partClock | partDumps, linksToOrigins: true,
			Read: logEntry, Patch: &logEntryPatch, Remove: removeEntry, Refuses: refusesEntryDelete},
		{URI: entries + "/{" + entry + "}/Attachment", Privileges: n, DependsOn: s | partDumps, Link: "-",
			When: hasDump, Raw: attachment},
	}
}

// log returns the name, content and specification of the log that the view
// addresses.
func (v View) log() (bmc.LogName, *bmc.Log, bmc.LogSpec) {
	if v.IDs["managerlog"] != "" {
		return bmc.AuditLog, v.BMC.Audit, v.BMC.Spec.Audit
	}
	return bmc.EventLog, v.BMC.Log, v.BMC.Spec.Log
}

// logPurposes and logNames are the LogPurposes and the Name of each log.
var (
	logPurposes = map[bmc.LogName][]string{bmc.EventLog: {"Operations"}, bmc.AuditLog: {"Security"}}
	logNames    = map[bmc.LogName]string{bmc.EventLog: "System Event Log", bmc.AuditLog: "Manager Log"}
)

// entryType returns the LogEntryType of a log. Some vendors show the entries of
// the event log as IPMI SEL records.
func (v View) entryType(b bmc.LogName) string {
	if b == bmc.EventLog && v.Dialect.Logs.SEL {
		return "SEL"
	}
	return "Event"
}

func logService(v View) Object {
	book, log, spec := v.log()
	state := map[bool]string{true: "Enabled", false: "Disabled"}[log.Takes()]
	o := Object{
		"Name": logNames[book], "ServiceEnabled": log.Takes(), "Status": status(state),
		"LogEntryType": v.entryType(book), "LogPurposes": logPurposes[book],
		"MaxNumberOfRecords": spec.Size, "OverWritePolicy": string(spec.Full), "Overflow": log != nil && log.Lost > 0,
		"Persistency": true, "AutoClearResolvedEntries": "None",
		"DateTime": v.clockTime(), "DateTimeLocalOffset": v.localOffset(),
	}
	if collectsDiagnosticData(v) {
		o["DiagnosticDataDetails"] = []Object{{"DiagnosticDataType": "Manager", "EstimatedDuration": isoDuration(v.BMC.Spec.Collect)}}
	}
	return o
}

// logPatch enables and disables the event log. The audit log is always enabled.
var logPatch = Patch{
	Inputs: []Input{{Name: "ServiceEnabled", Kind: Boolean}},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		book, log, _ := c.View.log()
		_, err := c.Host.ApplyBMC(ctx, bmc.EnableLog{Log: book, On: Value(c.Values, "ServiceEnabled", log.Takes())})
		return Result{}, err
	},
}

// collectsDiagnosticData reports whether the log has CollectDiagnosticData: only
// the manager's log does, for data of the manager.
func collectsDiagnosticData(v View) bool {
	book, _, _ := v.log()
	return book == bmc.AuditLog
}

var logActions = []Action{
	{
		Name:   "LogService.ClearLog",
		Inputs: []Input{{Name: "LogEntriesETag", Kind: Text}},
		Apply: func(ctx context.Context, c Call) (Result, error) {
			book, _, _ := c.View.log()
			entries := c.View.Tree.Find(&url.URL{Path: c.View.URI + "/Entries"})
			if tag, ok := c.Values["LogEntriesETag"].(string); ok && !c.Request.HoldsETag(tag, entries) {
				// DSP2046, LogService.ClearLog.
				return Result{}, Reject(http.StatusPreconditionRequired, message.PreconditionRequired.With().About("#/LogEntriesETag"))
			}
			_, err := c.Host.ApplyBMC(ctx, bmc.ClearLog{Log: book})
			return Result{}, err
		},
	},
	{
		Name:   "LogService.CollectDiagnosticData",
		Inputs: []Input{{Name: "DiagnosticDataType", Kind: Text, Required: true, Allowed: OneOf("Manager")}},
		when:   collectsDiagnosticData,
		Apply: func(ctx context.Context, c Call) (Result, error) {
			book, _, _ := c.View.log()
			return c.startTask(ctx, bmc.CollectDump{Task: c.namedTask("Collect diagnostic data"), Log: book})
		},
	},
}

// entry returns the log entry that the view addresses; an empty one if it does
// not exist.
func (v View) entry() *bmc.Entry {
	_, log, _ := v.log()
	id := v.IDs["entry"]
	if id == "" {
		id = v.IDs["auditentry"]
	}
	n, _ := strconv.ParseUint(id, 10, 64)
	if e, ok := log.Entry(n); ok {
		return e
	}
	return new(bmc.Entry)
}

func logEntry(v View) Object {
	e := v.entry()
	book, _, _ := v.log()
	kind := v.entryType(book)
	w, m := EventMessages[e.Kind], v.EventMessage(e.Note)
	o := Object{
		"Name": "Log Entry " + strconv.FormatUint(e.ID, 10), "EntryType": kind, "Severity": string(e.Severity()),
		"Created": v.Local(e.At), "EventTimestamp": v.Local(e.At), "Message": m.Text, "Resolution": m.Resolution, "Resolved": e.Resolved,
		"Persistency": true, "OriginatorType": "Internal",
	}
	switch {
	case e.Record != nil:
		addSELRecord(o, e)
	case kind == "SEL":
		AddSELEvent(o, sel.Of(e.Note))
	default:
		m = v.MessageVersions().In(m)
		o["MessageId"], o["MessageArgs"] = v.MessageVersions().ID(m), append([]string{}, m.Args...)
	}
	if user := ExpandArgument(w.User, e.Note); user != "" {
		o["Username"], o["OriginatorType"] = user, "Client"
	}
	if from := ExpandArgument(w.From, e.Note); from != "" {
		o["OriginAddress"] = "https://" + from
	}
	if d, ok := v.BMC.Dumps.Find(e.Dump); ok {
		o["AdditionalDataURI"], o["AdditionalDataSizeBytes"] = v.URI+"/Attachment", len(d.Data)
		o["DiagnosticDataType"] = "Manager"
	}
	if uri, ok := v.OriginOfCondition(e.Subject); ok {
		o["Links"] = Object{"OriginOfCondition": Ref(uri)}
	} else if originPatterns[e.Subject.Part] != "" {
		o["OriginOfConditionUnavailable"] = true
	}
	return o
}

var logEntryPatch = Patch{
	Inputs: []Input{{Name: "Resolved", Kind: Boolean}},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		book, _, _ := c.View.log()
		e := c.View.entry()
		_, err := c.Host.ApplyBMC(ctx, bmc.ResolveEntry{Log: book, ID: e.ID, Resolved: Value(c.Values, "Resolved", e.Resolved)})
		return Result{}, err
	},
}

func removeEntry(ctx context.Context, c Call) (Result, error) {
	book, _, _ := c.View.log()
	_, err := c.Host.ApplyBMC(ctx, bmc.RemoveEntry{Log: book, ID: c.View.entry().ID})
	return Result{}, err
}

func refusesEntryDelete(v View, method string) bool {
	return method == http.MethodDelete && !v.Dialect.Logs.DeletableEntries
}

func hasDump(v View) bool {
	_, ok := v.BMC.Dumps.Find(v.entry().Dump)
	return ok
}

// attachment returns the diagnostic data of a log entry as clients download it.
func attachment(v View) (MediaType, []byte) {
	d, _ := v.BMC.Dumps.Find(v.entry().Dump)
	return gzipType, d.Data
}

// entryIDs returns the IDs of the entries of a log.
func entryIDs(l *bmc.Log) []string {
	ids := make([]string, 0, l.Len())
	for e := range l.Entries() {
		ids = append(ids, strconv.FormatUint(e.ID, 10))
	}
	return ids
}

// hasEntry reports whether a log has an entry. It does not iterate over the log.
func hasEntry(l *bmc.Log, id string) bool {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || strings.HasPrefix(id, "0") || strings.HasPrefix(id, "+") {
		return false
	}
	_, ok := l.Entry(n)
	return ok
}

// clockTime returns the BMC's current time by its own clock.
func (v View) clockTime() string { return v.Local(v.Now.Add(v.BMC.Clock.Skew())) }

// Local formats a time of the BMC's clock in its time zone.
func (v View) Local(t time.Time) string { return v.BMC.Clock.Local(t).Format(time.RFC3339) }

// localOffset returns the BMC's offset from UTC.
func (v View) localOffset() string { return v.BMC.Clock.Local(v.Now).Format("-07:00") }
