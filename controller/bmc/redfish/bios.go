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

// biosResource is what the driver reads of a Bios, and of its settings object.
type biosResource struct {
	Attributes map[string]any `json:"Attributes"`
	Registry   string         `json:"AttributeRegistry"`
	Settings   struct {
		Object link     `json:"SettingsObject"`
		Times  []string `json:"SupportedApplyTimes"`
		// Messages are what the last reset has made of what waited for it.
		Messages json.RawMessage `json:"Messages"`
	} `json:"@Redfish.Settings"`
	Links struct {
		Image link `json:"ActiveSoftwareImage"`
	} `json:"Links"`

	uri  string
	tag  string // ETag
	flat bool   // the attributes stand in the resource itself, not in Attributes
}

var _ bmc.Setup = (*client)(nil)

// readBIOS reads the system's Bios.
func (c *client) readBIOS(ctx context.Context, verb string) (biosResource, computerSystem, error) {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return biosResource{}, s, err
	}
	if s.Bios.ID == "" {
		return biosResource{}, s, unsupported(verb, "the system shows no BIOS settings")
	}
	b, err := c.readSettings(ctx, s.Bios.ID)
	if notFound(err) { // iLO links one that it does not have while the system was never on
		err = unsupported(verb, "the system shows no BIOS settings")
	}
	return b, s, err
}

func (c *client) readSettings(ctx context.Context, uri string) (biosResource, error) {
	var b biosResource
	a, err := c.get(ctx, uri, &b)
	b.uri, b.tag = uri, etag(a)
	if err == nil && b.Attributes == nil && b.Registry != "" {
		b.Attributes, b.flat = besideOthers(a.body), true
	}
	for name, v := range b.Attributes {
		b.Attributes[name] = plain(v)
	}
	return b, err
}

// notSettings are what else stands in the BIOS resource of an iLO 4.
var notSettings = []string{"Id", "Name", "Description", "Type", "AttributeRegistry", "Modified"}

// besideOthers are the attributes of a BIOS that has them in the resource itself,
// as iLO 4 does (HewlettPackard/ilo-rest-api-docs, HpBios).
func besideOthers(body []byte) map[string]any {
	var all map[string]any
	if decode(body, &all) != nil {
		return nil
	}
	maps.DeleteFunc(all, func(name string, v any) bool {
		switch v.(type) {
		case map[string]any, []any:
			return true
		}
		return strings.Contains(name, "@") || slices.Contains(notSettings, name)
	})
	return all
}

// plain makes an integer of a number that is one.
func plain(v any) any {
	if f, ok := v.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f)
	}
	return v
}

// BIOS reads the settings, and the registry that the service has for them.
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
		for name := range b.Attributes { // the order is not seen
			if r.Attribute(name) == nil {
				return false
			}
		}
		return true
	}
	out.Registry, err = c.attributeRegistry(ctx, key, knows)
	return out, err
}

// failedSettings are what a reset has not applied (DSP0266, "Settings
// resource"). A success is a message, too.
func (c *client) failedSettings(b biosResource) map[string]string {
	failed := map[string]string{}
	for _, m := range messagesOf(b.Settings.Messages, "") {
		if m.good() {
			continue
		}
		for _, a := range m.arguments() {
			name := a[strings.LastIndexByte(a, '/')+1:]
			if _, ours := b.Attributes[name]; ours {
				failed[name] = c.clean(m.String())
				break
			}
		}
	}
	return failed
}

// PendingBIOS reads the settings object, of which some services show all
// settings (iLO) and others those that wait.
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
		if is, there := b.Attributes[name]; !there || is != v {
			out[name] = v
		}
	}
	return out, nil
}

// SetBIOS writes into the settings object or, where there is none, into the
// Bios itself (DSP0266, "Settings resource").
func (c *client) SetBIOS(ctx context.Context, settings bmc.Settings) error {
	b, s, err := c.readBIOS(ctx, "SetBIOS")
	if err != nil {
		return err
	}
	body := map[string]any{"Attributes": settings}
	if b.flat {
		body = maps.Clone(settings)
		b.Settings.Times = nil // it says nothing of when
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
	if body[applyTime] != nil && aboutApplyTime(err) {
		// Some services offer it, and take it with their own tools only.
		delete(body, applyTime)
		a, err = c.patch(ctx, to.uri, to.tag, body)
	}
	if err != nil {
		return refusedSettings(err, settings)
	}
	if a.status != http.StatusAccepted && body[applyTime] == nil && to.uri != b.uri {
		return c.makeJob(ctx, s, to.uri)
	}
	return c.scheduled(ctx, a)
}

// scheduled looks at the task that a change waits with: one that has failed
// already brings nothing about. What becomes of it later shows in the settings.
func (c *client) scheduled(ctx context.Context, a answer) error {
	uri := monitor(a)
	if a.status != http.StatusAccepted || uri == "" {
		return nil
	}
	now, err := c.do(ctx, http.MethodGet, uri, nil, nil)
	if err != nil {
		return nil //nolint:nilerr // it is not there yet, or gone
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

func aboutApplyTime(err error) bool {
	e := new(statusError)
	return badRequest(err) && errors.As(err, &e) && slices.ContainsFunc(e.arguments, func(a string) bool {
		return strings.Contains(a, "SettingsApplyTime") || strings.HasSuffix(a, "ApplyTime")
	})
}

// refusedSettings finds in an answer which settings it is about.
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
