package redfish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// raidType holds the names of a RAID level.
type raidType struct {
	level      bmc.Level
	raidType   schemas.RAIDType
	volumeType schemas.VolumeType
}

// raidTypes lists the levels by their names in Redfish: Volume.RAIDType and,
// before Volume 1.3.1, VolumeType, where one name stands for several levels. Level
// 2 has no name in Redfish.
var raidTypes = []raidType{
	{bmc.Level0, schemas.RAID0RAIDType, schemas.NonRedundantVolumeType},
	{bmc.Level1, schemas.RAID1RAIDType, schemas.MirroredVolumeType},
	{bmc.Level5, schemas.RAID5RAIDType, schemas.StripedWithParityVolumeType},
	{bmc.Level6, schemas.RAID6RAIDType, schemas.StripedWithParityVolumeType},
	{bmc.Level10, schemas.RAID10RAIDType, schemas.SpannedMirrorsVolumeType},
	{bmc.Level50, schemas.RAID50RAIDType, schemas.SpannedStripesWithParityVolumeType},
	{bmc.Level60, schemas.RAID60RAIDType, schemas.SpannedStripesWithParityVolumeType},
}

// subsystem holds the properties that the driver reads of a Storage resource.
type subsystem struct {
	ID          string                 `json:"Id"`
	Name        string                 `json:"Name"`
	Drives      []link                 `json:"Drives"`
	Volumes     link                   `json:"Volumes"`
	Inline      []storageController    `json:"StorageControllers"` // until Storage 1.9
	Controllers link                   `json:"Controllers"`
	Status      struct{ State string } `json:"Status"`
}

type storageController struct {
	Name  string   `json:"Name"`
	Model string   `json:"Model"`
	Types []string `json:"SupportedRAIDTypes"`
}

// driveResource holds the properties that the driver reads of a Drive.
type driveResource struct {
	ID       string `json:"Id"`
	Name     string `json:"Name"`
	Vendor   string `json:"Manufacturer"`
	Model    string `json:"Model"`
	Serial   string `json:"SerialNumber"`
	Media    string `json:"MediaType"`
	Protocol string `json:"Protocol"`
	Bytes    int64  `json:"CapacityBytes"`
	Spare    string `json:"HotspareType"`
	Failing  bool   `json:"FailurePredicted"`
	identifiers
	Status struct {
		State  string `json:"State"`
		Health string `json:"Health"`
	} `json:"Status"`
	Links struct {
		Volumes []link `json:"Volumes"`
	} `json:"Links"`
}

// identifiers holds the identifiers of a Drive or a Volume.
type identifiers struct {
	Identifiers []struct {
		Name   string `json:"DurableName"`
		Format string `json:"DurableNameFormat"`
	} `json:"Identifiers"`
}

// wwn returns the worldwide name as operating systems show it; "" if there is none.
func (i identifiers) wwn() (name string) {
	for _, one := range i.Identifiers {
		switch {
		case one.Name == "":
		case one.Format == string(schemas.NAADurableNameFormat):
			name = formatNAA(one.Name)
		case one.Format == string(schemas.EUIDurableNameFormat) && name == "":
			name = "eui." + strings.ToLower(strings.NewReplacer("eui.", "", "-", "", ":", "").Replace(one.Name))
		}
	}
	return name
}

// volumeResource holds the properties that the driver reads of a Volume.
type volumeResource struct {
	Name        string `json:"Name"`
	DisplayName string `json:"DisplayName"`
	Type        string `json:"RAIDType"`
	Old         string `json:"VolumeType"`
	Bytes       int64  `json:"CapacityBytes"`
	Status      struct {
		State  string `json:"State"`
		Health string `json:"Health"`
	} `json:"Status"`
	identifiers
	Operations []struct {
		Percent float64 `json:"PercentageComplete"`
	} `json:"Operations"`
	Links struct {
		Drives []link `json:"Drives"`
	} `json:"Links"`
}

