package steps

import (
	"fmt"
	"strings"

	"github.com/cucumber/godog"
)

const (
	secureBootURI = systemURI + "/SecureBoot"
	allowedURI    = secureBootURI + "/SecureBootDatabases/db/Certificates"
)

func (s *scenario) registerSecureBoot(sc *godog.ScenarioContext) {
	shows := func(name string, want any) error {
		a, err := s.get(secureBootURI)
		if err != nil {
			return err
		}
		return equal(name, a.body[name], want)
	}
	keys := func(kind string) error {
		return s.sendOK("POST", secureBootURI+"/Actions/SecureBoot.ResetKeys", object{"ResetKeysType": kind})
	}
	allow := func(certificate string) error {
		return s.send("POST", allowedURI, object{"CertificateString": certificate, "CertificateType": "PEM"})
	}
	sc.Step(`^the operator turns secure boot (on|off)$`, func(how string) error {
		return s.sendOK("PATCH", secureBootURI, object{"SecureBootEnable": how == "on"})
	})
	sc.Step(`^the server has booted with secure boot (on|off)$`, func(how string) error {
		return shows("SecureBootCurrentBoot", map[string]string{"on": "Enabled", "off": "Disabled"}[how])
	})
	sc.Step(`^secure boot is to be (on|off)$`, func(how string) error { return shows("SecureBootEnable", how == "on") })
	sc.Step(`^the operator deletes the key of the platform$`, func() error { return keys("DeletePK") })
	sc.Step(`^the operator brings back the keys that the server came with$`, func() error { return keys("ResetAllKeysToDefault") })
	sc.Step(`^(anybody may|nobody may) put keys in$`, func(who string) error {
		return shows("SecureBootMode", map[string]string{"anybody may": "SetupMode", "nobody may": "UserMode"}[who])
	})
	sc.Step(`^the operator lets one more certificate sign what boots$`, func() error {
		a, err := s.get(secureBootURI + "/SecureBootDatabases/KEK/Certificates/1")
		if err != nil {
			return err
		}
		s.saved["certificate"], _ = a.body["CertificateString"].(string)
		if err := allow(s.saved["certificate"]); err != nil {
			return err
		}
		s.saved["allowed"] = s.response.header.Get("Location")
		return equal("the answer", s.response.status, 201)
	})
	sc.Step(`^the operator tries to let it sign what boots again$`, func() error { return allow(s.saved["certificate"]) })
	sc.Step(`^the operator tries to let something sign what boots that is no certificate$`, func() error {
		return allow("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	})
	sc.Step(`^the operator takes the certificate back$`, func() error { return s.sendOK("DELETE", s.saved["allowed"], nil) })
	sc.Step(`^the certificate (is|is not) among those that may sign what boots$`, func(how string) error {
		a, err := s.get(allowedURI + "?$expand=.")
		if err != nil {
			return err
		}
		var has bool
		all, _ := a.body["Members"].([]any)
		for _, x := range all {
			o, _ := x.(map[string]any)
			text, _ := o["CertificateString"].(string)
			has = has || strings.TrimSpace(text) == strings.TrimSpace(s.saved["certificate"])
		}
		if len(all) < 2 || has != (how == "is") {
			return fmt.Errorf("there are %s", a)
		}
		return nil
	})
}
