package redfish

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

// factory returns the factory certificate of every BMC under test.
var factory = sync.OnceValues(func() (bmc.KeyedCertificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return bmc.KeyedCertificate{}, err
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(77), Subject: pkix.Name{CommonName: "bmc.test", Organization: []string{"Metalab"}}, DNSNames: []string{"bmc.test"},
		NotBefore: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return bmc.KeyedCertificate{}, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	return bmc.KeyedCertificate{Certificate: bmc.Certificate{ID: "1", Chain: [][]byte{der}}, Key: raw}, err
})

func (h *host) FactoryCertificate() (bmc.KeyedCertificate, error) { return factory() }
