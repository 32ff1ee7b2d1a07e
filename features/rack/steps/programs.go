package steps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/lab"
	"github.com/metalab-dev/metalab/emulator/lab/journal"
	"github.com/metalab-dev/metalab/emulator/lab/labtest"
	"github.com/metalab-dev/metalab/emulator/lab/rack"
)

// timeout is how long, in real time, a program may take that talks to a BMC
// which answers at once: those that wait for answers give up after 20 s.
const timeout = 60 * time.Second

// needPrograms, when set in the environment, makes a program that is missing a
// failure: without it the scenario is skipped, which says why.
const needPrograms = "METALAB_NEED_PROGRAMS"

// programRun is what a program did.
type programRun struct {
	line     string
	out, err string
	status   int
}

func (r programRun) String() string {
	return fmt.Sprintf("%s: exit %d\n%s%s", r.line, r.status, r.out, r.err)
}

// connectionOptions are how programs are told where a BMC is and who asks: those before the
// arguments of a step, so that these can say otherwise.
var connectionOptions = map[string]func(host, port string) []string{
	"ipmitool": func(host, port string) []string {
		return []string{"-I", "lanplus", "-H", host, "-p", port, "-U", "ADMIN", "-P", "ADMIN"}
	},
}

// freeIPMI are programs of FreeIPMI, which are all told in the same way.
var freeIPMI = []string{
	"bmc-info", "bmc-device", "ipmipower", "ipmi-chassis", "ipmi-sel", "ipmi-sensors", "ipmi-fru", "ipmi-dcmi", "ipmi-pef-config", "ipmi-config", "ipmi-raw",
}

// withSDRCache are those of them that keep what they have read of sensor records.
var withSDRCache = []string{"ipmi-sel", "ipmi-sensors", "ipmi-fru", "ipmi-pef-config"}

func connection(program, host, port string) ([]string, error) {
	if way, ok := connectionOptions[program]; ok {
		return way(host, port), nil
	}
	if slices.Contains(freeIPMI, program) {
		return []string{"-D", "LAN_2_0", "-h", host + ":" + port, "-u", "ADMIN", "-p", "ADMIN", "-l", "ADMIN"}, nil
	}
	return nil, fmt.Errorf("no step knows how to tell %s where a BMC is", program)
}

func (s *scenario) registerPrograms(sc *godog.ScenarioContext) {
	s.registerTerminals(sc)
	sc.Step(`^a rack of (\d+) servers? whose users are ADMIN, op and usr$`, func(n int) error {
		return s.startWith(n, []rack.Account{
			{Name: "ADMIN", Password: "ADMIN", Role: "Administrator"}, {Name: "op", Password: "op", Role: "Operator"},
			{Name: "usr", Password: "usr", Role: "ReadOnly"},
		})
	})
	sc.Step(`^a rack of (\d+) servers? whose time passes by itself$`, func(n int) error {
		r := rack.Default(n)
		r.Seed, r.Accounts = 7, []rack.Account{{Name: "ADMIN", Password: "ADMIN", Role: "Administrator"}}
		s.config = lab.Config{Dir: s.t.TempDir(), Rack: &r, Events: s.boots, Clock: clock.NewScaled(labtest.Origin, 1)}
		s.open()
		return nil
	})
	sc.Step("^(?:the operator|he) (?:runs|has run) `([^`]+)`$", func(line string) error { return s.runProgram(line) })
	sc.Step("^(?:the operator|he) runs `([^`]+)` at the other server$", func(line string) error { return s.runProgramAgainst(2, line) })
	sc.Step(`^it succeeds$`, s.programSucceeded)
	sc.Step(`^it ends well$`, func() error { return equal("the exit status", s.output.status, 0) }) // and may say how it goes
	sc.Step(`^every line of it ends in "([^"]*)"$`, func(end string) error {
		for _, line := range strings.Split(strings.TrimSpace(s.output.out), "\n") {
			if !strings.HasSuffix(strings.TrimSpace(line), end) {
				return fmt.Errorf("%q does not: %s", line, s.output)
			}
		}
		return nil
	})
	sc.Step("^(?:the operator|he) runs `([^`]+)` at all servers$", func(line string) error { return s.runProgramAgainst(0, line) })
	sc.Step(`^of the datagrams one in (\d+) is (lost|doubled|swapped)$`, func(n int, how string) error {
		wire := map[string]fault.Wire{"lost": fault.Lost, "doubled": fault.Doubled, "swapped": fault.Swapped}[how]
		_, err := s.lab.AddFault(fault.Rule{Wire: wire, Probability: 1 / float64(n)})
		return err
	})
	sc.Step(`^the BMC answers each command but logins with the completion code "(0x[0-9a-f]{2})"$`, func(code string) error {
		n, err := strconv.ParseUint(code, 0, 8)
		if err != nil {
			return err
		}
		_, err = s.lab.AddFault(fault.Rule{Path: "/ipmi/00/**", Code: byte(n)})
		return err
	})
	sc.Step("^(?:the operator|he) runs `([^`]+)` until it ends well$", s.runProgramUntilSuccess)
	sc.Step(`^the server was cycled by it, and never twice by one run$`, func() error {
		if len(s.powerOffsPerRun) == 0 || s.powerOffsPerRun[len(s.powerOffsPerRun)-1] != 1 || slices.Max(s.powerOffsPerRun) > 1 {
			return fmt.Errorf("its power went off so often in each run: %v", s.powerOffsPerRun)
		}
		return nil
	})
	sc.Step(`^it fails$`, func() error {
		if s.output.status == 0 {
			return fmt.Errorf("it did not: %s", s.output)
		}
		return nil
	})
	sc.Step(`^it says "([^"]*)"$`, func(text string) error { return s.outputContains(text) })
	sc.Step(`^it says:$`, func(doc *godog.DocString) error {
		for _, line := range strings.Split(doc.Content, "\n") {
			if err := s.outputContains(strings.TrimSpace(line)); err != nil {
				return err
			}
		}
		return nil
	})
	sc.Step(`^it does not say "([^"]*)"$`, func(text string) error {
		if strings.Contains(squeeze(s.output.out+s.output.err), squeeze(text)) {
			return fmt.Errorf("it does: %s", s.output)
		}
		return nil
	})
	sc.Step(`^it says something like "([^"]*)"$`, func(pattern string) error {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return err
		}
		if !re.MatchString(s.output.out + s.output.err) {
			return fmt.Errorf("it does not: %s", s.output)
		}
		return nil
	})
	sc.Step(`^it says (\d+) lines?$`, func(n int) error {
		return equal("the number of lines", len(strings.Split(strings.TrimSpace(s.output.out), "\n")), n)
	})
	sc.Step(`^it says the system's UUID$`, func() error { return s.outputContainsProperty(systemURI, "UUID") })
	sc.Step(`^it says the system's serial number$`, func() error { return s.outputContainsProperty(systemURI, "SerialNumber") })
}

