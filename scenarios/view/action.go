package view

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/rack/control"
)

// Actions performs what users confirm. *control.Client implements it.
type Actions interface {
	Power(ctx context.Context, host, reset string) (control.Host, error)
	ResetBMC(ctx context.Context, host string, r control.BMCReset) (control.Host, error)
	Boot(ctx context.Context, host string, o control.Override) (control.Detail, error)
	InsertMedia(ctx context.Context, host, slot string, i control.Image) ([]control.Media, error)
	EjectMedia(ctx context.Context, host, slot string) ([]control.Media, error)
	PullDisk(ctx context.Context, host, disk string) (control.Disks, error)
	InsertDisk(ctx context.Context, host, disk string, i control.DiskInsertion) (control.Disks, error)
	FailDisk(ctx context.Context, host, disk string, f control.DiskFailure) (control.Disks, error)
	AddFaults(ctx context.Context, rules ...fault.Rule) ([]fault.Rule, error)
	RemoveFault(ctx context.Context, id string) error
	Quirks(ctx context.Context, host string) ([]quirk.Setting, error)
	SetQuirks(ctx context.Context, host string, all []quirk.Setting) ([]quirk.Setting, error)
	Break(ctx context.Context, host string) error
}

// Field is an input of an action.
type Field struct {
	Name    string   `json:"name"`
	Label   string   `json:"label"`
	Choices []string `json:"choices,omitempty"` // none: any text
	From    string   `json:"from,omitempty"`    // list of the server that has the choices: bays, slots, faults or quirks
	Hint    string   `json:"hint,omitempty"`
}

// Action is something that users can do to a server. The page asks before it is done.
type Action struct {
	Name   string  `json:"name"`
	Group  string  `json:"group"`
	Label  string  `json:"label"`
	Fields []Field `json:"fields"`

	do func(ctx context.Context, a Actions, host string, in map[string]string) error
}

// AllActions are the actions of the page.
var AllActions = []Action{
	{Name: "power", Group: "Power", Label: "Power", do: power, Fields: []Field{
		{Name: "reset", Label: "Reset type", Choices: []string{"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle", "PushPowerButton", "Nmi"}},
	}},
	{Name: "reset-bmc", Group: "Power", Label: "Restart the BMC", Fields: []Field{}, do: func(ctx context.Context, a Actions, host string, _ map[string]string) error {
		_, err := a.ResetBMC(ctx, host, control.BMCReset{})
		return err
	}},
	{Name: "boot", Group: "Power", Label: "Boot once from", do: boot, Fields: []Field{
		{Name: "target", Label: "Boot source", Choices: []string{"Pxe", "Cd", "Hdd", "UefiHttp", "BiosSetup", "None"}},
	}},
	{Name: "insert-media", Group: "Media", Label: "Insert virtual media", do: insertMedia, Fields: []Field{
		{Name: "slot", Label: "Slot", From: "slots"}, {Name: "url", Label: "URL of the image", Hint: "http://127.0.0.1:8080/image.iso"},
	}},
	{Name: "eject-media", Group: "Media", Label: "Eject virtual media", do: ejectMedia, Fields: []Field{{Name: "slot", Label: "Slot", From: "slots"}}},
	{Name: "pull-drive", Group: "Drives", Label: "Pull a drive", do: pullDrive, Fields: []Field{{Name: "bay", Label: "Bay", From: "bays"}}},
	{Name: "insert-drive", Group: "Drives", Label: "Insert a drive", do: insertDrive, Fields: []Field{
		{Name: "bay", Label: "Bay", From: "bays"}, {Name: "what", Label: "Drive", Choices: []string{"same", "new", "foreign"}},
	}},
	{Name: "fail-drive", Group: "Drives", Label: "Fail a drive", do: failDrive, Fields: []Field{
		{Name: "bay", Label: "Bay", From: "bays"}, {Name: "how", Label: "Failure", Choices: []string{"fail", "predict", "unpredict", "revive"}},
	}},
	{Name: "add-fault", Group: "Faults", Label: "Add a fault", do: addFault, Fields: []Field{
		{Name: "rule", Label: "Rule (JSON, as in a rack file)", Hint: `{"status": 503, "retryAfter": "30s", "count": 3}`},
	}},
	{Name: "remove-fault", Group: "Faults", Label: "Remove a fault", do: removeFault, Fields: []Field{{Name: "id", Label: "Rule", From: "faults"}}},
	{Name: "add-quirk", Group: "Faults", Label: "Add a quirk", do: addQuirk, Fields: []Field{{Name: "quirk", Label: "Quirk", From: "allQuirks"}}},
	{Name: "remove-quirk", Group: "Faults", Label: "Remove a quirk", do: removeQuirk, Fields: []Field{{Name: "quirk", Label: "Quirk", From: "quirks"}}},
	{Name: "break", Group: "Console", Label: "Send a break", Fields: []Field{}, do: func(ctx context.Context, a Actions, host string, _ map[string]string) error {
		return a.Break(ctx, host)
	}},
}

