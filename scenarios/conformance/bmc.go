package conformance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

// Config configures a run of checks.
type Config struct {
	URL                string // URL of the Redfish service; with the path of a system, that system is checked
	Username, Password string
	Insecure           bool           // accept any certificate
	CAs                *x509.CertPool // nil: those of the system
	IPMI               string         // host:port of IPMI over LAN; empty: none
	Level              Level          // empty: read-only
	Serial             string         // serial number of the server, to confirm the levels from disruptive on
	LoseData           bool           // confirms the destructive level

	Facilities

	Patience time.Duration // longest wait for one response; 0: 60 s
	Rate     float64       // most requests in a second; 0: 250
	Clock    clock.Clock   // nil: the real one

	Journal  *Journal                      // journal of writes; needed above read-only
	DryRun   io.Writer                     // prints every request; writes are not sent
	Progress func(done, all int, r Result) // after each check
	Done     map[string]Result             // results of an earlier run, to resume it
	Earlier  []Exchange                    // exchanges of that run
	Timeout  time.Duration                 // time limit of one check; 0: 2 min, above reversible 30 min
}

// BMC is the BMC under test.
type BMC struct {
	conf    Config
	client  *client
	dry     *dryRun // nil: requests are sent
	session *session
	// secureMedia: the BMC takes images by HTTPS and not by HTTP.
	secureMedia bool
	// ipmiSilent: the BMC does not answer a presence ping, and nothing else is tried.
	ipmiSilent bool
	// parallel: NET-005 has seen the BMC answer parallel GETs.
	parallel bool
	// samples are the reads of NET-001 and NET-004 on one connection; nil: none yet.
	samples []*Response
	pages   map[string]*page // resources as the run has read them
	place   *Place
	placed  error
	sure    bool // the serial number is the confirmed one
}

// page is a resource that the run has read.
type page struct {
	value Value
	resp  *Response
	err   error
}

// maxPages bounds the resources in memory; more are read again.
const maxPages = 2000

// session is the run's login.
type session struct {
	token, uri string
}

// Open prepares a run. It sends nothing.
func Open(conf Config) (*BMC, error) {
	if !strings.Contains(conf.URL, "://") {
		conf.URL = "https://" + conf.URL
	}
	base, err := url.Parse(conf.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("URL %q: %w", conf.URL, err)
	case base.Scheme != "https" && base.Scheme != "http", base.Host == "":
		return nil, fmt.Errorf("URL %q is not one of https://ADDRESS, http://ADDRESS", conf.URL)
	case base.User != nil:
		return nil, errors.New("the URL holds credentials: use --username and --password-file")
	}
	if conf.Clock == nil {
		conf.Clock = clock.RealClock{}
	}
	if conf.Level == "" {
		conf.Level = ReadOnly
	}
	if conf.Patience == 0 {
		conf.Patience = defaultPatience
	}
	if conf.Rate == 0 {
		conf.Rate = 250
	}
	if err := conf.confirmed(); err != nil {
		return nil, err
	}
	if conf.Level != ReadOnly && conf.Journal == nil && conf.DryRun == nil {
		return nil, fmt.Errorf("level %s needs a journal of its writes", conf.Level)
	}
	b := &BMC{conf: conf, pages: map[string]*page{}, client: &client{
		base: base, insecure: conf.Insecure, roots: conf.CAs, clock: conf.Clock, patience: conf.Patience,
		every: time.Duration(float64(time.Second) / conf.Rate), secrets: new(secrets),
	}}
	b.client.secrets.account(conf.Username, conf.Password)
	if conf.DryRun != nil {
		b.dry = &dryRun{out: conf.DryRun, clock: conf.Clock}
	}
	b.client.exchanges = slices.Clone(conf.Earlier)
	return b, nil
}

// confirmed returns the refusal of a level that the configuration does not confirm.
func (c *Config) confirmed() error {
	switch {
	case c.DryRun != nil || !c.Level.Allows(Disruptive):
	case c.Serial == "":
		return &Refusal{fmt.Sprintf("level %s restarts the server: confirm it with --serial and the serial number of the server", c.Level)}
	case c.Level.Allows(Destructive) && !c.LoseData:
		return &Refusal{fmt.Sprintf("level %s erases disks and configuration: confirm it with --i-will-lose-data", c.Level)}
	}
	return nil
}

