package steps

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cucumber/godog"
)

func (s *scenario) registerParts(sc *godog.ScenarioContext) {
	sc.Step(`^the operator marks the server "([^"]*)" and lights its lamp$`, func(tag string) error {
		return s.sendOK("PATCH", systemURI, object{"AssetTag": tag, "LocationIndicatorActive": true})
	})
	sc.Step(`^the server is marked "([^"]*)" and its lamp is lit$`, func(tag string) error {
		a, err := s.get(systemURI)
		if err != nil {
			return err
		}
		return equal("its mark and lamp", fmt.Sprint(a.body["AssetTag"], " ", a.body["LocationIndicatorActive"]), tag+" true")
	})
	sc.Step(`^the operator takes down what the servers are made of$`, func() error { return s.inventories(s.keepNamed) })
	sc.Step(`^the servers are made of the same$`, func() error { return s.inventories(s.equalsSaved) })
	sc.Step(`^no two servers have a serial number, a UUID or a MAC in common$`, s.distinct)
	sc.Step(`^the server has processors, memory, network ports and drives$`, func() error {
		for _, of := range []string{"/Processors", "/Memory", "/EthernetInterfaces", "/Storage"} {
			a, err := s.get(systemURI + of)
			if err != nil {
				return err
			}
			if n, _ := a.body["Members@odata.count"].(float64); n == 0 {
				return fmt.Errorf("there is nothing in %s", of)
			}
		}
		return nil
	})
	sc.Step(`^the drives tell their maker, their size and their health$`, func() error {
		drives, err := s.drives()
		if err != nil {
			return err
		}
		for _, uri := range drives {
			a, err := s.get(uri)
			if err != nil {
				return err
			}
			if a.body["Manufacturer"] == nil || a.body["CapacityBytes"] == nil || a.at("Status/Health") != "OK" {
				return fmt.Errorf("%s is %s", uri, a)
			}
		}
		return nil
	})
	sc.Step(`^the event log tells that the server was switched on$`, func() error {
		entries, err := s.log()
		if err != nil {
			return err
		}
		if !strings.Contains(entries.text, "switched on") && !strings.Contains(entries.text, "PoweredOn") {
			return fmt.Errorf("it is %s", entries)
		}
		ids, _ := entries.body["Members@odata.count"].(float64)
		s.save("entries", ids)
		return nil
	})
	sc.Step(`^the operator clears the event log$`, func() error {
		return s.sendOK("POST", s.saved["log"]+"/Actions/LogService.ClearLog", object{})
	})
	sc.Step(`^the event log is empty$`, func() error {
		entries, err := s.log()
		if err != nil {
			return err
		}
		return equal("the number of entries", entries.body["Members@odata.count"], 0)
	})
	sc.Step(`^new entries have numbers that were never there$`, func() error {
		entries, err := s.log()
		if err != nil {
			return err
		}
		members, _ := entries.body["Members"].([]any)
		if len(members) == 0 {
			return fmt.Errorf("there is no new entry")
		}
		first, _ := members[0].(map[string]any)
		uri := fmt.Sprint(first["@odata.id"])
		if id := number(uri[strings.LastIndexByte(uri, '/')+1:]); id <= number(s.saved["entries"]) {
			return fmt.Errorf("the first is %d, there were %s", id, s.saved["entries"])
		}
		return nil
	})
	sc.Step(`^the operator finds a manager with its network settings$`, func() error {
		_, err := s.get(root + "/Managers/1")
		return err
	})
}

// inventories calls f with what each server is made of.
func (s *scenario) inventories(f func(what string, is any) error) error {
	for i, h := range s.lab.Hosts() {
		var parts []string
		for _, uri := range []string{systemURI, systemURI + "/EthernetInterfaces/1"} {
			if err := s.sendTo(i+1, "GET", uri, nil); err != nil {
				return err
			}
			for _, name := range []string{"SerialNumber", "UUID", "MACAddress", "Model"} {
				parts = append(parts, fmt.Sprint(s.response.body[name]))
			}
		}
		if err := f(h.Name(), parts); err != nil {
			return err
		}
	}
	return nil
}

func (s *scenario) keepNamed(what string, is any) error {
	s.save(what, is)
	return nil
}

func (s *scenario) distinct() error {
	seen := map[string]string{}
	return s.inventories(func(host string, is any) error {
		all := is.([]string)
		for _, i := range []int{0, 1, 6} { // serial number, UUID, MAC
			if other, ok := seen[all[i]]; ok || all[i] == "" {
				return fmt.Errorf("%s and %s share %q", host, other, all[i])
			}
			seen[all[i]] = host
		}
		return nil
	})
}

// drives are the addresses of the first controller's drives.
func (s *scenario) drives() ([]string, error) {
	a, err := s.get(systemURI + "/Storage")
	if err != nil {
		return nil, err
	}
	first, _ := a.body["Members"].([]any)[0].(map[string]any)
	if a, err = s.get(fmt.Sprint(first["@odata.id"])); err != nil {
		return nil, err
	}
	s.saved["storage"] = fmt.Sprint(a.body["@odata.id"])
	var out []string
	all, _ := a.body["Drives"].([]any)
	for _, d := range all {
		o, _ := d.(map[string]any)
		out = append(out, fmt.Sprint(o["@odata.id"]))
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there are no drives: %s", a)
	}
	slices.Sort(out)
	return out, nil
}

// log are the entries of the event log.
func (s *scenario) log() (response, error) {
	a, err := s.get(systemURI + "/LogServices")
	if err != nil {
		return a, err
	}
	one, _ := a.body["Members"].([]any)[0].(map[string]any)
	s.saved["log"] = fmt.Sprint(one["@odata.id"])
	return s.get(s.saved["log"] + "/Entries")
}
