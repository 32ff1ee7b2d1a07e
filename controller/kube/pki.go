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
	// Start renews a certificate in the second half of its life, so that an API may run
	// for half a year. The certificate by which the API server connects to itself, which
	// upstream makes at each start, is valid for 14 months.
	certLife = 365 * 24 * time.Hour
	// backdate allows for clients whose clocks are slow.
	backdate = time.Hour
)

// pki holds the keys and certificates of one state folder. The certificate authority and
// the service-account key are never replaced, so that kubeconfigs and tokens from
// earlier runs stay valid. The certificates that the authority signs are renewed in
// time.
type pki struct {
	ca      pair
	serving pair
	admin   pair

	accountKey string // file of the key that signs service-account tokens
}

// pair is a certificate with its private key. Both are in one file, so that kill -9
// cannot leave one without the other.
type pair struct {
	file    string
	cert    *x509.Certificate
	key     crypto.Signer
	certPEM []byte
	keyPEM  []byte
}

// openPKI reads the keys and certificates under dir and creates those that are missing.
// host is the address at which clients reach the server.
func openPKI(dir string, host net.IP, now time.Time) (*pki, error) {
	dir = filepath.Join(dir, "pki")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
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
		// Members of the group system:masters bypass RBAC.
		Subject:     pkix.Name{CommonName: "metalab-admin", Organization: []string{"system:masters"}},
		NotAfter:    now.Add(certLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return nil, err
	}
	return p, openKey(p.accountKey)
}

// openPair reads the pair in file. It creates a new one from template when there is
// none, or when the old one has to be renewed; see valid. issuer signs the certificate;
// without issuer it is self-signed.
func openPair(file string, issuer *pair, now time.Time, template *x509.Certificate) (pair, error) {
	b, err := readFile(file)
	if err != nil {
		return pair{}, err
	}
	if b != nil {
		old, err := parsePair(file, b)
		if err != nil {
			return pair{}, fmt.Errorf("%w: %s", err, pairFix(issuer))
		}
		if old.valid(issuer, now, template) {
			return old, nil
		}
	}
	return newPair(file, issuer, now, template)
}

// pairFix is the end of errors about a damaged pair: the user's choices.
func pairFix(issuer *pair) string {
	if issuer == nil {
		return "put it back, or remove it to have a new one made: copies of the kubeconfig are then of no use"
	}
	return "remove it, and a new one is made"
}

// valid reports whether p can be used further: issuer has signed it, it has the IP
// addresses of template, and it is in the first half of its life.
func (p pair) valid(issuer *pair, now time.Time, template *x509.Certificate) bool {
	if issuer == nil {
		// Clients that trust this authority would not trust a new one: use it until
		// it expires.
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
		return pair{}, fmt.Errorf("%s: %w", file, err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return pair{}, fmt.Errorf("%s: %w", file, err)
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
		return pair{}, fmt.Errorf("%s: %w", file, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return pair{}, fmt.Errorf("%s: %w", file, err)
	}
	b := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM...)
	if err := replaceFile(file, b); err != nil {
		return pair{}, err
	}
	return parsePair(file, b)
}

func parsePair(file string, b []byte) (pair, error) {
	t, err := tls.X509KeyPair(b, b) // the parser skips the blocks that it does not need
	if err != nil {
		return pair{}, fmt.Errorf("%s: %w", file, err)
	}
	key, ok := t.PrivateKey.(crypto.Signer)
	if !ok {
		return pair{}, fmt.Errorf("%s: a %T cannot sign", file, t.PrivateKey)
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

// openKey checks that file has a private key, and creates the key if the file does not
// exist.
func openKey(file string) error {
	b, err := readFile(file)
	if err != nil {
		return err
	}
	if b != nil {
		if _, err := keyutil.ParsePrivateKeyPEM(b); err != nil {
			return fmt.Errorf("%s: %w: put it back, or remove it to have a new one made: tokens of service accounts are then of no use", file, err)
		}
		return nil
	}
	if b, err = keyutil.MakeEllipticPrivateKeyPEM(); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return replaceFile(file, b)
}

// restConfig returns the configuration of an administrator's client of the server at addr.
func (p *pki) restConfig(addr *net.TCPAddr) *rest.Config {
	return &rest.Config{
		Host:               serverURL(addr),
		TLSClientConfig:    rest.TLSClientConfig{CAData: p.ca.certPEM, CertData: p.admin.certPEM, KeyData: p.admin.keyPEM},
		QPS:                -1,   // no client-side limit: it would only delay the controllers and tests
		DisableCompression: true, // the requests do not leave this machine
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
		return fmt.Errorf("kubeconfig: %w", err)
	}
	return replaceFile(file, b)
}

// serverURL returns the URL at which a client on this machine reaches a server that
// listens on addr.
func serverURL(addr *net.TCPAddr) string {
	at := net.TCPAddr{IP: reachable(addr.IP), Port: addr.Port, Zone: addr.Zone}
	return "https://" + at.String()
}
