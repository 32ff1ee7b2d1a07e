package redfish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stmcginnis/gofish/schemas"
)

const (
	taskPoll    = 2 * time.Second  // interval if the service gives no Retry-After
	taskPollMax = 30 * time.Second // upper bound of Retry-After
	taskLimit   = 10 * time.Minute
	taskMissing = 3 // number of 404s after which a task counts as deleted
)

// task holds the properties that the driver reads of a Task.
type task struct {
	ID       string          `json:"@odata.id"`
	Type     string          `json:"@odata.type"`
	State    string          `json:"TaskState"`
	Monitor  string          `json:"TaskMonitor"`
	Messages json.RawMessage `json:"Messages"`
}

// running reports whether a task has not ended. Unknown states count as ended, so
// that a vendor's own state cannot block the driver.
func (t task) running() bool {
	switch schemas.TaskState(t.State) {
	case schemas.NewTaskState, schemas.StartingTaskState, schemas.RunningTaskState, schemas.PendingTaskState,
		schemas.StoppingTaskState, schemas.SuspendedTaskState, schemas.InterruptedTaskState, schemas.CancellingTaskState:
		return true
	}
	return false
}

func (t task) failed() bool {
	switch schemas.TaskState(t.State) {
	case schemas.ExceptionTaskState, schemas.KilledTaskState, schemas.CancelledTaskState:
		return true
	}
	return false
}

// awaitTask waits until the task of a 202 response has ended (DSP0266 §12), and
// returns at once for any other response. A task that cannot be polled counts as
// ended: the caller verifies the result anyway.
func (c *client) awaitTask(ctx context.Context, what string, a response) error {
	if a.status != http.StatusAccepted {
		return nil
	}
	uri := monitorURI(a)
	began := c.clock.Now()
	for missing := 0; uri != ""; {
		wait := min(max(retryAfter(a.header, c.clock.Now(), taskPoll), firstRetryDelay), taskPollMax)
		if c.clock.Since(began)+wait > taskLimit {
			return fmt.Errorf("redfish: %s: the BMC is not done after %s", what, c.clock.Since(began).Round(time.Second))
		}
		if err := c.sleep(ctx, wait); err != nil {
			return fmt.Errorf("redfish: %s: %w", what, err)
		}
		next, err := c.do(ctx, http.MethodGet, uri, nil, nil)
		if e := new(statusError); errors.As(err, &e) && e.status == http.StatusNotFound {
			// iDRAC: a task is missing at first and is sometimes deleted early
			// (sushy's fix-dell-bmc-404 note).
			if missing++; missing == taskMissing {
				return nil
			}
			continue
		}
		if err != nil {
			return err // a task monitor answers as the request would have
		}
		a = next
		var t task
		_ = decode(a.body, &t) // the last response of a monitor can have any body
		isTask := strings.HasPrefix(t.Type, "#Task.") || t.State != ""
		switch {
		case isTask && t.failed():
			return c.taskError(what, t)
		case a.status != http.StatusAccepted && !(isTask && t.running()):
			// iLO's Location is the task itself, which answers 200 while it runs.
			return nil
		}
	}
	return nil
}

// monitorURI returns the URI to poll: the Location of a 202, else the one in its
// body; "" if there is none.
func monitorURI(a response) string {
	if uri := a.header.Get("Location"); uri != "" {
		return uri
	}
	var t task
	_ = decode(a.body, &t) // a 202 may have no body
	if t.Monitor != "" {
		return t.Monitor
	}
	return t.ID
}

func (c *client) taskError(what string, t task) error {
	var texts []string
	for _, m := range parseMessages(t.Messages, "") {
		texts = append(texts, m.String())
	}
	return fmt.Errorf("redfish: %s: the task ended as %s: %s", what, t.State, c.sanitize(strings.Join(texts, "; ")))
}
