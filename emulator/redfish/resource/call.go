package resource

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// Call is a request that was parsed, authenticated and matched to a resource.
type Call struct {
	Host      Host
	View      View   // view of the resource that the request addresses
	Values    Values // the valid values that the client sent
	Actor     Actor
	From      string // address of the client
	Request   request
	Match     *Match
	Method    string
	Body      Document // everything that the client sent
	ApplyTime string   // an OperationApplyTime that the resource supports
}

// request is the part of the HTTP request that a call needs.
type request interface {
	// Expect sets the status of the response if the call succeeds.
	Expect(status int)
	// SignedIn records the user that the request has authenticated.
	SignedIn(who Actor)
	// Task returns the ID of the task that runs the call; "" if a new task is needed.
	Task() string
	// Query returns the query parameters of the URL.
	Query() url.Values
	// HoldsETag reports whether an ETag matches a resource.
	HoldsETag(tag string, m *Match) bool
	// Do sends an inner request to a standard URI as the same actor. task is the ID
	// of the task that it is part of, or "".
	Do(ctx context.Context, task string, kind InnerKind, method, uri string, body Object) *InnerResponse
	// Outlive marks the request as in use after the response is sent, because a task
	// goes on with it. The server then does not reuse its memory.
	Outlive()
	// Wait waits for a duration of the lab's clock, or until the context ends.
	Wait(ctx context.Context, d time.Duration) error
}

// taskRequest returns the request as its task shows it. The payload of a request
// with a secret is hidden (DSP2046, Task.HidePayload).
func (c Call) taskRequest() bmc.Request {
	body, hidden := c.Body.Redacted(c.Match)
	return bmc.Request{Method: c.Method, Target: c.Match.target(), Body: body, Hidden: hidden}
}

// namedTask returns the command that opens a task with a name for this request.
func (c Call) namedTask(name string) bmc.OpenTask {
	return bmc.OpenTask{Name: name, User: c.Actor.User, Account: c.Actor.Account, Request: c.taskRequest()}
}

// BeginTask opens a task for a machine command and returns the task as the
// result. A call that already runs in a task applies the command in that task.
func (c Call) BeginTask(ctx context.Context, name string, do func(job string) machine.Command) (Result, error) {
	c.Request.Expect(http.StatusAccepted)
	if job := c.Request.Task(); job != "" {
		return Result{Task: job}, c.Host.Apply(ctx, do(job))
	}
	j, err := c.Host.Begin(ctx, c.namedTask(name), do)
	return Result{Task: j.ID}, err
}

// startTask applies a BMC command that opens a task and returns the task as the
// result.
func (c Call) startTask(ctx context.Context, do bmc.Command) (Result, error) {
	evs, err := c.Host.ApplyBMC(ctx, do)
	if err != nil {
		return Result{}, err
	}
	for _, ev := range evs {
		if opened, ok := ev.(bmc.TaskOpened); ok {
			return Result{Task: opened.Task.ID}, nil
		}
	}
	return Result{}, fmt.Errorf("redfish: %T opened no task", do)
}

// Result is the outcome of a call. The zero Result is a success without a body.
type Result struct {
	URI         string            // URI of the new resource, when it is not a member of the addressed collection
	ID          string            // ID of the new member
	Token       string            // token of a new session (X-Auth-Token)
	Body        Object            // body of the response to an action
	Task        string            // ID of a running task: the response is 202 and links to it
	Status      int               // status of the response; 0: the default
	Inner       *InnerResponse    // if not nil, it is the response
	InputErrors []InputError      // properties of a PATCH that the model rejected; the others were applied
	Messages    []message.Message // added to the resource in the response
}

// OpenTask returns the command that opens a task named by the request's method
// and target.
func (c Call) OpenTask() bmc.OpenTask {
	r := c.taskRequest()
	return bmc.OpenTask{Name: r.Method + " " + r.Target, User: c.Actor.User, Account: c.Actor.Account, Request: r}
}

// RecordTask opens and closes a task for a call that is already completed. It
// returns the task's ID.
func (c Call) RecordTask(ctx context.Context) (job string, err error) {
	evs, err := c.Host.ApplyBMC(ctx, c.OpenTask())
	if err != nil {
		return "", err
	}
	for _, ev := range evs {
		if opened, ok := ev.(bmc.TaskOpened); ok {
			job = opened.Task.ID
		}
	}
	_, err = c.Host.ApplyBMC(ctx, bmc.CloseTask{ID: job})
	return job, err
}

// InnerKind distinguishes inner requests by whether the outer request holds the host's
// lock.
type InnerKind string

// Kinds of inner requests.
const (
	InnerHoldingLock InnerKind = "within" // inside a request that holds the host's lock
	InnerWithoutLock InnerKind = "beside"
)

// InnerResponse records the response to an inner request. It implements
// http.ResponseWriter.
type InnerResponse struct {
	Headers  http.Header
	Status   int
	Body     []byte
	Messages []message.Message
}

// Header implements http.ResponseWriter.
func (a *InnerResponse) Header() http.Header { return a.Headers }

// WriteHeader implements http.ResponseWriter.
func (a *InnerResponse) WriteHeader(status int) {
	if a.Status == 0 {
		a.Status = status
	}
}

// Write implements http.ResponseWriter.
func (a *InnerResponse) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	a.Body = append(a.Body, b...)
	return len(b), nil
}

// InnerError is the error of an inner request that failed. Its response becomes
// the response to the client.
type InnerError struct{ *InnerResponse }

// Error implements error.
func (e *InnerError) Error() string { return "redfish: step: " + e.Reason() }

// Reason describes the failure for people.
func (a *InnerResponse) Reason() string {
	if len(a.Messages) == 0 {
		return fmt.Sprintf("it was answered with status %d", a.Status)
	}
	return strings.TrimSuffix(a.Messages[0].Text, ".")
}
