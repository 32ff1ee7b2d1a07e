package redfish

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

// operation is one request that was understood: to whom, about what, by whom.
type operation struct {
	host   Host
	view   view   // of the resource that the request addresses
	set    values // what the client sent and the inputs took
	who    actor
	from   string // address of the client
	x      request
	match  *match
	method string
	in     document // what the client sent, whole
	when   string   // it shall take effect: immediate, or another of resource.applies
}

// request is what a call needs of the HTTP request that it came with.
type request interface {
	// Expect says with which status the request is answered if all goes well.
	Expect(status int)
	// SignedIn says whom the request has signed in.
	SignedIn(who actor)
	// Task is the ID of the task that work joins; "": a new one.
	Task() string
	// Query is that of the URL.
	Query() url.Values
	// HoldsETag says whether an ETag is that of a resource.
	HoldsETag(tag string, m *match) bool
	// Do carries out a request to the standard's resources, in the same name, as
	// a step of a task or, with "", of none.
	Do(ctx context.Context, task string, kind innerKind, method, uri string, body object) *stepAnswer
	// Outlive says that work goes on with the call after the answer.
	Outlive()
	// Wait waits for some of the lab's time, or until the context ends.
	Wait(ctx context.Context, d time.Duration) error
}

// taskRequest tells a job what asked for it. A request that held a secret is not
// shown (DSP2046, Task.HidePayload).
func (c operation) taskRequest() bmc.Request {
	body, hidden := c.in.redacted(c.match)
	return bmc.Request{Method: c.method, Target: c.match.target(), Body: body, Hidden: hidden}
}

// job is a job that this request asks for.
func (c operation) job(name string) bmc.OpenTask {
	return bmc.OpenTask{Name: name, User: c.who.user, Account: c.who.account, Request: c.taskRequest()}
}

// begin opens a job for a command to the machine and answers with it.
func (c operation) begin(ctx context.Context, name string, do func(job string) machine.Command) (reply, error) {
	c.x.Expect(http.StatusAccepted)
	if job := c.x.Task(); job != "" {
		return reply{job: job}, c.host.Apply(ctx, do(job))
	}
	j, err := c.host.Begin(ctx, c.job(name), do)
	return reply{job: j.ID}, err
}

// work has the BMC begin work of its own, and answers with its job.
func (c operation) work(ctx context.Context, do bmc.Command) (reply, error) {
	evs, err := c.host.ApplyBMC(ctx, do)
	if err != nil {
		return reply{}, err
	}
	for _, ev := range evs {
		if opened, ok := ev.(bmc.TaskOpened); ok {
			return reply{job: opened.Task.ID}, nil
		}
	}
	return reply{}, fmt.Errorf("redfish: %T opened no job", do)
}

// reply is what an operation answers. The zero reply has nothing to say but
// that it was done.
type reply struct {
	at     string            // address of what was made, when that is no member of the addressed collection
	id     string            // last segment of the address of a new member
	token  string            // of a session, shown this once
	body   object            // of an action that answers something
	job    string            // that goes on: the answer is 202 and leads to its task
	status int               // of the answer with body, or without one; 0: as is usual
	made   *stepAnswer       // that is the answer
	bad    []refusal         // of a PATCH: what only the model could find wrong; the rest was done
	told   []message.Message // beside the resource that is answered
}

// opening is the job that an operation is.
func (c operation) opening() bmc.OpenTask {
	r := c.taskRequest()
	return bmc.OpenTask{Name: r.Method + " " + r.Target, User: c.who.user, Account: c.who.account, Request: r}
}

// done makes a job of what is done already.
func (c operation) done(ctx context.Context) (job string, err error) {
	evs, err := c.host.ApplyBMC(ctx, c.opening())
	if err != nil {
		return "", err
	}
	for _, ev := range evs {
		if opened, ok := ev.(bmc.TaskOpened); ok {
			job = opened.Task.ID
		}
	}
	_, err = c.host.ApplyBMC(ctx, bmc.CloseTask{ID: job})
	return job, err
}

// innerKind says of a request whether it is a step of another.
type innerKind string

const (
	within innerKind = "within" // of one that holds the host's lock
	beside innerKind = "beside"
)

// stepAnswer is the answer to a step. It takes the place of a connection.
type stepAnswer struct {
	header  http.Header
	status  int
	body    []byte
	refused []message.Message
}

// Header implements http.ResponseWriter.
func (a *stepAnswer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *stepAnswer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write implements http.ResponseWriter.
func (a *stepAnswer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	a.body = append(a.body, b...)
	return len(b), nil
}

// stepFailed is the error of a step that was refused: its answer is the answer.
type stepFailed struct{ *stepAnswer }

// Error implements error.
func (e *stepFailed) Error() string { return "redfish: step: " + e.why() }

// why is what went wrong, for people.
func (a *stepAnswer) why() string {
	if len(a.refused) == 0 {
		return fmt.Sprintf("it was answered with status %d", a.status)
	}
	return strings.TrimSuffix(a.refused[0].Text, ".")
}
