package docs

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator"
)

// powerOn is what go-tests.md calls the code under test.
func powerOn(client *http.Client, host *emulator.Host) error {
	const action = "/redfish/v1/Systems/System.Embedded.1/Actions/ComputerSystem.Reset"
	for {
		req, err := http.NewRequest(http.MethodPost, host.Endpoint+action, strings.NewReader(`{"ResetType":"On"}`))
		if err != nil {
			return err
		}
		req.SetBasicAuth(host.Username, host.Password)
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusServiceUnavailable {
			return nil
		}
	}
}

func TestPowerOnRepeatsAfter503(t *testing.T) {
	lab := emulator.Start(t, emulator.Rack{Hosts: 2, Profile: "dell-r760"})
	host := lab.Host(0)
	lab.Fail(emulator.Fault{BMC: host.Name, Method: []string{"POST"}, Status: 503, Count: 1})

	if err := powerOn(lab.Client, host); err != nil { // the code under test
		t.Fatal(err)
	}

	lab.Advance(10 * time.Minute) // of the server's time: POST, and the boot from disk
	if got := host.PowerState(); got != "On" {
		t.Errorf("PowerState() = %s, want On", got)
	}
	if got := host.Running(); got != "disk" {
		t.Errorf("Running() = %q, want disk", got)
	}
	posts := lab.Requests(emulator.Query{Host: host.Name, Method: "POST"})
	if len(posts) != 2 || posts[0].Status != 503 {
		t.Errorf("POST requests = %v, want a 503 and a repetition", posts)
	}
}

// TestGoTestsOfThePagesAreTestsHere compares the Go tests that pages show with the
// functions of this file, which run. Whole files are those of TestModuleOfOnesOwnRunsItsTest.
func TestGoTestsOfThePagesAreTestsHere(t *testing.T) {
	here, err := os.ReadFile("kit_test.go")
	if err != nil {
		t.Fatal(err)
	}
	function := regexp.MustCompile(`(?ms)^func Test.*?^}\n`)
	shown := 0
	for _, page := range pages(t) {
		if page == "docs/style.md" { // whose examples are invented
			continue
		}
		for _, m := range function.FindAllString(wholeFile.ReplaceAllString(read(t, page), ""), -1) {
			shown++
			if !strings.Contains(string(here), m) {
				t.Errorf("%s: a test in Go is not in docs/kit_test.go:\n%s", page, m)
			}
		}
	}
	if shown == 0 {
		t.Error("no page shows a test in Go")
	}
}
