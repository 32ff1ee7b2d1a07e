package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// evtChecks are the checks of events.
var evtChecks = []Check{
	{
		ID: "EVT-001", Title: "a subscription gets the test event and is deleted", Level: Reversible, Protocol: Redfish, Step: Day2,
		Predicts: "events do not arrive", Remedy: "poll",
		After: []string{"AUTH-001"}, Needs: []Facility{NeedsMedia}, Run: eventArrives,
	},
	{
		ID: "EVT-002", Title: "the event stream connects and sends valid JSON", Level: ReadOnly, Protocol: Redfish, Step: Day2,
		Predicts: "event streams break clients", Remedy: "poll",
		After: []string{"AUTH-001"}, Run: streamWorks,
	},
}

// eventService reads the event service, which a BMC need not have.
func (r *Run) eventService(ctx context.Context) (Value, error) {
	root, err := r.Page(ctx, "/redfish/v1/")
	if err != nil {
		return Value{}, err
	}
	uri, err := root.At("EventService").Link()
	if err != nil {
		return Value{}, NothingThere("the BMC has no EventService")
	}
	return r.Page(ctx, uri)
}

// eventArrives subscribes, asks for the test event and waits for it.
func eventArrives(ctx context.Context, r *Run) Outcome {
	service, err := r.eventService(ctx)
	if err != nil {
		return Judge(err)
	}
	subscriptions, err := service.At("Subscriptions").Link()
	if err != nil {
		return Judge(err)
	}
	listening, stop := context.WithCancel(ctx)
	defer stop()
	url, bodies, err := r.Config().Media.Events(listening)
	if err != nil {
		return Judge(err)
	}
	const mark = "labctl-conformance"
	resp, err := r.Change(ctx, Change{
		Request: Request{Method: http.MethodPost, URI: subscriptions, Body: map[string]any{"Destination": url, "Protocol": "Redfish", "Context": mark}},
		Undo:    []Undo{{Method: http.MethodDelete, Find: &Lookup{Collection: subscriptions, Property: "Context", Value: mark}}},
	})
	if err != nil {
		return Judge(err)
	}
	if resp.Status/100 != 2 {
		return Failed("POST of a subscription: %s", resp.Problem())
	}
	target := service.At("Actions", "#EventService.SubmitTestEvent", "target").TextOr("")
	if target == "" {
		return Warned("a subscription is accepted, and there is no SubmitTestEvent to try it")
	}
	test, err := r.Change(ctx, Change{Request: Request{Method: http.MethodPost, URI: target, Body: map[string]any{"EventType": "Alert", "MessageId": "Base.1.0.Success"}}})
	if err != nil {
		return Judge(err)
	}
	if test.Status/100 != 2 {
		return Failed("SubmitTestEvent: %s", test.Problem())
	}
	if r.bmc.dry != nil {
		return Passed("")
	}
	arrival := time.NewTimer(min(30*time.Second, 5*r.bmc.client.patience)) // the BMC's own time, not the run's
	defer arrival.Stop()
	for {
		select {
		case body, open := <-bodies:
			if !open {
				return Judge(ctx.Err())
			}
			if o := eventSound(body); o.Verdict != Pass {
				return o
			}
			if err := r.Restore(ctx); err != nil {
				return Failed("the subscription cannot be deleted: %v", err)
			}
			return Passed("")
		case <-arrival.C:
			return Failed("the test event has not arrived within 30 s")
		case <-ctx.Done():
			return Judge(ctx.Err())
		}
	}
}

// eventSound looks at the body of an event.
func eventSound(body []byte) Outcome {
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.UseNumber()
	var raw any
	if err := d.Decode(&raw); err != nil {
		return Failed("the event is not JSON: %v", err)
	}
	v := NewValue("event", raw)
	events, err := v.At("Events").List()
	if err != nil {
		return Judge(err)
	}
	for _, e := range events {
		for _, name := range []string{"MemberId", "EventType"} {
			if e.At(name).Null() {
				return Failed("%s is absent", e.At(name).Path()).Quirky("sse-malformed")
			}
		}
		if e.At("MessageId").Null() {
			return Failed("%s is absent", e.At("MessageId").Path())
		}
	}
	return Passed("")
}

