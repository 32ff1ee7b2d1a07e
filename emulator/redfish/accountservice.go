package redfish

import (
	"context"
	"math"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

const day = 24 * time.Hour

func accountService(v view) object {
	p := v.b.Policy
	state, basic := "Enabled", p.Basic
	if p.Lockdown {
		state = "Disabled"
	}
	if basic == "" {
		basic = bmc.BasicEnabled
	}
	o := object{
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

// maxPassword is how long a service can ever let passwords be, in bytes.
const maxPassword = 256

// accountServicePatch bounds what DSP2046 leaves open: durations in seconds to
// a year, counts to what a client could mean.
var accountServicePatch = patch{
	inputs: []input{
		{name: "ServiceEnabled", kind: boolean},
		{name: "HTTPBasicAuth", kind: text, values: oneOf(string(bmc.BasicEnabled), string(bmc.BasicUnadvertised), string(bmc.BasicDisabled))},
		{name: "MinPasswordLength", kind: integer, min: 1, max: maxPassword},
		{name: "MaxPasswordLength", kind: integer, min: 1, max: maxPassword},
		{name: "PasswordExpirationDays", kind: integer, min: 0, max: 36500, nullable: true},
		{name: "EnforcePasswordHistoryCount", kind: integer, min: 0, max: 24},
		{name: "RequireChangePasswordAction", kind: boolean},
		{name: "AuthFailureLoggingThreshold", kind: integer, min: 0, max: math.MaxInt32},
		{name: "AccountLockoutThreshold", kind: integer, min: 0, max: math.MaxInt32},
		{name: "AccountLockoutDuration", kind: integer, min: 0, max: 31536000},
		{name: "AccountLockoutCounterResetAfter", kind: integer, min: 0, max: 31536000},
		{name: "AccountLockoutCounterResetEnabled", kind: boolean},
	},
	apply: func(ctx context.Context, c operation) (reply, error) {
		var out reply
		p := policy(*c.view.b.Policy, c.set)
		for _, rule := range policyRules {
			if rule.holds(&p) {
				continue
			}
			for i, name := range rule.names {
				if _, sent := c.set[name]; !sent {
					continue
				}
				says := message.PropertyValueConflict.With(name, rule.names[1-i])
				out.bad = append(out.bad, refusal{path: []string{name}, why: outright, says: says})
				delete(c.set, name)
			}
			p = policy(*c.view.b.Policy, c.set)
		}
		_, err := c.host.ApplyBMC(ctx, bmc.SetPolicy{Policy: p})
		return out, err
	},
}

// policyRules are what two properties of a policy must agree upon.
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

// policy is a policy with what a client wants of it.
func policy(p bmc.Policy, set values) bmc.Policy {
	p.Lockdown = !value(set, "ServiceEnabled", !p.Lockdown)
	p.Basic = bmc.BasicAuth(value(set, "HTTPBasicAuth", string(p.Basic)))
	p.MinPassword = int(value(set, "MinPasswordLength", int64(p.MinPassword)))
	p.MaxPassword = int(value(set, "MaxPasswordLength", int64(p.MaxPassword)))
	if days, ok := set["PasswordExpirationDays"]; ok {
		n, _ := days.(int64) // 0 of null
		p.PasswordLifetime = time.Duration(n) * day
	}
	p.History = int(value(set, "EnforcePasswordHistoryCount", int64(p.History)))
	p.OldPassword = value(set, "RequireChangePasswordAction", p.OldPassword)
	p.FailureLogThreshold = int(value(set, "AuthFailureLoggingThreshold", int64(p.FailureLogThreshold)))
	p.LockoutThreshold = int(value(set, "AccountLockoutThreshold", int64(p.LockoutThreshold)))
	p.LockoutDuration = seconds(set, "AccountLockoutDuration", p.LockoutDuration)
	p.LockoutCounterResetAfter = seconds(set, "AccountLockoutCounterResetAfter", p.LockoutCounterResetAfter)
	p.LockForever = !value(set, "AccountLockoutCounterResetEnabled", !p.LockForever)
	return p
}
