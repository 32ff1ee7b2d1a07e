package redfish

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/metalab-dev/metalab/controller/bmc"
)

const (
	topicBIOSSettings = "BIOS settings"
	biosJobVariant    = "they need a job of their own"
)

// createBIOSJob creates the job that applies the settings resource at the next
// reset, if the manager has a job queue: iDRAC 8 leaves settings that came without
// an apply time pending until a job is created for them. Without a queue, or if
// the job exists, it does nothing.
func (c *client) createBIOSJob(ctx context.Context, s computerSystem, settings string) error {
	managers, err := c.managers(ctx, s)
	if err != nil {
		return err
	}
	for _, uri := range managers {
		a, err := c.do(ctx, http.MethodGet, uri, nil, nil)
		if err != nil {
			return err
		}
		queue := jobsURI(a.body)
		if queue == "" {
			continue
		}
		a, err = c.do(ctx, http.MethodPost, queue, map[string]any{"TargetSettingsURI": settings}, nil)
		switch e := new(statusError); {
		case errors.Is(err, bmc.ErrPending): // there is a job
			return nil
		case errors.As(err, &e) && (e.status == http.StatusMethodNotAllowed || e.status == http.StatusNotFound || e.status == http.StatusNotImplemented):
			continue
		case err != nil:
			return err
		}
		c.workarounds.Record(bmc.Workaround{Topic: topicBIOSSettings, Variant: biosJobVariant, Nonstandard: true})
		return c.checkScheduled(ctx, a)
	}
	return nil
}

// jobsURI returns the URI of a manager's job queue, from the standard property or
// an OEM one; "" if there is none.
func jobsURI(body []byte) string {
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
			var oem jobs
			if decode(raw, &oem) == nil && oem.Jobs.ID != "" {
				return oem.Jobs.ID
			}
		}
	}
	return ""
}