// streamTime is how long streamWorks reads the event stream.
const streamTime = 2 * time.Second

// streamWorks opens the event stream and reads what comes. A login of the check's
// own gives the BMC something to report.
func streamWorks(ctx context.Context, r *Run) Outcome {
	service, err := r.eventService(ctx)
	if err != nil {
		return Judge(err)
	}
	stream := service.At("ServerSentEventUri").TextOr("")
	if stream == "" {
		return Skipped("the event service has no ServerSentEventUri")
	}
	if r.bmc.dry != nil {
		_, err := r.roundTrip(ctx, Request{URI: "/redfish/v1/"})
		return Judge(err)
	}
	timed, cancel := context.WithTimeout(ctx, min(streamTime, r.bmc.client.patience))
	defer cancel()
	status, kind, events, err := r.readStream(timed, stream, func() {
		if at, token, err := r.login(ctx); err == nil {
			_, _ = r.Logout(ctx, at, token)
		}
	})
	switch {
	case err != nil:
		return Judge(err)
	case status != http.StatusOK:
		return Failed("GET %s: %d", stream, status)
	case !strings.HasPrefix(kind, "text/event-stream"):
		return Failed("the Content-Type of %s is %q, not text/event-stream", stream, kind)
	}
	for _, e := range events {
		if o := eventSound([]byte(e)); o.Verdict != Pass {
			return o
		}
	}
	return Passed("").With("events in 2 s", "%d", len(events))
}

// readStream reads a stream of events until an event has come or ctx ends. It
// calls opened once the response has begun.
func (r *Run) readStream(ctx context.Context, uri string, opened func()) (status int, kind string, events []string, err error) {
	u, err := r.bmc.client.resolve(uri)
	if err != nil {
		return 0, "", nil, err
	}
	header := http.Header{"Accept": {"text/event-stream"}}
	r.bmc.login(ctx, r)
	r.bmc.auth()(header)
	began := r.bmc.conf.Clock.Now()
	x := Exchange{Check: r.check, Began: began, Method: http.MethodGet, URL: u.String(), RequestHeader: header}
	defer func() {
		x.Took = r.bmc.conf.Clock.Since(began)
		x.Body = []byte(strings.Join(events, "\n"))
		x.Size = int64(len(x.Body))
		r.keep(r.bmc.client.record(x))
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, "", nil, err
	}
	req.Header = header.Clone()
	t := r.bmc.client.transport(Connections{Fresh: true})
	defer t.CloseIdleConnections()
	resp, err := t.RoundTrip(req)
	if err != nil {
		x.Error = err.Error()
		if ctx.Err() != nil {
			return 0, "", nil, Findingf("GET %s: no response within %v", uri, streamTime)
		}
		return 0, "", nil, err
	}
	defer resp.Body.Close()
	x.Status, x.Header = resp.StatusCode, resp.Header
	kind = resp.Header.Get("Content-Type")
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/event-stream") {
		return resp.StatusCode, kind, nil, nil
	}
	opened()
	lines := bufio.NewScanner(io.LimitReader(resp.Body, maxBody))
	lines.Buffer(nil, maxRecord*4)
	data := ""
	for lines.Scan() {
		line := lines.Text()
		if text, ok := strings.CutPrefix(line, "data:"); ok {
			data += strings.TrimPrefix(text, " ")
			continue
		}
		if line == "" && data != "" {
			return resp.StatusCode, kind, append(events, data), nil
		}
	}
	if err := lines.Err(); err != nil && errors.Is(err, bufio.ErrTooLong) {
		return resp.StatusCode, kind, nil, Findingf("%s: a line of more than %d bytes", uri, maxRecord*4)
	}
	return resp.StatusCode, kind, nil, nil // the time is over
}
