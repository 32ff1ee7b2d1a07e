package steps

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

func (s *scenario) registerResponses(sc *stepRegistry) {
	sc.Step(`^the response is (\d+)$`, func(status int) error { return s.responseIs(status, "") })
	sc.Step(`^the response is (\d+) with "([^"]*)"$`, s.responseIs)
	sc.NegativeStep(`^there is no response$`, func() error {
		if s.response.status != 0 || s.transportError == nil {
			return fmt.Errorf("the response is %s", s.last())
		}
		return nil
	})
	sc.NegativeStep(`^the response is not valid JSON$`, func() error {
		if r := s.last(); r.text == "" || s.transportError == nil && json.Valid([]byte(r.text)) {
			return fmt.Errorf("the response is %s", r)
		}
		return nil
	})
	sc.Step(`^the response has the header ([A-Za-z-]+): (.+)$`, func(name, want string) error {
		return equal(name, s.last().header.Get(name), want)
	})
	sc.NegativeStep(`^the response has no header ([A-Za-z-]+)$`, func(name string) error {
		if r := s.last(); r.status == 0 || r.header.Get(name) != "" {
			return fmt.Errorf("the response is %s with %v", r, r.header)
		}
		return nil
	})
	sc.NegativeStep(`^the response has no body$`, func() error { return equal("the body", s.last().text, "") })
	sc.Step(`^the response contains '([^']*)'$`, func(text string) error {
		if r := s.last(); !strings.Contains(r.text, text) {
			return fmt.Errorf("the response is %s", r)
		}
		return nil
	})
	sc.Step(`^the response has "([^"]*)": (.+)$`, func(path, want string) error { return hasValue(s.last(), path, want) })
	sc.Step(`^the response has "([^"]*)"$`, func(path string) error {
		if r := s.last(); r.at(path) == nil {
			return fmt.Errorf("the response is %s", r)
		}
		return nil
	})
	sc.NegativeStep(`^the response has no "([^"]*)"$`, func(path string) error {
		r := s.last()
		if _, ok := lookUp(r.body, path); ok || r.status >= 300 || len(r.body) == 0 {
			return fmt.Errorf("the response is %s", r)
		}
		return nil
	})
	sc.NegativeStep(`^the response does not contain '([^']*)'$`, func(text string) error {
		if r := s.last(); r.status >= 300 || r.text == "" || strings.Contains(r.text, text) {
			return fmt.Errorf("the response is %s", r)
		}
		return nil
	})
	sc.Step(`^the header ([A-Za-z-]+) contains (.+)$`, func(name, part string) error {
		if got := s.last().header.Get(name); !strings.Contains(got, part) {
			return fmt.Errorf("%s is %q, want %q in it", name, got, part)
		}
		return nil
	})
	sc.Step(`^the response is (\d+) with a message$`, func(status int) error {
		if r := s.last(); r.status != status || len(r.messageKeys()) == 0 {
			return fmt.Errorf("the response is %s, want %d", r, status)
		}
		return nil
	})
	sc.Step(`^the response has "([^"]*)" of the JSON type (object|string)$`, func(path, kind string) error {
		switch v := s.last().at(path).(type) {
		case map[string]any:
			return equal("the JSON type", "object", kind)
		case string:
			if v != "" {
				return equal("the JSON type", "string", kind)
			}
		}
		return fmt.Errorf("the response is %s", s.response)
	})
	sc.Step(`^the body of GET (\S+) is (\d+) JSON documents, the last of which is the resource$`, func(path string, n int) error {
		r, err := s.get(s.uri(path))
		if err != nil {
			return err
		}
		d := json.NewDecoder(strings.NewReader(r.text))
		var last object
		for range n {
			last = nil
			if err := d.Decode(&last); err != nil {
				return err
			}
		}
		if d.More() || last["@odata.id"] != s.uri(path) {
			return fmt.Errorf("the response is %s", r)
		}
		return nil
	})
	sc.Step(`^the client saves the headers of the response$`, func() { s.headers = s.last().header })
	sc.Step(`^the ETag and Content-Length are the saved ones$`, func() error {
		for _, name := range []string{"ETag", "Content-Length"} {
			if s.headers.Get(name) == "" {
				return fmt.Errorf("the saved headers have no %s", name)
			}
			if err := equal(name, s.last().header.Get(name), s.headers.Get(name)); err != nil {
				return err
			}
		}
		return nil
	})
	sc.Step(`^the headers are the saved ones$`, func() error {
		got, saved := s.last().header.Clone(), s.headers.Clone()
		got.Del("Date")
		saved.Del("Date")
		if !reflect.DeepEqual(got, saved) {
			return fmt.Errorf("the headers are %v, want %v", got, saved)
		}
		return nil
	})
	sc.Step(`^the header ([A-Za-z-]+) is the saved one$`, func(name string) error {
		if s.headers.Get(name) == "" {
			return fmt.Errorf("there is no saved %s", name)
		}
		return equal(name, s.last().header.Get(name), s.headers.Get(name))
	})
	sc.Step(`^the response has the saved "([^"]*)"$`, func(name string) error { return s.equalsSaved(name, s.last().at(name)) })
	sc.Step(`^the response is compressed with gzip and has the saved "([^"]*)"$`, func(name string) error {
		z, err := gzip.NewReader(strings.NewReader(s.last().text))
		if err != nil {
			return err
		}
		var r response
		if err := json.NewDecoder(z).Decode(&r.body); err != nil {
			return err
		}
		return s.equalsSaved(name, r.at(name))
	})
	sc.Step(`^the connection is closed after the response$`, func() error {
		return equal("whether the BMC closes the connection", s.last().closes, true)
	})
}

