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

// raidType is a level by its names.
type raidType struct {
	level bmc.Level
	name  schemas.RAIDType
	old   schemas.VolumeType
}

// raidTypes are the levels as Redfish names them (Volume.RAIDType), and as it
// did before Volume 1.3.1 (VolumeType), where one name stands for several. What
// operators call level 2 has no name at all.
var raidTypes = []raidType{
	{bmc.Level0, schemas.RAID0RAIDType, schemas.NonRedundantVolumeType},
	{bmc.Level1, schemas.RAID1RAIDType, schemas.MirroredVolumeType},
	{bmc.Level5, schemas.RAID5RAIDType, schemas.StripedWithParityVolumeType},
	{bmc.Level6, schemas.RAID6RAIDType, schemas.StripedWithParityVolumeType},
	{bmc.Level10, schemas.RAID10RAIDType, schemas.SpannedMirrorsVolumeType},
	{bmc.Level50, schemas.RAID50RAIDType, schemas.SpannedStripesWithParityVolumeType},
	{bmc.Level60, schemas.RAID60RAIDType, schemas.SpannedStripesWithParityVolumeType},
}

// subsystem is what the driver reads of a Storage resource.
type subsystem struct {
	ID          string                 `json:"Id"`
	Name        string                 `json:"Name"`
	Drives      []link                 `json:"Drives"`
	Volumes     link                   `json:"Volumes"`
	Inline      []storageController    `json:"StorageControllers"` // before Storage 1.9
	Controllers link                   `json:"Controllers"`
	Status      struct{ State string } `json:"Status"`
}

type storageController struct {
	Name  string   `json:"Name"`
	Model string   `json:"Model"`
	Types []string `json:"SupportedRAIDTypes"`
}

// physical is what the driver reads of a Drive.
type physical struct {
	ID       string `json:"Id"`
	Name     string `json:"Name"`
	Serial   string `json:"SerialNumber"`
	Media    string `json:"MediaType"`
	Protocol string `json:"Protocol"`
	Bytes    int64  `json:"CapacityBytes"`
	Spare    string `json:"HotspareType"`
	Failing  bool   `json:"FailurePredicted"`
	Status   struct {
		State  string `json:"State"`
		Health string `json:"Health"`
	} `json:"Status"`
	Links struct {
		Volumes []link `json:"Volumes"`
	} `json:"Links"`
}

// logical is what the driver reads of a Volume.
type logical struct {
	Name        string `json:"Name"`
	DisplayName string `json:"DisplayName"`
	Type        string `json:"RAIDType"`
	Old         string `json:"VolumeType"`
	Bytes       int64  `json:"CapacityBytes"`
	Status      struct {
		State  string `json:"State"`
		Health string `json:"Health"`
	} `json:"Status"`
	Identifiers []struct {
		Name   string `json:"DurableName"`
		Format string `json:"DurableNameFormat"`
	} `json:"Identifiers"`
	Operations []struct {
		Percent float64 `json:"PercentageComplete"`
	} `json:"Operations"`
	Links struct {
		Drives []link `json:"Drives"`
	} `json:"Links"`
}

// Storage reads all storage of the system: a request for each resource, as
// $expand is what services get wrong most.
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
		err = c.awake(ctx)
	}
	if err != nil {
		return bmc.Storage{}, err
	}
	for _, uri := range all {
		ctl, err := c.controller(ctx, uri)
		if err != nil {
			return bmc.Storage{}, err
		}
		out.Controllers = append(out.Controllers, ctl)
	}
	out.Operations, err = c.operations(ctx)
	return out, err
}

func (c *client) controller(ctx context.Context, uri string) (bmc.Controller, error) {
	var s subsystem
	if _, err := c.get(ctx, uri, &s); err != nil {
		return bmc.Controller{}, err
	}
	out := bmc.Controller{ID: local(uri), Names: []string{s.ID, s.Name}}
	made, err := c.makers(ctx, s)
	if err != nil {
		return out, err
	}
	told := false
	for _, m := range made {
		out.Names = append(out.Names, m.Name, m.Model)
		told = told || m.Types != nil
		for _, t := range raidTypes {
			if slices.Contains(m.Types, string(t.name)) {
				out.Levels = append(out.Levels, t.level)
			}
		}
	}
	if !told && s.Volumes.ID != "" { // it does not say, so it has to be tried
		for _, t := range raidTypes {
			out.Levels = append(out.Levels, t.level)
		}
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
		v, is, err := c.volume(ctx, uri)
		if err != nil {
			return out, err
		}
		if is {
			out.Volumes = append(out.Volumes, v)
		}
	}
	return out, nil
}

