package conformance

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// authChecks are the checks of authentication and accounts.
var authChecks = []Check{
	{
		ID: "AUTH-001", Title: "Basic authentication works", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "registration fails with 401", Remedy: "check the name and the password, and that the BMC allows Basic authentication",
		After: []string{"NET-001"}, Run: basicWorks,
	},
	{
		ID: "AUTH-002", Title: "a session login is answered 201 with token and Location; DELETE ends the session", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "sessions leak", Remedy: "use Basic authentication",
		After: []string{"AUTH-001"}, Run: sessionWorks,
	},
	{
		ID: "AUTH-003", Title: "16 logins and logouts leave no session", Level: ReadOnly, Protocol: Redfish, Step: Day2,
		Predicts: "the sessions run out", Remedy: "use Basic authentication, or reset the BMC",
		After: []string{"AUTH-002"}, Run: sessionsEnd,
	},
	{
		ID: "AUTH-004", Title: "a login beyond the session limit is answered 503 or 400", Level: Reversible, Protocol: Redfish, Step: Day2,
		Predicts: "clients hang when sessions run out", Remedy: "let clients share a session",
		After: []string{"AUTH-003"}, Run: sessionLimit,
	},
	{
		ID: "AUTH-005", Title: "a wrong password is answered 401 and locks nothing at two tries", Level: ReadOnly, Protocol: Redfish, Step: Day2,
		Predicts: "a rotation of credentials locks the BMC", Remedy: "raise the lockout threshold",
		After: []string{"AUTH-001"}, Run: wrongPasswordSafe,
	},
	{
		ID: "AUTH-006", Title: "a deleted token is answered 401, and a login works again", Level: ReadOnly, Protocol: Redfish, Step: Day2,
		Predicts: "clients fail every hour", Remedy: "use Basic authentication",
		After: []string{"AUTH-002"}, Run: deletedTokenRefused,
	},
	{
		ID: "AUTH-007", Title: "the account's role suffices for provisioning", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "403 in a late step", Remedy: "give the account the role Administrator",
		After: []string{"AUTH-001"}, Run: roleSuffices,
	},
	{
		ID: "AUTH-008", Title: "the password need not be changed", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "all requests of a factory account fail", Remedy: "change the password once",
		After: []string{"AUTH-001"}, Run: passwordFinal,
	},
	{
		ID: "AUTH-009", Title: "an account is created, logs in, changes its role and is deleted", Level: Reversible, Protocol: Redfish, Step: Day2,
		Predicts: "rotation of credentials fails", Remedy: "create accounts by hand",
		After: []string{"AUTH-007"}, Run: accountLifecycle,
	},
	{
		ID: "AUTH-010", Title: "passwords with special characters and of 20 characters work", Level: Reversible, Protocol: Both, Step: Day2,
		Predicts: "IPMI cuts passwords at 16 or 20 bytes", Remedy: "use passwords of at most 16 characters",
		After: []string{"AUTH-009"}, Run: passwordsTaken,
	},
}

// basicWorks reads a resource that needs credentials, with Basic authentication.
func basicWorks(ctx context.Context, r *Run) Outcome {
	conf := r.Config()
	resp, err := r.Do(ctx, Request{URI: "/redfish/v1/Systems", Auth: Basic(conf.Username, conf.Password)})
	if err != nil {
		return Judge(err)
	}
	switch {
	case resp.Status == http.StatusUnauthorized:
		return Failed("the BMC rejects the name and password: %s", resp.Problem())
	case resp.Status/100 == 2:
		return Passed("")
	}
	return Failed("GET %s with Basic authentication: %s", resp.URI, resp.Problem())
}

// sessionsURI returns the collection of sessions, which the service root names.
func (r *Run) sessionsURI(ctx context.Context) (string, error) {
	root, err := r.Page(ctx, "/redfish/v1/")
	if err != nil {
		return "", err
	}
	if uri, err := root.At("Links", "Sessions").Link(); err == nil {
		return uri, nil
	}
	uri, err := root.At("SessionService").Link()
	if err != nil {
		return "", NothingThere("the service root has no link to sessions")
	}
	v, err := r.Page(ctx, uri)
	if err != nil {
		return "", err
	}
	return v.At("Sessions").Link()
}

