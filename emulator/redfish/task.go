package redfish

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

func taskRows() []resource {
	return []resource{
		{uri: "/redfish/v1/TaskService", schema: "TaskService.v1_2_1", needs: ofManager, link: "Tasks", read: taskService},
		{uri: "/redfish/v1/TaskService/Tasks", schema: "TaskCollection", needs: ofManager, shows: showsJobs, name: "Tasks", of: "task"},
		{uri: "/redfish/v1/TaskService/Tasks/{task}", schema: "Task.v1_7_4", needs: ofManager, shows: showsJobs | showsTime, read: task,
			volatile: []string{"PercentComplete"}},
	}
}

func taskURI(job string) string { return "/redfish/v1/TaskService/Tasks/" + job }

// taskMonitor is where a client waits for the end of a job (DSP0266,
// "Asynchronous operations").
func taskMonitor(job string) string { return "/redfish/v1/TaskService/TaskMonitors/" + job }

func taskService(view) object {
	return object{"Name": "Task Service", "ServiceEnabled": true, "Status": status("Enabled"), "CompletedTaskOverWritePolicy": "Oldest"}
}

func task(v view) object {
	j := pick(v.b.Jobs.All(), v.ids["task"], func(j bmc.Job) string { return j.ID })
	o := object{
		"Name": j.Name, "TaskState": string(j.State), "TaskStatus": "OK",
		"StartTime": j.Created.UTC().Format(time.RFC3339), "PercentComplete": j.Percent(v.now),
	}
	if j.State == bmc.JobException {
		o["TaskStatus"] = "Critical"
	}
	if j.State.Ended() {
		o["EndTime"] = j.Ended.UTC().Format(time.RFC3339)
	} else {
		o["TaskMonitor"] = taskMonitor(j.ID)
	}
	if r := j.Request; r.Method != "" {
		o["Payload"] = object{"HttpOperation": r.Method, "TargetUri": r.Target, "JsonBody": r.Body}
	}
	return o
}
