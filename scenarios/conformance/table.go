package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// Checks returns all checks, in the order in which they run: those without which
// others tell nothing come first.
func Checks() []Check {
	return inOrder(slices.Concat(
		netChecks, rootChecks, authChecks, sysChecks, schChecks, pwrChecks, bootChecks, vmChecks, biosChecks, stoChecks, sbChecks,
		fwChecks, taskChecks, evtChecks, logChecks, timeChecks, licChecks, mgrChecks, certChecks, ipmiChecks, robChecks, e2eChecks,
	))
}

// inOrder moves checks before those that need them.
func inOrder(rows []Check) []Check {
	all := make([]Check, 0, len(rows))
	done := map[string]bool{}
	var add func(Check)
	add = func(c Check) {
		if done[c.ID] {
			return
		}
		done[c.ID] = true
		for _, id := range c.After {
			if i := slices.IndexFunc(rows, func(other Check) bool { return other.ID == id }); i >= 0 {
				add(rows[i])
			}
		}
		all = append(all, c)
	}
	for _, c := range rows {
		add(c)
	}
	return all
}

// Find returns the check of an ID.
func Find(id string) (Check, error) {
	for _, c := range Checks() {
		if strings.EqualFold(c.ID, id) {
			return c, nil
		}
	}
	return Check{}, fmt.Errorf("check %q is unknown: labctl conformance list has all", id)
}

// Select returns the checks of IDs and groups, such as "PWR-001" and "BOOT", with
// the checks without which they tell nothing. No name selects all checks.
func Select(names []string) ([]Check, error) {
	all := Checks()
	if len(names) == 0 {
		return all, nil
	}
	wanted := map[string]bool{}
	for _, n := range names {
		found := false
		for _, c := range all {
			if strings.EqualFold(n, c.ID) || strings.EqualFold(n, c.Group()) {
				wanted[c.ID], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("check %q is neither an ID nor a group: labctl conformance list has all", n)
		}
	}
	for again := true; again; {
		again = false
		for _, c := range all {
			if !wanted[c.ID] {
				continue
			}
			for _, id := range c.After {
				again = again || !wanted[id]
				wanted[id] = true
			}
		}
	}
	return slices.DeleteFunc(all, func(c Check) bool { return !wanted[c.ID] }), nil
}
