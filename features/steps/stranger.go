package steps

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// A user of the BMC with the role ReadOnly.
const (
	readerName     = "reader"
	readerPassword = "Read-0nly-please"
)

func (s *scenario) registerStrangers(sc *stepRegistry) {
	sc.Step(`^the BMC has a user who may only read$`, "creates an account with the role ReadOnly on the server's BMC", s.createReader)
	sc.Step(`^this user becomes an administrator$`, "gives the account the role Administrator", s.promoteReader)
	sc.Step(`^time stands still when the server has booted its agent$`, "waits until the agent's system runs, and stops the lab's time then", s.holdTimeAtAgent)
	sc.Step(`^time goes on$`, "lets the lab's time go on", s.releaseTime)
	sc.NegativeStep(`^the user who may only read finds the token of the boot nowhere at the BMC$`, "reads every resource as that user, and asserts that none shows the token, which an administrator reads", s.readerFindsNoToken)
	sc.NegativeStep(`^the address of the medium that this user reads serves nothing$`, "asserts that the address without its token is answered 404, and the address with it 200", s.shownAddressServesNothing)
	sc.Step(`^a stranger has read the boot medium$`, "takes the token that the server has booted with, as somebody has it who fetched the medium in time", s.strangerReads)
	sc.Step(`^a stranger asks for the server's work first$`, "takes the token likewise, and leases with an agent of his own before the server's agent does", s.strangerIsFirst)
	sc.NegativeStep(`^the stranger's agent is refused$`, "waits until a lease with the stolen token is answered 403, and asserts that it gets no job before", s.strangerIsRefused)
	sc.NegativeStep(`^the stranger's agent is unknown$`, "waits until a lease with the stolen token is answered 503, and asserts that it gets no job before", s.strangerIsUnknown)
	sc.NegativeStep(`^nobody can fetch the boot medium any more$`, "asserts that the address of the medium, with its token, is answered 404", s.mediumIsGone)
	sc.NegativeStep(`^a machine with the server's MAC address boots nothing over the network$`, "asserts that DHCP names nothing to boot", s.impostorBootsNothing)
	sc.Step(`^somebody restarts the server from its virtual CD$`, "sets the boot override at the BMC, and restarts the server by force", s.restartFromCD)
}

func (s *scenario) createReader(ctx context.Context) error {
	_, err := s.host().ApplyBMC(ctx, bmc.CreateAccount{AccountChange: bmc.AccountChange{
		Name: new(readerName), Password: new(readerPassword), Role: new(bmc.ReadOnly),
	}})
	return err
}

func (s *scenario) promoteReader(ctx context.Context) error {
	a, ok := s.host().Account(readerName)
	if !ok {
		return errors.New("the BMC has no user " + readerName)
	}
	_, err := s.host().ApplyBMC(ctx, bmc.ChangeAccount{ID: a.ID, AccountChange: bmc.AccountChange{Role: new(bmc.Administrator)}})
	return err
}

func (s *scenario) restartFromCD(ctx context.Context) error {
	v := s.machine()
	return s.host().Apply(ctx, machine.Transaction{
		machine.SetOverride{Override: machine.Override{Enabled: machine.Once, Target: machine.Cd, Mode: v.Override.Mode}},
		machine.Reset{Kind: "ForceRestart"},
	})
}

// holdTimeAtAgent waits in the journal, which is faster than a look at the server now and
// then: the lab's time jumps meanwhile, and a silent agent is given up after half an hour
// of it.
func (s *scenario) holdTimeAtAgent(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience.Limit())
	defer cancel()
	for {
		found, mark, err := s.lab.Rack().Journal().Select(journal.Query{Host: s.server.Name})
		if err != nil {
			return err
		}
		for _, e := range found {
			if e.What == "os.started" && strings.HasPrefix(e.Text, "agent ") {
				s.releaseTime()
				s.releaseClock = s.lab.Clock().Enter()
				return nil
			}
		}
		if err := s.lab.Rack().Journal().Wait(ctx, mark); err != nil {
			return fmt.Errorf("the server has booted no agent: %w", err)
		}
	}
}

func (s *scenario) releaseTime() {
	if s.releaseClock != nil {
		s.releaseClock()
		s.releaseClock = nil
	}
}

func (s *scenario) theStranger() (*lab.Stranger, error) {
	if s.stranger == nil {
		x, err := s.lab.NewStranger(s.server.Name)
		if err != nil {
			return nil, err
		}
		s.stranger = x
	}
	return s.stranger, nil
}

