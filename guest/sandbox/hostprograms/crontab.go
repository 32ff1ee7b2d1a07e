package hostprograms

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/agent/sys"
)

// Directories of users' crontabs: Debian's, and that of others.
const (
	debianSpool = "/var/spool/cron/crontabs"
	otherSpool  = "/var/spool/cron"
)

// Spool returns the directory of the users' crontabs.
func Spool(h Host) string {
	if _, err := h.Stat(debianSpool); err != nil {
		if _, err := h.Stat(otherSpool); err == nil {
			return otherSpool
		}
	}
	return debianSpool
}

var crontabOptions = map[string]string{"-u": "user=", "-l": "list", "-r": "remove", "-e": "edit", "-i": "ask", "-T": "test=", "-V": "version"}

// crontabInput returns the file that crontab reads.
func crontabInput(args []string) string {
	o, err := parse(args, crontabOptions, false)
	switch {
	case err != nil || o.has("list") || o.has("remove") || o.has("edit") || o.has("version"):
		return ""
	case o.has("test"):
		return o.value("test")
	case len(o.words) == 0:
		return "-"
	}
	return o.words[0]
}

// Edits reports whether arguments of crontab ask for an editor, and returns those that list and install
// the crontab instead.
func Edits(name string, args []string) (list, install []string, ok bool) {
	o, err := parse(args, crontabOptions, false)
	if name != "crontab" || err != nil || !o.has("edit") || len(o.words) > 0 {
		return nil, nil, false
	}
	if o.has("user") {
		list = []string{"-u", o.value("user")}
	}
	return append(list[:len(list):len(list)], "-l"), append(list[:len(list):len(list)], "-"), true
}

// crontab lists, installs and removes crontabs (crontab(1)).
func crontab(c *Call) int {
	usage := func(problem string) int {
		return c.complain("crontab: usage error: %s\nusage:\tcrontab [-u user] file\n\tcrontab [ -u user ] [ -i ] { -e | -l | -r }", problem)
	}
	o, err := parse(c.Args, crontabOptions, false)
	switch {
	case err != nil:
		return usage(err.Error())
	case len(o.words) > 1 || len(o.words) == 1 && (o.has("list") || o.has("remove") || o.has("edit")):
		return usage("file name or one of -e, -l and -r must be specified alone")
	case o.has("version"):
		c.print("crontab (metalab)\n")
		return 0
	case o.has("edit"):
		return c.complain("crontab: -e needs an editor: set VISUAL or EDITOR, or use crontab -l and crontab FILE")
	case o.has("ask"):
		return c.complain("crontab: -i is not done here: there is nobody to ask")
	}
	name := "crontab"
	if len(o.words) == 1 {
		name = o.words[0]
	}
	if o.has("test") {
		if _, err := ParseCrontab(string(c.Input), false); err != nil {
			return c.complain("%q:%v\nInvalid crontab file, syntax errors found.", o.value("test"), err)
		}
		c.complain("The syntax of the crontab file was successfully checked.")
		return 0
	}
	user := strconv.Itoa(c.UID)
	if o.has("user") {
		if user = o.value("user"); !c.mayChange() {
			if own, ok := c.userOf(strconv.Itoa(c.UID)); !ok || own != user {
				return c.complain("must be privileged to use -u")
			}
		}
	}
	owner, ok := c.userOf(user)
	switch {
	case !ok && o.has("user"):
		return c.complain("crontab:  user `%s' unknown", user)
	case !ok:
		return c.complain("crontab: your UID isn't in the passwd file, bailing out.")
	case !c.mayChange() && !c.cronAllows(owner):
		return c.complain("You (%s) are not allowed to use this program (crontab)\nSee crontab(1) for more information", owner)
	}
	file := path.Join(Spool(c), owner)
	switch {
	case o.has("list"), o.has("remove"):
		b, err := c.ReadFile(file)
		switch {
		case err != nil:
			return c.complain("no crontab for %s", owner)
		case o.has("list"):
			c.print("%s", b)
			return 0
		}
		err = c.Remove(file)
		if err != nil {
			return c.complain("crontab: %v", err)
		}
		return 0
	}
	text := string(c.Input)
	if text != "" && !strings.HasSuffix(text, "\n") {
		return c.complain("new crontab file is missing newline before EOF, can't install.")
	}
	if _, err := ParseCrontab(text, false); err != nil {
		return c.complain("%q:%v\nerrors in crontab file, can't install.", name, err)
	}
	if err := c.Put(sys.File{Name: file, Mode: 0o600, Content: []byte(text), UID: c.number("/etc/passwd", owner), GID: c.number("/etc/group", "crontab")}); err != nil {
		return c.complain("crontab: %v", err)
	}
	return 0
}

// number returns the number of a user or group in a file; 0: it has none.
func (c *Call) number(file, name string) int {
	for line := range strings.Lines(c.text(file)) {
		if f := strings.Split(line, ":"); len(f) > 2 && f[0] == name {
			n, err := strconv.Atoi(strings.TrimSpace(f[2]))
			if err == nil && n > 0 && n < 1<<16 {
				return n
			}
		}
	}
	return 0
}

// cronAllows reports whether a user may have a crontab: cron.allow names all who may, else cron.deny
// those who may not.
func (c *Call) cronAllows(user string) bool {
	if c.exists("/etc/cron.allow") {
		return slices.Contains(strings.Fields(c.text("/etc/cron.allow")), user)
	}
	return !slices.Contains(strings.Fields(c.text("/etc/cron.deny")), user)
}
