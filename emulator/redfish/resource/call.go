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

// Call is one request that was understood: to whom, about what, by whom.
type Call struct {
	Host      Host
	View      View   // of the resource that the request addresses
	Values    Values // what the client sent and the inputs took
	Actor     Actor
	From      string // address of the client
	Request   request
	Match     *Match
	Method    string
	Body      Document // what the client sent, whole
	ApplyTime string   // it shall take effect: immediate, or another of resource.applies
}

// request is what a call needs of the HTTP request that it came with.
type request interface {
	// Expect says with which status the request is answered if all goes well.
	Expect(status int)
	// SignedIn says whom the request has signed in.
	SignedIn(who Actor)
	// Task is the ID of the task that work joins; "": a new one.
	Task() string
	// Query is that of the URL.
	Query() url.Values
	// HoldsETag says whether an ETag is that of a resource.
	HoldsETag(tag string, m *Match) bool
	// Do carries out a request to the standard's resources, in the same name, as
	// a step of a task or, with "", of none.
	Do(ctx context.Context, task string, kind InnerKind, method, uri string, body Object) *InnerResponse
	// Outlive says that work goes on with the call after the answer.
	Outlive()
	// Wait waits for some of the lab's time, or until the context ends.
	Wait(ctx context.Context, d time.Duration) error
}

// taskRequest tells a job what asked for it. A request that held a secret is not
// shown (DSP2046, Task.HidePayload).
func (c Call) taskRequest() bmc.Request {
	body, hidden := c.Body.Redacted(c.Match)
	return bmc.Request{Method: c.Method, Target: c.Match.target(), Body: body, Hidden: hidden}
}

// job is a job that this request asks for.
func (c Call) job(name string) bmc.OpenTask {
	return bmc.OpenTask{Name: name, User: c.Actor.User, Account: c.Actor.Account, Request: c.taskRequest()}
}

// Begin opens a job for a command to the machine and answers with it.
func (c Call) Begin(ctx context.Context, name string, do func(job string) machine.Command) (Result, error) {
	c.Request.Expect(http.StatusAccepted)
	if job := c.Request.Task(); job != "" {
		return Result{Task: job}, c.Host.Apply(ctx, do(job))
	}
	j, err := c.Host.Begin(ctx, c.job(name), do)
	return Result{Task: j.ID}, err
}

// work has the BMC begin work of its own, and answers with its job.
func (c Call) work(ctx context.Context, do bmc.Command) (Result, error) {
	evs, err := c.Host.ApplyBMC(ctx, do)
	if err != nil {
		return Result{}, err
	}
	for _, ev := range evs {
		if opened, ok := ev.(bmc.TaskOpened); ok {
			return Result{Task: opened.Task.ID}, nil
		}
	}
	return Result{}, fmt.Errorf("redfish: %T opened no job", do)
}

// Result is what an operation answers. The zero reply has nothing to say but
// that it was done.
type Result struct {
	URI      string            // address of what was made, when that is no member of the addressed collection
	ID       string            // last segment of the address of a new member
	Token    string            // of a session, shown this once
	Body     Object            // of an action that answers something
	Task     string            // that goes on: the answer is 202 and leads to its task
	Status   int               // of the answer with body, or without one; 0: as is usual
	Inner    *InnerResponse    // that is the answer
	Refusals []Refusal         // of a PATCH: what only the model could find wrong; the rest was done
	Messages []message.Message // beside the resource that is answered
}

// OpenTask is the job that an operation is.
func (c Call) OpenTask() bmc.OpenTask {
	r := c.taskRequest()
	return bmc.OpenTask{Name: r.Method + " " + r.Target, User: c.Actor.User, Account: c.Actor.Account, Request: r}
}

// RecordTask makes a job of what is done already.
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

// InnerKind says of a request whether it is a step of another.
type InnerKind string

const (
	Within InnerKind = "within" // of one that holds the host's lock
	Beside InnerKind = "beside"
)

// InnerResponse is the answer to a step. It takes the place of a connection.
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

// InnerError is the error of a step that was refused: its answer is the answer.
type InnerError struct{ *InnerResponse }

// Error implements error.
func (e *InnerError) Error() string { return "redfish: step: " + e.Why() }

// Why is what went wrong, for people.
func (a *InnerResponse) Why() string {
	if len(a.Messages) == 0 {
		return fmt.Sprintf("it was answered with status %d", a.Status)
	}
	return strings.TrimSuffix(a.Messages[0].Text, ".")
}
