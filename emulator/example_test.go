package emulator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator"
)

// A client powers a server on while its BMC answers 503, and waits for the system.
func Example() {
	lab, err := emulator.Open(context.Background(), emulator.Rack{Hosts: 2, Seed: 7})
	if err != nil {
		panic(err)
	}
	defer lab.Close()
	host := lab.Host(0)
	defer lab.Fail(emulator.Fault{BMC: host.Name, Method: []string{"POST"}, Status: 503, Count: 1})()

	call := func(method, path, body string) (int, map[string]any) {
		req, err := http.NewRequest(method, host.Endpoint+path, strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		req.SetBasicAuth(host.Username, host.Password)
		req.Header.Set("Content-Type", "application/json")
		resp, err := lab.Client.Do(req)
		if err != nil {
			panic(err)
		}
		defer resp.Body.Close()
		var answer map[string]any
		_ = json.NewDecoder(resp.Body).Decode(&answer) // some answers have no body
		return resp.StatusCode, answer
	}
	const reset = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset"
	for {
		status, _ := call("POST", reset, `{"ResetType":"On"}`)
		fmt.Println("reset:", status)
		if status != http.StatusServiceUnavailable {
			break
		}
	}
	lab.Advance(5 * time.Minute) // the server's time advances
	_, system := call("GET", "/redfish/v1/Systems/1", "")
	fmt.Println("power:", system["PowerState"], "running:", host.Running())
	for _, r := range lab.Requests(emulator.Query{Host: host.Name, Method: "POST"}) {
		fmt.Println(r.Method, r.Path, r.Status, r.User, r.Faults)
	}
	// Output:
	// reset: 503
	// reset: 204
	// power: On running: disk
	// POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset 503  [fault-1]
	// POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset 204 admin []
}
