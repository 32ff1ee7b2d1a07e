package steps

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cucumber/godog"
)

// Addresses of what there is one of.
const (
	root      = "/redfish/v1"
	systemURI = root + "/Systems/1"
)

// credentials are a name and a password.
type credentials struct{ name, password string }

// response is the response of a BMC.
type response struct {
	status int
	header http.Header
	closes bool // the connection ends with it
	text   string
	body   map[string]any
}

// String implements fmt.Stringer.
func (a response) String() string { return fmt.Sprintf("%d %s", a.status, a.text) }

// at is a value within the body, by a path: "Boot/BootOrder".
func (a response) at(path string) any {
	var v any = a.body
	for name := range strings.SplitSeq(path, "/") {
		o, _ := v.(map[string]any)
		v = o[name]
	}
	return v
}

// messageKeys lists the keys of the messages of a refusal, each with its first
// argument.
func (a response) messageKeys() (keys []string) {
	infos, _ := a.at("error/@Message.ExtendedInfo").([]any)
	for _, i := range infos {
		m, _ := i.(map[string]any)
		id, _ := m["MessageId"].(string)
		keys = append(keys, id[strings.LastIndexByte(id, '.')+1:])
	}
	return keys
}

// send sends a request to the first server's BMC. header lists names and values
// in turn.
func (s *scenario) send(method, path string, body any, header ...string) error {
	return s.sendTo(1, method, path, body, header...)
}

