package hostprograms

import (
	"slices"
	"strings"
)

// chronyc asks chronyd about the server's clock (chronyc(1)). The clock is the lab's, and so never off:
// a chronyd that runs is in step with the sources of its configuration, although no server of the lab
// reaches them.
func chronyc(c *Call) int {
	o, err := parse(c.Args, map[string]string{"-n": "n", "-N": "n", "-c": "csv", "-4": "n", "-6": "n", "-a": "n", "-d": "n", "-m": "several", "-v": "version", "--version": "version", "-h": "host=", "-p": "port="}, true)
	switch {
	case err != nil:
		return c.complain("chronyc: %v", err)
	case o.has("version"):
		c.print("chronyc (chrony) version 4.3 (metalab)\n")
		return 0
	case o.has("csv"), o.has("several"), o.has("host"), o.has("port"):
		return c.complain("chronyc: -c, -m, -h and -p are not done here")
	case len(o.words) == 0:
		return c.complain("chronyc: there is no prompt here: give a command")
	case !c.Active("chrony.service") && !c.Active("chronyd.service"):
		c.print("506 Cannot talk to daemon\n")
		return 1
	}
	sources := c.chronySources()
	switch command := o.words[0]; command {
	case "tracking":
		c.tracking(sources)
	case "sources":
		c.print("MS Name/IP address         Stratum Poll Reach LastRx Last sample               \n===============================================================================\n")
		for i, s := range sources {
			state := "^+"
			if i == 0 {
				state = "^*"
			}
			c.print("%s %-27s 2   6   377    32     +0ns[   +0ns] +/-    1ms\n", state, s)
		}
	case "sourcestats":
		c.print("Name/IP Address            NP  NR  Span  Frequency  Freq Skew  Offset  Std Dev\n==============================================================================\n")
		for _, s := range sources {
			c.print("%-25s   8   4   448     +0.000      0.001     +0ns     1ns\n", s)
		}
	case "activity":
		c.print("200 OK\n%d sources online\n0 sources offline\n0 sources doing burst (return to online)\n0 sources doing burst (return to offline)\n0 sources with unknown address\n", len(sources))
	case "waitsync":
		if len(sources) == 0 {
			c.print("try: 1, refid: 00000000, correction: 0.000000000, skew: 0.000\n")
			return 1
		}
		c.print("try: 1, refid: C6120001, correction: 0.000000000, skew: 0.001\n")
	case "makestep", "burst", "online", "offline", "refresh", "reload":
		if !c.mayChange() {
			c.print("501 Not authorised\n")
			return 1
		}
		c.print("200 OK\n")
	default:
		c.print("Unrecognized command\n")
		return c.complain("chronyc: of its commands are tracking, sources, sourcestats, activity, waitsync, makestep, burst, online, offline, refresh and reload done here")
	}
	return 0
}

func (c *Call) tracking(sources []string) {
	reference, stratum, when, leap := "00000000 ()", 0, "Thu Jan 01 00:00:00 1970", "Not synchronised"
	if len(sources) > 0 {
		reference, stratum, when, leap = "C6120001 ("+sources[0]+")", 3, c.Now().UTC().Format("Mon Jan 02 15:04:05 2006"), "Normal"
	}
	c.print("Reference ID    : %s\nStratum         : %d\nRef time (UTC)  : %s\nSystem time     : 0.000000000 seconds slow of NTP time\nLast offset     : +0.000000000 seconds\n"+
		"RMS offset      : 0.000000000 seconds\nFrequency       : 0.000 ppm slow\nResidual freq   : +0.000 ppm\nSkew            : 0.001 ppm\nRoot delay      : 0.001000000 seconds\n"+
		"Root dispersion : 0.001000000 seconds\nUpdate interval : 64.0 seconds\nLeap status     : %s\n", reference, stratum, when, leap)
}

// chronySources returns the names of the sources of chronyd's configuration.
func (c *Call) chronySources() (out []string) {
	files := slices.Concat([]string{"/etc/chrony/chrony.conf", "/etc/chrony.conf"}, c.configFiles(".conf", "/etc/chrony/conf.d", "/etc/chrony.d"), c.configFiles(".sources", "/etc/chrony/sources.d"))
	for _, file := range files {
		for _, w := range lines(c.text(file)) {
			if len(w) > 1 && slices.Contains([]string{"server", "pool", "peer"}, strings.ToLower(w[0])) && !slices.Contains(out, w[1]) {
				out = append(out, w[1])
			}
		}
	}
	return out
}
