package resource

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

func jobRows() []Row {
	return []Row{
		{URI: "/redfish/v1/JobService", Schema: "JobService.v1_1_0", DependsOn: partTime | partClock, Read: jobService,
			Actions: jobServiceActions, Volatile: []string{"DateTime"}},
		{URI: "/redfish/v1/JobService/Jobs", Schema: "JobCollection", DependsOn: partJobs, collectionName: "Jobs", memberVariable: "plan", Create: &jobCreate},
		{URI: "/redfish/v1/JobService/Jobs/{plan}", Schema: "Job.v1_3_0", DependsOn: partJobs, Read: job,
			Remove: deleteJob, Actions: jobActions},
	}
}

// maxJobs is how many jobs the JobService stores (JobService.ServiceCapabilities.MaxJobs).
const maxJobs = 32

func jobService(v View) Object {
	return Object{
		"Name": "Job Service", "ServiceEnabled": true, "Status": status("Enabled"), "DateTime": v.clockTime(),
		"ServiceCapabilities": Object{"MaxJobs": maxJobs, "MaxSteps": 0, "Scheduling": true, "UserSpecifiedJobs": true, "DocumentBasedJobs": false},
	}
}

var jobServiceActions = []Action{{
	Name: "JobService.CancelAllJobs",
	Apply: func(ctx context.Context, c Call) (Result, error) {
		_, err := c.Host.ApplyBMC(ctx, bmc.CancelJobs{})
		return Result{}, err
	},
}}

// job returns the bmc.Job of the view's Job.
func (v View) job() bmc.Job {
	return Find(v.BMC.Jobs.All(), v.IDs["plan"], func(p bmc.Job) string { return p.ID })
}

// job returns the body of a Job. It omits the payload, which may contain secrets.
func job(v View) Object {
	p := v.job()
	health := "OK"
	if p.State == bmc.TaskException {
		health = "Critical"
	}
	schedule := Object{}
	if !p.Due.IsZero() {
		schedule["InitialStartTime"] = rfc3339(p.Due)
	}
	if p.Interval > 0 {
		schedule["RecurrenceInterval"] = isoDuration(p.Interval)
	}
	if p.MaxOccurrences > 0 {
		schedule["MaxOccurrences"] = p.MaxOccurrences
	}
	o := Object{
		"Name": p.Name, "JobState": string(p.State), "JobStatus": health, "JobType": "UserSpecified", "CreatedBy": p.User,
		"CreationTime": rfc3339(p.Created), "HidePayload": true, "Schedule": schedule, "Messages": v.MessageVersions().ExtendedInfo(jobMessages(p)...),
		"PercentComplete": map[bool]int{true: 100, false: 0}[p.State == bmc.TaskCompleted],
	}
	if !p.Begun.IsZero() {
		o["StartTime"] = rfc3339(p.Begun)
	}
	if !p.Ended.IsZero() {
		o["EndTime"] = rfc3339(p.Ended)
	}
	return o
}

func jobMessages(p bmc.Job) []message.Message {
	var ms []message.Message
	if !p.Begun.IsZero() {
		ms = append(ms, message.JobStarted.With(p.ID))
	}
	switch p.State {
	case bmc.TaskCompleted:
		ms = append(ms, message.JobCompletedOK.With(p.ID))
	case bmc.TaskCancelled:
		ms = append(ms, message.JobCancelled.With(p.ID))
	case bmc.TaskException:
		m := message.JobCompletedException.With(p.ID)
		m.Text = strings.TrimSuffix(m.Text, ".") + ": the request was answered " + strconv.Itoa(p.Status) + "."
		ms = append(ms, m)
	}
	return ms
}

