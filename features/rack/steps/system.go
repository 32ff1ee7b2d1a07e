package steps

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

const biosURI = systemURI + "/Bios"

// registerSystem binds the steps about a ComputerSystem, its boot, its BIOS and
// its log.
func (s *scenario) registerSystem(sc *stepRegistry) {
	sc.Step(`^BootProgress/LastState takes at least (\d+) values and ends with "([^"]*)"$`, s.bootProgresses)
	sc.Step(`^the client moves the last option of Boot/BootOrder to the front$`, s.rotateBootOrder)
	sc.NegativeStep(`^no BIOS attribute is pending$`, func() error {
		r, err := s.get(biosURI + "/Settings")
		if err != nil {
			return err
		}
		pending, _ := r.body["Attributes"].(map[string]any)
		return equal("the number of pending attributes", len(pending), 0)
	})
	sc.Step(`^the attribute registry of the BIOS has at least (\d+) attributes$`, func(n int) error {
		r, err := s.get(biosURI)
		if err != nil {
			return err
		}
		if r, err = s.get(root + "/Registries/" + fmt.Sprint(r.body["AttributeRegistry"])); err != nil {
			return err
		}
		if r, err = s.get(fmt.Sprint(r.at("Location/0/Uri"))); err != nil {
			return err
		}
		if all, _ := r.at("RegistryEntries/Attributes").([]any); len(all) < n {
			return fmt.Errorf("it has %d", len(all))
		}
		return nil
	})
	sc.Step(`^two clients send PATCH Systems/1 with the same ETag$`, func() error {
		r, err := s.get(systemURI)
		if err != nil {
			return err
		}
		tag := r.header.Get("ETag")
		var got []int
		for i := range 2 {
			if err := s.send("PATCH", systemURI, object{"AssetTag": fmt.Sprint("client-", i)}, "If-Match", tag); err != nil {
				return err
			}
			got = append(got, s.response.status)
		}
		s.save("statuses", got)
		return nil
	})
	sc.Step(`^the responses are (\d+) and (\d+)$`, func(first, second int) error { return s.equalsSaved("statuses", []int{first, second}) })
	sc.Step(`^the @Redfish\.ActionInfo of each action of the system lists Parameters$`, s.actionInfosList)
	sc.Step(`^the system's log has an entry about power on$`, func() error {
		r, err := s.systemLog()
		if err != nil {
			return err
		}
		if !strings.Contains(r.text, "switched on") && !strings.Contains(r.text, "PoweredOn") {
			return fmt.Errorf("the log is %s", r)
		}
		s.save("entries", r.body["Members@odata.count"])
		return nil
	})
	sc.Step(`^the client clears the system's log$`, func() error {
		return s.sendOK("POST", s.saved["log"]+"/Actions/LogService.ClearLog", object{})
	})
	sc.Step(`^the system's log has (\d+) entries$`, func(n int) error {
		r, err := s.systemLog()
		if err != nil {
			return err
		}
		return equal("the number of entries", r.body["Members@odata.count"], n)
	})
	sc.Step(`^the new entries have higher IDs than the cleared ones$`, func() error {
		r, err := s.systemLog()
		if err != nil {
			return err
		}
		uri, ok := r.at("Members/0/@odata.id").(string)
		if !ok {
			return fmt.Errorf("there is no new entry: %s", r)
		}
		if id := number(uri[strings.LastIndexByte(uri, '/')+1:]); id <= number(s.saved["entries"]) {
			return fmt.Errorf("the first new entry is %d, there were %s", id, s.saved["entries"])
		}
		return nil
	})
}

// bootProgresses follows BootProgress/LastState second by second.
func (s *scenario) bootProgresses(values int, last string) error {
	var seen []string
	for range 600 {
		r, err := s.get(systemURI)
		if err != nil {
			return err
		}
		state, _ := r.at("BootProgress/LastState").(string)
		if !slices.Contains(seen, state) {
			seen = append(seen, state)
		}
		if state == last {
			break
		}
		s.lab.Advance(time.Second)
	}
	if len(seen) < values || seen[len(seen)-1] != last {
		return fmt.Errorf("it was %q", seen)
	}
	return nil
}

func (s *scenario) rotateBootOrder() error {
	r, err := s.get(systemURI)
	if err != nil {
		return err
	}
	order, _ := r.at("Boot/BootOrder").([]any)
	if len(order) < 2 {
		return fmt.Errorf("the boot order is %v", order)
	}
	last := len(order) - 1
	order = append([]any{order[last]}, order[:last]...)
	s.save("Boot/BootOrder", order)
	return s.sendOK("PATCH", systemURI, object{"Boot": object{"BootOrder": order}})
}

func (s *scenario) actionInfosList() error {
	r, err := s.get(systemURI)
	if err != nil {
		return err
	}
	actions, _ := r.body["Actions"].(map[string]any)
	listed := 0
	for name, x := range actions { // in any order: each action is checked alone
		o, _ := x.(map[string]any)
		info, ok := o["@Redfish.ActionInfo"].(string)
		if !ok {
			continue // it has no parameters
		}
		r, err := s.get(info)
		if err != nil {
			return err
		}
		if parameters, _ := r.body["Parameters"].([]any); len(parameters) == 0 {
			return fmt.Errorf("the ActionInfo of %s lists no parameter", name)
		}
		listed++
	}
	if listed == 0 {
		return fmt.Errorf("no action has an ActionInfo: %s", r)
	}
	return nil
}

// systemLog returns the entries of the system's first log service.
func (s *scenario) systemLog() (response, error) {
	r, err := s.get(systemURI + "/LogServices")
	if err != nil {
		return r, err
	}
	s.saved["log"] = fmt.Sprint(r.at("Members/0/@odata.id"))
	return s.get(s.saved["log"] + "/Entries")
}

// serves reports whether the service root is answered with 200 over a scheme.
func (s *scenario) serves(scheme string) (bool, error) {
	r, err := s.lab.Client.Get(scheme + "://" + s.server(1).Address().String() + root + "/")
	if err != nil {
		return false, nil //nolint:nilerr // nobody serves there
	}
	return r.StatusCode == http.StatusOK, r.Body.Close()
}