// login opens a session of the check's with the run's credentials. A refused
// login is a Finding.
func (r *Run) login(ctx context.Context) (uri, token string, err error) {
	sessions, err := r.sessionsURI(ctx)
	if err != nil {
		return "", "", err
	}
	conf := r.Config()
	resp, err := r.Login(ctx, sessions, conf.Username, conf.Password)
	if err != nil {
		return "", "", err
	}
	if resp.Status/100 != 2 {
		return "", "", Findingf("login: %s", resp.Problem())
	}
	uri, token = resp.Header.Get("Location"), resp.Header.Get("X-Auth-Token")
	if token == "" {
		return uri, "", Findingf("the login has no X-Auth-Token")
	}
	if uri == "" {
		return "", token, Findingf("the login has no Location: the session cannot be ended")
	}
	return uri, token, nil
}

// withToken reads a resource with a token.
func (r *Run) withToken(ctx context.Context, token string) (*Response, error) {
	return r.Do(ctx, Request{URI: "/redfish/v1/Systems", Auth: Token(token)})
}

// sessionWorks logs in, uses the session and ends it.
func sessionWorks(ctx context.Context, r *Run) Outcome {
	sessions, err := r.sessionsURI(ctx)
	if err != nil {
		return Judge(err)
	}
	conf := r.Config()
	resp, err := r.Login(ctx, sessions, conf.Username, conf.Password)
	if err != nil {
		return Judge(err)
	}
	switch resp.Status {
	case http.StatusMethodNotAllowed, http.StatusNotFound, http.StatusNotImplemented:
		return Failed("sessions are not offered: %s", resp.Problem()).Quirky("no-sessions")
	case http.StatusCreated:
	default:
		if resp.Status/100 != 2 {
			return Failed("login: %s", resp.Problem())
		}
	}
	token, uri := resp.Header.Get("X-Auth-Token"), resp.Header.Get("Location")
	if token == "" {
		return Failed("the login has no X-Auth-Token")
	}
	if uri == "" {
		if v, err := resp.JSON(); err == nil {
			if uri = v.LinkOr(""); uri != "" {
				_, _ = r.Logout(ctx, uri, token)
			}
		}
		return Failed("the login has no Location: the session cannot be ended")
	}
	used, err := r.withToken(ctx, token)
	if err != nil {
		return Judge(err)
	}
	ended, err := r.Logout(ctx, uri, token)
	switch {
	case err != nil:
		return Judge(err)
	case used.Status != http.StatusOK:
		return Failed("a GET with the token of a new session: %s", used.Problem())
	case ended.Status/100 != 2:
		return Failed("DELETE of the session: %s", ended.Problem())
	case resp.Status != http.StatusCreated:
		return Warned("the login is answered %d, not 201", resp.Status)
	}
	return Passed("")
}

// sessionsEnd logs in and out, and counts the sessions that are left.
func sessionsEnd(ctx context.Context, r *Run) Outcome {
	const logins = 16
	sessions, err := r.sessionsURI(ctx)
	if err != nil {
		return Judge(err)
	}
	count := func() (int, error) {
		r.forgetPages(sessions)
		all, err := r.Members(ctx, sessions)
		return len(all), err
	}
	before, err := count()
	if err != nil {
		return Judge(err)
	}
	for i := range logins {
		uri, token, err := r.login(ctx)
		if err != nil {
			return Judge(fmt.Errorf("login %d: %w", i+1, err))
		}
		resp, err := r.Logout(ctx, uri, token)
		if err != nil {
			return Judge(err)
		}
		if resp.Status/100 != 2 {
			return Failed("logout %d: %s", i+1, resp.Problem())
		}
	}
	after, err := count()
	if err != nil {
		return Judge(err)
	}
	if after > before {
		return Failed("%d logins and logouts leave %d sessions", logins, after-before)
	}
	return Passed("")
}

// maxSessions bounds the sessions that sessionLimit opens.
const maxSessions = 70

// smallLimit is a session limit that several controllers reach.
const smallLimit = 16

