package redfish

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// smartStorage is the SmartStorageConfig resource of HPE: iLO 5 shows its volumes
// as the standard does, but takes changes only here, for the next start of the
// system.
type smartStorage struct {
	Logical []struct {
		ID string `json:"VolumeUniqueIdentifier"`
	} `json:"LogicalDrives"`
	Physical []struct {
		Location string `json:"Location"`
	} `json:"PhysicalDrives"`
	Settings struct {
		Object   link            `json:"SettingsObject"`
		Messages json.RawMessage `json:"Messages"`
	} `json:"@Redfish.Settings"`

	uri string
}

const (
	smartStoragePath    = "/smartstorageconfig" // path below the system
	smartStorageVariant = "SmartStorageConfig, at the next reset"
	topicVolumes        = "volumes"
)

// readSmartStorage reads the configuration. It returns refused, the error of the
// standard request, if the service has none.
func (c *client) readSmartStorage(ctx context.Context, refused error) (smartStorage, error) {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return smartStorage{}, err
	}
	a := smartStorage{uri: strings.TrimRight(localPath(s.uri), "/") + smartStoragePath}
	_, err = c.get(ctx, a.uri, &a)
	if isNotFound(err) || err == nil && a.Settings.Object.ID == "" {
		err = refused
	}
	return a, err
}

// createLogicalDrive creates a volume of a subsystem's drives.
func (c *client) createLogicalDrive(ctx context.Context, v bmc.NewVolume, system subsystem, redfishName string, refused error) (bmc.Operation, error) {
	a, err := c.readSmartStorage(ctx, refused)
	if err != nil {
		return bmc.Operation{}, err
	}
	logical := map[string]any{"Raid": "Raid" + strings.TrimPrefix(redfishName, "RAID")}
	if v.Name != "" {
		logical["LogicalDriveName"] = v.Name
	}
	if v.Bytes > 0 {
		logical["CapacityGiB"] = (v.Bytes + 1<<30 - 1) >> 30
	}
	if v.Level == bmc.Level50 || v.Level == bmc.Level60 {
		logical["ParityGroupCount"] = 2
	}
	var places []string
	for _, d := range v.Drives {
		// The configuration names drives by location, in the order of the
		// subsystem's drives.
		i := slices.IndexFunc(system.Drives, func(l link) bool { return localPath(l.ID) == localPath(d) })
		if i < 0 || len(a.Physical) != len(system.Drives) {
			return bmc.Operation{}, fmt.Errorf("redfish: create volume: %s is none of the %d drives of %s: %w", d, len(a.Physical), a.uri, bmc.ErrUnsupported)
		}
		places = append(places, a.Physical[i].Location)
	}
	logical["DataDrives"] = places
	return c.patchSmartStorage(ctx, a, "Create logical drive", logical)
}

// deleteLogicalDrive deletes a volume.
func (c *client) deleteLogicalDrive(ctx context.Context, id string, refused error) (bmc.Operation, error) {
	a, err := c.readSmartStorage(ctx, refused)
	if err != nil {
		return bmc.Operation{}, err
	}
	v, _, err := c.volume(ctx, id)
	if err != nil {
		return bmc.Operation{}, err
	}
	for _, l := range a.Logical {
		if l.ID != "" && formatNAA(l.ID) == v.WWN {
			return c.patchSmartStorage(ctx, a, "Delete logical drive", map[string]any{
				"VolumeUniqueIdentifier": l.ID, "Actions": []map[string]any{{"Action": "LogicalDriveDelete"}},
			})
		}
	}
	return bmc.Operation{}, refused
}

// patchSmartStorage adds a change to those that wait for the next start. DataGuard
// Permissive leaves the drives that it does not name alone.
func (c *client) patchSmartStorage(ctx context.Context, a smartStorage, name string, change map[string]any) (bmc.Operation, error) {
	var waits struct {
		Logical []map[string]any `json:"LogicalDrives"`
	}
	now, err := c.get(ctx, a.Settings.Object.ID, &waits)
	if err != nil {
		return bmc.Operation{}, err
	}
	all := []map[string]any{}
	for _, l := range waits.Logical {
		id, _ := l["VolumeUniqueIdentifier"].(string)
		if id == "" || l["Actions"] != nil {
			all = append(all, l)
		}
	}
	body := map[string]any{"DataGuard": "Permissive", "LogicalDrives": append(all, change)}
	if _, err := c.sendWithETag(ctx, http.MethodPatch, a.Settings.Object.ID, etag(now), body); err != nil {
		return bmc.Operation{}, err
	}
	c.workarounds.Record(bmc.Workaround{Topic: topicVolumes, Variant: smartStorageVariant, Nonstandard: true})
	return bmc.Operation{ID: a.uri, Name: name, State: bmc.OperationPending}, nil
}

// smartStorageOperation reads the result of the last change.
func (c *client) smartStorageOperation(ctx context.Context, uri string) (bmc.Operation, error) {
	a := smartStorage{}
	if _, err := c.get(ctx, uri, &a); err != nil {
		return bmc.Operation{}, err
	}
	o := bmc.Operation{ID: uri, State: bmc.OperationDone, Percent: 100}
	for _, m := range parseMessages(a.Settings.Messages, "") {
		switch {
		case m.name() == "SystemResetRequired":
			return bmc.Operation{ID: uri, State: bmc.OperationPending}, nil
		case !m.success() && o.Error == "":
			o.State, o.Error = bmc.OperationFailed, c.sanitize(m.String())
		}
	}
	return o, nil
}