// Storage reads all storage of the system, with a request for each resource:
// $expand is the query that services most often get wrong.
func (c *client) Storage(ctx context.Context) (bmc.Storage, error) {
	s, err := c.computerSystem(ctx)
	if err != nil {
		return bmc.Storage{}, err
	}
	var out bmc.Storage
	if s.Storage.ID == "" {
		out.Controllers, err = c.arrayControllers(ctx, s)
		if err == nil && out.Controllers == nil {
			err = unsupported("Storage", "the system has none that its BMC knows")
		}
		return out, err
	}
	all, err := c.members(ctx, s.Storage.ID)
	if err == nil && len(all) == 0 {
		err = c.checkAwake(ctx)
	}
	if err != nil {
		return bmc.Storage{}, err
	}
	for _, uri := range all {
		ctl, err := c.readController(ctx, uri)
		if err != nil {
			return bmc.Storage{}, err
		}
		out.Controllers = append(out.Controllers, ctl)
	}
	out.Operations, err = c.operations(ctx)
	return out, err
}

func (c *client) readController(ctx context.Context, uri string) (bmc.Controller, error) {
	var s subsystem
	if _, err := c.get(ctx, uri, &s); err != nil {
		return bmc.Controller{}, err
	}
	out := bmc.Controller{ID: localPath(uri), Names: []string{s.ID, s.Name}}
	listed, err := c.storageControllers(ctx, s)
	if err != nil {
		return out, err
	}
	hasLevels := false
	for _, m := range listed {
		out.Names = append(out.Names, m.Name, m.Model)
		hasLevels = hasLevels || m.Types != nil
		for _, t := range raidTypes {
			if slices.Contains(m.Types, string(t.raidType)) {
				out.Levels = append(out.Levels, t.level)
			}
		}
	}
	if !hasLevels && s.Volumes.ID != "" { // the service lists no levels: CreateVolume finds out
		for _, t := range raidTypes {
			out.Levels = append(out.Levels, t.level)
		}
	}
	if s.Drives != nil { // the service lists drives, be it none
		out.Drives = []bmc.Drive{}
	}
	for _, d := range s.Drives {
		drive, err := c.physicalDrive(ctx, d.ID)
		if err != nil {
			return out, err
		}
		out.Drives = append(out.Drives, drive)
	}
	if s.Volumes.ID == "" {
		return out, nil
	}
	uris, err := c.members(ctx, s.Volumes.ID)
	if err != nil {
		return out, err
	}
	for _, uri := range uris {
		v, ok, err := c.volume(ctx, uri)
		if err != nil {
			return out, err
		}
		if ok {
			out.Volumes = append(out.Volumes, v)
		}
	}
	return out, nil
}