// startWith is start with other accounts.
func (s *scenario) startWith(servers int, accounts []rack.Account) error {
	r := rack.Default(servers)
	r.Seed, r.Accounts = 7, accounts
	s.config = lab.Config{Dir: s.t.TempDir(), Rack: &r, Events: s.boots}
	s.open()
	return nil
}

func (s *scenario) runProgram(line string) error { return s.runProgramAgainst(1, line) }

// runProgramAgainst runs a program that is told of a server's BMC, 0 being all of them.
func (s *scenario) runProgramAgainst(server int, line string) error {
	at, ok := s.server(max(1, server)).IPMI()
	if !ok {
		return errors.New("IPMI is switched off")
	}
	host := at.Addr().String()
	if server == 0 { // all: hosts are numbered as FreeIPMI has them
		host = fmt.Sprintf("127.64.0.[1-%d]", len(s.lab.Hosts()))
	}
	return s.runProgramAt(line, host, fmt.Sprint(at.Port()))
}

// runProgramAt runs a program that is told of an address.
func (s *scenario) runProgramAt(line, host, port string) error {
	words := fields(line)
	where, err := connection(words[0], host, port)
	if err != nil {
		return err
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		if os.Getenv(needPrograms) != "" {
			return err
		}
		s.t.Logf("skipped: %v", err)
		return godog.ErrSkip
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), timeout)
	defer cancel()
	if slices.Contains(withSDRCache, words[0]) { // in the user's home otherwise
		where = append(where, "--sdr-cache-directory="+s.t.TempDir())
	}
	cmd := exec.CommandContext(ctx, path, append(where, words[1:]...)...)
	var out, diagnostics bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diagnostics
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC", "HOME="+s.t.TempDir())
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	s.output = programRun{line: line, out: out.String(), err: diagnostics.String(), status: cmd.ProcessState.ExitCode()}
	if ctx.Err() != nil {
		return fmt.Errorf("it has not ended: %s", s.output)
	}
	return nil
}

// maxRuns are how often a program is run that a bad network keeps from its BMC:
// ipmitool sends each step of a login once, and gives up after a few logins.
const maxRuns = 20

// runProgramUntilSuccess runs a program again and again until it ends well, and counts how
// often the power of the first server went off in each run.
func (s *scenario) runProgramUntilSuccess(line string) error {
	s.powerOffsPerRun = nil
	before, err := s.powerOffs()
	if err != nil {
		return err
	}
	for range maxRuns {
		if err := s.runProgram(line); err != nil {
			return err
		}
		s.advance(10, "minutes") // the server starts
		offs, err := s.powerOffs()
		if err != nil {
			return err
		}
		s.powerOffsPerRun = append(s.powerOffsPerRun, offs-before)
		before = offs
		if s.output.status == 0 {
			return nil
		}
	}
	return fmt.Errorf("not in %d runs: %s", maxRuns, s.output)
}

// powerOffs are how often the power of the first server went off.
func (s *scenario) powerOffs() (int, error) {
	all, _, err := s.lab.Journal().Select(journal.Query{Host: s.server(1).Name(), What: "power.state"})
	offs := 0
	for _, e := range all {
		if e.Text == "PoweringOff" {
			offs++
		}
	}
	return offs, err
}

// fields are the words of a line; quotes keep several together.
func fields(line string) []string {
	var out []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

func (s *scenario) programSucceeded() error {
	if s.output.status != 0 || s.output.err != "" {
		return fmt.Errorf("it did not: %s", s.output)
	}
	return nil
}

// squeeze are made alike: programs align what they print.
func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }

func (s *scenario) outputContains(text string) error {
	if !strings.Contains(squeeze(s.output.out+" "+s.output.err), squeeze(text)) {
		return fmt.Errorf("it does not say %q: %s", text, s.output)
	}
	return nil
}

// outputContainsProperty looks for what Redfish says as well, by whatever letters.
func (s *scenario) outputContainsProperty(uri, property string) error {
	a, err := s.get(uri)
	if err != nil {
		return err
	}
	want, _ := a.at(property).(string)
	if want == "" || !strings.Contains(strings.ToLower(s.output.out), strings.ToLower(want)) {
		return fmt.Errorf("it does not say %q: %s", want, s.output)
	}
	return nil
}