func power(ctx context.Context, a Actions, host string, in map[string]string) error {
	_, err := a.Power(ctx, host, in["reset"])
	return err
}

func boot(ctx context.Context, a Actions, host string, in map[string]string) error {
	_, err := a.Boot(ctx, host, control.Override{Target: in["target"]})
	return err
}

func insertMedia(ctx context.Context, a Actions, host string, in map[string]string) error {
	_, err := a.InsertMedia(ctx, host, in["slot"], control.Image{URL: in["url"], WriteProtected: true})
	return err
}

func ejectMedia(ctx context.Context, a Actions, host string, in map[string]string) error {
	_, err := a.EjectMedia(ctx, host, in["slot"])
	return err
}

func pullDrive(ctx context.Context, a Actions, host string, in map[string]string) error {
	_, err := a.PullDisk(ctx, host, in["bay"])
	return err
}

func insertDrive(ctx context.Context, a Actions, host string, in map[string]string) error {
	_, err := a.InsertDisk(ctx, host, in["bay"], control.DiskInsertion{What: in["what"]})
	return err
}

func failDrive(ctx context.Context, a Actions, host string, in map[string]string) error {
	_, err := a.FailDisk(ctx, host, in["bay"], control.DiskFailure{How: in["how"]})
	return err
}

func addFault(ctx context.Context, a Actions, host string, in map[string]string) error {
	dec := json.NewDecoder(strings.NewReader(in["rule"]))
	dec.DisallowUnknownFields()
	var rule fault.Rule
	if err := dec.Decode(&rule); err != nil {
		return fmt.Errorf("the rule: %w", err)
	}
	rule.BMC = cmp.Or(rule.BMC, host)
	_, err := a.AddFaults(ctx, rule)
	return err
}

func removeFault(ctx context.Context, a Actions, _ string, in map[string]string) error {
	return a.RemoveFault(ctx, in["id"])
}

func addQuirk(ctx context.Context, a Actions, host string, in map[string]string) error {
	return changeQuirks(ctx, a, host, func(all []quirk.Setting) []quirk.Setting {
		return append(all, quirk.Setting{ID: in["quirk"]})
	})
}

func removeQuirk(ctx context.Context, a Actions, host string, in map[string]string) error {
	return changeQuirks(ctx, a, host, func(all []quirk.Setting) []quirk.Setting {
		return slices.DeleteFunc(all, func(q quirk.Setting) bool { return q.ID == in["quirk"] })
	})
}

func changeQuirks(ctx context.Context, a Actions, host string, change func([]quirk.Setting) []quirk.Setting) error {
	all, err := a.Quirks(ctx, host)
	if err != nil {
		return err
	}
	_, err = a.SetQuirks(ctx, host, change(all))
	return err
}

// act performs an action on a server.
func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	if h, ok := s.host(w, r); ok {
		s.actOn(w, r, h.Name())
	}
}

// actOn performs an action on a server that there is.
func (s *Server) actOn(w http.ResponseWriter, r *http.Request, host string) {
	i := slices.IndexFunc(AllActions, func(a Action) bool { return a.Name == r.PathValue("action") })
	if i < 0 {
		http.Error(w, "there is no action "+r.PathValue("action"), http.StatusNotFound)
		return
	}
	in := map[string]string{}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&in); err != nil {
		http.Error(w, "the body: "+err.Error(), http.StatusBadRequest)
		return
	}
	a := AllActions[i]
	for _, f := range a.Fields {
		if len(f.Choices) > 0 && !slices.Contains(f.Choices, in[f.Name]) {
			http.Error(w, fmt.Sprintf("%s %q is not one of %s", f.Name, in[f.Name], strings.Join(f.Choices, ", ")), http.StatusBadRequest)
			return
		}
		if in[f.Name] == "" {
			http.Error(w, f.Name+" is missing", http.StatusBadRequest)
			return
		}
	}
	if err := a.do(r.Context(), s.c.Actions, host, in); err != nil {
		status := http.StatusBadRequest
		if refused := new(control.Refused); errors.As(err, &refused) {
			status = refused.Status
		}
		http.Error(w, err.Error(), status)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
