package cloudinit

import (
	"io/fs"
	"time"
)

// timezone sets the time zone, if this machine has it: a server has this machine's /usr.
func (c *config) timezone(root Root, r *Result) {
	if _, err := time.LoadLocation(c.Timezone); err != nil {
		r.ignore("timezone is not set: %v", err)
		return
	}
	root.write("etc/timezone", 0o644, c.Timezone+"\n")
	root["etc/localtime"] = File{Content: []byte("/usr/share/zoneinfo/" + c.Timezone), Mode: fs.ModeSymlink | fs.ModePerm, Owner: "root", Group: "root"}
}
