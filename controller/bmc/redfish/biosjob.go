package redfish

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/metalab-dev/metalab/controller/bmc"
)

const (
	aboutSettings = "BIOS settings"
	settingsJob   = "a job has to be made for them"
)

// makeJob asks for what was written into a settings resource to be applied at
// the next reset, where the manager has a queue of jobs: iDRAC 8 keeps settings
// that came without an apply time until somebody does. Where there is no queue,
// or it knows of the settings, there is nothing to do.
func (c *client) makeJob(ctx context.Context, s computerSystem, settings string) error {
	managers, err := c.managers(ctx, s)
	if err != nil {
		return err
	}
	for _, uri := range managers {
		a, err := c.do(ctx, http.MethodGet, uri, nil, nil)
		if err != nil {
			return err
		}
		queue := queueOf(a.body)
		if queue == "" {
			continue
		}
		a, err = c.do(ctx, http.MethodPost, queue, map[string]any{"TargetSettingsURI": settings}, nil)
		switch e := new(statusError); {
		case errors.Is(err, bmc.ErrPending): // there is one
			return nil
		case errors.As(err, &e) && (e.status == http.StatusMethodNotAllowed || e.status == http.StatusNotFound || e.status == http.StatusNotImplemented):
			continue
		case err != nil:
			return err
		}
		c.lessons.Learn(bmc.Lesson{Topic: aboutSettings, Way: settingsJob, Odd: true})
		return c.scheduled(ctx, a)
	}
	return nil
}

// queueOf is where a manager has its queue of jobs: as a link of its own, or as
// one of its vendor's.
func queueOf(body []byte) string {
	type jobs struct {
		Jobs link `json:"Jobs"`
	}
	var m struct {
		jobs
		Links struct {
			OEM map[string]json.RawMessage `json:"Oem"`
		} `json:"Links"`
		OEM map[string]json.RawMessage `json:"Oem"`
	}
	if decode(body, &m) != nil || m.Jobs.ID != "" {
		return m.Jobs.ID
	}
	for _, all := range []map[string]json.RawMessage{m.Links.OEM, m.OEM} {
		for _, raw := range all { // a manager has one vendor
			var of jobs
			if decode(raw, &of) == nil && of.Jobs.ID != "" {
				return of.Jobs.ID
			}
		}
	}
	return ""
}
