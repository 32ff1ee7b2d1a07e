package steps

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/scenarios/patience"
)

// URIs that every dialect of the generic profile has.
const (
	root      = "/redfish/v1"
	systemURI = root + "/Systems/1"
)

// credentials are a user name and a password.
type credentials struct{ name, password string }

// anonymous stands for a client without credentials.
const anonymous = "anonymous"

// response is the HTTP response of a BMC.
type response struct {
	status int
	header http.Header
	closes bool // the BMC closes the connection after it
	text   string
	body   map[string]any

	checked bool // a step has looked at it
}

// String implements fmt.Stringer.
func (r response) String() string { return fmt.Sprintf("%d %s", r.status, r.text) }

// at returns the value at a path within the body, such as Boot/BootOrder/0; nil
// where there is none.
func (r response) at(path string) any {
	v, _ := lookUp(r.body, path)
	return v
}

// lookUp returns the value at a path within a JSON value, and whether it is there.
func lookUp(v any, path string) (any, bool) {
	for name := range strings.SplitSeq(path, "/") {
		switch in := v.(type) {
		case map[string]any:
			x, ok := in[name]
			if !ok {
				return nil, false
			}
			v = x
		case []any:
			i := number(name)
			if i >= len(in) || fmt.Sprint(i) != name {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// messageKeys returns the keys of the messages of an error response (DSP0266,
// error responses), without their registry.
func (r response) messageKeys() (keys []string) {
	infos, _ := r.at("error/@Message.ExtendedInfo").([]any)
	for _, i := range infos {
		m, _ := i.(map[string]any)
		id, _ := m["MessageId"].(string)
		keys = append(keys, id[strings.LastIndexByte(id, '.')+1:])
	}
	return keys
}

// object is short for a JSON object.
type object = map[string]any

// rawBody is a request body that is sent byte by byte.
type rawBody []byte

// send sends a request to the first server's BMC. header lists names and values
// in turn.
func (s *scenario) send(method, path string, body any, header ...string) error {
	return s.sendTo(1, method, path, body, header...)
}

// sendTo sends a request to the BMC of the n-th server.
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
	if s.bmcWasReset { // which has ended all connections
		s.lab.Client.CloseIdleConnections()
	}
	h := s.server(server)
	r, err := http.NewRequestWithContext(s.t.Context(), method, h.URL()+path, in)
	if err != nil {
		return err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept-Encoding", "identity") // http.Client would decompress what it has asked for
	who := s.user
	if who == (credentials{}) {
		who.name, who.password = s.lab.Credentials(h)
	}
	switch {
	case s.token != "":
		r.Header.Set("X-Auth-Token", s.token)
	case who.name != anonymous:
		r.SetBasicAuth(who.name, who.password)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	s.bmcWasReset = s.bmcWasReset || strings.HasSuffix(path, "/Manager.Reset")
	s.response = response{}
	resp, err := s.lab.Client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	s.response = response{status: resp.StatusCode, header: resp.Header, text: string(text), closes: resp.Close, checked: true}
	if err != nil {
		return err
	}
	_ = json.Unmarshal(text, &s.response.body) // the body may be of another kind
	return nil
}

// get reads a resource, which must be there.
func (s *scenario) get(path string) (response, error) {
	err := s.send("GET", path, nil)
	if err == nil && s.response.status != 200 {
		err = fmt.Errorf("GET %s: the response is %s", path, s.response)
	}
	return s.response, err
}

// sendOK sends a request that must succeed.
func (s *scenario) sendOK(method, path string, body any, header ...string) error {
	if err := s.send(method, path, body, header...); err != nil {
		return err
	}
	if s.response.status >= 300 {
		return fmt.Errorf("%s %s: the response is %s", method, path, s.response)
	}
	s.lab.Settle()
	return nil
}

// request is a request as the features write it:
//
//	METHOD PATH [BODY] [with HEADER: VALUE]
//
// A path without a leading slash is below /redfish/v1/.
type request struct {
	method, path, body string
	header, value      string
}

var requestForm = regexp.MustCompile(`^(GET|HEAD|OPTIONS|POST|PUT|PATCH|DELETE|BREW) (\S+)(?: ([{].*?))?(?: with ([A-Za-z-]+): (.+))?$`)

func (s *scenario) parseRequest(text string) (request, error) {
	m := requestForm.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return request{}, fmt.Errorf("%q is no request: write METHOD PATH [BODY] [with HEADER: VALUE]", text)
	}
	return request{method: m[1], path: s.uri(m[2]), body: m[3], header: m[4], value: m[5]}, nil
}

// locations are the words of a path that stand for the resource that was last
// created in a collection.
var locations = map[string]string{ // by the last segment of the collection
	"Sessions": "SESSION", "Accounts": "ACCOUNT", "Jobs": "JOB", "Subscriptions": "SUBSCRIPTION", "Certificates": "CERTIFICATE-URI",
}

// uri returns the URI that a feature names: an absolute one, one below
// /redfish/v1/, or one that begins with a word of locations or with TASK.
func (s *scenario) uri(path string) string {
	first, rest, more := strings.Cut(path, "/")
	if location, ok := s.saved[first]; ok && first == strings.ToUpper(first) && first != "" {
		if more {
			location += "/" + rest
		}
		return location
	}
	if strings.HasPrefix(path, "/") {
		return path
	}
	return root + "/" + path
}

// saveLocation saves where a request has created something.
func (s *scenario) saveLocation(r request) {
	location := s.response.header.Get("Location")
	if s.response.status == http.StatusAccepted && location != "" {
		s.saved["MONITOR"], s.saved["TASK"] = location, fmt.Sprint(s.response.at("@odata.id"))
	}
	if r.method != "POST" || location == "" {
		return
	}
	s.saved["LOCATION"] = location
	collection := strings.TrimSuffix(r.path, "/Members")
	if word, ok := locations[collection[strings.LastIndexByte(collection, '/')+1:]]; ok {
		s.saved[word] = location
		s.created = s.response
	}
}

// expand replaces words of a request body by values that a feature file cannot
// contain: addresses, times and certificates.
func (s *scenario) expand(body string) string {
	live := []byte(liveImage)
	for _, word := range []struct {
		name  string
		value func() string
	}{
		{"IMAGE-SERVER-CERTIFICATE", s.images.certificate},
		{"SECURE-IMAGE", func() string { return s.images.secureURL("live.iso", live) }},
		{"MISSING-IMAGE", func() string { return s.images.url("missing.iso", nil) }},
		{"IMAGE-SERVER", func() string { return strings.TrimSuffix(s.images.url("live.iso", live), "/live.iso") }},
		{"IMAGE", func() string { return s.images.url("live.iso", live) }},
		{"DAMAGED-FIRMWARE", func() string { return s.images.url("damaged.img", damagedFirmware()) }},
		{"OLD-FIRMWARE", func() string { return s.images.url("old.img", firmwareOf("1.9.0")) }},
		{"FIRMWARE", func() string { return s.images.url("firmware.img", biosFirmware()) }},
		{"IN-AN-HOUR", func() string { return s.lab.Clock().Now().Add(time.Hour).UTC().Format(time.RFC3339) }},
		{"SECOND-BMC", func() string { return s.server(2).Address().Addr().String() }},
		{"AUTHORITY-CERTIFICATE", s.authorityPEM},
		{"SIGNED-CERTIFICATE", func() string { return s.certificates.signed }},
		{"CERTIFICATE-URI", func() string { return s.saved["CERTIFICATE-URI"] }},
		{"KEK-CERTIFICATE", func() string { return s.saved["certificate"] }},
	} {
		if strings.Contains(body, word.name) {
			value, err := json.Marshal(word.value())
			if err != nil {
				panic(err) // a string can be marshalled
			}
			body = strings.ReplaceAll(body, word.name, strings.Trim(string(value), `"`))
		}
	}
	return body
}

// headerValue returns what a header of a request holds. ETAG stands for the ETag
// of the resource, or of the one that has the action; ETAG-GZIP for that of its
// compressed representation, and ETAG-GZIP-CUT for the latter without "-gzip".
func (s *scenario) headerValue(server int, r request) (string, error) {
	if !strings.HasPrefix(r.value, "ETAG") {
		return r.value, nil
	}
	of, _, _ := strings.Cut(r.path, "/Actions/")
	var header []string
	if strings.HasPrefix(r.value, "ETAG-GZIP") {
		header = []string{"Accept-Encoding", "gzip"}
	}
	if err := s.sendTo(server, "GET", of, nil, header...); err != nil {
		return "", err
	}
	tag := s.response.header.Get("ETag")
	if r.value == "ETAG-GZIP-CUT" {
		tag = strings.Replace(tag, "-gzip", "", 1)
	}
	return tag, nil
}

// do sends a request that a feature has written. A response of 400 or above
// must be looked at by a step after it.
func (s *scenario) do(server int, text string) error {
	if err := s.unchecked(); err != nil {
		return err
	}
	s.transportError = nil
	r, err := s.parseRequest(text)
	if err != nil {
		return err
	}
	var header []string
	if r.header != "" {
		value, err := s.headerValue(server, r)
		if err != nil {
			return err
		}
		header = []string{r.header, value}
	}
	var body any
	if r.body != "" {
		body = rawBody(s.expand(r.body))
	}
	err = s.sendTo(server, r.method, r.path, body, header...)
	s.lab.Settle()
	s.sent = r
	s.response.checked = err != nil || s.response.status < 400
	s.saveLocation(r)
	return err
}

// unchecked returns an error when the last request was refused and no step has
// looked at its response.
func (s *scenario) unchecked() error {
	if s.response.status < 400 || s.response.checked {
		return nil
	}
	return fmt.Errorf("%s %s: no step has expected the response %s", s.sent.method, s.sent.path, s.response)
}

// mustBeChecked makes a step after this one look at the last response, to a request that
// was not sent by do.
func (s *scenario) mustBeChecked(method, path string) {
	s.sent, s.response.checked = request{method: method, path: path}, false
}

// last returns the response to the last request, for a step that checks it.
func (s *scenario) last() response {
	s.response.checked = true
	return s.response
}

// succeed sends requests that must succeed, separated by semicolons. "wait 10s"
// lets the lab's time pass; "none" is no request.
func (s *scenario) succeed(requests string) error {
	for text := range strings.SplitSeq(requests, ";") {
		text = strings.TrimSpace(text)
		if wait, ok := strings.CutPrefix(text, "wait "); ok {
			d, err := time.ParseDuration(wait)
			if err != nil {
				return err
			}
			s.lab.Advance(d)
			continue
		}
		if text == "none" {
			continue
		}
		if err := s.do(1, text); err != nil {
			return err
		}
		if r := s.last(); r.status >= 300 {
			return fmt.Errorf("%s: the response is %s", text, r)
		}
	}
	return nil
}

const requestText = `((?:GET|HEAD|OPTIONS|POST|PUT|PATCH|DELETE|BREW) .+)`

func (s *scenario) registerRequests(sc *stepRegistry) {
	sc.Step(`^the client sends `+requestText+`$`, func(text string) error { return s.do(1, text) })
	sc.Step(`^the client sends to the second BMC: `+requestText+`$`, func(text string) error { return s.do(2, text) })
	sc.Step(`^the client sends, response or not: `+requestText+`$`, func(text string) error {
		s.transportError = s.do(1, text)
		return nil
	})
	sc.Step(`^the client sends (\d+) times GET (\S+)$`, func(n int, path string) error { return s.countConnections(n, path, false) })
	sc.Step(`^an HTTP/2 client sends (\d+) times GET (\S+)$`, func(n int, path string) error { return s.countConnections(n, path, true) })
	sc.Step(`^the client has opened (\d+) connections?, and speaks (HTTP/[12]\.[01])$`, func(n int, proto string) error {
		if err := equal("the protocol", s.proto, proto); err != nil {
			return err
		}
		return equal("the number of connections", s.connections, n)
	})
	sc.Step(`^these requests succeed: (.*)$`, s.succeed)
	sc.Step(`^the client resets the system with ResetType (\w+)$`, func(kind string) error {
		return s.sendOK("POST", systemURI+"/Actions/ComputerSystem.Reset", object{"ResetType": kind})
	})
	sc.Step(`^the client resets the BMC$`, func() error {
		return s.sendOK("POST", root+"/Managers/1/Actions/Manager.Reset", object{"ResetType": "ForceRestart"})
	})
	sc.Step(`^a client from another address sends `+requestText+`$`, func(text string) error {
		plain := s.lab.Client
		defer func() { s.lab.Client = plain }()
		from := plain.Transport.(*http.Transport).Clone()
		defer from.CloseIdleConnections()
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		from.DialContext = dialer.DialContext
		s.lab.Client = &http.Client{Transport: from}
		return s.do(1, text)
	})
	s.registerPendingRequests(sc)
	s.registerResponses(sc)
	s.registerProperties(sc)
}

// registerPendingRequests binds the steps of a client that waits for a response.
func (s *scenario) registerPendingRequests(sc *stepRegistry) {
	type outcome struct {
		response response
		err      error
	}
	answered := make(chan outcome, 1)
	begin := func(text string) error {
		r, err := s.parseRequest(text)
		if err != nil {
			return err
		}
		var body any
		if r.body != "" {
			body = rawBody(s.expand(r.body))
		}
		client, before := *s, s.lab.Waiting() // a separate client: the scenario goes on
		go func() {
			err := client.sendTo(1, r.method, r.path, body)
			answered <- outcome{client.response, err}
		}()
		return eventually(func() error { return equal("the number of pending requests", s.lab.Waiting(), before+1) })
	}
	end := func(status int) error {
		select {
		case got := <-answered:
			if got.err != nil {
				return got.err
			}
			return equal("the status", got.response.status, status)
		case <-time.After(10 * time.Second):
			return errors.New("there is no response")
		}
	}
	sc.Step(`^the client begins `+requestText+`$`, begin)
	sc.NegativeStep(`^the request is still pending$`, func() error {
		s.lab.Settle()
		if len(answered) > 0 {
			return errors.New("it has been answered")
		}
		return equal("the number of pending requests", s.lab.Waiting(), 1)
	})
	sc.Step(`^the pending request is answered with (\d+)$`, end)
	sc.Step(`^the client repeats GET (\S+) (\d+) times, each up to a minute$`, func(path string, n int) error {
		for range n {
			if err := begin("GET " + path); err != nil {
				return err
			}
			s.lab.Advance(time.Minute) // nothing takes longer
			if err := end(200); err != nil {
				return err
			}
		}
		return nil
	})
}

// eventually repeats a check until it passes, for at most patience.Limit. Use it for effects
// that follow a BMC's response.
func eventually(check func() error) error {
	return patience.Until(context.Background(), patience.Limit(), func(context.Context) (bool, string, error) {
		err := check()
		return err == nil, fmt.Sprint(err), nil
	})
}
