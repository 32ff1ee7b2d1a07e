package bmc

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Certificates holds the BMC's own certificate and those that it trusts.
type Certificates struct {
	Next uint64 `json:"next"` // number of the next certificate
	// HTTPS is the installed web server certificate; nil: the factory
	// certificate is used.
	HTTPS  *KeyedCertificate `json:"https,omitempty"`
	Keys   []Key             `json:"keys,omitempty"` // keys of signing requests, latest last
	Stores []Store           `json:"stores,omitempty"`
}

// KeyedCertificate is a certificate with its private key.
type KeyedCertificate struct {
	Certificate
	Key Key `json:"key"` // never shown
}

// Key is a private key (PKCS #8, DER).
type Key []byte

// Certificate is a certificate chain.
type Certificate struct {
	ID    string   `json:"id"`
	Chain [][]byte `json:"chain"` // DER, leaf first
}

// Store is a set of trusted certificates.
type Store struct {
	Name         StoreName     `json:"name"`
	Certificates []Certificate `json:"certificates"`
}

// StoreName is the name of a certificate store, by the use of its certificates.
type StoreName string

// BootStore holds certificates of HTTPS boot servers.
const BootStore StoreName = "boot"

// MediaStore returns the store for the servers of a slot's images.
func MediaStore(slot string) StoreName { return StoreName("media/" + slot) }

// AccountStore returns the store of an account's client certificates.
func AccountStore(account string) StoreName { return StoreName("account/" + account) }

// SubscriptionStore returns the store for the destination of a subscription.
func SubscriptionStore(id string) StoreName { return StoreName("subscription/" + id) }

// KeyKind is a kind of key pair.
type KeyKind string

// The kinds of factory keys.
const (
	P256    KeyKind = "P-256"    // ECDSA
	RSA2048 KeyKind = "RSA-2048" // RSA
)

// Errors of certificates.
var (
	ErrCertificate = errors.New("bmc: certificate cannot be read")
	ErrExpired     = errors.New("bmc: certificate has expired")
	ErrKey         = errors.New("bmc: nobody knows the key of the certificate")
	ErrUse         = errors.New("bmc: certificate is not for that use")
)

const (
	maxKeys  = 4  // keys of signing requests
	maxStore = 32 // certificates per store
)

// Store returns the certificates of a store.
func (c *Certificates) Store(name StoreName) []Certificate {
	if c == nil {
		return nil
	}
	for _, s := range c.Stores {
		if s.Name == name {
			return s.Certificates
		}
	}
	return nil
}

// noCertificates is used when none were installed.
var noCertificates = new(Certificates)

// forkCertificates returns a copy of the certificates that a step may change.
func (b *BMC) forkCertificates() *Certificates {
	c := Certificates{Next: 1}
	if b.st.Certificates != nil {
		c = *b.st.Certificates
	}
	c.Stores = slices.Clone(c.Stores)
	return &c
}

// public returns the certificates without private keys.
func (c *Certificates) public() *Certificates {
	if c == nil {
		return noCertificates
	}
	out := *c
	out.Keys = nil
	if out.HTTPS != nil {
		out.HTTPS = &KeyedCertificate{Certificate: out.HTTPS.Certificate}
	}
	return &out
}

// check parses a chain and returns the errors of its first certificate.
func check(chain [][]byte, wall time.Time) (*x509.Certificate, error) {
	var first *x509.Certificate
	for i, der := range chain {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("%w: number %d: %w", ErrCertificate, i+1, err)
		}
		if i == 0 {
			first = c
		}
	}
	switch {
	case first == nil:
		return nil, fmt.Errorf("%w: there is none", ErrCertificate)
	case wall.After(first.NotAfter):
		return nil, fmt.Errorf("%w: at %v", ErrExpired, first.NotAfter)
	}
	return first, nil
}

// InstallHTTPS replaces the web server's certificate. Its key is Key, a signing
// request's or the previous certificate's.
type InstallHTTPS struct {
	Chain    [][]byte
	Key      Key       // nil: a key that the BMC holds
	RealTime time.Time // real time, against which clients check certificates too
}

func (c InstallHTTPS) apply(b *BMC, now time.Time) ([]Event, error) {
	cert, err := check(c.Chain, c.RealTime)
	if err != nil {
		return nil, err
	}
	if len(cert.ExtKeyUsage)+len(cert.UnknownExtKeyUsage) > 0 &&
		!slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageServerAuth) && !slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageAny) {
		return nil, fmt.Errorf("%w: that of a server", ErrUse)
	}
	to := b.forkCertificates()
	keys := slices.Clone(to.Keys)
	if c.Key != nil {
		keys = []Key{c.Key}
	} else if to.HTTPS != nil {
		keys = append(keys, to.HTTPS.Key)
	}
	i := slices.IndexFunc(keys, func(k Key) bool { return k.of(cert) })
	if i < 0 {
		return nil, ErrKey
	}
	key := keys[i]
	to.HTTPS = &KeyedCertificate{Certificate: to.number(c.Chain), Key: key}
	to.Keys = slices.DeleteFunc(slices.Clone(to.Keys), func(k Key) bool { return bytes.Equal(k, key) })
	b.st.Certificates = to
	return []Event{CertificateInstalled{At: now, ID: to.HTTPS.ID}}, nil
}