// responseIs checks the status and, unless it is "", the key of a message. An
// error response must have it in its @Message.ExtendedInfo, if that is the array
// that the standard asks for; any other response anywhere.
func (s *scenario) responseIs(status int, key string) error {
	r := s.last()
	if r.status != status {
		return fmt.Errorf("the response is %s, want %d", r, status)
	}
	if key == "" || slices.Contains(r.messageKeys(), key) {
		return nil
	}
	if r.messageKeys() != nil || !strings.Contains(r.text, "."+key+`"`) {
		return fmt.Errorf("the response is %s, want the message %s", r, key)
	}
	return nil
}

// hasValue compares the value at a path with one that a feature writes as JSON.
func hasValue(r response, path, want string) error {
	var value any
	if err := json.Unmarshal([]byte(want), &value); err != nil {
		return fmt.Errorf("%s is no JSON value: %w", want, err)
	}
	got, ok := lookUp(r.body, path)
	if !ok {
		return fmt.Errorf("there is no %s: %s", path, r)
	}
	if !reflect.DeepEqual(got, value) {
		return fmt.Errorf("%s is %v, want %v", path, got, value)
	}
	return nil
}

func (s *scenario) registerProperties(sc *stepRegistry) {
	get := func(path string) (response, error) {
		if err := s.unchecked(); err != nil {
			return response{}, err
		}
		return s.get(s.uri(path))
	}
	sc.Step(`^GET (\S+) has "([^"]*)": (.+)$`, func(path, name, want string) error {
		r, err := get(path)
		if err != nil {
			return err
		}
		return hasValue(r, name, want)
	})
	sc.Step(`^GET (\S+) has "([^"]*)" matching (.+)$`, func(path, name, pattern string) error {
		r, err := get(path)
		if err != nil {
			return err
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			return err
		}
		if re.MatchString("") && pattern != "^$" {
			return fmt.Errorf("%q matches any value", pattern)
		}
		if v, ok := lookUp(r.body, name); !ok || v == nil || !re.MatchString(fmt.Sprint(v)) {
			return fmt.Errorf("%s is %v in %s", name, v, r)
		}
		return nil
	})
	sc.NegativeStep(`^GET (\S+) has no "([^"]*)"$`, func(path, name string) error {
		r, err := get(path)
		if err != nil {
			return err
		}
		if v, ok := lookUp(r.body, name); ok {
			return fmt.Errorf("%s is %v in %s", name, v, r)
		}
		return nil
	})
	sc.Step(`^GET (\S+) of the second BMC has "([^"]*)": (.+)$`, func(path, name, want string) error {
		if err := s.sendTo(2, "GET", s.uri(path), nil); err != nil {
			return err
		}
		return hasValue(s.last(), name, want)
	})
	sc.Step(`^GET (\S+) is answered with (\d+)$`, func(path string, status int) error {
		if err := s.send("GET", s.uri(path), nil); err != nil {
			return err
		}
		return s.responseIs(status, "")
	})
	sc.Step(`^GET (\S+) of the second BMC is answered with (\d+)$`, func(path string, status int) error {
		if err := s.sendTo(2, "GET", s.uri(path), nil); err != nil {
			return err
		}
		return s.responseIs(status, "")
	})
	sc.Step(`^within ([1-9]\d*) minutes GET (\S+) has "([^"]*)": (.+)$`, func(n int, path, name, want string) (err error) {
		for range n * 60 {
			r, e := get(path)
			if e != nil {
				return e
			}
			if err = hasValue(r, name, want); err == nil {
				return nil
			}
			s.lab.Advance(time.Second)
		}
		return err
	})
	sc.NegativeStep(`^(AssetTag|BootProgress/LastState) of the system is not "([^"]*)"$`, func(name, not string) error {
		r, err := get(systemURI)
		if v, ok := lookUp(r.body, name); err == nil && (!ok || v == not) {
			err = fmt.Errorf("%s is %v", name, not)
		}
		return err
	})
	sc.Step(`^the client saves "([^"]*)" of GET (\S+)$`, func(name, path string) error {
		r, err := get(path)
		if err == nil && r.at(name) == nil {
			err = fmt.Errorf("there is no %s: %s", name, r)
		}
		s.save(name, r.at(name))
		return err
	})
	sc.Step(`^GET (\S+) has the saved "([^"]*)"$`, func(path, name string) error {
		r, err := get(path)
		if err != nil {
			return err
		}
		return s.equalsSaved(name, r.at(name))
	})
	sc.NegativeStep(`^GET (\S+) lacks the saved "([^"]*)"$`, func(path, name string) error {
		r, err := get(path)
		if err != nil {
			return err
		}
		if _, saved := s.saved[name]; !saved || r.at(name) == nil {
			return fmt.Errorf("%s was saved: %t, and is %v", name, saved, r.at(name))
		}
		if s.equalsSaved(name, r.at(name)) == nil {
			return fmt.Errorf("%s is %v, as saved", name, r.at(name))
		}
		return nil
	})
	sc.Step(`^every member of GET (\S+) has "([^"]*)"$`, func(path, name string) error { return s.membersHave(path, name, true) })
	sc.NegativeStep(`^every member of GET (\S+) lacks "([^"]*)"$`, func(path, name string) error { return s.membersHave(path, name, false) })
}

// membersHave checks whether each member of a collection has a property, and that there are
// members with other properties.
func (s *scenario) membersHave(path, name string, want bool) error {
	if err := s.unchecked(); err != nil {
		return err
	}
	r, err := s.get(s.uri(path))
	if err != nil {
		return err
	}
	all, _ := r.at("Members").([]any)
	for _, m := range all {
		o, _ := m.(object)
		if _, has := o[name]; has != want || len(o) < 2 {
			return fmt.Errorf("a member is %v", o)
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("there is no member: %s", r)
	}
	return nil
}
