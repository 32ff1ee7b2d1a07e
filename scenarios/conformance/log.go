package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/scenarios/conformance/ipmi"
)

// logChecks are the checks of logs.
var logChecks = []Check{
	{
		ID: "LOG-001", Title: "log entries are readable, with plausible times", Level: ReadOnly, Protocol: Both, Step: Day2,
		Predicts: "forensics lack entries", Remedy: "read logs in the BMC's own interface",
		After: []string{"AUTH-001"}, Run: entriesReadable,
	},
}

// entriesReadable reads the logs of the system and the manager.
func entriesReadable(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	logs, err := r.logs(ctx, place)
	if err != nil {
		return Judge(err)
	}
	if len(logs) == 0 {
		return Failed("neither the system nor the manager has a log with Entries")
	}
	entries := 0
	o := Passed("")
	for _, at := range logs {
		first, err := r.Page(ctx, at) // its first page: logs have thousands of entries
		if err != nil {
			return Judge(err)
		}
		members, err := first.At("Members").List()
		if err != nil {
			return Judge(err)
		}
		for _, m := range members[:min(len(members), 20)] {
			entry := m
			if m.At("Created").Null() && m.At("EntryType").Null() {
				if entry, err = r.Page(ctx, m.LinkOr(at)); err != nil {
					return Judge(err)
				}
			}
			entries++
			if problem := r.entryTime(entry); problem != "" {
				o.Verdict, o.Reason = Warn, problem
			}
		}
	}
	o = o.With("logs", "%d", len(logs)).With("entries", "%d", entries)
	if r.Config().IPMI == "" || r.bmc.dry != nil {
		return o
	}
	s, err := r.IPMISession(ctx)
	if err != nil {
		return o // IPMI-004 reports it
	}
	defer r.IPMIClose(ctx, s)
	data, err := r.IPMIDo(ctx, s, ipmi.Request{NetFn: ipmi.Storage, Command: 0x40, Name: "Get SEL Info"})
	if err == nil {
		err = short("Get SEL Info", data, 14)
	}
	if err != nil {
		return judgeIPMI(err)
	}
	return o.With("SEL entries", "%d", int(data[1])|int(data[2])<<8)
}

// logs returns the URIs of the entries of the logs of the system and its manager.
func (r *Run) logs(ctx context.Context, place *Place) ([]string, error) {
	var all []string
	for _, v := range []Value{place.System.At("LogServices"), place.Manager.At("LogServices")} {
		uri, err := v.Link()
		if err != nil {
			continue
		}
		services, err := r.Members(ctx, uri)
		if err != nil {
			return nil, err
		}
		for _, s := range services[:min(len(services), 8)] {
			service, err := r.Page(ctx, s)
			if err != nil {
				return nil, err
			}
			if entries, err := service.At("Entries").Link(); err == nil {
				all = append(all, entries)
			}
		}
	}
	return all, nil
}

// entryTime returns the defect of an entry's time, or "".
func (r *Run) entryTime(entry Value) string {
	text := entry.At("Created").TextOr("")
	if text == "" {
		return ""
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Sprintf("%s is %q, not a date-time", entry.At("Created").Path(), text)
	}
	if ahead := at.Sub(r.Now()); ahead > 24*time.Hour {
		return fmt.Sprintf("%s is %v in the future", entry.At("Created").Path(), ahead.Round(time.Hour))
	}
	return ""
}
