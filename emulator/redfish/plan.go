package redfish

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

func planRows() []resource {
	return []resource{
		{uri: "/redfish/v1/JobService", schema: "JobService.v1_1_0", shows: PartTime | PartClock, read: jobService,
			actions: jobServiceActions, volatile: []string{"DateTime"}},
		{uri: "/redfish/v1/JobService/Jobs", schema: "JobCollection", shows: PartJobs, name: "Jobs", of: "plan", create: &planCreate},
		{uri: "/redfish/v1/JobService/Jobs/{plan}", schema: "Job.v1_3_0", shows: PartJobs, read: plan,
			remove: removePlan, actions: planActions},
	}
}

// maxPlans is how many jobs the service remembers.
const maxPlans = 32

func jobService(v view) object {
	return object{
		"Name": "Job Service", "ServiceEnabled": true, "Status": status("Enabled"), "DateTime": v.clockTime(),
		"ServiceCapabilities": object{"MaxJobs": maxPlans, "MaxSteps": 0, "Scheduling": true, "UserSpecifiedJobs": true, "DocumentBasedJobs": false},
	}
}

var jobServiceActions = []action{{
	name: "JobService.CancelAllJobs",
	apply: func(ctx context.Context, c operation) (reply, error) {
		_, err := c.host.ApplyBMC(ctx, bmc.CancelJobs{})
		return reply{}, err
	},
}}

func (v view) plan() bmc.Job {
	return pick(v.b.Jobs.All(), v.ids["plan"], func(p bmc.Job) string { return p.ID })
}

// plan shows no payload: it may hold secrets.
func plan(v view) object {
	p := v.plan()
	health := "OK"
	if p.State == bmc.TaskException {
		health = "Critical"
	}
	schedule := object{}
	if !p.Due.IsZero() {
		schedule["InitialStartTime"] = rfc3339(p.Due)
	}
	if p.Interval > 0 {
		schedule["RecurrenceInterval"] = isoDuration(p.Interval)
	}
	if p.MaxOccurrences > 0 {
		schedule["MaxOccurrences"] = p.MaxOccurrences
	}
	o := object{
		"Name": p.Name, "JobState": string(p.State), "JobStatus": health, "JobType": "UserSpecified", "CreatedBy": p.User,
		"CreationTime": rfc3339(p.Created), "HidePayload": true, "Schedule": schedule, "Messages": v.spoken().ExtendedInfo(planMessages(p)...),
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

func planMessages(p bmc.Job) []message.Message {
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

var planCreate = create{
	inputs: []input{
		{name: "Name", kind: text, max: 128},
		{name: "Payload", kind: group, required: true, of: []input{
			{name: "HttpOperation", kind: text, required: true, values: oneOf("POST", "PATCH", "DELETE")},
			{name: "TargetUri", kind: text, required: true, form: isTarget},
			{name: "JsonBody", kind: text, secret: true, form: isObject},
		}},
		{name: "Schedule", kind: group, of: []input{
			{name: "InitialStartTime", kind: text, form: isDateTime},
			{name: "RecurrenceInterval", kind: text, form: isRecurrence},
			{name: "MaxOccurrences", kind: integer, min: 1, max: 1 << 20},
			{name: "Lifetime", kind: text, form: isRecurrence},
		}},
	},
	apply: func(ctx context.Context, c operation) (reply, error) {
		set, now := c.set, c.host.Now()
		p := bmc.Job{
			Name: value(set, "Name", "Scheduled request"), User: c.who.user, Account: c.who.account, Due: now,
			Method: value(set, "Payload/HttpOperation", ""), Target: value(set, "Payload/TargetUri", ""), Body: value(set, "Payload/JsonBody", ""),
		}
		m := c.view.tree.find(&url.URL{Path: p.Target})
		if m == nil || !slices.Contains(m.methods, p.Method) {
			return reply{}, decline(http.StatusBadRequest, message.PropertyValueError.With("TargetUri").About("#/Payload/TargetUri"))
		}
		if text, ok := set["Schedule/InitialStartTime"].(string); ok {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return reply{}, err // its form was looked at
			}
			p.Due = at.Add(-c.host.BMC().Clock.Skew()) // as the BMC's clock shows it
		}
		p.Interval = interval(value(set, "Schedule/RecurrenceInterval", ""))
		if life := interval(value(set, "Schedule/Lifetime", "")); life > 0 {
			p.NotAfter = p.Due.Add(life)
		}
		if p.Interval > 0 {
			p.MaxOccurrences = int(value(set, "Schedule/MaxOccurrences", int64(0)))
		}
		evs, err := c.host.ApplyBMC(ctx, bmc.CreateJob{Job: p})
		if err != nil {
			return reply{}, err
		}
		for _, ev := range evs {
			if made, ok := ev.(bmc.JobCreated); ok {
				return reply{id: made.ID}, nil
			}
		}
		return reply{}, fmt.Errorf("redfish: plan of %s: not made", c.who.user)
	},
}

// isTarget says whether a text is an address of this service.
func isTarget(s string) bool { return strings.HasPrefix(s, "/redfish/v1/") && len(s) <= 1024 }

// isObject says whether a text is a JSON object.
func isObject(s string) bool {
	_, err := parse([]byte(s))
	return err == nil
}

var intervals = regexp.MustCompile(`^P(?:(\d{1,4})D)?(?:T(?:(\d{1,4})H)?(?:(\d{1,5})M)?(?:(\d{1,7})S)?)?$`)

// isRecurrence says whether a text is an ISO 8601 duration as Redfish has it, and
// no shorter than a minute.
func isRecurrence(s string) bool { return intervals.MatchString(s) && interval(s) >= time.Minute }

func interval(s string) time.Duration {
	m := intervals.FindStringSubmatch(s)
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

func removePlan(ctx context.Context, c operation) (reply, error) {
	_, err := c.host.ApplyBMC(ctx, bmc.DeleteJob{ID: c.view.ids["plan"]})
	return reply{}, err
}

var planActions = []action{{
	name: "Job.Cancel",
	apply: func(ctx context.Context, c operation) (reply, error) {
		_, err := c.host.ApplyBMC(ctx, bmc.CancelJob{ID: c.view.ids["plan"]})
		return reply{}, err
	},
}}
