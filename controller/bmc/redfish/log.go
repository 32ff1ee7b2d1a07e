package redfish

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// eventLogNames lists the names of the hardware event log, best first. Other logs
// hold audits, messages of the operating system or the BMC's own events.
var eventLogNames = []string{"SEL", "Sel", "IML", "EventLog", "Event", "Log1", "Log"}

// logService holds the properties that the driver reads of a LogService.
type logService struct {
	ID      string `json:"@odata.id"`
	Entries link   `json:"Entries"`
	Actions struct {
		Clear struct {
			Target string `json:"target"`
		} `json:"#LogService.ClearLog"`
	} `json:"Actions"`
}

// logEntry holds the properties that the driver reads of a LogEntry.
type logEntry struct {
	URI      string `json:"@odata.id"`
	ID       string `json:"Id"`
	Created  string `json:"Created"`
	Severity string `json:"Severity"`
	Sensor   string `json:"SensorType"`
	Message  string `json:"Message"`
}

// eventLog finds the hardware event log among the logs of the system and its
// managers.
func (c *client) eventLog(ctx context.Context, verb string) (logService, error) {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return logService{}, err
	}
	collections := []string{s.LogServices.ID}
	managers, err := c.managers(ctx, s)
	if err != nil {
		return logService{}, err
	}
	for _, uri := range managers {
		var m struct {
			LogServices link `json:"LogServices"`
		}
		if _, err := c.get(ctx, uri, &m); err != nil && !isNotFound(err) {
			return logService{}, err
		}
		collections = append(collections, m.LogServices.ID)
	}
	var all []string
	for _, collection := range collections {
		if collection == "" {
			continue
		}
		uris, err := c.members(ctx, collection)
		if err != nil && !isNotFound(err) {
			return logService{}, err
		}
		all = append(all, uris...)
	}
	uri := pickLog(all)
	if uri == "" {
		return logService{}, unsupported(verb, "it has no event log")
	}
	var l logService
	_, err = c.get(ctx, uri, &l)
	if l.ID == "" {
		l.ID = uri
	}
	return l, err
}

// pickLog chooses the event log among the URIs of logs, "" if there are none.
func pickLog(uris []string) string {
	for _, name := range eventLogNames {
		for _, uri := range uris {
			if path.Base(strings.TrimRight(uri, "/")) == name {
				return uri
			}
		}
	}
	if len(uris) > 0 {
		return uris[0]
	}
	return ""
}

// Log reads the event log, oldest entry first.
func (c *client) Log(ctx context.Context) ([]bmc.Entry, error) {
	l, err := c.eventLog(ctx, "Log")
	if err != nil {
		return nil, err
	}
	if l.Entries.ID == "" {
		return nil, unsupported("Log", "the event log shows no entries")
	}
	raw, err := c.memberObjects(ctx, l.Entries.ID)
	if err != nil {
		return nil, err
	}
	var out []bmc.Entry
	for _, body := range raw {
		var e logEntry
		if err := decode(body, &e); err != nil {
			continue
		}
		if e.Message == "" && e.Created == "" && e.URI != "" {
			// The collection has links only.
			if _, err := c.get(ctx, e.URI, &e); err != nil {
				if isNotFound(err) {
					continue // the log was cleared meanwhile
				}
				return nil, err
			}
		}
		if e.ID == "" {
			e.ID = path.Base(e.URI)
		}
		one := bmc.Entry{ID: e.ID, Severity: e.Severity, Sensor: e.Sensor, Text: strings.TrimSpace(e.Message)}
		if at, err := time.Parse(time.RFC3339, e.Created); err == nil {
			one.Time = at.UTC()
		}
		out = append(out, one)
	}
	// iDRACs list the newest first. The ID orders entries of the same second.
	slices.SortStableFunc(out, func(a, b bmc.Entry) int {
		if n := a.Time.Compare(b.Time); n != 0 {
			return n
		}
		x, e1 := strconv.Atoi(a.ID)
		y, e2 := strconv.Atoi(b.ID)
		if e1 != nil || e2 != nil {
			return 0
		}
		return x - y
	})
	return out, nil
}

// ClearLog empties the event log.
func (c *client) ClearLog(ctx context.Context) error {
	l, err := c.eventLog(ctx, "ClearLog")
	if err != nil {
		return err
	}
	target := l.Actions.Clear.Target
	if target == "" {
		return unsupported("ClearLog", "the event log cannot be cleared")
	}
	a, err := c.do(ctx, http.MethodPost, target, map[string]any{}, nil)
	if err != nil {
		return err
	}
	return c.awaitTask(ctx, "clear log", a)
}