// makers are the controllers of a subsystem.
func (c *client) makers(ctx context.Context, s subsystem) ([]storageController, error) {
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
	var d physical
	if _, err := c.get(ctx, uri, &d); err != nil {
		return bmc.Drive{}, err
	}
	state := schemas.State(d.Status.State)
	return bmc.Drive{
		ID: local(uri), Names: []string{d.ID, d.Name, d.Serial}, Rotational: d.Media == string(schemas.HDDMediaType),
		Protocol: d.Protocol, Bytes: d.Bytes, Used: len(d.Links.Volumes) > 0,
		Spare:   d.Spare != "" && d.Spare != string(schemas.NoneHotspareType) || state == schemas.StandbySpareState,
		Healthy: (state == schemas.EnabledState || state == "") && d.Status.Health != string(schemas.CriticalHealth) && !d.Failing,
	}, nil
}

// volume reads a volume; false of one that is but a drive by another name,
// which iDRACs list there (VolumeType RawDevice).
func (c *client) volume(ctx context.Context, uri string) (_ bmc.Volume, is bool, _ error) {
	var v logical
	if _, err := c.get(ctx, uri, &v); err != nil {
		if notFound(err) { // it has gone since the collection was read
			return bmc.Volume{}, false, nil
		}
		return bmc.Volume{}, false, err
	}
	if v.Old == string(schemas.RawDeviceVolumeType) && v.Type == "" {
		return bmc.Volume{}, false, nil
	}
	out := bmc.Volume{ID: local(uri), Name: cmp.Or(v.DisplayName, v.Name), Bytes: v.Bytes}
	for _, t := range raidTypes {
		if v.Type == string(t.name) || v.Type == "" && v.Old == string(t.old) && out.Level == "" {
			out.Level = t.level
		}
	}
	for _, d := range v.Links.Drives {
		out.Drives = append(out.Drives, local(d.ID))
	}
	for _, i := range v.Identifiers {
		if i.Format == string(schemas.NAADurableNameFormat) {
			out.WWN = naa(i.Name)
		}
	}
	state := schemas.State(v.Status.State)
	out.Healthy = (v.Status.Health == "" || v.Status.Health == string(schemas.OKHealth)) && state != schemas.DegradedState
	out.Ready = state == "" || state == schemas.EnabledState || state == schemas.DegradedState
	for _, o := range v.Operations {
		out.Percent = max(out.Percent, int(o.Percent))
	}
	return out, true, nil
}

// naa is an identifier of that format as operating systems show it.
func naa(name string) string {
	return "0x" + strings.ToLower(strings.NewReplacer("0x", "", "0X", "", "naa.", "", ":", "", "-", "").Replace(name))
}

const maxTasks = 32 // that are looked at, the last ones: an iDRAC keeps hundreds

// operations are the unfinished tasks that requests to storage began.
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
			if notFound(err) {
				continue
			}
			return nil, err
		}
		if t.running() && strings.Contains(t.Payload.Target, "/Storage/") {
			out = append(out, c.operation(uri, t))
		}
	}
	return out, nil
}

// storageTask is a task with what began it.
type storageTask struct {
	task
	Name    string    `json:"Name"`
	Percent int       `json:"PercentComplete"`
	Begun   time.Time `json:"StartTime"`
	Payload struct {
		Target string `json:"TargetUri"`
	} `json:"Payload"`
}

func (c *client) operation(uri string, t storageTask) bmc.Operation {
	o := bmc.Operation{ID: local(uri), Name: t.Name, Percent: t.Percent, Begun: t.Begun, State: bmc.OperationRunning}
	switch {
	case t.failed():
		o.State, o.Error = bmc.OperationFailed, c.taskError(t.Name, t.task).Error()
	case !t.running():
		o.State, o.Percent = bmc.OperationDone, 100
	case schemas.TaskState(t.State) == schemas.PendingTaskState:
		o.State = bmc.OperationWaits
	}
	return o
}

// Follow reads a task, or the monitor of one.
func (c *client) Follow(ctx context.Context, id string) (bmc.Operation, error) {
	if strings.HasSuffix(id, smartConfig) {
		return c.followLogical(ctx, id)
	}
	a, err := c.do(ctx, http.MethodGet, id, nil, nil)
	if e := new(statusError); errors.As(err, &e) && e.kind == nil && !strings.Contains(id, "/Tasks/") && e.status != http.StatusNotFound {
		// A monitor's last answer is the operation's own.
		return bmc.Operation{ID: id, State: bmc.OperationFailed, Error: err.Error()}, nil
	}
	if notFound(err) {
		return c.notFollowed(id), nil
	}
	if err != nil {
		return bmc.Operation{}, err
	}
	c.found(id)
	var t storageTask
	_ = decode(a.body, &t) // a monitor's last answer can be anything
	if t.State == "" && a.status != http.StatusAccepted {
		return bmc.Operation{ID: id, State: bmc.OperationDone, Percent: 100}, nil
	}
	if t.State == "" {
		return bmc.Operation{ID: id, State: bmc.OperationRunning}, nil
	}
	return c.operation(id, t), nil
}

