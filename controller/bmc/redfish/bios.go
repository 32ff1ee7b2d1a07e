package redfish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// biosResource holds the properties that the driver reads of a Bios and of its
// settings resource.
type biosResource struct {
	Attributes map[string]any `json:"Attributes"`
	Registry   string         `json:"AttributeRegistry"`
	Settings   struct {
		Object link     `json:"SettingsObject"`
		Times  []string `json:"SupportedApplyTimes"`
		// Messages describe the result of applying the settings at the last reset.
		Messages json.RawMessage `json:"Messages"`
	} `json:"@Redfish.Settings"`
	Links struct {
		Image link `json:"ActiveSoftwareImage"`
	} `json:"Links"`

	uri    string
	tag    string // ETag
	inline bool   // the attributes are properties of the resource itself, not of Attributes
}

var _ bmc.Setup = (*client)(nil)

// readBIOS reads the system's Bios resource.
func (c *client) readBIOS(ctx context.Context, verb string) (biosResource, computerSystem, error) {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return biosResource{}, s, err
	}
	if s.Bios.ID == "" {
		return biosResource{}, s, unsupported(verb, "the system shows no BIOS settings")
	}
	b, err := c.readSettings(ctx, s.Bios.ID)
	if isNotFound(err) { // iLO links one that is missing until the system has been powered on once
		err = unsupported(verb, "the system shows no BIOS settings")
	}
	return b, s, err
}

func (c *client) readSettings(ctx context.Context, uri string) (biosResource, error) {
	var b biosResource
	a, err := c.get(ctx, uri, &b)
	b.uri, b.tag = uri, etag(a)
	if err == nil && b.Attributes == nil && b.Registry != "" {
		b.Attributes, b.inline = inlineAttributes(a.body), true
	}
	for name, v := range b.Attributes {
		b.Attributes[name] = asInteger(v)
	}
	return b, err
}

// nonAttributes lists the properties beside the attributes in an iLO 4's BIOS
// resource.
var nonAttributes = []string{"Id", "Name", "Description", "Type", "AttributeRegistry", "Modified"}

// inlineAttributes returns the attributes of a BIOS that has them as properties of
// the resource itself, as iLO 4 does (HewlettPackard/ilo-rest-api-docs, HpBios).
func inlineAttributes(body []byte) map[string]any {
	var all map[string]any
	if decode(body, &all) != nil {
		return nil
	}
	maps.DeleteFunc(all, func(name string, v any) bool {
		switch v.(type) {
		case map[string]any, []any:
			return true
		}
		return strings.Contains(name, "@") || slices.Contains(nonAttributes, name)
	})
	return all
}

// asInteger converts a float64 without a fraction to an int64.
func asInteger(v any) any {
	if f, ok := v.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f)
	}
	return v
}

// BIOS reads the settings and their attribute registry.
func (c *client) BIOS(ctx context.Context) (bmc.BIOS, error) {
	b, s, err := c.readBIOS(ctx, "BIOS")
	if err != nil {
		return bmc.BIOS{}, err
	}
	out := bmc.BIOS{Settings: b.Attributes, Failed: c.failedSettings(b)}
	if b.Registry == "" {
		return out, nil
	}
	key := bmc.RegistryKey{ID: b.Registry, Manufacturer: s.Manufacturer, Model: s.Model, Version: s.BIOS}
	knows := func(r *bmc.AttributeRegistry) bool {
		for name := range b.Attributes { // the result does not depend on the order
			if r.Attribute(name) == nil {
				return false
			}
		}
		return true
	}
	out.Registry, err = c.attributeRegistry(ctx, key, knows)
	return out, err
}

// failedSettings returns the settings that the last reset did not apply, with the
// BMC's reason (DSP0266, "Settings resource"). The messages include successes.
func (c *client) failedSettings(b biosResource) map[string]string {
	failed := map[string]string{}
	for _, m := range parseMessages(b.Settings.Messages, "") {
		if m.success() {
			continue
		}
		for _, a := range m.arguments() {
			name := a[strings.LastIndexByte(a, '/')+1:]
			if _, ours := b.Attributes[name]; ours {
				failed[name] = c.sanitize(m.String())
				break
			}
		}
	}
	return failed
}