// storageControllers reads the controllers of a subsystem.
func (c *client) storageControllers(ctx context.Context, s subsystem) ([]storageController, error) {
	if s.Controllers.ID == "" {
		return s.Inline, nil
	}
	uris, err := c.members(ctx, s.Controllers.ID)
	if err != nil {
		return nil, err
	}
	var out []storageController
	for _, uri := range uris {
		var m storageController
		if _, err := c.get(ctx, uri, &m); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func (c *client) physicalDrive(ctx context.Context, uri string) (bmc.Drive, error) {
	var d driveResource
	if _, err := c.get(ctx, uri, &d); err != nil {
		return bmc.Drive{}, err
	}
	state := schemas.State(d.Status.State)
	return bmc.Drive{
		ID: localPath(uri), Names: []string{d.ID, d.Name, d.Serial}, Rotational: d.Media == string(schemas.HDDMediaType),
		Name: d.Name, Vendor: d.Vendor, Model: d.Model, Serial: d.Serial, WWN: d.wwn(), Protocol: d.Protocol, Bytes: d.Bytes, Used: len(d.Links.Volumes) > 0,
		Spare:   d.Spare != "" && d.Spare != string(schemas.NoneHotspareType) || state == schemas.StandbySpareState,
		Absent:  state == schemas.AbsentState,
		Healthy: (state == schemas.EnabledState || state == "") && d.Status.Health != string(schemas.CriticalHealth) && !d.Failing,
	}, nil
}

// volume reads a volume. It returns false for a drive that the service lists as a
// volume (iDRAC: VolumeType RawDevice) and for a volume that was deleted since the
// collection was read.
func (c *client) volume(ctx context.Context, uri string) (_ bmc.Volume, ok bool, _ error) {
	var v volumeResource
	if _, err := c.get(ctx, uri, &v); err != nil {
		if isNotFound(err) { // deleted since the collection was read
			return bmc.Volume{}, false, nil
		}
		return bmc.Volume{}, false, err
	}
	if v.Old == string(schemas.RawDeviceVolumeType) && v.Type == "" {
		return bmc.Volume{}, false, nil
	}
	out := bmc.Volume{ID: localPath(uri), Name: cmp.Or(v.DisplayName, v.Name), Bytes: v.Bytes}
	for _, t := range raidTypes {
		if v.Type == string(t.raidType) || v.Type == "" && v.Old == string(t.volumeType) && out.Level == "" {
			out.Level = t.level
		}
	}
	for _, d := range v.Links.Drives {
		out.Drives = append(out.Drives, localPath(d.ID))
	}
	out.WWN = v.wwn()
	state := schemas.State(v.Status.State)
	out.Healthy = (v.Status.Health == "" || v.Status.Health == string(schemas.OKHealth)) && state != schemas.DegradedState
	out.Ready = state == "" || state == schemas.EnabledState || state == schemas.DegradedState
	for _, o := range v.Operations {
		out.Percent = max(out.Percent, int(o.Percent))
	}
	return out, true, nil
}

// formatNAA writes an NAA identifier as operating systems show it: 0x and
// lower-case hex digits.
func formatNAA(name string) string {
	return "0x" + strings.ToLower(strings.NewReplacer("0x", "", "0X", "", "naa.", "", ":", "", "-", "").Replace(name))
}

const maxTasks = 32 // number of tasks read, the newest: an iDRAC stores hundreds

// operations returns the unfinished tasks of requests to storage.
func (c *client) operations(ctx context.Context) ([]bmc.Operation, error) {
	c.mu.Lock()
	service := c.root.Tasks.ID
	c.mu.Unlock()
	if service == "" {
		return nil, nil
	}
	var s struct {
		Tasks link `json:"Tasks"`
	}
	if _, err := c.get(ctx, service, &s); err != nil || s.Tasks.ID == "" {
		return nil, err
	}
	uris, err := c.members(ctx, s.Tasks.ID)
	if err != nil {
		return nil, err
	}
	var out []bmc.Operation
	for _, uri := range uris[max(0, len(uris)-maxTasks):] {
		var t storageTask
		if _, err := c.get(ctx, uri, &t); err != nil {
			if isNotFound(err) {
				continue
			}
			return nil, err
		}
		if t.running() && strings.Contains(t.Payload.Target, "/Storage/") {
			out = append(out, c.toOperation(uri, t))
		}
	}
	return out, nil
}

// storageTask is a task with the target of its request.
type storageTask struct {
	task
	Name    string    `json:"Name"`
	Percent int       `json:"PercentComplete"`
	Started time.Time `json:"StartTime"`
	Payload struct {
		Target string `json:"TargetUri"`
	} `json:"Payload"`
}

func (c *client) toOperation(uri string, t storageTask) bmc.Operation {
	o := bmc.Operation{ID: localPath(uri), Name: t.Name, Percent: t.Percent, Started: t.Started, State: bmc.OperationRunning}
	switch {
	case t.failed():
		o.State, o.Error = bmc.OperationFailed, c.taskError(t.Name, t.task).Error()
	case !t.running():
		o.State, o.Percent = bmc.OperationDone, 100
	case schemas.TaskState(t.State) == schemas.PendingTaskState:
		o.State = bmc.OperationPending
	}
	return o
}

// PollOperation reads a task, or the monitor of one.
func (c *client) PollOperation(ctx context.Context, id string) (bmc.Operation, error) {
	if strings.HasSuffix(id, smartStoragePath) {
		return c.smartStorageOperation(ctx, id)
	}
	a, err := c.do(ctx, http.MethodGet, id, nil, nil)
	if e := new(statusError); errors.As(err, &e) && e.kind == nil && !strings.Contains(id, "/Tasks/") && e.status != http.StatusNotFound {
		// The last response of a monitor is that of the request.
		return bmc.Operation{ID: id, State: bmc.OperationFailed, Error: err.Error()}, nil
	}
	if isNotFound(err) {
		return c.operationNotFound(id), nil
	}
	if err != nil {
		return bmc.Operation{}, err
	}
	c.clearNotFound(id)
	var t storageTask
	_ = decode(a.body, &t) // the last response of a monitor can have any body
	if t.State == "" && a.status != http.StatusAccepted {
		return bmc.Operation{ID: id, State: bmc.OperationDone, Percent: 100}, nil
	}
	if t.State == "" {
		return bmc.Operation{ID: id, State: bmc.OperationRunning}, nil
	}
	return c.toOperation(id, t), nil
}

// operationNotFound returns the state of an operation that answers 404. An iDRAC's
// task is missing for its first seconds (sushy's fix-dell-bmc-404 note), so the
// operation counts as done only after taskMissing consecutive 404s.
func (c *client) operationNotFound(id string) bmc.Operation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.notFoundCount == nil {
		c.notFoundCount = map[string]int{}
	}
	if c.notFoundCount[id]++; c.notFoundCount[id] < taskMissing {
		return bmc.Operation{ID: id, State: bmc.OperationRunning}
	}
	delete(c.notFoundCount, id)
	return bmc.Operation{ID: id, State: bmc.OperationDone, Percent: 100}
}

func (c *client) clearNotFound(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.notFoundCount, id)
}

