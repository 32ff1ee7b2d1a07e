package dialect

import (
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

// validateAccounts checks BMC.Key and BMC.Accounts.
func (r *Record) validateAccounts(need func(ok bool, field, fix string)) {
	need(r.BMC.Key == bmc.P256 || r.BMC.Key == bmc.RSA2048, "bmc.key", "must be P-256 or RSA-2048")
	a, p := &r.BMC.Accounts, &r.BMC.Accounts.Policy
	need(a.Most > len(a.Reserved), "bmc.accounts.most", "must leave room for an account")
	need(slices.ContainsFunc(a.Types, func(t bmc.TypeSpec) bool { return t.Type == bmc.ForRedfish }), "bmc.accounts.types", "must hold Redfish")
	for i, t := range a.Types {
		for _, other := range t.Implies {
			need(slices.ContainsFunc(a.Types, func(t bmc.TypeSpec) bool { return t.Type == other }), item("bmc.accounts.types", i)+".implies", string(t.Type)+" implies "+string(other)+", which must be one of bmc.accounts.types")
		}
	}
	need(p.MinPassword > 0 && p.MinPassword <= p.MaxPassword, "bmc.accounts.policy.minPassword", "must be 1 to maxPassword")
	need(p.LockoutDuration == 0 || p.LockoutCounterResetAfter <= p.LockoutDuration, "bmc.accounts.policy.forgetAfter",
		"must not exceed lockFor (DSP2046, AccountService.AccountLockoutCounterResetAfter)")
	need(p.AbsoluteSessionTimeout >= 30*time.Second && p.AbsoluteSessionTimeout <= 86400*time.Second, "bmc.accounts.policy.sessionEnd",
		"must be 30 s to 86400 s (DSP2046, SessionService.AbsoluteSessionTimeout)")
}