// readAll reads every resource of the BMC that a user finds by links, and returns the
// bodies by URI.
func (s *scenario) readAll(ctx context.Context, name, password string) (map[string]string, error) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.lab.Rack().CAs(), MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	bodies, todo := map[string]string{}, []string{"/redfish/v1/"}
	for len(todo) > 0 {
		uri, _, _ := strings.Cut(todo[0], "#")
		todo = todo[1:]
		if _, known := bodies[uri]; known || !strings.HasPrefix(uri, "/redfish/v1") || strings.Contains(uri, "/Registries/") || strings.Contains(uri, "/JsonSchemas/") {
			continue
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.host().URL()+uri, nil)
		if err != nil {
			return nil, err
		}
		r.SetBasicAuth(name, password)
		resp, err := client.Do(r)
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return nil, err
		}
		bodies[uri] = string(b)
		var body any
		if json.Unmarshal(b, &body) == nil {
			todo = append(todo, linksOf(body)...)
		}
	}
	return bodies, nil
}

// linksOf returns the URIs that a body links to.
func linksOf(value any) (out []string) {
	switch x := value.(type) {
	case []any:
		for _, y := range x {
			out = append(out, linksOf(y)...)
		}
	case map[string]any:
		for name, y := range x { // each resource is read once, in any order
			if uri, ok := y.(string); ok && name == "@odata.id" {
				out = append(out, uri)
			}
			out = append(out, linksOf(y)...)
		}
	}
	return out
}

func (s *scenario) readerFindsNoToken(ctx context.Context) error {
	x, err := s.theStranger()
	if err != nil {
		return err
	}
	url, err := x.MediumURL()
	if err != nil {
		return err
	}
	path, secret, _ := strings.Cut(url, "?")
	admin, _ := s.host().Admin()
	for _, user := range []struct {
		name, password string
		reads          bool
	}{{admin.Name, admin.Password, true}, {readerName, readerPassword, false}} {
		bodies, err := s.readAll(ctx, user.name, user.password)
		if err != nil {
			return err
		}
		with, without := "", ""
		for uri, body := range bodies {
			body = strings.ReplaceAll(body, `\u0026`, "&")
			switch {
			case strings.Contains(body, secret):
				with = uri
			case strings.Contains(body, path):
				without = uri
			}
		}
		switch {
		case user.reads && with == "":
			return fmt.Errorf("%s reads the token at none of %d resources: %s", user.name, len(bodies), url)
		case !user.reads && with != "":
			return fmt.Errorf("%s reads the token at %s", user.name, with)
		case !user.reads && without == "":
			return fmt.Errorf("%s reads the medium's address at none of %d resources", user.name, len(bodies))
		}
	}
	return nil
}

func (s *scenario) shownAddressServesNothing(ctx context.Context) error {
	x, err := s.theStranger()
	if err != nil {
		return err
	}
	url, err := x.MediumURL()
	if err != nil {
		return err
	}
	path, _, _ := strings.Cut(url, "?")
	for _, tt := range []struct {
		url  string
		want int
	}{{path, http.StatusNotFound}, {path + "?...", http.StatusNotFound}, {url, http.StatusOK}} {
		if got, err := x.Fetch(ctx, tt.url); err != nil || got != tt.want {
			return fmt.Errorf("GET %s is answered %d, %w: want %d", tt.url, got, err, tt.want)
		}
	}
	return nil
}

func (s *scenario) strangerReads() error {
	x, err := s.theStranger()
	if err != nil {
		return err
	}
	s.mediumURL, _ = x.MediumURL() // none of a server that has booted over the network
	return x.ReadBooted()
}

func (s *scenario) strangerIsFirst(ctx context.Context) error {
	if err := s.strangerReads(); err != nil {
		return err
	}
	if got, err := s.stranger.Lease(ctx); err != nil || got != http.StatusNoContent {
		return fmt.Errorf("the stranger's lease is answered %d, %w: want 204, no job yet", got, err)
	}
	return nil
}

func (s *scenario) strangerIsRefused(ctx context.Context) error {
	return s.strangerIsAnswered(ctx, http.StatusForbidden)
}

func (s *scenario) strangerIsUnknown(ctx context.Context) error {
	return s.strangerIsAnswered(ctx, http.StatusServiceUnavailable)
}

func (s *scenario) strangerIsAnswered(ctx context.Context, want int) error {
	x, err := s.theStranger()
	if err != nil {
		return err
	}
	return eventually(ctx, fmt.Sprintf("the stranger's lease is answered %d", want), func(ctx context.Context) (bool, string, error) {
		got, err := x.Lease(ctx)
		if err == nil && got < 300 {
			return false, "", fmt.Errorf("the stranger's lease is answered %d", got)
		}
		return got == want, fmt.Sprint(got, " ", err), nil
	})
}

func (s *scenario) mediumIsGone(ctx context.Context) error {
	if got, err := s.stranger.Fetch(ctx, s.mediumURL); err != nil || got != http.StatusNotFound {
		return fmt.Errorf("GET %s is answered %d, %w: want 404", s.mediumURL, got, err)
	}
	return nil
}

func (s *scenario) impostorBootsNothing(ctx context.Context) error {
	x, err := s.theStranger()
	if err != nil {
		return err
	}
	if err := x.BootByNetwork(ctx); err == nil || !strings.Contains(err.Error(), "nothing to boot") {
		return fmt.Errorf("it boots, or fails for another reason than that there is nothing: %w", err)
	}
	return nil
}
