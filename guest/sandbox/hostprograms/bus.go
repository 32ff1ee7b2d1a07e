package hostprograms

import (
	"path"
	"slices"
	"strings"
	"time"

	"io/fs"

	"github.com/metalab-dev/metalab/agent/sys"
)

// This file has clients of systemd's daemons, which a server of the lab asks without a bus.

const zones = "/usr/share/zoneinfo"

// busOptions are options that change nothing here, and those with another manager's address.
var busOptions = map[string]string{
	"--no-pager": "nothing", "--no-ask-password": "nothing", "--no-legend": "no-legend", "-a": "all", "--all": "all", "-p": "property=", "--property": "property=", "--value": "value", "-P": "only=",
	"-l": "nothing", "--full": "nothing", "-H": "elsewhere=", "--host": "elsewhere=", "-M": "elsewhere=", "--machine": "elsewhere=", "--adjust-system-clock": "nothing", "-h": "help", "--help": "help",
	"--version": "version", "-q": "nothing", "--quiet": "nothing", "--monitor": "monitor", "--no-convert": "nothing",
}

// bus reads the arguments of such a client; done is true if there is nothing more to do.
func (c *Call) bus() (o options, done bool, code int) {
	o, err := parse(c.Args, busOptions, false)
	switch {
	case err != nil:
		return o, true, c.complain("%s: %v", c.Name, err)
	case o.has("version"):
		c.print("systemd 252 (metalab)\n")
		return o, true, 0
	case o.has("help"):
		c.print("%s [OPTIONS...] COMMAND ...: see %s(1).\n", c.Name, c.Name)
		return o, true, 0
	case o.has("elsewhere"), o.has("monitor"):
		return o, true, c.complain("%s: --host, --machine and --monitor are not done here: there is no bus", c.Name)
	}
	return o, false, 0
}

// properties prints properties as "show" does: all, or those that are asked for.
func (c *Call) properties(o options, all [][2]string) {
	var asked []string
	for _, p := range append(o.set["property"], o.set["only"]...) {
		asked = append(asked, strings.Split(p, ",")...)
	}
	for _, kv := range all {
		switch {
		case len(asked) > 0 && !slices.Contains(asked, kv[0]):
		case o.has("value"), o.has("only"):
			c.print("%s\n", kv[1])
		default:
			c.print("%s=%s\n", kv[0], kv[1])
		}
	}
}

// denied refuses a change to an ordinary user.
func (c *Call) denied(what string) int {
	return c.complain("%s: Interactive authentication required.", what)
}

