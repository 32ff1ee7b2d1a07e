package steps

import (
	"errors"
	"fmt"
	"strings"
)

const (
	databasesURI = systemURI + "/SecureBoot/SecureBootDatabases"
	dbURI        = databasesURI + "/db/Certificates"
)

func (s *scenario) registerSecureBoot(sc *stepRegistry) {
	sc.Step(`^the client adds the certificate of the KEK database to db$`, func() error {
		r, err := s.get(databasesURI + "/KEK/Certificates/1")
		if err != nil {
			return err
		}
		s.saved["certificate"], _ = r.body["CertificateString"].(string)
		err = s.send("POST", dbURI, object{"CertificateString": s.saved["certificate"], "CertificateType": "PEM"})
		if err != nil {
			return err
		}
		s.saved["CERTIFICATE-URI"] = s.response.header.Get("Location")
		return equal("the status", s.response.status, 201)
	})
	db := func(want bool) error {
		certificate := strings.TrimSpace(s.saved["certificate"])
		if certificate == "" {
			return errors.New("no step has saved a certificate")
		}
		r, err := s.get(dbURI + "?$expand=.")
		if err != nil {
			return err
		}
		var has bool
		all, _ := r.body["Members"].([]any)
		for _, x := range all {
			o, _ := x.(map[string]any)
			text, _ := o["CertificateString"].(string)
			has = has || strings.TrimSpace(text) == certificate
		}
		if len(all) < 2 || has != want {
			return fmt.Errorf("db is %s", r)
		}
		return nil
	}
	sc.Step(`^db has the certificate$`, func() error { return db(true) })
	sc.NegativeStep(`^db does not have the certificate$`, func() error { return db(false) })
}
