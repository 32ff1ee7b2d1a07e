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

// smartArray is the configuration of a Smart Array: iLO 5 shows its volumes as
// the standard has them, and takes changes of them here alone, for the next
// start of the system.
type smartArray struct {
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
	smartConfig  = "/smartstorageconfig" // below the system
	smartWay     = "SmartStorageConfig, at the next reset"
	aboutVolumes = "volumes"
)

// smartArray reads the configuration; refused is why it is looked for, and the
// error where there is none.
func (c *client) smartArray(ctx context.Context, refused error) (smartArray, error) {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return smartArray{}, err
	}
	a := smartArray{uri: strings.TrimRight(local(s.uri), "/") + smartConfig}
	_, err = c.get(ctx, a.uri, &a)
	if notFound(err) || err == nil && a.Settings.Object.ID == "" {
		err = refused
	}
	return a, err
}

// createLogical makes a volume of a subsystem's drives.
func (c *client) createLogical(ctx context.Context, v bmc.NewVolume, of subsystem, redfishName string, refused error) (bmc.Operation, error) {
	a, err := c.smartArray(ctx, refused)
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
		// Drives are told by where they are: in the order of the subsystem's.
		i := slices.IndexFunc(of.Drives, func(l link) bool { return local(l.ID) == local(d) })
		if i < 0 || len(a.Physical) != len(of.Drives) {
			return bmc.Operation{}, fmt.Errorf("redfish: create volume: %s is none of the %d drives of %s: %w", d, len(a.Physical), a.uri, bmc.ErrUnsupported)
		}
		places = append(places, a.Physical[i].Location)
	}
	logical["DataDrives"] = places
	return c.arrange(ctx, a, "Create logical drive", logical)
}

// deleteLogical takes a volume apart.
func (c *client) deleteLogical(ctx context.Context, id string, refused error) (bmc.Operation, error) {
	a, err := c.smartArray(ctx, refused)
	if err != nil {
		return bmc.Operation{}, err
	}
	v, _, err := c.volume(ctx, id)
	if err != nil {
		return bmc.Operation{}, err
	}
	for _, l := range a.Logical {
		if l.ID != "" && naa(l.ID) == v.WWN {
			return c.arrange(ctx, a, "Delete logical drive", map[string]any{
				"VolumeUniqueIdentifier": l.ID, "Actions": []map[string]any{{"Action": "LogicalDriveDelete"}},
			})
		}
	}
	return bmc.Operation{}, refused
}

// arrange asks for a change beside those that wait for the same start. What it
// does not name stays (DataGuard Permissive).
func (c *client) arrange(ctx context.Context, a smartArray, name string, change map[string]any) (bmc.Operation, error) {
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
	if _, err := c.change(ctx, http.MethodPatch, a.Settings.Object.ID, etag(now), body); err != nil {
		return bmc.Operation{}, err
	}
	c.lessons.Learn(bmc.Lesson{Topic: aboutVolumes, Way: smartWay, Odd: true})
	return bmc.Operation{ID: a.uri, Name: name, State: bmc.OperationWaits}, nil
}

// followLogical reads what has become of the last change.
func (c *client) followLogical(ctx context.Context, uri string) (bmc.Operation, error) {
	a := smartArray{}
	if _, err := c.get(ctx, uri, &a); err != nil {
		return bmc.Operation{}, err
	}
	o := bmc.Operation{ID: uri, State: bmc.OperationDone, Percent: 100}
	for _, m := range messagesOf(a.Settings.Messages, "") {
		switch {
		case m.key() == "SystemResetRequired":
			return bmc.Operation{ID: uri, State: bmc.OperationWaits}, nil
		case !m.good() && o.Error == "":
			o.State, o.Error = bmc.OperationFailed, c.clean(m.String())
		}
	}
	return o, nil
}
