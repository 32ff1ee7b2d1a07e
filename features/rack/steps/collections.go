package steps

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cucumber/godog"
)

// cannots are what an operator tries to make, replace or delete and cannot.
var cannots = map[string]func(s *scenario) error{
	"delete a role that the standard has": func(s *scenario) error {
		return s.send("DELETE", root+"/AccountService/Roles/Operator", nil)
	},
	"replace the whole system": func(s *scenario) error { return s.send("PUT", systemURI, object{"AssetTag": "new"}) },
	"make one more system":     func(s *scenario) error { return s.send("POST", root+"/Systems", object{"Name": "second"}) },
	"make an account without a password": func(s *scenario) error {
		return s.send("POST", accountsURI, object{"UserName": "half", "RoleId": "ReadOnly"})
	},
	"make an account and break off": func(s *scenario) error { return s.send("POST", accountsURI, rawBody(`{"UserName":"half",`)) },
	"make an account whose name is taken": func(s *scenario) error {
		return s.send("POST", accountsURI, object{"UserName": "admin", "Password": "other-password", "RoleId": "ReadOnly"})
	},
}

func (s *scenario) registerCollections(sc *godog.ScenarioContext) {
	sc.Step(`^the operator makes an account "([^"]*)" among the members$`, func(name string) error {
		err := s.sendOK("POST", accountsURI+"/Members", object{"UserName": name, "Password": name + "-password", "RoleId": "ReadOnly"})
		s.saved["account"] = s.response.header.Get("Location")
		return err
	})
	sc.Step(`^the account is there, as the answer has shown it$`, func() error {
		made := s.response
		a, err := s.get(s.saved["account"])
		if err != nil {
			return err
		}
		if made.status != 201 || made.body["UserName"] == nil || !reflect.DeepEqual(made.body, a.body) {
			return fmt.Errorf("the answer was %s, and there is %s", made, a)
		}
		return nil
	})
	sc.Step(`^the account is gone, and cannot be deleted again$`, func() error {
		for _, method := range []string{"GET", "DELETE"} {
			if err := s.send(method, s.saved["account"], nil); err != nil {
				return err
			}
			if err := equal("the answer to "+method, s.response.status, 404); err != nil {
				return err
			}
		}
		return nil
	})
	sc.Step(`^the operator tries to (delete a role that the standard has|replace the whole system|make one more system|make an account without a password|make an account and break off|make an account whose name is taken)$`,
		func(what string) error { return cannots[what](s) })
	sc.Step(`^there are the accounts and the roles that there were$`, func() error {
		for uri, want := range map[string]any{accountsURI: 1, root + "/AccountService/Roles": 3, root + "/Systems": 1} {
			a, err := s.get(uri)
			if err != nil {
				return err
			}
			if err := equal(uri, a.body["Members@odata.count"], want); err != nil {
				return err
			}
		}
		return nil
	})
	sc.Step(`^the operator makes accounts until no more fit$`, func() error {
		for i := range 1000 {
			err := s.send("POST", accountsURI, object{"UserName": fmt.Sprint("user-", i), "Password": "user-password", "RoleId": "ReadOnly"})
			if err != nil || s.response.status != 201 {
				return err
			}
		}
		return fmt.Errorf("a thousand fit")
	})
	sc.Step(`^there are as many accounts as their collection has said that it takes$`, func() error {
		a, err := s.get(accountsURI)
		if err != nil {
			return err
		}
		return equal("the number of accounts", a.body["Members@odata.count"], a.at("@Redfish.CollectionCapabilities/MaxMembers"))
	})
	sc.Step(`^volumes of the kinds that their collection tells can be made, and of no other$`, s.volumes)
	sc.Step(`^whatever the service has names a version of its schema, which the service lists$`, s.versions)
}

// raids are kinds of volumes that the standard knows.
var raids = []string{"None", "RAID0", "RAID00", "RAID01", "RAID1", "RAID10", "RAID1E", "RAID3", "RAID4", "RAID5", "RAID50", "RAID6", "RAID60", "RAID6TP"}

