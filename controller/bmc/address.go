package bmc

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Errors of a host with incomplete BMC details. The texts are Metal3's word for
// word (B-112), because people and scripts search for them.
var (
	ErrNoAddress     = errors.New("Empty BMC address Missing BMC connection detail 'Address'")
	ErrNoCredentials = errors.New("No BMC CredentialsName defined The BMC secret reference is empty")
)

// UnknownTypeError reports an address with an unknown scheme. No retry helps, only
// another address (B-112).
type UnknownTypeError struct {
	Type    string // the scheme
	Address string
}

func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("Unknown BMC type '%s' for address %s", e.Type, e.Address)
}

// Address is a parsed BMC address with the traits of its scheme. Addresses can be
// compared and used as map keys.
type Address struct {
	Scheme    string // as written, e.g. redfish-virtualmedia+http; Metal3's "BMC type"
	Host      string // name or IP address, without brackets
	Port      uint16 // as written, or the protocol's default
	Path      string // escaped path of the system; "" means the only system
	TLS       bool
	Privilege string // privilege level of the IPMI session: CALLBACK, USER, OPERATOR, ADMINISTRATOR; else ""
	Traits
}

// ParseAddress parses a BMC address in Metal3's notation: a URL of one of its
// schemes, the same without slashes (ipmi:host), or a bare host with or without a
// port, which means IPMI (B-130). A bare IPv6 address may have brackets or not,
// although upstream requires a port then. A user name in the address is ignored.
func ParseAddress(s string) (Address, error) {
	if s == "" {
		return Address{}, ErrNoAddress
	}
	u, err := split(s)
	if err == nil {
		err = checkHost(u.Hostname())
	}
	if e := new(url.Error); errors.As(err, &e) {
		err = e.Err // without the address, which may contain a password
	}
	if err != nil {
		return Address{}, fmt.Errorf("failed to parse BMC address information: %w", err)
	}
	for _, row := range schemes {
		name, plus, suffixed := strings.Cut(u.Scheme, "+")
		if name != row.name || suffixed && !slices.Contains(row.plus, plus) {
			continue
		}
		a := Address{Scheme: u.Scheme, Host: u.Hostname(), Traits: row.Traits}
		a.TLS = row.Driver == "redfish" && plus != "http"
		a.Path = systemPath(row.path, u)
		if a.Port, err = port(u.Port(), a.defaultPort()); err == nil {
			a.Privilege, err = privilege(row.Driver, u)
		}
		if err != nil {
			return Address{}, fmt.Errorf("failed to parse BMC address information: %w", err)
		}
		return a, nil
	}
	if u.User != nil {
		s = u.Redacted()
	}
	return Address{}, &UnknownTypeError{Type: u.Scheme, Address: s}
}

// split parses an address that may lack a scheme or its slashes.
func split(s string) (*url.URL, error) {
	if ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")); err == nil && ip.Is6() && ip.Zone() == "" {
		return &url.URL{Scheme: "ipmi", Host: "[" + ip.String() + "]"}, nil
	}
	u, err := url.Parse(s)
	if err != nil {
		// 192.0.2.1:623 does not parse as a URL: a colon before the first slash
		// ends a scheme, and a scheme cannot begin with a digit or a bracket.
		if _, _, e := net.SplitHostPort(s); e != nil {
			return nil, err
		}
		return &url.URL{Scheme: "ipmi", Host: s}, nil
	}
	switch {
	case u.Opaque != "" && isDigits(u.Opaque) && !isScheme(u.Scheme): // bmc.example:623
		return url.Parse("ipmi://" + s)
	case u.Opaque != "": // redfish:192.0.2.1
		return url.Parse(strings.Replace(s, ":", "://", 1))
	case u.Scheme == "" && u.Host == "":
		return url.Parse("ipmi://" + s)
	}
	return u, nil
}

func isDigits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}

func isScheme(s string) bool {
	for _, row := range schemes {
		if s == row.name {
			return true
		}
	}
	return false
}

// hostname is a sequence of DNS labels of at most 63 characters (B-130).
var hostname = func() *regexp.Regexp {
	const label = `[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?`
	return regexp.MustCompile(`^(?:` + label + `\.)*` + label + `$`)
}()

func checkHost(host string) error {
	if ip, err := netip.ParseAddr(host); err == nil && ip.Zone() == "" {
		return nil
	}
	if !hostname.MatchString(host) {
		return fmt.Errorf("BMC address hostname/IP : [%s] is invalid", host)
	}
	return nil
}

// systemPath returns the path of the system that u names, escaped as in u.
func systemPath(rule pathRule, u *url.URL) string {
	path := u.EscapedPath()
	root := strings.Trim(path, "/")
	if rule == pathNone || rule == pathSystem && (root == "" || root == "redfish/v1") {
		return ""
	}
	return path
}

func port(given string, normal uint16) (uint16, error) {
	if given == "" {
		return normal, nil
	}
	n, err := strconv.ParseUint(given, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("port [%s] is invalid", given)
	}
	return uint16(n), nil
}

// privileges lists the levels that an IPMI session can request (IPMI v2.0 rev 1.1,
// §6.8), spelled as in the privilegelevel option.
var privileges = []string{"CALLBACK", "USER", "OPERATOR", "ADMINISTRATOR"}

func privilege(driver string, u *url.URL) (string, error) {
	if driver != "ipmi" {
		return "", nil
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || !query.Has("privilegelevel") {
		return "ADMINISTRATOR", nil // like upstream, ignore a broken query
	}
	level := query.Get("privilegelevel")
	if !slices.Contains(privileges, level) {
		return "", fmt.Errorf("privilege level [%s] is invalid", level)
	}
	return level, nil
}

// defaultPort returns the port for an address without one.
func (a Address) defaultPort() uint16 {
	switch {
	case a.Driver == "ipmi":
		return 623
	case a.TLS:
		return 443
	default:
		return 80
	}
}

// HostPort returns the address to dial.
func (a Address) HostPort() string {
	return net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port)))
}

// authority returns host and port as in a URL. It omits a default port, because
// some BMCs compare the Host header.
func (a Address) authority() string {
	if a.Port != a.defaultPort() {
		return a.HostPort()
	}
	if strings.Contains(a.Host, ":") {
		return "[" + a.Host + "]"
	}
	return a.Host
}

// URL returns the root of the BMC's web service without a trailing slash, e.g.
// https://192.0.2.1:8443; "" for IPMI.
func (a Address) URL() string {
	switch {
	case a.Driver == "ipmi":
		return ""
	case a.TLS:
		return "https://" + a.authority()
	default:
		return "http://" + a.authority()
	}
}

// String returns the address in the form of a URL, which ParseAddress accepts.
func (a Address) String() string {
	s := a.Scheme + "://" + a.authority() + a.Path
	if a.Privilege != "" && a.Privilege != "ADMINISTRATOR" {
		s += "?privilegelevel=" + a.Privilege
	}
	return s
}
