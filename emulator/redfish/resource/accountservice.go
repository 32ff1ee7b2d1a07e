package resource

import (
	"context"
	"math"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// day is 24 hours, the unit of PasswordExpirationDays.
const day = 24 * time.Hour

func accountService(v View) Object {
	p := v.BMC.Policy
	state, basic := "Enabled", p.Basic
	if p.Lockdown {
		state = "Disabled"
	}
	if basic == "" {
		basic = bmc.BasicEnabled
	}
	o := Object{
		"Name": "Account Service", "ServiceEnabled": !p.Lockdown, "Status": status(state),
		"LocalAccountAuth": "Enabled", "HTTPBasicAuth": string(basic), "SupportedAccountTypes": supportedTypes(v),
		"MinPasswordLength": p.MinPassword, "MaxPasswordLength": p.MaxPassword,
		"PasswordExpirationDays": nil, "EnforcePasswordHistoryCount": p.History,
		"RequireChangePasswordAction": p.OldPassword, "AuthFailureLoggingThreshold": p.FailureLogThreshold,
		"AccountLockoutThreshold": p.LockoutThreshold, "AccountLockoutDuration": int(p.LockoutDuration / time.Second),
		"AccountLockoutCounterResetAfter":   int(p.LockoutCounterResetAfter / time.Second),
		"AccountLockoutCounterResetEnabled": !p.LockForever,
	}
	if p.PasswordLifetime > 0 {
		o["PasswordExpirationDays"] = int(p.PasswordLifetime / day)
	}
	return o
}

// maxPassword is the greatest MinPasswordLength and MaxPasswordLength that a
// client can set, in bytes.
const maxPassword = 256

// accountServicePatch bounds properties that DSP2046 leaves unbounded: durations
// to a year (in seconds), counts to plausible values.
var accountServicePatch = Patch{
	Inputs: []Input{
		{Name: "ServiceEnabled", Kind: Boolean},
		{Name: "HTTPBasicAuth", Kind: Text, Allowed: OneOf(string(bmc.BasicEnabled), string(bmc.BasicUnadvertised), string(bmc.BasicDisabled))},
		{Name: "MinPasswordLength", Kind: Integer, Min: 1, Max: maxPassword},
		{Name: "MaxPasswordLength", Kind: Integer, Min: 1, Max: maxPassword},
		{Name: "PasswordExpirationDays", Kind: Integer, Min: 0, Max: 36500, nullable: true},
		{Name: "EnforcePasswordHistoryCount", Kind: Integer, Min: 0, Max: 24},
		{Name: "RequireChangePasswordAction", Kind: Boolean},
		{Name: "AuthFailureLoggingThreshold", Kind: Integer, Min: 0, Max: math.MaxInt32},
		{Name: "AccountLockoutThreshold", Kind: Integer, Min: 0, Max: math.MaxInt32},
		{Name: "AccountLockoutDuration", Kind: Integer, Min: 0, Max: 31536000},
		{Name: "AccountLockoutCounterResetAfter", Kind: Integer, Min: 0, Max: 31536000},
		{Name: "AccountLockoutCounterResetEnabled", Kind: Boolean},
	},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		var out Result
		p := policy(*c.View.BMC.Policy, c.Values)
		for _, rule := range policyRules {
			if rule.holds(&p) {
				continue
			}
			for i, name := range rule.names {
				if _, sent := c.Values[name]; !sent {
					continue
				}
				says := message.PropertyValueConflict.With(name, rule.names[1-i])
				out.InputErrors = append(out.InputErrors, InputError{Path: []string{name}, Problem: CustomMessage, Message: says})
				delete(c.Values, name)
			}
			p = policy(*c.View.BMC.Policy, c.Values)
		}
		_, err := c.Host.ApplyBMC(ctx, bmc.SetPolicy{Policy: p})
		return out, err
	},
}

// policyRules are the constraints between two properties of the account policy.
var policyRules = []struct {
	names [2]string
	holds func(p *bmc.Policy) bool
}{
	{[2]string{"MinPasswordLength", "MaxPasswordLength"}, func(p *bmc.Policy) bool { return p.MinPassword <= p.MaxPassword }},
	// DSP2046, AccountService.AccountLockoutCounterResetAfter.
	{[2]string{"AccountLockoutCounterResetAfter", "AccountLockoutDuration"}, func(p *bmc.Policy) bool {
		return p.LockoutDuration == 0 || p.LockoutCounterResetAfter <= p.LockoutDuration
	}},
}

// policy returns the account policy with a client's changes.
func policy(p bmc.Policy, set Values) bmc.Policy {
	p.Lockdown = !Value(set, "ServiceEnabled", !p.Lockdown)
	p.Basic = bmc.BasicAuth(Value(set, "HTTPBasicAuth", string(p.Basic)))
	p.MinPassword = int(Value(set, "MinPasswordLength", int64(p.MinPassword)))
	p.MaxPassword = int(Value(set, "MaxPasswordLength", int64(p.MaxPassword)))
	if days, ok := set["PasswordExpirationDays"]; ok {
		n, _ := days.(int64) // 0 of null
		p.PasswordLifetime = time.Duration(n) * day
	}
	p.History = int(Value(set, "EnforcePasswordHistoryCount", int64(p.History)))
	p.OldPassword = Value(set, "RequireChangePasswordAction", p.OldPassword)
	p.FailureLogThreshold = int(Value(set, "AuthFailureLoggingThreshold", int64(p.FailureLogThreshold)))
	p.LockoutThreshold = int(Value(set, "AccountLockoutThreshold", int64(p.LockoutThreshold)))
	p.LockoutDuration = seconds(set, "AccountLockoutDuration", p.LockoutDuration)
	p.LockoutCounterResetAfter = seconds(set, "AccountLockoutCounterResetAfter", p.LockoutCounterResetAfter)
	p.LockForever = !Value(set, "AccountLockoutCounterResetEnabled", !p.LockForever)
	return p
}
