package conformance

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/scenarios/conformance/ipmi"
)

// runAccount finds the account of the run.
func (r *Run) runAccount(ctx context.Context) (Value, error) {
	accounts, err := r.accountsURI(ctx)
	if err != nil {
		return Value{}, err
	}
	members, err := r.Members(ctx, accounts)
	if err != nil {
		return Value{}, err
	}
	for _, m := range members {
		v, err := r.Page(ctx, m)
		if err != nil {
			return Value{}, err
		}
		if v.At("UserName").TextOr("") == r.Config().Username {
			return v, nil
		}
	}
	return Value{}, NothingThere("the account is not among the BMC's own accounts")
}

func (r *Run) accountsURI(ctx context.Context) (string, error) {
	root, err := r.Page(ctx, "/redfish/v1/")
	if err != nil {
		return "", err
	}
	uri, err := root.At("AccountService").Link()
	if err != nil {
		return "", NothingThere("the BMC has no AccountService")
	}
	v, err := r.Page(ctx, uri)
	if err != nil {
		return "", err
	}
	return v.At("Accounts").Link()
}

// roleSuffices reads the account's role and its privileges.
func roleSuffices(ctx context.Context, r *Run) Outcome {
	account, err := r.runAccount(ctx)
	if err != nil {
		return Judge(err)
	}
	if !account.At("RoleId").Exists() {
		return Skipped("the account has no RoleId: only the vendor's own properties tell its rights")
	}
	role, err := account.At("RoleId").Text()
	if err != nil {
		return Judge(err)
	}
	o := Passed("").With("role", "%s", role)
	if role == "Administrator" {
		return o
	}
	uri, err := account.At("Links", "Role").Link()
	if err != nil {
		return Failed("the role of the account is %s", role)
	}
	v, err := r.Page(ctx, uri)
	if err != nil {
		return Judge(err)
	}
	privileges, err := v.At("AssignedPrivileges").Texts()
	if err != nil {
		return Judge(err)
	}
	var missing []string
	for _, p := range []string{"Login", "ConfigureComponents", "ConfigureManager"} {
		if !slices.Contains(privileges, p) {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		return Failed("the role %s lacks the privileges %s", role, strings.Join(missing, ", "))
	}
	return o
}

// passwordFinal looks for the request to change the password.
func passwordFinal(ctx context.Context, r *Run) Outcome {
	account, err := r.runAccount(ctx)
	if err != nil {
		return Judge(err)
	}
	if change, err := account.At("PasswordChangeRequired").Bool(); err == nil && change {
		return Failed("the BMC requires a new password for %s", r.Config().Username)
	}
	return Passed("")
}

// throwaway is an account of a check's.
type throwaway struct {
	name, password, uri string
	slot                bool // it lives in a slot that existed before
}

// newPassword returns a random password that common rules accept.
func newPassword(length int) string {
	text := "Aa1!" + rand.Text()
	for len(text) < length {
		text += rand.Text()
	}
	return text[:length]
}

// newAccount makes an account, or takes a free slot where accounts are slots.
func (r *Run) newAccount(ctx context.Context, name, password string) (*throwaway, error) {
	r.Secret(password)
	accounts, err := r.accountsURI(ctx)
	if err != nil {
		return nil, err
	}
	a := &throwaway{name: name, password: password}
	resp, err := r.Change(ctx, Change{
		Request: Request{Method: http.MethodPost, URI: accounts, Body: map[string]any{"UserName": name, "Password": password, "RoleId": "Operator", "Enabled": true}},
		Undo:    []Undo{{Method: http.MethodDelete, Find: &Lookup{Collection: accounts, Property: "UserName", Value: name}}},
	})
	if err != nil {
		return nil, err
	}
	switch {
	case resp.Status/100 == 2:
		if a.uri = resp.Header.Get("Location"); a.uri == "" {
			v, err := resp.JSON()
			if err != nil {
				return nil, Findingf("POST %s has neither Location nor body", accounts)
			}
			a.uri, err = v.Link()
			if err != nil {
				return nil, err
			}
		}
		return a, nil
	case resp.Status != http.StatusMethodNotAllowed && resp.Status != http.StatusNotFound && resp.Status != http.StatusNotImplemented:
		return nil, Findingf("POST %s: %s", accounts, resp.Problem())
	}
	a.slot = true
	if a.uri, err = r.freeSlot(ctx, accounts); err != nil {
		return nil, err
	}
	resp, err = r.patch(ctx, Change{
		Request: Request{URI: a.uri, Body: map[string]any{"UserName": name, "Password": password, "RoleId": "Operator", "Enabled": true}},
		Undo:    []Undo{{Method: http.MethodPatch, URI: a.uri, Match: true, Body: json.RawMessage(`{"Enabled":false,"UserName":""}`)}},
	})
	if err != nil {
		return nil, err
	}
	if resp.Status/100 != 2 {
		return nil, Findingf("PATCH of the free slot %s: %s", a.uri, resp.Problem())
	}
	return a, nil
}

// freeSlot returns the account with an empty name that is not the first one, which
// some BMCs reserve.
func (r *Run) freeSlot(ctx context.Context, accounts string) (string, error) {
	members, err := r.Members(ctx, accounts)
	if err != nil {
		return "", err
	}
	for _, m := range members[min(len(members), 1):] {
		v, err := r.Page(ctx, m)
		if err != nil {
			return "", err
		}
		if v.At("UserName").TextOr("?") == "" {
			return m, nil
		}
	}
	return "", NothingThere("accounts are slots, and none is free")
}

// works reports whether the account logs in.
func (r *Run) works(ctx context.Context, a *throwaway) (bool, error) {
	resp, err := r.Do(ctx, Request{URI: "/redfish/v1/Systems", Auth: Basic(a.name, a.password)})
	if err != nil {
		return false, err
	}
	return resp.Status == http.StatusOK, nil
}

// accountLifecycle makes an account, uses it, changes its role and deletes it.
func accountLifecycle(ctx context.Context, r *Run) Outcome {
	a, err := r.newAccount(ctx, "labctl-account", newPassword(16))
	if err != nil {
		return Judge(err)
	}
	if ok, err := r.works(ctx, a); err != nil {
		return Judge(err)
	} else if !ok {
		return Failed("the new account does not log in")
	}
	resp, err := r.patch(ctx, Change{Request: Request{URI: a.uri, Body: map[string]any{"RoleId": "ReadOnly"}}})
	if err != nil {
		return Judge(err)
	}
	if resp.Status/100 != 2 {
		return Failed("PATCH of the account's role: %s", resp.Problem())
	}
	v, _, err := r.Get(ctx, a.uri)
	if err != nil {
		return Judge(err)
	}
	if role := v.At("RoleId").TextOr(""); role != "ReadOnly" {
		return Failed("the account's role is %q after it was changed to ReadOnly", role)
	}
	if err := r.Restore(ctx); err != nil {
		return Failed("the account cannot be deleted: %v", err)
	}
	if ok, err := r.works(ctx, a); err != nil {
		return Judge(err)
	} else if ok {
		return Failed("the account logs in after it was deleted")
	}
	if a.slot {
		return Warned("accounts are slots: POST to the collection is refused").Quirky("accounts-are-slots")
	}
	return Passed("")
}

// special are characters that scripts of BMCs misread.
const special = `Aa1!"#$%&'()*+,`

// passwordsTaken uses passwords of all characters and of the length that IPMI can
// hold.
func passwordsTaken(ctx context.Context, r *Run) Outcome {
	for _, tt := range []struct{ what, password string }{
		{"special characters", special}, {"20 characters", newPassword(20)},
	} {
		a, err := r.newAccount(ctx, "labctl-password", tt.password)
		if err != nil {
			return Judge(fmt.Errorf("a password of %s: %w", tt.what, err))
		}
		ok, err := r.works(ctx, a)
		if err != nil {
			return Judge(err)
		}
		if !ok {
			return Failed("a password of %s is accepted, and does not log in", tt.what)
		}
		if r.Config().IPMI != "" && r.bmc.dry == nil {
			if err := r.ipmiKnows(ctx, a); errors.Is(err, ipmi.ErrPassword) {
				return Failed("IPMI does not know a password of %s", tt.what)
			}
		}
		if err := r.Restore(ctx); err != nil {
			return Failed("the account cannot be deleted: %v", err)
		}
	}
	return Passed("")
}

// ipmiKnows opens an IPMI session of an account.
func (r *Run) ipmiKnows(ctx context.Context, a *throwaway) error {
	conn, err := ipmi.Dial(ctx, r.bmc.conf.IPMI)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.Timeout, conn.Tries = r.ipmiTimeout(), 3
	s, err := conn.Login(ctx, ipmi.Login{Name: a.name, Password: a.password, Suite: ipmiSuites[0], Role: ipmi.User})
	if err != nil {
		return err
	}
	return s.Close(ctx)
}