// sessionLimit opens sessions until the BMC refuses one.
func sessionLimit(ctx context.Context, r *Run) Outcome {
	sessions, err := r.sessionsURI(ctx)
	if err != nil {
		return Judge(err)
	}
	conf := r.Config()
	body := map[string]string{"UserName": conf.Username, "Password": conf.Password}
	for i := range maxSessions {
		resp, err := r.Change(ctx, Change{
			Request: Request{Method: http.MethodPost, URI: sessions, Body: body, Auth: Anonymous, Timeout: 20 * time.Second},
			Undo:    []Undo{{Method: http.MethodDelete}},
		})
		if err != nil {
			return Judge(err)
		}
		if resp.Status/100 == 2 {
			continue
		}
		o := Passed("").With("sessions", "%d", i)
		switch resp.Status {
		case http.StatusServiceUnavailable, http.StatusBadRequest, http.StatusForbidden, http.StatusTooManyRequests:
		default:
			o = Failed("the login beyond the limit of %d sessions: %s", i, resp.Problem()).With("sessions", "%d", i)
		}
		if i < smallLimit {
			o.Quirks = []Quirk{{Name: "session-limit", Values: map[string]string{"most": fmt.Sprint(i + 1)}}} // with the run's own
			if o.Verdict == Pass {
				o.Verdict, o.Reason = Warn, fmt.Sprintf("no more than %d sessions can be open", i+1)
			}
		}
		return o
	}
	return Passed("no limit below %d sessions", maxSessions)
}

// stranger is the name of an account that does not exist.
const stranger = "labctl-nobody"

// wrongPasswordSafe logs in twice with a wrong password. A read-only run does so
// with a name that does not exist, others with an account of their own.
func wrongPasswordSafe(ctx context.Context, r *Run) Outcome {
	const tries = 2
	name, password := stranger, "labctl-wrong-password"
	var account *throwaway
	if r.Level().Allows(Reversible) && r.bmc.dry == nil {
		a, err := r.newAccount(ctx, "labctl-lockout", newPassword(16))
		if err == nil {
			account, name = a, a.name
		}
	}
	var slowest time.Duration
	for range tries {
		resp, err := r.Do(ctx, Request{URI: "/redfish/v1/Systems", Auth: Basic(name, password)})
		if err != nil {
			return Judge(err)
		}
		slowest = max(slowest, resp.Took)
		if resp.Status != http.StatusUnauthorized {
			return Failed("a wrong password is answered %s, not 401", resp.Problem())
		}
	}
	conf := r.Config()
	local, err := r.Do(ctx, Request{URI: "/redfish/v1/Systems", Auth: Basic(conf.Username, conf.Password)})
	if err != nil {
		return Judge(err)
	}
	if local.Status != http.StatusOK {
		return Failed("after %d logins with a wrong password the BMC rejects this computer: %s", tries, local.Problem()).Quirky("ip-block")
	}
	if account != nil {
		resp, err := r.Do(ctx, Request{URI: "/redfish/v1/Systems", Auth: Basic(account.name, account.password)})
		if err != nil {
			return Judge(err)
		}
		if resp.Status == http.StatusUnauthorized || resp.Status == http.StatusForbidden {
			return Failed("after %d wrong passwords the account is locked: %s", tries, resp.Problem()).Quirky("auth-delay")
		}
	}
	o := Passed("").With("delay of 401", "%v", slowest.Round(time.Millisecond))
	if slowest > 5*time.Second {
		o.Verdict, o.Reason = Warn, fmt.Sprintf("the 401 takes %v", slowest.Round(time.Second))
	}
	return o
}

// deletedTokenRefused ends a session and uses its token.
func deletedTokenRefused(ctx context.Context, r *Run) Outcome {
	uri, token, err := r.login(ctx)
	if err != nil {
		return Judge(err)
	}
	if _, err := r.Logout(ctx, uri, token); err != nil {
		return Judge(err)
	}
	resp, err := r.withToken(ctx, token)
	if err != nil {
		return Judge(err)
	}
	if resp.Status != http.StatusUnauthorized {
		return Failed("the token of a deleted session is answered %s, not 401", resp.Problem())
	}
	if uri, token, err = r.login(ctx); err != nil {
		return Judge(err)
	}
	_, err = r.Logout(ctx, uri, token)
	return Judge(err)
}