// PendingBIOS reads the settings resource and returns the values that differ from
// the current ones: some services show all settings there (iLO), others only the
// pending ones.
func (c *client) PendingBIOS(ctx context.Context) (bmc.Settings, error) {
	b, _, err := c.readBIOS(ctx, "PendingBIOS")
	if err != nil || b.Settings.Object.ID == "" {
		return nil, err
	}
	waiting, err := c.readSettings(ctx, b.Settings.Object.ID)
	if err != nil {
		return nil, err
	}
	out := bmc.Settings{}
	for name, v := range waiting.Attributes {
		if current, there := b.Attributes[name]; !there || !bmc.SameValue(nil, current, v) {
			out[name] = v
		}
	}
	return out, nil
}

// SetBIOS writes to the settings resource or, if there is none, to the Bios itself
// (DSP0266, "Settings resource").
func (c *client) SetBIOS(ctx context.Context, settings bmc.Settings) error {
	b, s, err := c.readBIOS(ctx, "SetBIOS")
	if err != nil {
		return err
	}
	body := map[string]any{"Attributes": settings}
	if b.inline {
		body = maps.Clone(settings)
		b.Settings.Times = nil // it has no apply times
	}
	if slices.Contains(b.Settings.Times, onReset) {
		body[applyTime] = map[string]any{"ApplyTime": onReset}
	}
	to := b
	if b.Settings.Object.ID != "" {
		if to, err = c.readSettings(ctx, b.Settings.Object.ID); err != nil {
			return err
		}
	}
	a, err := c.patch(ctx, to.uri, to.tag, body)
	if body[applyTime] != nil && refusesApplyTime(err) {
		// Some services offer the apply time and accept it only from their own
		// tools.
		delete(body, applyTime)
		a, err = c.patch(ctx, to.uri, to.tag, body)
	}
	if err != nil {
		return refusedSettings(err, settings)
	}
	if a.status != http.StatusAccepted && body[applyTime] == nil && to.uri != b.uri {
		return c.createBIOSJob(ctx, s, to.uri)
	}
	return c.checkScheduled(ctx, a)
}

// checkScheduled returns an error if the task that a change waits for has failed
// already. A later result shows in the settings.
func (c *client) checkScheduled(ctx context.Context, a response) error {
	uri := monitorURI(a)
	if a.status != http.StatusAccepted || uri == "" {
		return nil
	}
	now, err := c.do(ctx, http.MethodGet, uri, nil, nil)
	if err != nil {
		return nil //nolint:nilerr // the task does not exist yet, or no longer
	}
	var t task
	if decode(now.body, &t) == nil && t.failed() {
		return c.taskError("BIOS settings", t)
	}
	return nil
}

const (
	applyTime = "@Redfish.SettingsApplyTime"
	onReset   = "OnReset"
)

func refusesApplyTime(err error) bool {
	e := new(statusError)
	return isBadRequest(err) && errors.As(err, &e) && slices.ContainsFunc(e.arguments, func(a string) bool {
		return strings.Contains(a, "SettingsApplyTime") || strings.HasSuffix(a, "ApplyTime")
	})
}

// refusedSettings returns a bmc.SettingsError if the response names settings that
// it refuses.
func refusedSettings(err error, settings bmc.Settings) error {
	e := new(statusError)
	if !errors.As(err, &e) || e.status != http.StatusBadRequest && e.status != http.StatusConflict {
		return err
	}
	refused := map[string]string{}
	for _, m := range e.messages {
		for _, a := range m.arguments() {
			name := a[strings.LastIndexByte(a, '/')+1:]
			if _, ours := settings[name]; ours {
				refused[name] = m.String()
				break
			}
		}
	}
	if len(refused) == 0 {
		return err
	}
	return fmt.Errorf("redfish: %w", &bmc.SettingsError{Refused: refused, Err: err})
}
