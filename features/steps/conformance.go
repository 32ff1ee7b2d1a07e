package steps

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// checkedBMC is a BMC that is known by its address and credentials, with the results of the
// last run of checks.
type checkedBMC struct {
	conf    conformance.Config
	folder  string // folder of the journal of writes
	results []conformance.Result
}

// credentials is the file that goes with an address. Its keys are those of an entry of
// labctl conformance run --rack; paths are relative to the file.
type credentials struct {
	Username     string `json:"username"`
	PasswordFile string `json:"passwordFile"`
	CA           string `json:"ca,omitempty"`
	Insecure     bool   `json:"insecure,omitempty"`
	IPMI         string `json:"ipmi,omitempty"`
	Serial       string `json:"serial,omitempty"`   // confirms the level disruptive
	LoseData     bool   `json:"loseData,omitempty"` // confirms the level destructive
}

func (s *scenario) registerConformance(sc *stepRegistry) {
	sc.Step(`^the BMC at "([^"]*)" with the credentials in the file "([^"]*)"$`, "takes a BMC, such as that of a real server, by its address; the YAML file has username and passwordFile, and may have ca, insecure, ipmi, serial and loseData", s.takeBMC)
	sc.Step(`^the BMC at the server's address$`, "takes the server's BMC as a BMC of which only the address and the credentials are known", s.takeServersBMC)
	sc.Step(`^its (read-only|reversible|disruptive|destructive) checks run$`, "runs all checks of labctl conformance up to this level; writes are taken back", func(ctx context.Context, level string) error {
		return s.checkBMC(ctx, level, "")
	})
	sc.Step(`^its (read-only|reversible|disruptive|destructive) checks "([^"]*)" run$`, "runs these checks or groups of checks, separated by commas, and those that they need", s.checkBMC)
	sc.Step(`^the check "([^"]*)" (passes|warns|fails|is skipped)$`, "asserts the verdict of a check of the run", s.checkIs)
	sc.Step(`^the check "([^"]*)" (warns|fails|is skipped) because of "([^"]*)"$`, "asserts the verdict of a check of the run, whose reason contains this text", s.checkIsBecause)
	sc.Step(`^the verdict for "([^"]*)" is "([^"]*)"$`, "asserts what the run says about a use of the server: READY, READY WITH QUIRKS, NOT READY or UNDECIDED; labctl conformance list --for names the uses", s.verdictIs)
}

// takeBMC takes a BMC by its address. Its journal of writes is where labctl conformance
// restore looks for it.
func (s *scenario) takeBMC(address, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var c credentials
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if c.Username == "" || c.PasswordFile == "" {
		return fmt.Errorf("%s: username and passwordFile must be there", file)
	}
	conf := conformance.Config{URL: address, Username: c.Username, Insecure: c.Insecure, IPMI: c.IPMI, Serial: c.Serial, LoseData: c.LoseData}
	below := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(filepath.Dir(file), path)
	}
	password, err := os.ReadFile(below(c.PasswordFile))
	if err != nil {
		return err
	}
	conf.Password = strings.TrimRight(string(password), "\r\n")
	if c.CA != "" {
		pem, err := os.ReadFile(below(c.CA))
		if err != nil {
			return err
		}
		conf.CAs = x509.NewCertPool()
		if !conf.CAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s: it holds no certificate in PEM", c.CA)
		}
	}
	if conf.IPMI != "" {
		if _, _, err := net.SplitHostPort(conf.IPMI); err != nil {
			conf.IPMI = net.JoinHostPort(strings.Trim(conf.IPMI, "[]"), "623")
		}
	}
	host, err := hostOf(&conf)
	if err != nil {
		return err
	}
	s.checked = &checkedBMC{conf: conf, folder: conformance.Folder(host)}
	return nil
}

// hostOf completes the URL and returns the host and port of the BMC.
func hostOf(conf *conformance.Config) (string, error) {
	if !strings.Contains(conf.URL, "://") {
		conf.URL = "https://" + conf.URL
	}
	u, err := url.Parse(conf.URL)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("the address %q is not like https://192.0.2.7", conf.URL)
	}
	return u.Host, nil
}

func (s *scenario) takeServersBMC() error {
	h := s.host()
	admin, ok := h.Admin()
	if !ok {
		return errors.New("the BMC has no administrator")
	}
	conf := conformance.Config{
		URL: h.URL(), Username: admin.Name, Password: admin.Password, CAs: s.lab.Rack().CAs(), Serial: h.Machine().Identity.Serial,
	}
	if at, ok := h.IPMI(); ok {
		conf.IPMI = at.String()
	}
	s.checked = &checkedBMC{conf: conf, folder: filepath.Join(s.dir, "conformance", s.server.Name)}
	return nil
}

// checkBMC runs checks. Names are IDs and groups; empty: all checks.
func (s *scenario) checkBMC(ctx context.Context, level, names string) (err error) {
	if s.checked == nil {
		return errors.New("no BMC has been taken: begin with the step that names its address")
	}
	conf := s.checked.conf
	conf.Level = conformance.Level(level)
	var chosen []string
	if names != "" {
		chosen = strings.Split(strings.ReplaceAll(names, " ", ""), ",")
	}
	checks, err := conformance.Select(chosen)
	if err != nil {
		return err
	}
	host, err := hostOf(&conf)
	if err != nil {
		return err
	}
	release, err := conformance.Lock(conformance.LockFolder(), host)
	if err != nil {
		return err
	}
	defer release()
	if conf.Level != conformance.ReadOnly {
		if conf.Journal, err = conformance.OpenFolder(s.checked.folder); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, conf.Journal.Close()) }()
	}
	b, err := conformance.Open(conf)
	if err != nil {
		return err
	}
	s.checked.results = b.Execute(ctx, checks)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if conf.Journal != nil {
		if left := conf.Journal.Open(); len(left) > 0 {
			return fmt.Errorf("%d writes were not taken back, the first %s %s: labctl conformance restore tries again", len(left), left[0].Method, left[0].URI)
		}
	}
	return nil
}

// verdicts are the words of the steps.
var verdicts = map[string]conformance.Verdict{
	"passes": conformance.Pass, "warns": conformance.Warn, "fails": conformance.Fail, "is skipped": conformance.Skip,
}

func (s *scenario) checkIs(id, verdict string) error {
	return s.checkIsBecause(id, verdict, "")
}

func (s *scenario) checkIsBecause(id, verdict, reason string) error {
	if s.checked == nil {
		return errors.New("no checks have run")
	}
	i := slices.IndexFunc(s.checked.results, func(r conformance.Result) bool { return r.ID == id })
	if i < 0 {
		return fmt.Errorf("the check %q has not run", id)
	}
	r := s.checked.results[i]
	if r.Verdict != verdicts[verdict] || !strings.Contains(r.Reason, reason) {
		return fmt.Errorf("the verdict of %s is %s %q, want %s %q", id, r.Verdict, r.Reason, verdicts[verdict], reason)
	}
	return nil
}

func (s *scenario) verdictIs(use, want string) error {
	if s.checked == nil {
		return errors.New("no checks have run")
	}
	p, err := conformance.FindProfile(use)
	if err != nil {
		return err
	}
	if got := p.Conclude(s.checked.results); string(got.Readiness) != want {
		return fmt.Errorf("the verdict is %s, want %s", got, want)
	}
	return nil
}
