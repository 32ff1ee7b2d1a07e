package redfish

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/metalab-dev/metalab/controller/bmc"
)

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
