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
	"sync/atomic"
)

func (s *scenario) registerConsoles(sc *stepRegistry) {
	sc.Step("^the client runs `ipmiconsole ([^`]+)` until it prints \"([^\"]+)\", and disconnects$", s.runConsole)
	sc.Step(`^the IPMI port is below 32768$`, s.moveIPMIPort)
}

// lastPort is the last port that a scenario has moved IPMI to: scenarios that run
// at the same time must not try the same one.
var lastPort atomic.Uint32

// moveIPMIPort moves IPMI to a port that ipmiconsole accepts: FreeIPMI 1.6.10
// refuses one of 32768 and above.
func (s *scenario) moveIPMIPort() error {
	at, ok := s.server(1).IPMI()
	if !ok {
		return errIPMIOff
	}
	const first, last = 16230, 16430
	for {
		port := first + uint16(lastPort.Add(1))
		if port > last {
			return fmt.Errorf("no port from %d to %d is free", first, last)
		}
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at.Addr(), port)))
		if err != nil {
			continue
		}
		if err := c.Close(); err != nil {
			return err
		}
		return s.sendOK("PATCH", protocolsURI, object{"IPMI": object{"Port": port}})
	}
}

// runConsole runs ipmiconsole until it has printed a text, and disconnects with
// its escape sequence. The program needs a terminal, which script(1) gives it.
func (s *scenario) runConsole(options, text string) error {
	at, ok := s.server(1).IPMI()
	if !ok {
		return errIPMIOff
	}
	for _, program := range []string{"ipmiconsole", "script"} {
		if _, err := s.findProgram(program); err != nil {
			return err
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
		if !left && strings.Contains(shown.String(), text) {
			left = true
			if _, err := io.WriteString(in, "&."); err != nil {
				return err
			}
		}
		if err != nil { // the program has ended
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
		return fmt.Errorf("the program has not ended: %s", s.output)
	}
	if !left {
		return fmt.Errorf("the program has ended and did not print %q: %s", text, s.output)
	}
	return nil
}
