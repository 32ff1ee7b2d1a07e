package ilo

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// driveError rejects a logical drive.
func driveError(text string, args ...any) error {
	return &dialect.Rejection{Message: gen5.message("PropertyValueBadParam", fmt.Sprintf(text, args...))}
}

// writeLogicalDrives configures the logical drives of a request: it deletes present
// ones that the request omits or marks for deletion, as far as DataGuard permits, and
// creates those without an identifier [V docs, smartstorage: "DataGuard rules"].
func writeLogicalDrives(c dialect.ActionCall) (dialect.Effect, error) {
	at := array(c.HookContext)
	if at == "" {
		return dialect.Effect{}, driveError("There is no controller that makes logical drives.")
	}
	guard, _ := c.Stored[storedGuard].(string)
	sent, _ := c.Body["LogicalDrives"].([]any)
	there := map[string]string{} // by identifiers
	var order []string
	for _, v := range ids(c.Standard(at + "/Volumes")["Members"]) {
		id := identifier(c.Standard(v))
		there[id] = v
		order = append(order, id)
	}
	var remove []string
	named := map[string]bool{}
	var fresh []dict
	for _, x := range sent {
		d, ok := x.(dict)
		if !ok {
			return dialect.Effect{}, driveError("A logical drive must be an object.")
		}
		id, _ := d["VolumeUniqueIdentifier"].(string)
		id = strings.ToUpper(id)
		switch {
		case id == "":
			fresh = append(fresh, d)
		case there[id] == "":
			return dialect.Effect{}, driveError("There is no logical drive %s.", id)
		case deletes(d):
			remove = append(remove, id)
		}
		named[id] = true
	}
	for _, id := range order {
		if !named[id] && guard != "Permissive" {
			remove = append(remove, id)
		}
	}
	if len(remove) > 0 && guard != "Permissive" && guard != "Disabled" {
		return dialect.Effect{}, driveError("DataGuard does not let logical drives be deleted.")
	}
	e := dialect.Effect{Status: 200, Body: gen5.errorBody("SystemResetRequired"), Store: dict{storedTime: c.Now.UTC().Format(time.RFC3339Nano), storedPending: sent}}
	for _, id := range remove {
		e.Requests = append(e.Requests, dialect.StandardRequest{Method: "DELETE", URI: there[id]})
	}
	used := map[string]bool{}
	for id, v := range there {
		if !slices.Contains(remove, id) {
			for _, d := range volumeDrives(c.Standard(v)) {
				used[d] = true
			}
		}
	}
	for _, d := range fresh {
		body, err := volume(c, at, d, used)
		if err != nil {
			return dialect.Effect{}, err
		}
		e.Requests = append(e.Requests, post(at+"/Volumes", body))
	}
	return e, nil
}

// deletes reports whether a logical drive is marked for deletion.
func deletes(d dict) bool {
	all, _ := d["Actions"].([]any)
	return slices.ContainsFunc(all, func(x any) bool { a, _ := x.(dict); return a["Action"] == "LogicalDriveDelete" })
}

// volumeDrives returns the drives of a volume.
func volumeDrives(v dict) []string {
	links, _ := v["Links"].(dict)
	return append(ids(links["Drives"]), ids(links["DedicatedSpareDrives"])...)
}

// volume translates a new logical drive into a standard volume.
func volume(c dialect.ActionCall, array string, d dict, used map[string]bool) (dict, error) {
	raid, _ := d["Raid"].(string)
	body := dict{}
	for is, name := range raidTypes {
		if name == raid {
			body["RAIDType"] = is
		}
	}
	if body["RAIDType"] == nil {
		return nil, driveError("Raid %q is none that the controller makes.", raid)
	}
	data, err := selectDrives(c, array, d["DataDrives"], "DataDrive", used)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, driveError("DataDrives must not be empty.")
	}
	spares, err := selectDrives(c, array, d["SpareDrives"], "SpareDrive", used)
	if err != nil {
		return nil, err
	}
	links := dict{"Drives": data}
	if len(spares) > 0 {
		links["DedicatedSpareDrives"] = spares
	}
	body["Links"] = links
	if name, _ := d["LogicalDriveName"].(string); name != "" {
		body["DisplayName"] = name
	}
	if n := number(d["CapacityGiB"]); n > 0 { // -1 is the largest capacity
		body["CapacityBytes"] = n << 30
	} else if n := number(d["CapacityBlocks"]); n > 0 {
		body["CapacityBytes"] = n * max(512, number(d["BlockSizeBytes"]))
	}
	if n := number(d["StripSizeBytes"]); n > 0 {
		body["StripSizeBytes"] = n
	}
	if n := number(d["ParityGroupCount"]); n > 1 && int64(len(data))%n == 0 {
		body["MediaSpanCount"] = int64(len(data)) / n
	}
	switch d["Accelerator"] {
	case "ControllerCache":
		body["WriteCachePolicy"] = "ProtectedWriteBack"
	case "None", "IOBypass":
		body["WriteCachePolicy"] = "WriteThrough"
	}
	return body, nil
}

// selectDrives finds drives by their locations, or a number of drives of a kind.
func selectDrives(c dialect.ActionCall, array string, want any, prefix string, used map[string]bool) ([]any, error) {
	where, of := driveLocations(c.HookContext, array)
	out := []any{}
	take := func(p string) {
		used[of[p]] = true
		out = append(out, dict{"@odata.id": of[p]})
	}
	switch x := want.(type) {
	case nil:
	case []any:
		for _, v := range x {
			p, _ := v.(string)
			switch {
			case of[p] == "":
				return nil, driveError("There is no drive at %q.", p)
			case used[of[p]]:
				return nil, driveError("The drive at %q is used already.", p)
			}
			take(p)
		}
	case dict:
		n := int(number(x[prefix+"Count"]))
		for _, p := range where {
			if len(out) == n {
				break
			}
			drive := c.Standard(of[p])
			media, bus := x[prefix+"MediaType"], x[prefix+"InterfaceType"]
			if used[of[p]] || media != nil && media != drive["MediaType"] || bus != nil && bus != drive["Protocol"] ||
				number(drive["CapacityBytes"])>>30 < number(x[prefix+"MinimumSizeGiB"]) {
				continue
			}
			take(p)
		}
		if len(out) < n {
			return nil, driveError("There are no %d such drives.", n)
		}
	default:
		return nil, driveError("Drives must be a list of their places, or say how many of which kind.")
	}
	return out, nil
}

// errorBody returns an error object with one message.
func (g generation) errorBody(key string) dict {
	major := g.registry[:strings.LastIndexByte(g.registry, '.')]
	return dict{"error": dict{
		"code": "iLO.0.10.ExtendedInfo", "message": "See @Message.ExtendedInfo for more information.",
		"@Message.ExtendedInfo": []any{dict{"MessageId": "iLO." + major + "." + key}},
	}}
}
