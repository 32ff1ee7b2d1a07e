package cloudinit

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// The default user is that of the distribution, whose settings of cloud-init name it.
func TestDefaultUserIsTheDistributions(t *testing.T) {
	const ofUbuntu = "system_info:\n  distro: ubuntu\n  default_user:\n    name: ubuntu\n    lock_passwd: True\n    gecos: Ubuntu\n    groups: [adm, lxd]\n    sudo: [\"ALL=(ALL) NOPASSWD:ALL\"]\n    shell: /bin/bash\n"
	const ofDebian = "debian:x:1000:1000:Debian:/home/debian:/bin/bash\n"
	for _, tt := range []struct{ name, config, userData, want string }{
		{"of Ubuntu", ofUbuntu, "ssh_authorized_keys: [K]", "ubuntu:x:1000:1001:Ubuntu:/home/ubuntu:/bin/bash\n"},
		{"by its name", ofUbuntu, "users: [{name: ubuntu, gecos: mine}, default]", "ubuntu:x:1000:1001:Ubuntu:/home/ubuntu:/bin/bash\n"},
		{"no settings", "", "{}", ofDebian},
		{"settings without a user", "system_info: {distro: ubuntu}\n", "{}", ofDebian},
		{"a user without a name", "system_info: {default_user: {gecos: X}}\n", "{}", ofDebian},
		{"a user that is no mapping", "system_info: {default_user: [x]}\n", "{}", ofDebian},
		{"a user with a wrong ID", "system_info: {default_user: {name: x, uid: y}}\n", "{}", ofDebian},
		{"settings that are no YAML", "system_info: [\n", "{}", ofDebian},
	} {
		files, r := applyTo(Root{configFile: {Content: []byte(tt.config)}}, withConfig(tt.userData))
		if got := strings.TrimPrefix(files["etc/passwd"], "0644 root:root "); got != tt.want || len(r.Ignored) > 0 {
			t.Errorf("%s: passwd is %q, want %q; ignored %q", tt.name, got, tt.want, r.Ignored)
		}
	}
	files, _ := applyTo(Root{configFile: {Content: []byte(ofUbuntu)}}, withConfig("ssh_authorized_keys: [K]"))
	for name, want := range map[string]string{
		"home/ubuntu/.ssh/authorized_keys":  "0600 ubuntu:ubuntu K\n",
		"etc/sudoers.d/90-cloud-init-users": "0440 root:root ubuntu ALL=(ALL) NOPASSWD:ALL\n",
	} {
		if files[name] != want {
			t.Errorf("%s: %q, want %q", name, files[name], want)
		}
	}
	if !strings.Contains(files["root/.ssh/authorized_keys"], "log in as ubuntu") || !strings.Contains(files["etc/group"], "\nlxd:x:1000:ubuntu\nubuntu:x:1001:\n") {
		t.Errorf("keys of root %q, groups %q", files["root/.ssh/authorized_keys"], files["etc/group"])
	}
}

// A new user has a home of its own with what /etc/skel has, a group, and subordinate IDs; one of the
// system, and one that is to have none, have not.
func TestHomesAndGroupsOfUsers(t *testing.T) {
	file := func(text string) File { return File{Content: []byte(text), Mode: 0o644, Owner: "root", Group: "root"} }
	root := Root{
		"etc/skel/.profile": file("p\n"), "etc/skel/.config/x": file("x\n"), "etc/login.defs": file("UMASK 022\nHOME_MODE 0750\n"),
		"etc/gshadow": file("root:*::\nsudo:*::\n"), "etc/subuid": file("old:100000:65536\n"), "etc/subgid": file(""),
		"etc/passwd": file("root:x:0:0::/root:/bin/bash\nsystemd-network:x:998:998:::\nnobody:x:65534:65534:::\n"),
		"srv/there":  {Mode: fs.ModeDir | 0o700, Owner: "root", Group: "root"},
	}
	files, r := applyTo(root, withConfig("groups: [ops]", "users:",
		"- {name: ann, groups: [ops, sudo], ssh_authorized_keys: [K]}", "- {name: bob, no_create_home: true}", "- {name: svc, system: true}", "- {name: svc2, system: true}",
		"- {name: cid, homedir: /srv/there, primary_group: users, groups: users}"))
	for name, want := range map[string]string{
		"home/ann":                      fmt.Sprintf("%04o ann:ann ", fs.ModeDir|0o750),
		"home/ann/.profile":             "0644 ann:ann p\n",
		"home/ann/.config/x":            "0644 ann:ann x\n",
		"home/ann/.ssh":                 fmt.Sprintf("%04o ann:ann ", fs.ModeDir|0o700),
		"home/ann/.ssh/authorized_keys": "0600 ann:ann K\n",
		"home/bob":                      "",
		"home/svc":                      "",
		"srv/there":                     fmt.Sprintf("%04o root:root ", fs.ModeDir|0o700),
		"srv/there/.profile":            "",
		"etc/subuid":                    "0644 root:root old:100000:65536\nann:165536:65536\nbob:231072:65536\ncid:296608:65536\n",
		"etc/subgid":                    "0644 root:root ann:100000:65536\nbob:165536:65536\ncid:231072:65536\n",
		"etc/gshadow":                   "0644 root:root root:*::\nsudo:*::ann\nops:!::ann\nann:!::\nbob:!::\nsvc:!::\nsvc2:!::\nusers:!::cid\n",
	} {
		if files[name] != want {
			t.Errorf("%s: %q, want %q", name, files[name], want)
		}
	}
	_, users, _ := strings.Cut(files["etc/passwd"], "nobody:x:65534:65534:::\n")
	if want := "ann:x:1000:1001::/home/ann:/bin/sh\nbob:x:1001:1002::/home/bob:/bin/sh\nsvc:x:999:999::/home/svc:/bin/sh\nsvc2:x:997:997::/home/svc2:/bin/sh\ncid:x:1002:1003::/srv/there:/bin/sh\n"; users != want || len(r.Ignored) > 0 {
		t.Errorf("users %q, want %q; ignored %q", users, want, r.Ignored)
	}
}