// of reports whether the certificate is for the key.
func (k Key) of(cert *x509.Certificate) bool {
	s, err := k.Signer()
	if err != nil {
		return false
	}
	public, ok := s.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(cert.PublicKey)
}

// Signer returns the key as a signer.
func (k Key) Signer() (crypto.Signer, error) {
	key, err := x509.ParsePKCS8PrivateKey(k)
	if err != nil {
		return nil, fmt.Errorf("bmc: key: %w", err)
	}
	s, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("bmc: key: it cannot sign")
	}
	return s, nil
}

// number assigns a certificate its ID.
func (c *Certificates) number(chain [][]byte) Certificate {
	c.Next = max(c.Next, 1) + 1 // 1 is the factory certificate
	return Certificate{ID: strconv.FormatUint(c.Next, 10), Chain: chain}
}

// RemoveHTTPS restores the factory certificate.
type RemoveHTTPS struct{}

func (RemoveHTTPS) apply(b *BMC, _ time.Time) ([]Event, error) {
	to := b.forkCertificates()
	if to.HTTPS == nil {
		return nil, fmt.Errorf("%w: certificate that can be removed", ErrNotFound)
	}
	to.HTTPS = nil
	b.st.Certificates = to
	return nil, nil
}

// RequestCertificate makes a certificate signing request (PKCS #10). The BMC
// stores the key for the certificate.
type RequestCertificate struct {
	Key Key // nil: the key of the current certificate
	// Request holds the subject; its key and signature are ignored.
	Request x509.CertificateRequest
}

func (c RequestCertificate) apply(b *BMC, now time.Time) ([]Event, error) {
	to := b.forkCertificates()
	key := c.Key
	if key == nil {
		if to.HTTPS == nil {
			return nil, ErrKey
		}
		key = to.HTTPS.Key
	}
	s, err := key.Signer()
	if err != nil {
		return nil, err
	}
	// Without a random source the result depends on the inputs alone.
	der, err := x509.CreateCertificateRequest(nil, &c.Request, s)
	if err != nil {
		return nil, fmt.Errorf("bmc: certificate request: %w", err)
	}
	if c.Key != nil {
		to.Keys = append(slices.Clone(to.Keys), key)
		to.Keys = to.Keys[max(0, len(to.Keys)-maxKeys):]
		b.st.Certificates = to
	}
	return []Event{CertificateRequested{At: now, Request: der}}, nil
}

// Trust adds a certificate to a store, or replaces one.
type Trust struct {
	Store    StoreName
	Chain    [][]byte
	Instead  string    // ID to replace; "": add
	RealTime time.Time // real time
}

func (c Trust) apply(b *BMC, now time.Time) ([]Event, error) {
	if _, err := check(c.Chain, c.RealTime); err != nil {
		return nil, err
	}
	to := b.forkCertificates()
	s := to.store(c.Store)
	i := len(s.Certificates)
	switch {
	case c.Instead != "":
		if i = slices.IndexFunc(s.Certificates, func(o Certificate) bool { return o.ID == c.Instead }); i < 0 {
			return nil, fmt.Errorf("%w: certificate %s of %s", ErrNotFound, c.Instead, c.Store)
		}
	case i >= maxStore:
		return nil, fmt.Errorf("%w: %d certificates", ErrFull, i)
	default:
		s.Certificates = append(s.Certificates, Certificate{})
	}
	s.Certificates[i] = to.number(c.Chain)
	b.st.Certificates = to
	return []Event{CertificateInstalled{At: now, ID: s.Certificates[i].ID}}, nil
}

// store returns a store that may be changed.
func (c *Certificates) store(name StoreName) *Store {
	i := slices.IndexFunc(c.Stores, func(s Store) bool { return s.Name == name })
	if i < 0 {
		i = len(c.Stores)
		c.Stores = append(c.Stores, Store{Name: name})
	}
	s := &c.Stores[i]
	s.Certificates = slices.Clone(s.Certificates)
	return s
}

// Distrust removes a certificate from a store.
type Distrust struct {
	Store StoreName
	ID    string
}

func (c Distrust) apply(b *BMC, _ time.Time) ([]Event, error) {
	to := b.forkCertificates()
	s := to.store(c.Store)
	i := slices.IndexFunc(s.Certificates, func(o Certificate) bool { return o.ID == c.ID })
	if i < 0 {
		return nil, fmt.Errorf("%w: certificate %s of %s", ErrNotFound, c.ID, c.Store)
	}
	s.Certificates = slices.Delete(s.Certificates, i, i+1)
	b.st.Certificates = to
	return nil, nil
}

// dropStore deletes the store of an owner that was deleted.
func (b *BMC) dropStore(name StoreName) {
	if len(b.st.Certificates.Store(name)) == 0 {
		return
	}
	to := b.forkCertificates()
	to.Stores = slices.DeleteFunc(to.Stores, func(s Store) bool { return s.Name == name })
	b.st.Certificates = to
}

// CertificateInstalled reports the ID of an installed certificate.
type CertificateInstalled struct {
	At time.Time
	ID string
}

// CertificateRequested reports a signing request (PKCS #10, DER).
type CertificateRequested struct {
	At      time.Time
	Request []byte
}

// Time implements Event.
func (e CertificateInstalled) Time() time.Time { return e.At }

// Time implements Event.
func (e CertificateRequested) Time() time.Time { return e.At }
