package steps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"github.com/cucumber/godog"
)

func (s *scenario) registerTerminals(sc *godog.ScenarioContext) {
	sc.Step("^(?:the operator|he) sits at `ipmiconsole ([^`]+)` until it says \"([^\"]+)\", and leaves$", s.runsConsole)
	sc.Step(`^IPMI is at a port below 32768$`, s.moveIPMIPort)
}

// moveIPMIPort moves IPMI: FreeIPMI 1.6.10 takes a console at no higher port.
func (s *scenario) moveIPMIPort() error {
	at, ok := s.server(1).IPMI()
	if !ok {
		return errors.New("IPMI is switched off")
	}
	const first, last = 16230, 16330
	for port := uint16(first); port < last; port++ {
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at.Addr(), port)))
		if err != nil {
			continue
		}
		if err := c.Close(); err != nil {
			return err
		}
		return s.sendOK("PATCH", root+"/Managers/1/NetworkProtocol", object{"IPMI": object{"Port": port}})
	}
	return errors.New("no such port is free")
}

// runsConsole runs ipmiconsole, which must have a terminal: script(1) makes one.
func (s *scenario) runsConsole(options, says string) error {
	at, ok := s.server(1).IPMI()
	if !ok {
		return errors.New("IPMI is switched off")
	}
	for _, program := range []string{"ipmiconsole", "script"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv(needPrograms) != "" {
				return err
			}
			s.t.Logf("skipped: %v", err)
			return godog.ErrSkip
		}
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), timeout)
	defer cancel()
	line := fmt.Sprintf("ipmiconsole -h %s -u ADMIN -p ADMIN -l ADMIN %s", at, options)
	cmd := exec.CommandContext(ctx, "script", "-qefc", line, os.DevNull)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TERM=dumb")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var shown bytes.Buffer
	left := false
	for b := make([]byte, 4096); ; {
		n, err := out.Read(b)
		shown.Write(b[:n])
		if !left && strings.Contains(shown.String(), says) {
			left = true
			if _, err := io.WriteString(in, "&."); err != nil {
				return err
			}
		}
		if err != nil { // it has ended, or was ended
			break
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	s.output = programRun{line: line, out: shown.String(), status: cmd.ProcessState.ExitCode()}
	if ctx.Err() != nil {
		return fmt.Errorf("it has not ended: %s", s.output)
	}
	return nil
}
