package steps

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	certificateServiceURI = root + "/CertificateService"
	httpsCertificatesURI  = managerURI + "/NetworkProtocol/HTTPS/Certificates"
)

// certificates is the state that the steps about certificates share.
type certificates struct {
	authority *x509.Certificate
	key       *ecdsa.PrivateKey
	signed    string    // PEM
	open      *tls.Conn // that a client keeps
	second    []byte    // the certificate that the second BMC had
}

func (s *scenario) registerCertificates(sc *stepRegistry) {
	sc.Step(`^a connection to the BMC is open$`, func() (err error) {
		if err = s.saveSecondCertificate(); err == nil {
			s.certificates.open, err = s.connect(1)
		}
		return err
	})
	sc.Step(`^the open connection is still answered$`, func() error {
		c := s.certificates.open
		if _, err := fmt.Fprint(c, "GET /redfish HTTP/1.1\r\nHost: bmc\r\n\r\n"); err != nil {
			return err
		}
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return err
		}
		return errors.Join(equal("the status", r.StatusCode, 200), r.Body.Close())
	})
	sc.Step(`^the client gets a CSR for HTTPS by GenerateCSR, and has it signed$`, s.signCSR)
	sc.Step(`^the client replaces the BMC's certificate by the signed one$`, func() error {
		return s.sendOK("POST", certificateServiceURI+"/Actions/CertificateService.ReplaceCertificate", object{
			"CertificateString": s.certificates.signed, "CertificateType": "PEM",
			"CertificateUri": object{"@odata.id": httpsCertificatesURI + "/1"},
		})
	})
	sc.Step(`^new connections to the BMC get the signed certificate$`, func() error {
		c, err := s.connect(1)
		if err != nil {
			return err
		}
		defer c.Close()
		got := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.ConnectionState().PeerCertificates[0].Raw}))
		return equal("the certificate", got, s.certificates.signed)
	})
	sc.Step(`^the second BMC has the certificate that it had$`, func() error {
		c, err := s.connect(2)
		if err != nil {
			return err
		}
		defer c.Close()
		return equal("whether it is the same", slices.Equal(c.ConnectionState().PeerCertificates[0].Raw, s.certificates.second), true)
	})
	sc.Step(`^CertificateLocations links to a certificate without its private key$`, func() error {
		r, err := s.get(certificateServiceURI + "/CertificateLocations")
		if err != nil {
			return err
		}
		if r, err = s.get(fmt.Sprint(r.at("Links/Certificates/0/@odata.id"))); err != nil {
			return err
		}
		if text, _ := r.body["CertificateString"].(string); !strings.Contains(text, "BEGIN CERTIFICATE") || strings.Contains(text, "PRIVATE") {
			return fmt.Errorf("the certificate is %s", r)
		}
		return nil
	})
	sc.Step(`^CertificateLocations links to (\S+)$`, func(name string) error {
		r, err := s.get(certificateServiceURI + "/CertificateLocations")
		if err != nil {
			return err
		}
		if !slices.Contains(links(r.at("Links/Certificates")), s.uri(name)) {
			return fmt.Errorf("%s is not among %s", s.uri(name), r)
		}
		return nil
	})
}

// connect opens a connection to the BMC of the n-th server, without verification.
func (s *scenario) connect(n int) (*tls.Conn, error) {
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	c, err := d.DialContext(s.t.Context(), "tcp", s.server(n).Address().String())
	if err != nil {
		return nil, err
	}
	s.t.Cleanup(func() { _ = c.Close() }) // it may be closed already
	return c.(*tls.Conn), nil
}

func (s *scenario) saveSecondCertificate() error {
	c, err := s.connect(2)
	if err == nil {
		s.certificates.second = c.ConnectionState().PeerCertificates[0].Raw
	}
	return err
}

// newAuthority makes an authority, which the client trusts from now on.
func (s *scenario) newAuthority() error {
	if s.certificates.authority != nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2060, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return err
	}
	s.certificates.key = key
	s.certificates.authority, err = x509.ParseCertificate(der)
	return err
}

// authorityPEM returns the certificate of the authority.
func (s *scenario) authorityPEM() string {
	if err := s.newAuthority(); err != nil {
		panic(err) // keys and certificates can be made
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.certificates.authority.Raw}))
}

// signCSR requests a CSR for the BMC's address and signs it.
func (s *scenario) signCSR() error {
	if err := errors.Join(s.newAuthority(), s.saveSecondCertificate()); err != nil {
		return err
	}
	address := s.server(1).Address().Addr().String()
	err := s.sendOK("POST", certificateServiceURI+"/Actions/CertificateService.GenerateCSR", object{
		"CertificateCollection": object{"@odata.id": httpsCertificatesURI}, "CommonName": address, "AlternativeNames": []string{address},
		"Country": "CH", "State": "Bern", "City": "Bern", "Organization": "Test", "OrganizationalUnit": "Lab",
	})
	if err != nil {
		return err
	}
	text, _ := s.last().body["CSRString"].(string)
	block, _ := pem.Decode([]byte(text))
	if block == nil || strings.Contains(s.response.text, "PRIVATE") {
		return fmt.Errorf("the response is %s", s.response)
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	if err := csr.CheckSignature(); err != nil {
		return err
	}
	if err := equal("the name", csr.Subject.CommonName, address); err != nil {
		return err
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: csr.Subject, DNSNames: csr.DNSNames, IPAddresses: csr.IPAddresses,
		NotBefore: s.certificates.authority.NotBefore, NotAfter: s.certificates.authority.NotAfter,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, s.certificates.authority, csr.PublicKey, s.certificates.key)
	if err != nil {
		return err
	}
	s.certificates.signed = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	s.lab.Client.Transport.(*http.Transport).TLSClientConfig.RootCAs.AddCert(s.certificates.authority)
	return nil
}