// Refusal is an error that says why a run would not be safe.
type Refusal struct{ Text string }

func (r *Refusal) Error() string { return r.Text }

// Identity is which server and firmware a run has checked.
type Identity struct {
	Vendor         string `json:"vendor,omitempty"`
	Product        string `json:"product,omitempty"`
	RedfishVersion string `json:"redfishVersion,omitempty"`
	Manufacturer   string `json:"manufacturer,omitempty"`
	Model          string `json:"model,omitempty"`
	BIOSVersion    string `json:"biosVersion,omitempty"`
	BMCModel       string `json:"bmcModel,omitempty"`
	BMCVersion     string `json:"bmcVersion,omitempty"`
	System         string `json:"system,omitempty"` // URI

	serials []string // SerialNumber and SKU: Dell's service tag is the SKU
	chassis string
}

// Title names the server and its firmware.
func (i Identity) Title() string {
	parts := []string{}
	for _, p := range []struct{ label, text string }{{"", i.Manufacturer}, {"", i.Model}, {"BMC ", strings.TrimSpace(i.BMCModel + " " + i.BMCVersion)}, {"BIOS ", i.BIOSVersion}} {
		if p.text != "" {
			parts = append(parts, p.label+p.text)
		}
	}
	if len(parts) == 0 {
		return "unknown server"
	}
	return strings.Join(parts, ", ")
}

// Has reports whether a serial number is the server's.
func (i Identity) Has(serial string) bool { return serial != "" && slices.Contains(i.serials, serial) }

// Chassis tells the servers of one enclosure by one text; empty is unknown.
func (i Identity) Chassis() string { return i.chassis }

// Identify reads the server's identity. A field that the BMC does not have stays empty.
func (b *BMC) Identify(ctx context.Context) (Identity, error) {
	r := b.run(Check{ID: "identify"})
	defer r.close()
	return r.identify(ctx)
}

func (r *Run) identify(ctx context.Context) (Identity, error) {
	p, err := r.Place(ctx)
	if err != nil {
		return Identity{}, err
	}
	i := Identity{
		Vendor: p.Root.At("Vendor").TextOr(""), Product: p.Root.At("Product").TextOr(""), RedfishVersion: p.Root.At("RedfishVersion").TextOr(""),
		Manufacturer: p.System.At("Manufacturer").TextOr(""), Model: p.System.At("Model").TextOr(""), BIOSVersion: p.System.At("BiosVersion").TextOr(""),
		BMCModel: p.Manager.At("Model").TextOr(""), BMCVersion: p.Manager.At("FirmwareVersion").TextOr(""), System: p.SystemURI,
	}
	for _, name := range []string{"SerialNumber", "SKU"} {
		if s := p.System.At(name).TextOr(""); s != "" {
			i.serials = append(i.serials, s)
		}
	}
	// A blade's chassis is contained by its enclosure, whose serial number all its
	// blades show.
	i.chassis = p.Chassis.At("SerialNumber").TextOr("")
	if uri, err := p.Chassis.At("Links", "ContainedBy").Link(); err == nil {
		if outer, err := r.Page(ctx, uri); err == nil {
			if s := outer.At("SerialNumber").TextOr(""); s != "" {
				i.chassis = s
			}
		}
	}
	return i, nil
}

// confirm refuses a disruptive write to another server than the confirmed one.
func (r *Run) confirm(ctx context.Context) error {
	i, err := r.identify(ctx)
	if err != nil {
		return err
	}
	if !i.Has(r.bmc.conf.Serial) {
		return &Refusal{fmt.Sprintf("the server does not have the serial number %q", r.bmc.conf.Serial)}
	}
	r.bmc.sure = true
	return nil
}

// Exchanges returns the requests so far with their responses, without secrets.
func (b *BMC) Exchanges() []Exchange {
	b.client.mu.Lock()
	defer b.client.mu.Unlock()
	return append([]Exchange(nil), b.client.exchanges...)
}