func (s *scenario) sendTo(server int, method, path string, body any, header ...string) error {
	var in io.Reader
	if asIs, ok := body.(rawBody); ok {
		in = bytes.NewReader(asIs)
	} else if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(b)
	}
	h := s.server(server)
	r, err := http.NewRequestWithContext(s.t.Context(), method, h.URL()+path, in)
	if err != nil {
		return err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept-Encoding", "identity") // http.Client would unpack what it has packed
	who := s.user
	if who == (credentials{}) {
		who.name, who.password = s.lab.Credentials(h)
	}
	switch {
	case s.token != "":
		r.Header.Set("X-Auth-Token", s.token)
	case who.name != nobody:
		r.SetBasicAuth(who.name, who.password)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	s.response = response{}
	resp, err := s.lab.Client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	s.response = response{status: resp.StatusCode, header: resp.Header, text: string(text), closes: resp.Close}
	if err != nil {
		return err
	}
	_ = json.Unmarshal(text, &s.response.body) // a document of another kind
	return nil
}

// nobody stands for a client without credentials.
const nobody = "nobody"

// get reads a resource, which must be there.
func (s *scenario) get(path string) (response, error) {
	err := s.send("GET", path, nil)
	if err == nil && s.response.status != 200 {
		err = fmt.Errorf("GET %s is answered %s", path, s.response)
	}
	return s.response, err
}

// sendOK sends a request that must succeed.
func (s *scenario) sendOK(method, path string, body any, header ...string) error {
	if err := s.send(method, path, body, header...); err != nil {
		return err
	}
	if s.response.status >= 300 {
		return fmt.Errorf("%s %s is answered %s", method, path, s.response)
	}
	s.lab.Settle()
	return nil
}

// object is short for the body of a request.
type object = map[string]any

// rawBody is a body that is sent as it is.
type rawBody []byte

func (s *scenario) registerClients(sc *godog.ScenarioContext) {
	sc.Step(`^a stranger asks for the service$`, func() error {
		s.user = credentials{name: nobody}
		return s.send("GET", "/redfish", nil)
	})
	sc.Step(`^it is told where the service's root is$`, func() error { return equal("the answer", s.response.text, `{"v1":"/redfish/v1/"}`) })
	sc.Step(`^the stranger may read the root, and nothing below it$`, s.onlyTheRoot)
	sc.Step(`^the operator reads the system$`, func() error { _, err := s.get(systemURI); return err })
	sc.Step(`^the answer tells the protocol's version, how long to keep it, its schema and what may be done$`, s.standardHeaders)
	sc.Step(`^the operator asks for the headers of the system alone$`, func() error {
		s.saved["tag"], s.saved["length"] = s.response.header.Get("ETag"), s.response.header.Get("Content-Length")
		return s.send("HEAD", systemURI, nil)
	})
	sc.Step(`^a client that can unpack reads the system$`, func() error {
		if err := s.send("GET", systemURI, nil); err != nil {
			return err
		}
		s.saved["length"] = s.response.text
		return s.send("GET", systemURI, nil, "Accept-Encoding", "gzip")
	})
	sc.Step(`^the answer comes packed, and is the same$`, func() error {
		z, err := gzip.NewReader(strings.NewReader(s.response.text))
		if err != nil {
			return err
		}
		raw, err := io.ReadAll(z)
		if err != nil {
			return err
		}
		unpacked, plain := response{}, response{}
		if err := errors.Join(json.Unmarshal(raw, &unpacked.body), json.Unmarshal([]byte(s.saved["length"]), &plain.body)); err != nil {
			return err
		}
		return equal("the name", unpacked.at("SerialNumber"), plain.at("SerialNumber"))
	})
	sc.Step(`^they are those of the whole answer$`, func() error {
		if s.response.text != "" {
			return fmt.Errorf("there is a body: %s", s.response.text)
		}
		if err := s.equalsSaved("tag", s.response.header.Get("ETag")); err != nil {
			return err
		}
		return s.equalsSaved("length", s.response.header.Get("Content-Length"))
	})
	sc.Step(`^a client of OData 4\.1 reads the system$`, func() error { return s.send("GET", systemURI, nil, "OData-Version", "4.1") })
	sc.Step(`^the operator tries to delete the system$`, func() error { return s.send("DELETE", systemURI, nil) })
	sc.Step(`^the operator tries a method that no standard knows$`, func() error { return s.send("BREW", systemURI, nil) })
	sc.Step(`^it is refused as (\d+)$`, func(status int) error { return equal("the answer", s.response.status, status) })
	sc.Step(`^the answer says that only reading and changing is possible$`, func() error {
		return equal("Allow", s.response.header.Get("Allow"), "GET, HEAD, PATCH, OPTIONS")
	})
	sc.Step(`^it is refused because of "([^"]*)"$`, s.refusedBecause)
	sc.Step(`^the operator sets the property "([^"]*)" of the system, which it does not have$`, func(name string) error {
		return s.send("PATCH", systemURI, object{name: 1})
	})
	sc.Step(`^the operator sets it for a version of the system that never was$`, func() error {
		return s.send("PATCH", systemURI, object{"AssetTag": "bogus"}, "If-Match", `"bogus"`)
	})
	sc.Step(`^the system has neither$`, func() error {
		a, err := s.get(systemURI)
		if err != nil {
			return err
		}
		if _, has := a.body["NotAProp"]; has || a.body["AssetTag"] == "bogus" {
			return fmt.Errorf("it was stored: %s", a)
		}
		return nil
	})
	sc.Step(`^the operator sets an asset tag beside a property that the system does not have$`, func() error {
		return s.send("PATCH", systemURI, object{"AssetTag": "A-1", "NotAProp": 1})
	})
	sc.Step(`^the asset tag is set, and the answer names the other$`, func() error {
		if s.response.status != 200 || s.response.body["AssetTag"] != "A-1" || s.response.body["NotAProp@Message.ExtendedInfo"] == nil {
			return fmt.Errorf("the answer is %s", s.response)
		}
		return nil
	})
	sc.Step(`^two operators set the asset tag of the version that both have read$`, s.race)
	sc.Step(`^one of them succeeds, the other has to read again$`, func() error { return equal("the answers", s.saved["race"], "[200 412]") })
	sc.Step(`^the operator asks for the first member of the accounts$`, func() error {
		_, err := s.get(root + "/AccountService/Roles?$top=1")
		return err
	})
	sc.Step(`^he is told one, how many there are, and where the next is$`, func() error {
		members, _ := s.response.body["Members"].([]any)
		if len(members) != 1 || s.response.body["Members@odata.nextLink"] == nil || s.response.body["Members@odata.count"] == 1.0 {
			return fmt.Errorf("the answer is %s", s.response)
		}
		return nil
	})
	sc.Step(`^the whole collection is as it was for everybody$`, func() error {
		a, err := s.get(root + "/AccountService/Roles")
		if err != nil {
			return err
		}
		members, _ := a.body["Members"].([]any)
		first, _ := members[0].(map[string]any)
		if float64(len(members)) != a.body["Members@odata.count"] || len(members) < 3 || len(first) != 1 {
			return fmt.Errorf("it is %s", a)
		}
		return nil
	})
	sc.Step(`^the operator has the members shown whole$`, func() error {
		a, err := s.get(root + "/AccountService/Roles?$expand=.")
		if err != nil {
			return err
		}
		first, _ := a.body["Members"].([]any)[0].(map[string]any)
		return equal("the first member", first["RoleId"], first["Id"])
	})
	sc.Step(`^the operator asks for the roles that may configure users$`, func() error {
		_, err := s.get(root + "/AccountService/Roles?$filter=AssignedPrivileges%20eq%20'ConfigureUsers'")
		return err
	})
	sc.Step(`^he is told one role$`, func() error { return equal("the count", s.response.body["Members@odata.count"], 1) })
	sc.Step(`^the operator asks for the power state alone$`, func() error {
		_, err := s.get(systemURI + "?$select=PowerState")
		return err
	})
	sc.Step(`^he is told the power state and nothing else$`, func() error {
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.response.body)), func(n string) bool { return strings.HasPrefix(n, "@") })
		return equal("what he is told", names, []string{"PowerState"})
	})
	sc.Step(`^the operator asks with the option "([^"]*)"$`, func(option string) error {
		return s.send("GET", root+"/Systems?"+option, nil)
	})
	sc.Step(`^the answer comes as asked$`, func() error { return equal("the answer", s.response.status, 200) })
	sc.Step(`^the operator sets an asset tag and asks for no more than a confirmation$`, func() error {
		return s.send("PATCH", systemURI, object{"AssetTag": "A-2"}, "Prefer", "return=minimal")
	})
	sc.Step(`^it is confirmed without a word$`, func() error {
		if s.response.status != 204 || s.response.header.Get("Preference-Applied") != "return=minimal" {
			return fmt.Errorf("the answer is %s %v", s.response, s.response.header)
		}
		return nil
	})
	sc.Step(`^every action of the system tells what it takes$`, s.actionsTell)
	sc.Step(`^the service lists the "(schemas|message registries)" that it uses$`, func(what string) error {
		a, err := s.get(root + map[string]string{"schemas": "/JsonSchemas", "message registries": "/Registries"}[what])
		if err != nil {
			return err
		}
		if n, _ := a.body["Members@odata.count"].(float64); n < 5 {
			return fmt.Errorf("there are %v", n)
		}
		return nil
	})
}

