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
	taskPoll    = 2 * time.Second  // where the service does not say
	taskPollMax = 30 * time.Second // whatever it says
	taskLimit   = 10 * time.Minute
	taskMissing = 3 // 404s before a task counts as purged
)

// task is what the driver reads of a Task.
type task struct {
	ID       string          `json:"@odata.id"`
	Type     string          `json:"@odata.type"`
	State    string          `json:"TaskState"`
	Monitor  string          `json:"TaskMonitor"`
	Messages json.RawMessage `json:"Messages"`
}

// running reports whether a task has not come to its end. States that the
// driver does not know count as its end, so that no vendor's can hang it.
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

// finish waits until what a request began is at its end (DSP0266 §12): at once
// unless the answer is 202. A task that cannot be followed counts as finished;
// the caller looks at what came of it anyway.
func (c *client) finish(ctx context.Context, what string, a answer) error {
	if a.status != http.StatusAccepted {
		return nil
	}
	uri := monitor(a)
	began := c.clock.Now()
	for missing := 0; uri != ""; {
		wait := min(max(retryAfter(a.header, c.clock.Now(), taskPoll), firstWait), taskPollMax)
		if c.clock.Since(began)+wait > taskLimit {
			return fmt.Errorf("redfish: %s: the BMC is not done after %s", what, c.clock.Since(began).Round(time.Second))
		}
		if err := c.sleep(ctx, wait); err != nil {
			return fmt.Errorf("redfish: %s: %w", what, err)
		}
		next, err := c.do(ctx, http.MethodGet, uri, nil, nil)
		if e := new(statusError); errors.As(err, &e) && e.status == http.StatusNotFound {
			// iDRAC: a task is not there at first, and is gone early at times
			// (sushy's fix-dell-bmc-404 note).
			if missing++; missing == taskMissing {
				return nil
			}
			continue
		}
		if err != nil {
			return err // a monitor answers as the request itself would have
		}
		a = next
		var t task
		_ = decode(a.body, &t) // a monitor's last answer can be anything
		isTask := strings.HasPrefix(t.Type, "#Task.") || t.State != ""
		switch {
		case isTask && t.failed():
			return c.taskError(what, t)
		case a.status != http.StatusAccepted && !(isTask && t.running()):
			// iLO's Location is the task itself, which is 200 while it runs.
			return nil
		}
	}
	return nil
}

// monitor is where to ask: the Location of a 202, else what its body tells.
func monitor(a answer) string {
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
	for _, m := range messagesOf(t.Messages, "") {
		texts = append(texts, m.String())
	}
	return fmt.Errorf("redfish: %s: the task ended as %s: %s", what, t.State, c.clean(strings.Join(texts, "; ")))
}
