package kube

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
)

const (
	caLife = 10 * 365 * 24 * time.Hour
	// A certificate is renewed at a start in the second half of its life, so
	// that one run may last half a year. The API's own certificate for speaking
	// to itself, which upstream makes at each start, is good for 14 months.
	certLife = 365 * 24 * time.Hour
	// Clocks of clients may be late.
	backdate = time.Hour
)

// pki is the trust of one state folder. The authority and the service-account
// key stay the same for its whole life, so that kubeconfigs and tokens handed
// out earlier stay good; what the authority signs is renewed in time.
type pki struct {
	ca      pair
	serving pair
	admin   pair

	accountKey string // file of the key that signs service-account tokens
}

// pair is a certificate with its key, kept in one file so that kill -9 cannot
// part them.
type pair struct {
	file    string
	cert    *x509.Certificate
	key     crypto.Signer
	certPEM []byte
	keyPEM  []byte
}

// openPKI reads the keys under dir and makes those that are missing, for a
// server that clients reach at host.
func openPKI(dir string, host net.IP, now time.Time) (*pki, error) {
	dir = filepath.Join(dir, "pki")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("kube: keys: %w", err)
	}
	p := &pki{accountKey: filepath.Join(dir, "service-account.key")}

	var err error
	if p.ca, err = openPair(filepath.Join(dir, "ca.pem"), nil, now, &x509.Certificate{
		Subject:               pkix.Name{CommonName: "metalab-ca"},
		NotAfter:              now.Add(caLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}); err != nil {
		return nil, err
	}
	if p.serving, err = openPair(filepath.Join(dir, "serving.pem"), &p.ca, now, &x509.Certificate{
		Subject:     pkix.Name{CommonName: "metalab-api"},
		NotAfter:    now.Add(certLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{host, net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
	}); err != nil {
		return nil, err
	}
	if p.admin, err = openPair(filepath.Join(dir, "admin.pem"), &p.ca, now, &x509.Certificate{
		// The group system:masters may do everything, whatever RBAC says.
		Subject:     pkix.Name{CommonName: "metalab-admin", Organization: []string{"system:masters"}},
		NotAfter:    now.Add(certLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return nil, err
	}
	return p, openKey(p.accountKey)
}

// openPair reads the pair in file. When there is none, or issuer could sign a
// better one, it makes one after template. Without issuer the pair signs itself.
func openPair(file string, issuer *pair, now time.Time, template *x509.Certificate) (pair, error) {
	b, err := readFile(file)
	if err != nil {
		return pair{}, err
	}
	if len(b) > 0 {
		old, err := parsePair(file, b)
		if err != nil {
			return pair{}, err
		}
		if old.good(issuer, now, template) {
			return old, nil
		}
	}
	return newPair(file, issuer, now, template)
}

// good reports whether p does all that a new pair after template would do.
func (p pair) good(issuer *pair, now time.Time, template *x509.Certificate) bool {
	if issuer == nil {
		// Nobody who trusts an authority would trust the next one: keep it to
		// the end.
		return now.Before(p.cert.NotAfter)
	}
	if p.cert.CheckSignatureFrom(issuer.cert) != nil {
		return false
	}
	for _, ip := range template.IPAddresses {
		if p.cert.VerifyHostname(ip.String()) != nil {
			return false
		}
	}
	return now.Add(template.NotAfter.Sub(now) / 2).Before(p.cert.NotAfter)
}

func newPair(file string, issuer *pair, now time.Time, template *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("kube: %s: %w", file, err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return pair{}, fmt.Errorf("kube: %s: %w", file, err)
	}
	template.NotBefore = now.Add(-backdate)
	parent, signer := template, crypto.Signer(key)
	if issuer != nil {
		parent, signer = issuer.cert, issuer.key
		if template.NotAfter.After(parent.NotAfter) {
			template.NotAfter = parent.NotAfter
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return pair{}, fmt.Errorf("kube: %s: %w", file, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return pair{}, fmt.Errorf("kube: %s: %w", file, err)
	}
	b := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM...)
	if err := replaceFile(file, b); err != nil {
		return pair{}, err
	}
	return parsePair(file, b)
}

func parsePair(file string, b []byte) (pair, error) {
	t, err := tls.X509KeyPair(b, b) // each looks for the blocks it wants
	if err != nil {
		return pair{}, fmt.Errorf("kube: %s: %w", file, err)
	}
	key, ok := t.PrivateKey.(crypto.Signer)
	if !ok {
		return pair{}, fmt.Errorf("kube: %s: a %T cannot sign", file, t.PrivateKey)
	}
	p := pair{file: file, cert: t.Leaf, key: key}
	for rest := b; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return p, nil
		}
		if block.Type == "CERTIFICATE" {
			p.certPEM = append(p.certPEM, pem.EncodeToMemory(block)...)
		} else {
			p.keyPEM = append(p.keyPEM, pem.EncodeToMemory(block)...)
		}
	}
}

// openKey makes sure that file holds a private key.
func openKey(file string) error {
	b, err := readFile(file)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		if _, err := keyutil.ParsePrivateKeyPEM(b); err != nil {
			return fmt.Errorf("kube: %s: %w", file, err)
		}
		return nil
	}
	if b, err = keyutil.MakeEllipticPrivateKeyPEM(); err != nil {
		return fmt.Errorf("kube: %s: %w", file, err)
	}
	return replaceFile(file, b)
}

// restConfig returns the configuration of an administrator's client of the
// server at addr.
func (p *pki) restConfig(addr *net.TCPAddr, token string) *rest.Config {
	return &rest.Config{
		Host:               serverURL(addr),
		TLSClientConfig:    rest.TLSClientConfig{CAData: p.ca.certPEM},
		BearerToken:        token, // it is looked up, where a certificate would be verified with each request
		QPS:                -1,    // no limit: the API is ours, and waiting for nothing costs time in tests
		DisableCompression: true,  // what does not leave this machine need not be packed
	}
}

func (p *pki) writeKubeconfig(file string, addr *net.TCPAddr) error {
	const name, user = "metalab", "metalab-admin"
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: serverURL(addr), CertificateAuthorityData: p.ca.certPEM}
	c.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: p.admin.certPEM, ClientKeyData: p.admin.keyPEM}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user, Namespace: "default"}
	c.CurrentContext = name
	b, err := clientcmd.Write(*c)
	if err != nil {
		return fmt.Errorf("kube: kubeconfig: %w", err)
	}
	return replaceFile(file, b)
}

// serverURL returns where a client on this machine reaches a server that listens on
// addr.
func serverURL(addr *net.TCPAddr) string {
	at := net.TCPAddr{IP: reachable(addr.IP), Port: addr.Port, Zone: addr.Zone}
	return "https://" + at.String()
}