// volumes makes and deletes a volume of each kind that the collection tells, and
// tries those that it does not tell.
func (s *scenario) volumes() error {
	a, err := s.get(volumesURI)
	if err != nil {
		return err
	}
	all, _ := a.at("@Redfish.CollectionCapabilities/Capabilities").([]any)
	if len(all) != 1 {
		return fmt.Errorf("the collection tells %s", a)
	}
	one, _ := all[0].(map[string]any)
	if a, err = s.get(fmt.Sprint(response{body: one}.at("CapabilitiesObject/@odata.id"))); err != nil {
		return err
	}
	told := map[string]bool{}
	kinds, _ := a.body["RAIDType@Redfish.AllowableValues"].([]any)
	for _, kind := range kinds {
		told[fmt.Sprint(kind)] = true
	}
	var made []string
	for _, kind := range raids {
		can, err := s.volume(kind)
		if err != nil {
			return err
		}
		if can {
			made = append(made, kind)
		}
		// Others can be refused for want of drives that fit.
		if unknown := s.refusedBecause("value not in list") == nil; unknown == told[kind] || can && unknown {
			return fmt.Errorf("%s: told of is %t, made can be %t: %s", kind, told[kind], can, s.response)
		}
	}
	if !slices.Equal(made, []string{"RAID0", "RAID1", "RAID10", "RAID5", "RAID6"}) {
		return fmt.Errorf("made can be %v", made)
	}
	return nil
}

// volume says whether a volume of a kind can be made, of up to eight drives.
func (s *scenario) volume(kind string) (bool, error) {
	var drives []object
	for n := range 8 {
		drives = append(drives, object{"@odata.id": driveURI(n)})
		if err := s.send("POST", volumesURI, object{"RAIDType": kind, "Links": object{"Drives": drives}}); err != nil {
			return false, err
		}
		if s.response.status < 300 {
			s.lab.Advance(time.Minute)
			a, err := s.get(volumesURI)
			if err != nil {
				return false, err
			}
			for _, uri := range links(a.body["Members"]) {
				if err := s.sendOK("DELETE", uri, nil); err != nil {
					return false, err
				}
			}
			s.lab.Advance(time.Minute)
			return true, nil
		}
	}
	return false, nil
}

// versions walks over all that there is.
func (s *scenario) versions() error {
	a, err := s.get(root + "/JsonSchemas")
	if err != nil {
		return err
	}
	listed := map[string]bool{}
	for _, uri := range links(a.body["Members"]) {
		listed[uri[strings.LastIndexByte(uri, '/')+1:]] = true
	}
	if a, err = s.get(root + "/$metadata"); err != nil {
		return err
	}
	metadata := a.text
	seen, todo := map[string]bool{}, []string{root + "/"}
	for len(todo) > 0 {
		uri := todo[0]
		todo = todo[1:]
		if seen[uri] || !strings.HasPrefix(uri, root+"/") || strings.Contains(uri, "#") {
			continue
		}
		seen[uri] = true
		if a, err = s.get(uri); err != nil {
			return err
		}
		kind, _ := a.body["@odata.type"].(string)
		schema := strings.TrimPrefix(kind[:max(0, strings.LastIndexByte(kind, '.'))], "#")
		if !listed[schema] || !strings.Contains(metadata, `Namespace="`+schema+`"`) {
			return fmt.Errorf("%s is a %q, which is not listed", uri, kind)
		}
		if name, version, ok := strings.Cut(schema, "."); !strings.HasSuffix(kind, "."+name) || ok == strings.HasSuffix(name, "Collection") || ok && !strings.HasPrefix(version, "v1_") {
			return fmt.Errorf("%s is a %q", uri, kind)
		}
		todo = append(todo, links(a.body)...)
	}
	if len(seen) < 100 {
		return fmt.Errorf("there are %d resources", len(seen))
	}
	return nil
}

// links are the addresses that a value links to, in a fixed order.
func links(v any) (out []string) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			out = append(out, links(x)...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if uri, ok := v[name].(string); ok && name == "@odata.id" {
				out = append(out, uri)
			}
			out = append(out, links(v[name])...)
		}
	}
	return out
}