// Place is where the resources of the server under test are.
type Place struct {
	Root                     Value
	System, Manager, Chassis Value  // as discovered; absent when there is none
	SystemURI, ManagerURI    string // empty when there is none
	ChassisURI               string
	Systems                  []string // all systems
}

// discover finds the system of the URL, or the first one, with its manager and
// chassis. It fails only where there is no system.
func (r *Run) discover(ctx context.Context) (*Place, error) {
	root, err := r.Page(ctx, "/redfish/v1/")
	if err != nil {
		return nil, err
	}
	p := &Place{Root: root}
	systems, err := root.At("Systems").Link()
	if err != nil {
		return nil, err
	}
	if p.Systems, err = r.Members(ctx, systems); err != nil {
		return nil, err
	}
	if len(p.Systems) == 0 {
		return nil, Findingf("%s has no member", systems)
	}
	p.SystemURI = p.Systems[0]
	if want := strings.TrimSuffix(r.bmc.client.base.Path, "/"); strings.Contains(want, "/Systems/") {
		p.SystemURI = want
	}
	if p.System, err = r.Page(ctx, p.SystemURI); err != nil {
		return nil, err
	}
	// A client that finds no link takes the only member of the collection.
	p.ManagerURI = r.related(ctx, p.System.At("Links", "ManagedBy", "0"), root.At("Managers"))
	p.ChassisURI = r.related(ctx, p.System.At("Links", "Chassis", "0"), root.At("Chassis"))
	for uri, v := range map[string]*Value{p.ManagerURI: &p.Manager, p.ChassisURI: &p.Chassis} {
		if uri == "" {
			continue
		}
		if *v, err = r.Page(ctx, uri); err != nil && !errors.As(err, new(*Finding)) {
			return nil, err
		}
	}
	return p, nil
}

func (r *Run) related(ctx context.Context, link, collection Value) string {
	if uri, err := link.Link(); err == nil {
		return uri
	}
	if uri, err := collection.Link(); err == nil {
		if all, err := r.Members(ctx, uri); err == nil && len(all) > 0 {
			return all[0]
		}
	}
	return ""
}

// login opens the run's session. A BMC without sessions gets Basic credentials.
func (b *BMC) login(ctx context.Context, r *Run) {
	if b.session != nil || b.dry != nil {
		return
	}
	b.session = &session{}
	uri := "/redfish/v1/SessionService/Sessions"
	if resp, err := r.roundTrip(ctx, Request{URI: "/redfish/v1/", Auth: Anonymous}); err == nil {
		if root, err := resp.JSON(); err == nil {
			uri = root.At("Links", "Sessions").LinkOr(uri)
		}
	}
	resp, err := r.roundTrip(ctx, Request{
		Method: http.MethodPost, URI: uri, Auth: Anonymous,
		Body: map[string]string{"UserName": b.conf.Username, "Password": b.conf.Password},
	})
	if err != nil || resp.Status/100 != 2 || resp.Header.Get("X-Auth-Token") == "" {
		return
	}
	b.session.token = resp.Header.Get("X-Auth-Token")
	b.session.uri = resp.Header.Get("Location")
}

// logout ends the run's session, so that the BMC keeps nothing of the run.
func (b *BMC) logout(ctx context.Context, r *Run) {
	if b.session == nil || b.session.uri == "" {
		return
	}
	// A failed logout leaves a session that expires: AUTH-002 and AUTH-003 report it.
	_, _ = r.Logout(ctx, b.session.uri, b.session.token)
	b.session = nil
}

// auth returns how the run authenticates.
func (b *BMC) auth() Auth {
	if b.session != nil && b.session.token != "" {
		return Token(b.session.token)
	}
	return Basic(b.conf.Username, b.conf.Password)
}

// TLSConfig returns how the run trusts the BMC, for checks that change it.
func (r *Run) TLSConfig() *tls.Config {
	return &tls.Config{RootCAs: r.bmc.conf.CAs, InsecureSkipVerify: r.bmc.conf.Insecure, MinVersion: tls.VersionTLS12}
}