var jobCreate = create{
	Inputs: []Input{
		{Name: "Name", Kind: Text, Max: 128},
		{Name: "Payload", Kind: Group, Required: true, Of: []Input{
			{Name: "HttpOperation", Kind: Text, Required: true, Allowed: OneOf("POST", "PATCH", "DELETE")},
			{Name: "TargetUri", Kind: Text, Required: true, form: isServiceURI},
			{Name: "JsonBody", Kind: Text, Secret: true, form: isJSONObject},
		}},
		{Name: "Schedule", Kind: Group, Of: []Input{
			{Name: "InitialStartTime", Kind: Text, form: isDateTime},
			{Name: "RecurrenceInterval", Kind: Text, form: isRecurrenceInterval},
			{Name: "MaxOccurrences", Kind: Integer, Min: 1, Max: 1 << 20},
			{Name: "Lifetime", Kind: Text, form: isRecurrenceInterval},
		}},
	},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		set, now := c.Values, c.Host.Now()
		p := bmc.Job{
			Name: Value(set, "Name", "Scheduled request"), User: c.Actor.User, Account: c.Actor.Account, Due: now,
			Method: Value(set, "Payload/HttpOperation", ""), Target: Value(set, "Payload/TargetUri", ""), Body: Value(set, "Payload/JsonBody", ""),
		}
		m := c.View.Tree.Find(&url.URL{Path: p.Target})
		if m == nil || !slices.Contains(m.Methods, p.Method) {
			return Result{}, Reject(http.StatusBadRequest, message.PropertyValueError.With("TargetUri").About("#/Payload/TargetUri"))
		}
		if text, ok := set["Schedule/InitialStartTime"].(string); ok {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return Result{}, err // isDateTime has checked it
			}
			p.Due = at.Add(-c.Host.BMC().Clock.Skew()) // the client reads the BMC's clock
		}
		p.Interval = parseInterval(Value(set, "Schedule/RecurrenceInterval", ""))
		if life := parseInterval(Value(set, "Schedule/Lifetime", "")); life > 0 {
			p.NotAfter = p.Due.Add(life)
		}
		if p.Interval > 0 {
			p.MaxOccurrences = int(Value(set, "Schedule/MaxOccurrences", int64(0)))
		}
		evs, err := c.Host.ApplyBMC(ctx, bmc.CreateJob{Job: p})
		if err != nil {
			return Result{}, err
		}
		for _, ev := range evs {
			if made, ok := ev.(bmc.JobCreated); ok {
				return Result{ID: made.ID}, nil
			}
		}
		return Result{}, fmt.Errorf("redfish: job of %s: not created", c.Actor.User)
	},
}

// isServiceURI reports whether a text is a URI of this service.
func isServiceURI(s string) bool { return strings.HasPrefix(s, "/redfish/v1/") && len(s) <= 1024 }

// isJSONObject reports whether a text is a JSON object.
func isJSONObject(s string) bool {
	_, err := Parse([]byte(s))
	return err == nil
}

var intervalPattern = regexp.MustCompile(`^P(?:(\d{1,4})D)?(?:T(?:(\d{1,4})H)?(?:(\d{1,5})M)?(?:(\d{1,7})S)?)?$`)

// isRecurrenceInterval reports whether a text is an ISO 8601 duration in the form of
// DSP0266 of at least one minute.
func isRecurrenceInterval(s string) bool {
	return intervalPattern.MatchString(s) && parseInterval(s) >= time.Minute
}

func parseInterval(s string) time.Duration {
	m := intervalPattern.FindStringSubmatch(s)
	if m == nil {
		return 0
	}
	var d time.Duration
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		n, _ := strconv.Atoi(m[i+1])
		d += time.Duration(n) * unit
	}
	return d
}

func deleteJob(ctx context.Context, c Call) (Result, error) {
	_, err := c.Host.ApplyBMC(ctx, bmc.DeleteJob{ID: c.View.IDs["plan"]})
	return Result{}, err
}

var jobActions = []Action{{
	Name: "Job.Cancel",
	Apply: func(ctx context.Context, c Call) (Result, error) {
		_, err := c.Host.ApplyBMC(ctx, bmc.CancelJob{ID: c.View.IDs["plan"]})
		return Result{}, err
	},
}}