// notFollowed is an operation that is not found. An iDRAC's is not there for the
// first seconds (sushy's fix-dell-bmc-404 note), so it counts as forgotten, and
// as done, only when that goes on.
func (c *client) notFollowed(id string) bmc.Operation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.missing == nil {
		c.missing = map[string]int{}
	}
	if c.missing[id]++; c.missing[id] < taskMissing {
		return bmc.Operation{ID: id, State: bmc.OperationRunning}
	}
	delete(c.missing, id)
	return bmc.Operation{ID: id, State: bmc.OperationDone, Percent: 100}
}

func (c *client) found(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.missing, id)
}

// accepted is the operation that an answer tells of. What was asked for with the
// next reset waits for that, whatever its task is called: an iDRAC's is
// Starting until then.
func (c *client) accepted(a answer, when map[string]any) bmc.Operation {
	if a.status != http.StatusAccepted {
		return bmc.Operation{State: bmc.OperationDone, Percent: 100}
	}
	var t storageTask
	_ = decode(a.body, &t)
	o := c.operation(cmp.Or(t.ID, monitor(a)), t)
	if t.State == "" {
		o.State, o.Error, o.Percent = bmc.OperationRunning, "", 0
	}
	if o.State == bmc.OperationRunning && when[operationTime] == schemas.OnResetOperationApplyTime {
		o.State = bmc.OperationWaits
	}
	return o
}

// operationTime is the annotation that says when an operation is to be done.
const operationTime = "@Redfish.OperationApplyTime"

// when is what a request to a collection of volumes says of when: nothing where
// the service does it at once or leaves no choice.
func (c *client) when(ctx context.Context, volumes string) (map[string]any, error) {
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
			return map[string]any{operationTime: when}, nil
		}
	}
	return map[string]any{}, nil
}

// CreateVolume makes a volume. A service that knows the type of a volume by its
// older name only is told that.
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
	body, err := c.when(ctx, s.Volumes.ID)
	if err != nil {
		return bmc.Operation{}, err
	}
	drives := []link{}
	for _, d := range v.Drives {
		drives = append(drives, link{d})
	}
	body["RAIDType"], body["Links"] = raidTypes[i].name, map[string]any{"Drives": drives}
	if v.Bytes > 0 {
		body["CapacityBytes"] = v.Bytes
	}
	if v.Name != "" {
		body["Name"] = v.Name
	}
	a, err := c.do(ctx, http.MethodPost, s.Volumes.ID, body, nil)
	if body[operationTime] != nil && aboutParameter(err, "OperationApplyTime") {
		delete(body, operationTime)
		a, err = c.do(ctx, http.MethodPost, s.Volumes.ID, body, nil)
	}
	if e := new(statusError); errors.As(err, &e) && e.status == http.StatusBadRequest &&
		(e.has("PropertyMissing") && slices.Contains(e.arguments, "VolumeType") || e.has("PropertyUnknown") && slices.Contains(e.arguments, "RAIDType")) {
		delete(body, "RAIDType")
		body["VolumeType"] = raidTypes[i].old
		a, err = c.do(ctx, http.MethodPost, s.Volumes.ID, body, nil)
	}
	if closed(err) {
		return c.createLogical(ctx, v, s, string(raidTypes[i].name), err)
	}
	if err != nil {
		return bmc.Operation{}, err
	}
	return c.accepted(a, body), nil
}

// DeleteVolume deletes a volume; one that is not there is no error. Only where
// it cannot be done at once does the request have a body.
func (c *client) DeleteVolume(ctx context.Context, id string) (bmc.Operation, error) {
	when, err := c.when(ctx, id[:strings.LastIndexByte(id, '/')])
	if err != nil {
		return bmc.Operation{}, err
	}
	var body any
	if when[operationTime] == schemas.OnResetOperationApplyTime {
		body = when
	}
	a, err := c.remove(ctx, id, body)
	if body != nil && (badRequest(err) || readOnly(err)) && !errors.Is(err, bmc.ErrBusy) {
		// iDRACs from 6.00.02 on offer it, and do not take it (sushy's
		// fix-volume-delete note).
		a, err = c.remove(ctx, id, nil)
	}
	if notFound(err) {
		return bmc.Operation{State: bmc.OperationDone, Percent: 100}, nil
	}
	if closed(err) {
		return c.deleteLogical(ctx, id, err)
	}
	if err != nil {
		return bmc.Operation{}, err
	}
	return c.accepted(a, when), nil
}

// closed reports whether a service does not take a method at all.
func closed(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && (e.status == http.StatusMethodNotAllowed || e.status == http.StatusNotImplemented)
}
