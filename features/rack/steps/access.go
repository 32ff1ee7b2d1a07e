package steps

import (
	"crypto/tls"
	"fmt"
	"strings"

	"github.com/cucumber/godog"
)

const (
	sessionsURI = root + "/SessionService/Sessions"
	accountsURI = root + "/AccountService/Accounts"
)

func (s *scenario) registerAccess(sc *godog.ScenarioContext) {
	sc.Step(`^a client logs in with nothing but a name and a password$`, func() error { return s.logIn("admin", "admin-password") })
	sc.Step(`^the operator logs in with a wrong password$`, func() error {
		s.user = credentials{"admin", "guessed-password"}
		return s.send("GET", systemURI, nil)
	})
	sc.Step(`^it holds a token, and reads the system with it$`, func() error {
		if s.token == "" {
			return fmt.Errorf("there is no token: %s", s.response)
		}
		_, err := s.get(systemURI)
		return err
	})
	sc.Step(`^the client logs out$`, func() error { return s.sendOK("DELETE", s.saved["session"], nil) })
	sc.Step(`^the token is worth nothing any longer$`, func() error {
		if err := s.send("GET", systemURI, nil); err != nil {
			return err
		}
		return equal("the answer", s.response.status, 401)
	})
	sc.Step(`^the operator lets sessions live for a minute$`, func() error {
		return s.sendOK("PATCH", root+"/SessionService", object{"SessionTimeout": 60})
	})
	sc.Step(`^clients log in until no more can$`, func() error {
		for range 1000 {
			s.token = ""
			if err := s.logIn("admin", "admin-password"); err != nil {
				return err
			}
			if s.response.status != 201 {
				return nil
			}
		}
		return fmt.Errorf("a thousand can")
	})
	sc.Step(`^the operator makes an account "([^"]*)" with the role (ReadOnly|Operator|Administrator)$`, func(name, role string) error {
		err := s.sendOK("POST", accountsURI, object{"UserName": name, "Password": name + "-password", "RoleId": role})
		s.saved["account"] = s.response.header.Get("Location")
		return err
	})
	sc.Step(`^"([^"]*)" acts$`, func(name string) { s.user = credentials{name, name + "-password"} })
	sc.Step(`^the operator acts again$`, func() { s.user, s.token = credentials{}, "" })
	sc.Step(`^the system can be read$`, func() error { _, err := s.get(systemURI); return err })
	sc.Step(`^somebody guesses the password of "([^"]*)" (\d+) times$`, func(name string, n int) error {
		s.user = credentials{name, "wrong"}
		for range n {
			if err := s.send("GET", systemURI, nil); err != nil {
				return err
			}
		}
		s.user = credentials{}
		return nil
	})
	sc.Step(`^the account is locked$`, func() error { return s.locked(true) })
	sc.Step(`^the account is not locked$`, func() error { return s.locked(false) })
	sc.Step(`^the operator deletes the account$`, func() error { return s.sendOK("DELETE", s.saved["account"], nil) })
	sc.Step(`^its password is shown nowhere$`, func() error {
		a, err := s.get(s.saved["account"])
		if err != nil {
			return err
		}
		if strings.Contains(a.text, "-password") || a.body["Password"] != nil {
			return fmt.Errorf("it is shown: %s", a)
		}
		return nil
	})
	sc.Step(`^every BMC shows a certificate of its own that the lab has signed$`, s.certificates)
	sc.Step(`^the manager's log tells that "([^"]*)" was made$`, func(name string) error {
		a, err := s.get(root + "/Managers/1/LogServices")
		if err != nil {
			return err
		}
		log, _ := a.body["Members"].([]any)[0].(map[string]any)
		if a, err = s.get(fmt.Sprint(log["@odata.id"], "/Entries")); err != nil {
			return err
		}
		if !strings.Contains(a.text, "AccountCreated") || !strings.Contains(a.text, `"MessageArgs":["`+name+`"]`) {
			return fmt.Errorf("the log is %s", a)
		}
		return nil
	})
	sc.Step(`^the journal tells that "([^"]*)" did it, and from where$`, func(name string) error { return s.journaled("POST", accountsURI, name) })
}

func (s *scenario) logIn(name, password string) error {
	s.user = credentials{name: nobody}
	err := s.send("POST", sessionsURI, object{"UserName": name, "Password": password})
	s.token, s.saved["session"] = s.response.header.Get("X-Auth-Token"), s.response.header.Get("Location")
	return err
}

func (s *scenario) locked(want bool) error {
	a, err := s.get(s.saved["account"])
	if err != nil {
		return err
	}
	return equal("Locked", a.body["Locked"], want)
}

func (s *scenario) certificates() error {
	seen := map[string]bool{}
	for _, h := range s.lab.Hosts() {
		d := tls.Dialer{Config: &tls.Config{RootCAs: s.lab.CAs()}}
		c, err := d.DialContext(s.t.Context(), "tcp", h.Address().String())
		if err != nil {
			return err
		}
		cert := c.(*tls.Conn).ConnectionState().PeerCertificates[0]
		if err := c.Close(); err != nil {
			return err
		}
		if seen[cert.SerialNumber.String()] {
			return fmt.Errorf("%s shows the certificate of another", h.Name())
		}
		seen[cert.SerialNumber.String()] = true
	}
	return nil
}