// acceptedOperation returns the operation that a response describes. An operation
// requested for the next reset is pending whatever state its task shows: an
// iDRAC's is Starting until the reset.
func (c *client) acceptedOperation(a response, when map[string]any) bmc.Operation {
	if a.status != http.StatusAccepted {
		return bmc.Operation{State: bmc.OperationDone, Percent: 100}
	}
	var t storageTask
	_ = decode(a.body, &t)
	o := c.toOperation(cmp.Or(t.ID, monitorURI(a)), t)
	if t.State == "" {
		o.State, o.Error, o.Percent = bmc.OperationRunning, "", 0
	}
	if o.State == bmc.OperationRunning && when[operationApplyTime] == schemas.OnResetOperationApplyTime {
		o.State = bmc.OperationPending
	}
	return o
}

// operationApplyTime is the annotation that chooses when an operation starts.
const operationApplyTime = "@Redfish.OperationApplyTime"

// applyTimeAnnotation returns the annotation for a request to a collection of
// volumes: Immediate if the service offers it, else OnReset, else nothing.
func (c *client) applyTimeAnnotation(ctx context.Context, volumes string) (map[string]any, error) {
	var v struct {
		Times struct {
			Values []string `json:"SupportedValues"`
		} `json:"@Redfish.OperationApplyTimeSupport"`
	}
	if _, err := c.get(ctx, volumes, &v); err != nil {
		return nil, err
	}
	for _, when := range []schemas.OperationApplyTime{schemas.ImmediateOperationApplyTime, schemas.OnResetOperationApplyTime} {
		if slices.Contains(v.Times.Values, string(when)) {
			return map[string]any{operationApplyTime: when}, nil
		}
	}
	return map[string]any{}, nil
}

