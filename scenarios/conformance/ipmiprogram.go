package conformance

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// workarounds are FreeIPMI's, in the order in which programTrue tries them.
var workarounds = []string{"opensesspriv", "authcap", "integritycheckvalue", "supermicro20", "intel20", "sun20", "endianseq", "idzero", "nochecksumcheck"}

// programsSucceed runs ipmitool and FreeIPMI's ipmi-chassis.
func programsSucceed(ctx context.Context, r *Run) Outcome {
	if r.bmc.dry != nil {
		return r.dryIPMI("ipmitool chassis power status, ipmi-chassis --get-chassis-status")
	}
	host, port, err := net.SplitHostPort(r.Config().IPMI)
	if err != nil {
		return Judge(err)
	}
	tool, toolErr := exec.LookPath("ipmitool")
	free, freeErr := exec.LookPath("ipmi-chassis")
	if toolErr != nil && freeErr != nil {
		return Skipped("this computer has neither ipmitool nor FreeIPMI")
	}
	o := Passed("")
	if toolErr == nil {
		line := func(more ...string) (string, error) {
			return r.program(ctx, []string{"IPMI_PASSWORD=" + r.Config().Password}, tool,
				append([]string{"-I", "lanplus", "-H", host, "-p", port, "-U", r.Config().Username, "-E", "-N", "1", "-R", "3"}, append(more, "chassis", "power", "status")...)...)
		}
		out, err := line()
		if err != nil {
			o = Failed("ipmitool: %s", firstLine(out))
			for _, suite := range []string{"17", "3"} {
				if _, err := line("-C", suite); err == nil {
					o = Warned("ipmitool needs -C %s: %s", suite, firstLine(out)).With("ipmitool", "-C %s", suite)
					break
				}
			}
		} else {
			o = o.With("ipmitool", "succeeds")
		}
	}
	if freeErr != nil || o.Verdict == Fail {
		return o
	}
	secret, remove, err := freeIPMIConfig(r.Config().Username, r.Config().Password)
	if err != nil {
		return Judge(err)
	}
	defer remove()
	line := func(more ...string) (string, error) {
		return r.program(ctx, nil, free, append([]string{
			"--config-file=" + secret, "-D", "LAN_2_0", "-h", net.JoinHostPort(host, port), "--session-timeout=3000", "--get-chassis-status",
		}, more...)...)
	}
	out, err := line()
	if err == nil {
		return o.With("FreeIPMI", "succeeds")
	}
	for _, suite := range []string{"", "17"} {
		for _, w := range append([]string{""}, workarounds...) {
			var more []string
			if suite != "" {
				more = append(more, "-I", suite)
			}
			if w != "" {
				more = append(more, "-W", w)
			}
			if _, err := line(more...); err == nil {
				o.Verdict, o.Reason = Warn, "FreeIPMI needs "+strings.Join(more, " ")
				if w != "" {
					o = o.Quirky("ipmi-" + w)
				}
				return o.With("FreeIPMI", "%s", strings.Join(more, " "))
			}
			if ctx.Err() != nil {
				return Judge(ctx.Err())
			}
		}
	}
	return o.merge(Failed("ipmi-chassis: %s", firstLine(out)))
}

// freeIPMIConfig writes a configuration with the credentials, which must not be in
// argv.
func freeIPMIConfig(name, password string) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "labctl-freeipmi")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "freeipmi.conf")
	quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }
	err = os.WriteFile(path, []byte("username "+quote(name)+"\npassword "+quote(password)+"\n"), 0o600)
	return path, func() { _ = os.RemoveAll(dir) }, err
}

// program runs a client, bounded in time and output.
func (r *Run) program(ctx context.Context, env []string, path string, args ...string) (string, error) {
	timed, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	began := r.bmc.conf.Clock.Now()
	cmd := exec.CommandContext(timed, path, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if len(out) > maxRecord {
		out = out[:maxRecord]
	}
	x := Exchange{Check: r.check, Began: began, Method: "IPMI", URL: filepath.Base(path) + " " + strings.Join(args, " "), Body: out, Size: int64(len(out)), Took: r.bmc.conf.Clock.Since(began)}
	if err != nil {
		x.Error = err.Error()
	}
	r.keep(r.bmc.client.record(x))
	if err != nil && len(out) == 0 {
		out = []byte(err.Error())
	}
	return string(out), err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
