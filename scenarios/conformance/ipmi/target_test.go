package ipmi

import (
	"flag"
	"strings"
	"testing"
)

// These flags run the checks against a BMC that is there already:
//
//	go test ./scenarios/conformance/ipmi -run TestTarget -v -args -target 192.0.2.1:623 -admin ADMIN:secret
var (
	targetFlag   = flag.String("target", "", "host:port of a BMC to check")
	adminFlag    = flag.String("admin", "ADMIN:ADMIN", "name:password of its administrator")
	operatorFlag = flag.String("operator", "", "name:password of an operator")
	userFlag     = flag.String("user", "", "name:password of a user")
	patientFlag  = flag.Bool("patient", false, "make checks that take minutes, too")
	insecureFlag = flag.Bool("insecure", false, "sessions without a password are wanted")
)

func TestTarget(t *testing.T) {
	if *targetFlag == "" {
		t.Skip("no -target")
	}
	for _, r := range Run(t.Context(), Target{
		Address: *targetFlag, Admin: account(*adminFlag), Operator: account(*operatorFlag), User: account(*userFlag),
		IncludeSlow: *patientFlag, Insecure: *insecureFlag,
	}, Checks()) {
		t.Logf("%-5s %s (%s, %s) %s %s", r.Verdict, r.Name, r.Title, r.Reference, r.Took, r.Detail)
		if r.Verdict == Fail {
			t.Errorf("%s: %s", r.Name, r.Detail)
		}
	}
}

func account(s string) Account {
	name, password, _ := strings.Cut(s, ":")
	return Account{Name: name, Password: password}
}