// An existing user stays: cloud-init locks its password or replaces it, and adds its keys and its
// rules of sudo.
func TestUsersThatAreThereStay(t *testing.T) {
	file := func(text string) File { return File{Content: []byte(text), Mode: 0o644, Owner: "root", Group: "root"} }
	const passwd = "root:x:0:0::/root:/bin/bash\ngames:x:5:60:games:/usr/games:/usr/sbin/nologin\nann:x:1000:1000::/home/ann:/bin/sh\nbob:x:1001:1001::/home/bob:/bin/sh\n"
	root := Root{
		"etc/passwd": file(passwd), "etc/shadow": file("root:*:1::\ngames:*:1::\nann:old:1::\nbob:old:1::\n"),
		"etc/sudoers.d/90-cloud-init-users": file("# mine\nbob ALL=(ALL) ALL\n"),
	}
	files, r := applyTo(root, withConfig("users:", "- {name: games, ssh_authorized_keys: [K]}", "- {name: ann, lock_passwd: false, hashed_passwd: new, groups: [sudo], uid: 7}", "- {name: bob, sudo: ['ALL=(ALL) ALL', 'ALL=(ALL) NOPASSWD:/bin/ls']}"))
	for name, want := range map[string]string{
		"etc/passwd": passwd, "etc/shadow": "root:*:1::\ngames:!*:1::\nann:new:1::\nbob:!old:1::\n",
		"etc/sudoers.d/90-cloud-init-users": "# mine\nbob ALL=(ALL) ALL\nbob ALL=(ALL) NOPASSWD:/bin/ls\n",
	} {
		if want = "0644 root:root " + want; files[name] != want {
			t.Errorf("%s: %q, want %q", name, files[name], want)
		}
	}
	if got := files["usr/games/.ssh/authorized_keys"]; got != "0600 games:games K\n" || files["home/games/.ssh"] != "" || files["home/ann"] != "" || len(r.Ignored) > 0 {
		t.Errorf("keys %q, homes %q and %q, ignored %q", got, files["home/games/.ssh"], files["home/ann"], r.Ignored)
	}
}

// A password that cannot be set is named, and those beside it are set.
func TestPasswordsThatAreNotSetAreReported(t *testing.T) {
	root := Root{
		"etc/passwd": {Content: []byte("ann:x:1:1:::\nbob:x:2:2:::\n")}, "etc/shadow": {Content: []byte("ann:!:1::::::\nbob:!:1::::::\n")},
	}
	files, r := applyTo(root, withConfig("users: []", "ssh_pwauth: maybe", "chpasswd:", "  expire: false", "  list: ['ann:secret', nothing, 'bob:$6$s$h', 'nobody:$6$s$h']",
		"  users: [{name: ann, password: x}, {name: ann, password: x, type: RANDOM}, {password: x, type: hash}, {name: ann, type: hash}, 7]"))
	if got, want := files["etc/shadow"], "0000 : ann:!:1::::::\nbob:$6$s$h:19000::::::\n"; got != want {
		t.Errorf("shadow is %q, want %q", got, want)
	}
	var found []string
	for _, want := range []string{
		"the password of ann is not set: it is a text", `"nothing" has no colon`, "that of ann is a text: give type: hash", "it has no name", "ann has no password", "it is no mapping",
		"the password of nobody is not set: there is no such user", `"maybe" is not one of true, false, unchanged`,
	} {
		if strings.Contains(strings.Join(r.Ignored, "\n"), want) {
			found = append(found, want)
		}
	}
	if len(found) != 8 || len(r.Ignored) != 9 { // two entries are texts
		t.Errorf("ignored %q, of which only %q are expected", r.Ignored, found)
	}
	if _, r := apply(withConfig("chpasswd: [x]", "ssh_pwauth: {}")); len(r.Ignored) != 2 {
		t.Errorf("ignored %q, want both keys", r.Ignored)
	}
}