// CreateVolume creates a volume. A service that knows only VolumeType gets that in
// place of RAIDType.
func (c *client) CreateVolume(ctx context.Context, v bmc.NewVolume) (bmc.Operation, error) {
	i := slices.IndexFunc(raidTypes, func(t raidType) bool { return t.level == v.Level })
	if i < 0 {
		return bmc.Operation{}, fmt.Errorf("redfish: create volume: RAID level %s: Redfish has no such RAID type: %w", v.Level, bmc.ErrUnsupported)
	}
	var s subsystem
	if _, err := c.get(ctx, v.Controller, &s); err != nil {
		return bmc.Operation{}, err
	}
	if s.Volumes.ID == "" {
		return bmc.Operation{}, unsupported("CreateVolume", v.Controller+" makes none")
	}
	body, err := c.applyTimeAnnotation(ctx, s.Volumes.ID)
	if err != nil {
		return bmc.Operation{}, err
	}
	drives := []link{}
	for _, d := range v.Drives {
		drives = append(drives, link{d})
	}
	body["RAIDType"], body["Links"] = raidTypes[i].raidType, map[string]any{"Drives": drives}
	if v.Bytes > 0 {
		body["CapacityBytes"] = v.Bytes
	}
	if v.Name != "" {
		body["Name"] = v.Name
	}
	a, err := c.do(ctx, http.MethodPost, s.Volumes.ID, body, nil)
	if body[operationApplyTime] != nil && refusesParameter(err, "OperationApplyTime") {
		delete(body, operationApplyTime)
		a, err = c.do(ctx, http.MethodPost, s.Volumes.ID, body, nil)
	}
	if e := new(statusError); errors.As(err, &e) && e.status == http.StatusBadRequest &&
		(e.has("PropertyMissing") && slices.Contains(e.arguments, "VolumeType") || e.has("PropertyUnknown") && slices.Contains(e.arguments, "RAIDType")) {
		delete(body, "RAIDType")
		body["VolumeType"] = raidTypes[i].volumeType
		a, err = c.do(ctx, http.MethodPost, s.Volumes.ID, body, nil)
	}
	if isMethodNotAllowed(err) {
		return c.createLogicalDrive(ctx, v, s, string(raidTypes[i].raidType), err)
	}
	if err != nil {
		return bmc.Operation{}, err
	}
	return c.acceptedOperation(a, body), nil
}

// DeleteVolume deletes a volume. It returns no error if the volume does not exist.
// The request has a body only if the service cannot delete at once.
func (c *client) DeleteVolume(ctx context.Context, id string) (bmc.Operation, error) {
	when, err := c.applyTimeAnnotation(ctx, id[:strings.LastIndexByte(id, '/')])
	if err != nil {
		return bmc.Operation{}, err
	}
	var body any
	if when[operationApplyTime] == schemas.OnResetOperationApplyTime {
		body = when
	}
	a, err := c.deleteResource(ctx, id, body)
	if body != nil && (isBadRequest(err) || isReadOnly(err)) && !errors.Is(err, bmc.ErrBusy) {
		// iDRACs from 6.00.02 on offer the apply time and refuse it (sushy's
		// fix-volume-delete note).
		a, err = c.deleteResource(ctx, id, nil)
	}
	if isNotFound(err) {
		return bmc.Operation{State: bmc.OperationDone, Percent: 100}, nil
	}
	if isMethodNotAllowed(err) {
		return c.deleteLogicalDrive(ctx, id, err)
	}
	if err != nil {
		return bmc.Operation{}, err
	}
	return c.acceptedOperation(a, when), nil
}

// isMethodNotAllowed reports whether a resource does not take the method.
func isMethodNotAllowed(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && (e.status == http.StatusMethodNotAllowed || e.status == http.StatusNotImplemented)
}
