package layout

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/controller/aliases"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
)

// Need is an address that a template asks for: ip "INTERFACE:SUBNET".
type Need struct{ Interface, Subnet string }

// Template is the template of a server.
type Template struct {
	field   string
	text    *template.Template
	budget  *budget
	nics    []ipamv1.NIC
	subnets map[string]*ipamv1.Subnet
	address func(Need) (netip.Addr, error)
}

// NewTemplate returns the template of a server. Its functions are those of the product's
// documentation: nic, mac, ip, gateway_from_subnet, nameservers_from_subnet and
// cidr_from_subnet.
func NewTemplate(t *ipamv1.L2Template, h *ipamv1.IpamHost, all []ipamv1.Subnet) (*Template, error) {
	out := &Template{field: fmt.Sprintf("L2Template %q: spec.npTemplate", t.Name), budget: new(budget)}
	text := t.Spec.NPTemplate
	if h.Spec.NPTemplateOverride != "" {
		out.field, text = fmt.Sprintf("IpamHost %q: spec.npTemplateOverride", h.Name), h.Spec.NPTemplateOverride
	}
	var err error
	if out.subnets, err = Subnets(t, all); err != nil {
		return nil, err
	}
	if out.nics, err = Interfaces(t, h); err != nil {
		return nil, err
	}
	b := out.budget
	out.text, err = template.New("npTemplate").Option("missingkey=error").Funcs(template.FuncMap{
		"nic": textual(b, func(i int) (string, error) { n, err := out.nic(i); return n.Name, err }),
		"mac": textual(b, func(i int) (string, error) { n, err := out.nic(i); return strings.ToLower(n.MAC), err }),
		"ip":  textual(b, out.ip),
		"gateway_from_subnet": textual(b, func(name string) (string, error) {
			s, err := out.subnet(name)
			if err == nil && s.Spec.Gateway == "" {
				err = fmt.Errorf("Subnet %q has no spec.gateway", s.Name)
			}
			if err != nil {
				return "", err
			}
			return s.Spec.Gateway, nil
		}),
		"nameservers_from_subnet": textual(b, func(name string) (string, error) {
			s, err := out.subnet(name)
			if err != nil {
				return "", err
			}
			var all []string
			for _, a := range s.Spec.Nameservers {
				all = append(all, string(a))
			}
			return "[" + strings.Join(all, ", ") + "]", nil
		}),
		"cidr_from_subnet": textual(b, func(name string) (string, error) {
			s, err := out.subnet(name)
			if err != nil {
				return "", err
			}
			return s.Spec.CIDR, nil
		}),
	}).Parse(text)
	if err == nil {
		err = b.limit(out.text)
	}
	if err != nil {
		return nil, out.wrong(err)
	}
	return out, nil
}

// wrong returns the error of the template, which names its field. The text of the template that it
// quotes is cut off.
func (t *Template) wrong(err error) error {
	if limit := limitError(""); errors.As(err, &limit) {
		err = limit
	}
	if text := err.Error(); len(text) > maxError {
		err = errors.New(strings.ToValidUTF8(text[:maxError], "") + "…")
	}
	return fmt.Errorf("%s: %w", t.field, err)
}

// run executes the template.
func (t *Template) run() ([]byte, error) {
	*t.budget = budget{}
	w := &limited{budget: t.budget}
	if err := t.text.Execute(w, nil); err != nil {
		return nil, t.wrong(err)
	}
	return w.Bytes(), nil
}

func (t *Template) nic(i int) (ipamv1.NIC, error) {
	if i < 0 || i >= len(t.nics) {
		return ipamv1.NIC{}, fmt.Errorf("the server has no interface %d: it has %d", i, len(t.nics))
	}
	return t.nics[i], nil
}

func (t *Template) subnet(name string) (*ipamv1.Subnet, error) {
	if s := t.subnets[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("spec.l3Layout has no subnetName %q", name)
}

// ip is the function of a template that returns an address with its length.
func (t *Template) ip(text string) (string, error) {
	interfaceName, name, ok := strings.Cut(text, ":")
	if !ok || interfaceName == "" || name == "" {
		return "", fmt.Errorf("ip %q: give INTERFACE:SUBNET", text)
	}
	s, err := t.subnet(name)
	if err != nil {
		return "", err
	}
	a, err := t.address(Need{interfaceName, s.Name})
	if err != nil {
		return "", err
	}
	p, err := netip.ParsePrefix(s.Spec.CIDR)
	if err != nil {
		return "", fmt.Errorf("Subnet %q: spec.cidr: %w", s.Name, err)
	}
	return netip.PrefixFrom(a, p.Bits()).String(), nil
}

// Needs returns the addresses that the template asks for, each once, in its order.
func (t *Template) Needs() (out []Need, err error) {
	t.address = func(n Need) (netip.Addr, error) {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
		if len(out) > maxNeeds {
			return netip.Addr{}, limitError(fmt.Sprintf("it asks for more than %d addresses", maxNeeds))
		}
		return netip.IPv4Unspecified(), nil
	}
	if _, err := t.run(); err != nil {
		return nil, err
	}
	return out, nil
}

// Render returns the netplan configuration with these addresses, as JSON.
func (t *Template) Render(addresses map[Need]netip.Addr) ([]byte, error) {
	t.address = func(n Need) (netip.Addr, error) {
		a, ok := addresses[n]
		if !ok {
			return a, fmt.Errorf("no address of Subnet %q is allocated for %q", n.Subnet, n.Interface)
		}
		return a, nil
	}
	text, err := t.run()
	if err != nil {
		return nil, err
	}
	if err := aliases.Check(text); err != nil {
		return nil, t.wrong(err)
	}
	var doc map[string]any
	if err := yaml.UnmarshalStrict(text, &doc); err != nil {
		return nil, t.wrong(fmt.Errorf("the result is no YAML: %w", err))
	}
	if fmt.Sprint(doc["version"]) != "2" {
		return nil, t.wrong(fmt.Errorf("version %v: give 2", doc["version"]))
	}
	out, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, t.wrong(err)
	}
	if _, err := NetworkData(out); err != nil {
		return nil, t.wrong(err)
	}
	return out, nil
}

// Check returns the mistake that a template has on every server: a Subnet that is missing, or text
// that is no template.
func Check(t *ipamv1.L2Template, all []ipamv1.Subnet) error {
	h := new(ipamv1.IpamHost)
	for _, name := range t.Spec.IfMapping { // whether a server has them is the server's
		h.Spec.NICMACMap = append(h.Spec.NICMACMap, ipamv1.NIC{Name: name})
	}
	_, err := NewTemplate(t, h, all)
	return err
}

// Interface returns the name of the interface that needs an address: templates may number those
// of a server.
func (t *Template) Interface(n Need) string {
	if i, err := strconv.Atoi(n.Interface); err == nil {
		if nic, err := t.nic(i); err == nil {
			return nic.Name
		}
	}
	return n.Interface
}
