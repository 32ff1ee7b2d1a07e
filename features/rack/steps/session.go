package steps

import (
	"crypto/tls"
	"errors"
	"fmt"
)

const (
	sessionsURI = root + "/SessionService/Sessions"
	accountsURI = root + "/AccountService/Accounts"
)

// registerSessions binds the steps about credentials, sessions, accounts and
// certificates.
func (s *scenario) registerSessions(sc *stepRegistry) {
	sc.Step(`^the client has no credentials$`, func() { s.user, s.token = credentials{name: anonymous}, "" })
	sc.Step(`^the client authenticates as the administrator$`, func() { s.user, s.token = credentials{}, "" })
	sc.Step(`^the client authenticates as "([^"]*)"$`, func(name string) { s.user, s.token = credentials{name, name + "-password"}, "" })
	sc.Step(`^the client uses the X-Auth-Token of the response$`, func() error {
		if s.token = s.last().header.Get("X-Auth-Token"); s.token == "" {
			return fmt.Errorf("there is no X-Auth-Token: %s", s.response)
		}
		return nil
	})
	sc.Step(`^the client creates a session$`, func() error {
		s.user = credentials{name: anonymous}
		if err := s.createSession(); err != nil || s.response.status != 201 {
			return fmt.Errorf("the response is %s: %w", s.response, err)
		}
		return nil
	})
	sc.Step(`^clients create sessions until one is refused$`, func() error {
		s.user = credentials{name: anonymous}
		for range 1000 {
			s.token = ""
			if err := s.createSession(); err != nil || s.response.status != 201 {
				s.mustBeChecked("POST", sessionsURI)
				return err
			}
		}
		return errors.New("a thousand sessions are open")
	})
	sc.Step(`^the client creates the account "([^"]*)" with the role (ReadOnly|Operator|Administrator)$`, func(name, role string) error {
		err := s.sendOK("POST", accountsURI, object{"UserName": name, "Password": name + "-password", "RoleId": role})
		s.saved["ACCOUNT"], s.created = s.response.header.Get("Location"), s.response
		return err
	})
	sc.Step(`^(\d+) logins as "([^"]*)" fail$`, func(n int, name string) error {
		s.user = credentials{name, "wrong"}
		defer func() { s.user = credentials{} }()
		for range n {
			if err := s.send("GET", systemURI, nil); err != nil {
				return err
			}
			if err := equal("the status", s.response.status, 401); err != nil {
				return err
			}
		}
		return nil
	})
	sc.Step(`^every BMC presents a different certificate that the lab's CA has signed$`, s.presentCertificates)
}

func (s *scenario) createSession() error {
	err := s.send("POST", sessionsURI, object{"UserName": "admin", "Password": "admin-password"})
	s.token, s.saved["SESSION"] = s.response.header.Get("X-Auth-Token"), s.response.header.Get("Location")
	return err
}

func (s *scenario) presentCertificates() error {
	seen := map[string]bool{}
	if len(s.lab.Hosts()) < 2 {
		return errors.New("a rack of one server has nothing to compare")
	}
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
			return fmt.Errorf("%s presents the certificate of another BMC", h.Name())
		}
		seen[cert.SerialNumber.String()] = true
	}
	return nil
}