// zoneOf returns the name and the place of the server's time zone. What it does not have is UTC's.
func (c *Call) zoneOf() (string, *time.Location) {
	name := "Etc/UTC"
	if l, ok := c.Host.(interface {
		Readlink(name string) (string, error)
	}); ok {
		if to, err := l.Readlink("/etc/localtime"); err == nil {
			if _, z, ok := strings.Cut(to, "zoneinfo/"); ok {
				name = z
			}
		}
	}
	if b, err := c.ReadFile(path.Join(zones, path.Join("/", name))); err == nil {
		if l, err := time.LoadLocationFromTZData(name, b); err == nil {
			return name, l
		}
	}
	return name, time.UTC
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// ntpUnits are the services that keep a clock in step.
var ntpUnits = []string{"chrony.service", "chronyd.service", "systemd-timesyncd.service", "ntp.service", "ntpsec.service"}

// timedatectl shows and sets the time zone (timedatectl(1)). The time is the lab's.
func timedatectl(c *Call) int {
	o, done, code := c.bus()
	if done {
		return code
	}
	verb := "status"
	if len(o.words) > 0 {
		verb = o.words[0]
	}
	zone, place := c.zoneOf()
	now := c.Now().In(place)
	local := slices.Contains(strings.Fields(c.text("/etc/adjtime")), "LOCAL")
	ntp := slices.ContainsFunc(ntpUnits, c.Active)
	switch {
	case verb == "status" && len(o.words) < 2:
		c.print("               Local time: %s\n           Universal time: %s\n                 RTC time: %s\n                Time zone: %s (%s)\nSystem clock synchronized: %s\n              NTP service: %s\n          RTC in local TZ: %s\n",
			now.Format("Mon 2006-01-02 15:04:05 MST"), now.UTC().Format("Mon 2006-01-02 15:04:05 MST"), now.UTC().Format("Mon 2006-01-02 15:04:05"), zone, now.Format("MST, -0700"), yes(ntp), map[bool]string{true: "active", false: "inactive"}[ntp], yes(local))
	case verb == "show":
		c.properties(o, [][2]string{
			{"Timezone", zone}, {"LocalRTC", yes(local)}, {"CanNTP", yes(ntp)}, {"NTP", yes(ntp)}, {"NTPSynchronized", yes(ntp)}, {"TimeUSec", now.Format("Mon 2006-01-02 15:04:05 MST")}, {"RTCTimeUSec", now.Format("Mon 2006-01-02 15:04:05 MST")},
		})
	case verb == "list-timezones":
		for line := range strings.Lines(c.text(zones + "/tzdata.zi")) {
			if w := strings.Fields(line); len(w) > 2 && w[0] == "L" || len(w) > 1 && w[0] == "Z" {
				name := w[1]
				if w[0] == "L" {
					name = w[2]
				}
				if strings.Contains(name, "/") || name == "UTC" {
					c.print("%s\n", name)
				}
			}
		}
	case verb == "set-timezone" && len(o.words) == 2:
		to := o.words[1]
		if st, err := c.Stat(path.Join(zones, path.Join("/", to))); err != nil || !st.Mode.IsRegular() || path.Clean(to) != to || strings.HasPrefix(to, "..") {
			return c.complain("Failed to set time zone: Invalid or not installed time zone '%s'", to)
		}
		if !c.mayChange() {
			return c.denied("Failed to set time zone")
		}
		put := []sys.File{{Name: "/etc/localtime", Mode: fs.ModeSymlink | 0o777, Link: "../usr/share/zoneinfo/" + to}}
		if c.exists("/etc/timezone") {
			put = append(put, sys.File{Name: "/etc/timezone", Mode: 0o644, Content: []byte(to + "\n")})
		}
		if err := c.Put(put...); err != nil {
			return c.complain("Failed to set time zone: %v", err)
		}
	case verb == "set-local-rtc" && len(o.words) == 2:
		third, ok := map[string]string{"1": "LOCAL", "yes": "LOCAL", "true": "LOCAL", "on": "LOCAL", "0": "UTC", "no": "UTC", "false": "UTC", "off": "UTC"}[o.words[1]]
		switch {
		case !ok:
			return c.complain("Failed to parse local RTC setting: %s", o.words[1])
		case !c.mayChange():
			return c.denied("Failed to set local RTC")
		}
		if err := c.put("/etc/adjtime", 0o644, "0.0 0 0.0\n0\n"+third+"\n"); err != nil {
			return c.complain("Failed to set local RTC: %v", err)
		}
	case verb == "set-ntp":
		return c.complain("Failed to set ntp: NTP not supported: start and stop the unit of an NTP service")
	case verb == "set-time":
		return c.complain("Failed to set time: a server's clock is the lab's")
	default:
		return c.complain("Unknown command verb %s: status, show, list-timezones, set-timezone ZONE and set-local-rtc BOOL are done here.", verb)
	}
	return 0
}

// localectl shows and sets the locale (localectl(1)).
func localectl(c *Call) int {
	o, done, code := c.bus()
	if done {
		return code
	}
	file := "/etc/locale.conf"
	if !c.exists(file) && c.exists("/etc/default/locale") {
		file = "/etc/default/locale"
	}
	verb := "status"
	if len(o.words) > 0 {
		verb = o.words[0]
	}
	switch verb {
	case "status":
		locale := strings.Fields(c.text(file))
		if len(locale) == 0 {
			locale = []string{"n/a"}
		}
		c.print("System Locale: %s\n", strings.Join(locale, "\n               "))
		keyboard := map[string]string{}
		_ = assign(c.text("/etc/default/keyboard"), keyboard) // else it is not set
		layout := keyboard["XKBLAYOUT"]
		if layout == "" {
			layout = "n/a"
		}
		c.print("    VC Keymap: n/a\n   X11 Layout: %s\n", layout)
	case "set-locale":
		text := ""
		for _, w := range o.words[1:] {
			name, value, ok := strings.Cut(w, "=")
			if !ok {
				name, value = "LANG", w
			}
			if value == "" || name != "LANG" && name != "LANGUAGE" && !strings.HasPrefix(name, "LC_") || strings.ContainsAny(value, " \"'\\$\n") {
				return c.complain("Failed to issue method call: Invalid Locale data: %s", w)
			}
			text += name + "=" + value + "\n"
		}
		switch {
		case text == "":
			return c.complain("Too few arguments.")
		case !c.mayChange():
			return c.denied("Failed to issue method call")
		}
		if err := c.put(file, 0o644, text); err != nil {
			return c.complain("Failed to issue method call: %v", err)
		}
	case "list-locales":
		c.print("C.UTF-8\n")
		for _, w := range lines(c.text("/etc/locale.gen")) {
			c.print("%s\n", w[0])
		}
	default:
		return c.complain("Unknown command verb %s: status, set-locale and list-locales are done here.", verb)
	}
	return 0
}

// lingerDir has a file for each user whose services outlive the login (loginctl(1)).
const lingerDir = "/var/lib/systemd/linger"

// loginctl answers that nobody is logged in, and keeps who lingers (loginctl(1)).
func loginctl(c *Call) int {
	o, done, code := c.bus()
	if done {
		return code
	}
	verb := "list-sessions"
	if len(o.words) > 0 {
		verb = o.words[0]
	}
	users := o.words[min(1, len(o.words)):]
	for _, u := range users {
		if strings.HasSuffix(verb, "-linger") || strings.HasSuffix(verb, "-user") || verb == "user-status" {
			if _, ok := c.userOf(u); !ok {
				return c.complain("Failed to look up user %s: No such process", u)
			}
		}
	}
	switch verb {
	case "list-sessions":
		c.print("No sessions.\n")
	case "list-users":
		c.print("No users.\n")
	case "list-seats":
		c.print("SEAT\nseat0\n\n1 seats listed.\n")
	case "enable-linger", "disable-linger":
		if !c.mayChange() {
			return c.denied("Could not change the linger state")
		}
		if len(users) == 0 {
			users = []string{"root"}
		}
		for _, u := range users {
			name, _ := c.userOf(u)
			var err error
			if verb == "enable-linger" {
				err = c.put(path.Join(lingerDir, name), 0o644, "")
			} else {
				err = c.Remove(path.Join(lingerDir, name))
			}
			if err != nil {
				return c.complain("Could not change the linger state: %v", err)
			}
		}
	case "show-user":
		if len(users) == 0 {
			users = []string{"root"}
		}
		for _, u := range users {
			name, _ := c.userOf(u)
			lingers := c.exists(path.Join(lingerDir, name))
			if !lingers {
				return c.complain("Failed to get user: User ID %s is not logged in or lingering", u)
			}
			c.properties(o, [][2]string{{"Name", name}, {"State", "lingering"}, {"Linger", "yes"}})
		}
	case "lock-session", "unlock-session", "lock-sessions", "unlock-sessions", "activate", "terminate-session", "kill-session", "session-status", "show-session", "terminate-user", "kill-user", "user-status":
		return c.complain("Failed: No session is open: nobody is logged in here")
	default:
		return c.complain("Unknown command verb %s: list-sessions, list-users, list-seats, enable-linger, disable-linger and show-user are done here.", verb)
	}
	return 0
}

// userOf finds a user's name by name or number.
func (c *Call) userOf(user string) (string, bool) {
	for line := range strings.Lines(c.text("/etc/passwd")) {
		if f := strings.Split(line, ":"); len(f) == 7 && (f[0] == user || f[2] == user) {
			return f[0], true
		}
	}
	return "", false
}
