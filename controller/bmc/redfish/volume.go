package redfish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/metalab-dev/metalab/controller/bmc"
)

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