func (s *scenario) onlyTheRoot() error {
	for path, want := range map[string]int{root + "/": 200, root + "/$metadata": 200, root + "/odata": 200, systemURI: 401, root + "/Chassis": 401} {
		if err := s.send("GET", path, nil); err != nil {
			return err
		}
		if err := equal(path, s.response.status, want); err != nil {
			return err
		}
	}
	return nil
}

func (s *scenario) standardHeaders() error {
	h := s.response.header
	for name, part := range map[string]string{
		"OData-Version": "4.0", "Cache-Control": "no-cache", "Link": "rel=describedby", "Allow": "GET, HEAD", "Content-Type": "application/json",
	} {
		if !strings.Contains(h.Get(name), part) {
			return fmt.Errorf("%s is %q", name, h.Get(name))
		}
	}
	return nil
}

// reasons are what an operator calls the messages of a refusal.
var reasons = map[string]string{
	"unknown property":        "PropertyUnknown",
	"precondition":            "PreconditionFailed",
	"unknown reset":           "ActionParameterValueNotInList",
	"unsupported option":      "QueryParameterUnsupported",
	"option out of range":     "QueryParameterOutOfRange",
	"wrong version":           "HeaderInvalid",
	"method":                  "OperationNotAllowed",
	"missing privilege":       "InsufficientPrivilege",
	"no login":                "NoValidSession",
	"slot in use":             "ResourceInUse",
	"drive in use":            "PropertyValueResourceConflict",
	"session limit":           "SessionLimitExceeded",
	"value not in list":       "PropertyValueNotInList",
	"value of another type":   "PropertyValueTypeError",
	"missing parameter":       "ActionParameterMissing",
	"unsupported protocol":    "PropertyValueNotInList",
	"resource does not exist": "ResourceMissingAtURI",
	"missing property":        "PropertyMissing",
	"broken request":          "MalformedJSON",
	"not to be deleted":       "ResourceCannotBeDeleted",
	"exists already":          "ResourceAlreadyExists",
	"no room":                 "CreateLimitReachedForResource",
	"service switched off":    "ServiceDisabled",
	"value out of range":      "PropertyValueOutOfRange",
	"value not acceptable":    "PropertyValueFormatError",
}

func (s *scenario) refusedBecause(reason string) error {
	key, ok := reasons[reason]
	switch {
	case !ok:
		return fmt.Errorf("no reason is called %q", reason)
	case s.response.status < 400:
		return fmt.Errorf("it was not refused: %s", s.response)
	case !slices.Contains(s.response.messageKeys(), key):
		return fmt.Errorf("it was refused because of %q: %s", s.response.messageKeys(), s.response)
	}
	return nil
}

func (s *scenario) race() error {
	a, err := s.get(systemURI)
	if err != nil {
		return err
	}
	tag := a.header.Get("ETag")
	var got []int
	for i := range 2 {
		if err := s.send("PATCH", systemURI, object{"AssetTag": fmt.Sprint("race-", i)}, "If-Match", tag); err != nil {
			return err
		}
		got = append(got, s.response.status)
	}
	s.saved["race"] = fmt.Sprint(got)
	return nil
}

func (s *scenario) actionsTell() error {
	a, err := s.get(systemURI)
	if err != nil {
		return err
	}
	actions, _ := a.body["Actions"].(map[string]any)
	for name, x := range actions {
		o, _ := x.(map[string]any)
		info, ok := o["@Redfish.ActionInfo"].(string)
		if !ok {
			continue // it takes nothing
		}
		a, err := s.get(info)
		if err != nil {
			return err
		}
		if parameters, _ := a.body["Parameters"].([]any); len(parameters) == 0 {
			return fmt.Errorf("%s tells no parameter", name)
		}
	}
	if len(actions) == 0 {
		return fmt.Errorf("there is no action: %s", a)
	}
	return nil
}

// eventually looks again, in real time, at what a BMC does after its answer.
func eventually(what func() error) (err error) {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for range 400 {
		if err = what(); err == nil {
			return nil
		}
		<-again.C
	}
	return err
}
