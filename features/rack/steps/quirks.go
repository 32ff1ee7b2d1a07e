package steps

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
)

// request is what a client that knows the standard, and no vendor, sends.
type request struct {
	method, path string
	body         any
	header       []string
}

// requests are such a client's, by what an operator calls them. In a body IMAGE
// is the address of an image.
var requests = map[string]request{
	"inserts an image":                                      {"POST", slotURI + "/Actions/VirtualMedia.InsertMedia", object{"Image": "IMAGE"}, nil},
	"inserts an image, saying that it does":                 {"POST", slotURI + "/Actions/VirtualMedia.InsertMedia", object{"Image": "IMAGE", "Inserted": true}, nil},
	"inserts an image, saying how":                          {"POST", slotURI + "/Actions/VirtualMedia.InsertMedia", object{"Image": "IMAGE", "TransferProtocolType": "HTTP", "TransferMethod": "Stream"}, nil},
	"sets the image":                                        {"PATCH", slotURI, object{"Image": "IMAGE"}, nil},
	"sets the image, saying that it does":                   {"PATCH", slotURI, object{"Image": "IMAGE", "Inserted": true}, nil},
	"ejects":                                                {"POST", slotURI + "/Actions/VirtualMedia.EjectMedia", nil, nil},
	"ejects with an empty object":                           {"POST", slotURI + "/Actions/VirtualMedia.EjectMedia", object{}, nil},
	"ejects with the ETag":                                  {"POST", slotURI + "/Actions/VirtualMedia.EjectMedia", object{}, []string{"If-Match", "ETAG"}},
	"sets the boot target":                                  {"PATCH", systemURI, object{"Boot": object{"BootSourceOverrideTarget": "Pxe"}}, nil},
	"sets the boot target for once":                         {"PATCH", systemURI, object{"Boot": object{"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}, nil},
	"sets the boot target for good":                         {"PATCH", systemURI, object{"Boot": object{"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Continuous"}}, nil},
	"sets the boot target for once, with UEFI":              {"PATCH", systemURI, object{"Boot": object{"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once", "BootSourceOverrideMode": "UEFI"}}, nil},
	"sets the asset tag":                                    {"PATCH", systemURI, object{"AssetTag": "a"}, nil},
	"sets the asset tag with the ETag":                      {"PATCH", systemURI, object{"AssetTag": "a"}, []string{"If-Match", "ETAG"}},
	"switches on":                                           {"POST", systemURI + "/Actions/ComputerSystem.Reset", object{"ResetType": "On"}, nil},
	"switches off":                                          {"POST", systemURI + "/Actions/ComputerSystem.Reset", object{"ResetType": "ForceOff"}, nil},
	"changes the BIOS":                                      {"PATCH", systemURI + "/Bios/Settings", object{"Attributes": object{"BootMode": "Uefi"}}, nil},
	"changes the BIOS again":                                {"PATCH", systemURI + "/Bios/Settings", object{"Attributes": object{"NumLock": "Off"}}, nil},
	"opens a session":                                       {"POST", root + "/SessionService/Sessions", object{"UserName": "admin", "Password": "admin-password"}, nil},
	"makes an account":                                      {"POST", root + "/AccountService/Accounts", object{"UserName": "joe", "Password": "joes-password", "RoleId": "ReadOnly"}, nil},
	"switches secure boot on":                               {"PATCH", systemURI + "/SecureBoot", object{"SecureBootEnable": true}, nil},
	"resets the BMC":                                        {"POST", root + "/Managers/1/Actions/Manager.Reset", object{"ResetType": "ForceRestart"}, nil},
	"sets a property that the system lacks":                 {"PATCH", systemURI, object{"Nonsense": 1}, nil},
	"inserts an image where the manager had it":             {"POST", root + "/Managers/1/VirtualMedia/CD/Actions/VirtualMedia.InsertMedia", object{"Image": "IMAGE"}, nil},
	"inserts an image into the other drive":                 {"POST", systemURI + "/VirtualMedia/Usb/Actions/VirtualMedia.InsertMedia", object{"Image": "IMAGE"}, nil},
	"inserts an image, and does not wait":                   {"POST", slotURI + "/Actions/VirtualMedia.InsertMedia", object{"Image": "IMAGE"}, []string{"Prefer", "respond-async"}},
	"sets the boot target to the CD":                        {"PATCH", systemURI, object{"Boot": object{"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}}, nil},
	"sets the boot target to the CD by USB":                 {"PATCH", systemURI, object{"Boot": object{"BootSourceOverrideTarget": "UsbCd", "BootSourceOverrideEnabled": "Once"}}, nil},
	"sets the boot target in the settings":                  {"PATCH", systemURI + "/Settings", object{"Boot": object{"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}, nil},
	"sets the boot target in the settings with the ETag":    {"PATCH", systemURI + "/Settings", object{"Boot": object{"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}, []string{"If-Match", "ETAG"}},
	"sets the time zone to what it is":                      {"PATCH", root + "/Managers/1", object{"DateTimeLocalOffset": "+00:00"}, nil},
	"sets the time zone to another":                         {"PATCH", root + "/Managers/1", object{"DateTimeLocalOffset": "+01:00"}, nil},
	"changes two settings of the BIOS":                      {"PATCH", systemURI + "/Bios/Settings", object{"Attributes": object{"NumLock": "Off", "ProcHyperThreading": "Disabled"}}, nil},
	"resets the server by force":                            {"POST", systemURI + "/Actions/ComputerSystem.Reset", object{"ResetType": "ForceRestart"}, nil},
	"inserts an image, saying how and with an account":      {"POST", slotURI + "/Actions/VirtualMedia.InsertMedia", object{"Image": "IMAGE", "TransferProtocolType": "HTTP", "TransferMethod": "Stream", "UserName": "", "Password": ""}, nil},
	"deletes the volume":                                    {"DELETE", volumesURI + "/1", nil, nil},
	"deletes the volume, saying when":                       {"DELETE", volumesURI + "/1", object{"@Redfish.OperationApplyTime": "Immediate"}, nil},
	"opens a session with a wrong password":                 {"POST", root + "/SessionService/Sessions", object{"UserName": "admin", "Password": "no-password"}, nil},
	"sets another boot target alone":                        {"PATCH", systemURI, object{"Boot": object{"BootSourceOverrideTarget": "Hdd"}}, nil},
	"sets the asset tag with the ETag of what was packed":   {"PATCH", systemURI, object{"AssetTag": "a"}, []string{"If-Match", "ETAG OF PACKED"}},
	"sets the asset tag with that ETag, without the suffix": {"PATCH", systemURI, object{"AssetTag": "a"}, []string{"If-Match", "ETAG OF PACKED, CUT"}},
	"inserts an image from a server with HTTPS":             {"POST", slotURI + "/Actions/VirtualMedia.InsertMedia", object{"Image": "https://127.0.0.1:1/none.iso"}, nil},
}

func (s *scenario) registerQuirks(sc *godog.ScenarioContext) {
	s.registerWaits(sc)
	sc.Step(`^the (?:first server's )?BMC has the quirk "([^"]*)"$`, func(text string) error {
		q, err := quirk.Parse(text)
		if err != nil {
			return err
		}
		return s.server(1).SetQuirks([]quirk.Setting{q})
	})
	sc.Step(`^the BMC's service answers over (HTTP|TLS) alone$`, s.answersOver)
	sc.Step(`^the BMC has no quirk$`, func() error { return s.server(1).SetQuirks(nil) })
	sc.Step(`^a naive client ((?:inserts|sets|ejects|switches|changes|opens|makes|resets|deletes) ?[^"]*|ejects)$`, func(what string) error { return s.carryOut(1, what) })
	sc.Step(`^a naive client has done this before: (.*)$`, func(whats string) error {
		for what := range strings.SplitSeq(whats, "; ") {
			var n int
			switch {
			case what == "nothing":
			case s.wait(what, &n):
				s.advance(n, "seconds")
			default:
				if err := s.carryOut(1, what); err != nil {
					return err
				}
				if s.response.status >= 300 {
					return fmt.Errorf("%s: it is answered %s", what, s.response)
				}
			}
		}
		return nil
	})
	sc.Step(`^it is answered (\d+) with "([^"]*)"$`, func(status int, key string) error {
		if err := equal("the answer", s.response.status, status); err != nil {
			return fmt.Errorf("%w: %s", err, s.response)
		}
		if key != "" && !strings.Contains(s.response.text, "."+key+`"`) {
			return fmt.Errorf("it is answered %s, want %s", s.response, key)
		}
		return nil
	})
	sc.Step(`^the other server's BMC, without the quirk, answers (\d+) to a naive client that (.*)$`, func(status int, what string) error {
		if err := s.carryOut(2, what); err != nil {
			return err
		}
		if s.response.status != status {
			return fmt.Errorf("it is answered %s, want %d", s.response, status)
		}
		return nil
	})
	sc.Step(`^a naive client reads "([^"]*)"$`, func(path string) error { return s.send("GET", root+"/"+path, nil) })
	sc.Step(`^"([^"]*)" of "([^"]*)" is (?:"([^"]*)"|like "([^"]*)"|not there)$`, func(path, of, want, like string) error {
		a, err := s.get(root + "/" + of)
		if err != nil {
			return err
		}
		switch is := a.at(path); {
		case like != "" && !regexp.MustCompile(like).MatchString(fmt.Sprint(is)):
			return fmt.Errorf("it is %v in %s", is, a)
		case like == "" && want == "" && is != nil, want != "" && fmt.Sprint(is) != want:
			return fmt.Errorf("it is %v in %s", is, a)
		}
		return nil
	})
	sc.Step(`^a naive client that takes gzip reads "([^"]*)"$`, func(path string) error {
		return s.send("GET", root+"/"+path, nil, "Accept-Encoding", "gzip")
	})
	sc.Step(`^"([^"]*)" of "([^"]*)" is (noted|what was noted|not what was noted)$`, func(path, of, how string) error {
		a, err := s.get(root + "/" + of)
		if err != nil {
			return err
		}
		switch err := s.equalsSaved(path, a.at(path)); {
		case a.at(path) == nil:
			return fmt.Errorf("it is not there: %s", a)
		case how == "noted":
			s.save(path, a.at(path))
		case how == "what was noted":
			return err
		case err == nil:
			return fmt.Errorf("it is %v, as it was", a.at(path))
		}
		return nil
	})
	sc.Step(`^every member of "([^"]*)" (has|lacks) "([^"]*)"$`, func(of, how, name string) error {
		a, err := s.get(root + "/" + of)
		if err != nil {
			return err
		}
		all, _ := a.at("Members").([]any)
		for _, m := range all {
			o, _ := m.(object)
			if _, has := o[name]; has != (how == "has") || len(o) < 2 {
				return fmt.Errorf("one is %v", o)
			}
		}
		if len(all) == 0 {
			return fmt.Errorf("there is none: %s", a)
		}
		return nil
	})
	sc.Step(`^the body of "([^"]*)" has (\d+) documents, the last of which is the resource$`, func(of string, n int) error {
		a, err := s.get(root + "/" + of)
		if err != nil {
			return err
		}
		d := json.NewDecoder(strings.NewReader(a.text))
		var last object
		for range n {
			last = nil
			if err := d.Decode(&last); err != nil {
				return err
			}
		}
		if d.More() || last["@odata.id"] != root+"/"+of {
			return fmt.Errorf("it is %s", a)
		}
		return nil
	})
	sc.Step(`^a naive client at another address (opens [^"]*)$`, func(what string) error {
		plain := s.lab.Client
		defer func() { s.lab.Client = plain }()
		from := plain.Transport.(*http.Transport).Clone()
		defer from.CloseIdleConnections()
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		from.DialContext = dialer.DialContext
		s.lab.Client = &http.Client{Transport: from}
		return s.carryOut(1, what)
	})
	sc.Step(`^no event of the stream tells its "([^"]*)"$`, func(name string) error { return s.streams[len(s.streams)-1].lacks(name) })
	sc.Step(`^the system shows no "([^"]*)"$`, func(path string) error {
		a, err := s.get(systemURI)
		if err == nil && a.at(path) != nil {
			err = fmt.Errorf("it shows %v", a.at(path))
		}
		return err
	})
	sc.Step(`^the answer's messages are an object$`, func() error {
		if _, ok := s.response.at("error/@Message.ExtendedInfo").(map[string]any); !ok {
			return fmt.Errorf("it is %s", s.response)
		}
		return nil
	})
	sc.Step(`^the answer's messages are a text$`, func() error {
		if text, _ := s.response.at("error/@Message.ExtendedInfo").(string); text == "" {
			return fmt.Errorf("it is %s", s.response)
		}
		return nil
	})
	sc.Step(`^"([^"]*)" of an empty collection is null$`, func(name string) error {
		a, err := s.get(root + "/EventService/Subscriptions")
		if err != nil {
			return err
		}
		if v, has := a.body[name]; !has || v != nil {
			return fmt.Errorf("it is %v in %s", v, a)
		}
		return nil
	})
	sc.Step(`^the connection is closed after the answer$`, func() error {
		return equal("that the connection ends", s.response.closes, true)
	})
}

// registerWaits are the steps of a client that has not been answered yet.
func (s *scenario) registerWaits(sc *godog.ScenarioContext) {
	type outcome struct {
		answer response
		err    error
	}
	waits := make(chan outcome, 1)
	sc.Step(`^a naive client waits for an answer, who (.*)$`, func(what string) error {
		r, ok := requests[what]
		if !ok {
			return fmt.Errorf("no client %q", what)
		}
		client, before := *s, s.lab.Waiting() // who goes on while others do
		go func() {
			err := client.sendTo(1, r.method, r.path, r.body)
			waits <- outcome{client.response, err}
		}()
		return eventually(func() error { return equal("the number of requests that wait", s.lab.Waiting(), before+1) })
	})
	sc.Step(`^the client waits still$`, func() error {
		s.lab.Settle()
		return equal("the number of requests that wait", s.lab.Waiting(), 1)
	})
	sc.Step(`^the client is answered (\d+)$`, func(status int) error {
		select {
		case got := <-waits:
			if got.err != nil {
				return got.err
			}
			return equal("the answer", got.answer.status, status)
		case <-time.After(10 * time.Second):
			return errors.New("it is not answered")
		}
	})
}

// answersOver asks for the service root with and without TLS.
func (s *scenario) answersOver(way string) error {
	for name, scheme := range map[string]string{"HTTP": "http", "TLS": "https"} { // the order is not seen
		r, err := s.lab.Client.Get(scheme + "://" + s.server(1).Address().String() + root + "/")
		answers := err == nil && r.StatusCode == http.StatusOK
		if err == nil {
			err = r.Body.Close()
		}
		if answers != (name == way) {
			return fmt.Errorf("over %s: it answers: %v (%v)", name, answers, err)
		}
	}
	return equal("the scheme of its address", strings.HasPrefix(s.server(1).URL(), "https:"), way == "TLS")
}

// lacks reads events until one tells of the power, and says whether one has a
// property.
func (st *stream) lacks(name string) error {
	for line := range st.lines {
		data, ok := strings.CutPrefix(line, "data: ")
		switch {
		case ok && strings.Contains(data, `"`+name+`"`):
			return fmt.Errorf("an event has %s: %.300s", name, data)
		case ok && strings.Contains(data, messages["the power"]):
			return nil
		}
	}
	return fmt.Errorf("the stream has ended without %s", messages["the power"])
}

func (s *scenario) wait(what string, n *int) bool {
	_, err := fmt.Sscanf(what, "waits %d seconds", n)
	return err == nil
}

// carryOut sends one of the requests to a server's BMC.
func (s *scenario) carryOut(server int, what string) error {
	r, ok := requests[what]
	if !ok {
		return fmt.Errorf("no client %q", what)
	}
	return s.request(server, r)
}

// request sends a request to a server's BMC.
func (s *scenario) request(server int, r request) error {
	var header []string
	for _, h := range r.header {
		if strings.HasPrefix(h, "ETAG") {
			at, _, _ := strings.Cut(r.path, "/Actions/")
			var takes []string
			if strings.Contains(h, "PACKED") {
				takes = []string{"Accept-Encoding", "gzip"}
			}
			if err := s.sendTo(server, "GET", at, nil, takes...); err != nil {
				return err
			}
			cut := strings.Contains(h, "CUT")
			if h = s.response.header.Get("Etag"); cut {
				h = strings.Replace(h, "-gzip", "", 1)
			}
		}
		header = append(header, h)
	}
	body := r.body
	if o, ok := body.(object); ok && o["Image"] == "IMAGE" {
		with := object{}
		for name, v := range o {
			with[name] = v
		}
		with["Image"] = s.images.url("live.iso", []byte(bootable))
		body = with
	}
	s.lab.Client.CloseIdleConnections() // a BMC that was reset has ended them
	err := s.sendTo(server, r.method, r.path, body, header...)
	s.lab.Settle()
	return err
}
