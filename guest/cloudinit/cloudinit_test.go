package cloudinit

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// apply configures an empty system with user data, and returns it by path: mode, owner and
// content.
func apply(i Instance) (map[string]string, Result) {
	return applyTo(Root{}, i)
}

// applyTo is apply to a system that has files.
func applyTo(root Root, i Instance) (map[string]string, Result) {
	root["etc/group"] = File{
		Content: []byte("root:x:0:\nadm:x:4:\ndialout:x:20:\ncdrom:x:24:\nfloppy:x:25:\nsudo:x:27:\naudio:x:29:\ndip:x:30:\nvideo:x:44:\nplugdev:x:46:\ngames:x:60:\nnetdev:x:106:\nnogroup:x:65534:\n"),
		Mode:    0o644,
	}
	r := Configure(i, root)
	out := map[string]string{}
	for name, f := range root {
		out[name] = fmt.Sprintf("%04o %s:%s %s", f.Mode, f.Owner, f.Group, f.Content)
	}
	return out, r
}

func withConfig(lines ...string) Instance {
	return Instance{Source: ConfigDrive, ID: "i-1", Hostname: "node-7", UserData: []byte("#cloud-config\n" + strings.Join(lines, "\n") + "\n")}
}

func zipped(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.Bytes()
}

func TestHostname(t *testing.T) {
	for _, tt := range []struct {
		lines      []string
		meta, want string
	}{
		{nil, "node-7", "node-7"},
		{nil, "node-7.example.com", "node-7"},
		{nil, "", "localhost"},
		{[]string{"hostname: web"}, "node-7", "web"},
		{[]string{"fqdn: web.example.com"}, "node-7", "web"},
		{[]string{"hostname: web", "fqdn: www.example.com"}, "node-7", "web"},
		{[]string{"fqdn: web.example.com", "prefer_fqdn_over_hostname: true"}, "node-7", "web.example.com"},
	} {
		i := withConfig(tt.lines...)
		i.Hostname = tt.meta
		files, r := apply(i)
		if got := files["etc/hostname"]; got != "0644 root:root "+tt.want+"\n" || r.Hostname != tt.want {
			t.Errorf("%v of %q: %q, %q, want %s", tt.lines, tt.meta, got, r.Hostname, tt.want)
		}
	}
	files, _ := apply(withConfig("preserve_hostname: true", "hostname: web"))
	if got, ok := files["etc/hostname"]; ok {
		t.Errorf("preserve_hostname: %q was written", got)
	}
	files, _ = apply(withConfig("fqdn: web.example.com", "manage_etc_hosts: true"))
	if got := files["etc/hosts"]; !strings.Contains(got, "127.0.1.1 web.example.com web\n") {
		t.Errorf("manage_etc_hosts: %q", got)
	}
}

func TestWriteFiles(t *testing.T) {
	for _, tt := range []struct{ name, entry, want string }{
		{"text", "{path: /a, content: x}", "0644 root:root x"},
		{"octal text", "{path: /a, content: x, permissions: '0600'}", "0600 root:root x"},
		{"octal number", "{path: /a, content: x, permissions: 0640}", "0640 root:root x"},
		{"owner", "{path: /a, content: x, owner: 'web:adm'}", "0644 web:adm x"},
		{"owner alone", "{path: /a, content: x, owner: web}", "0644 web:root x"},
		{"number", "{path: /a, content: 0o17, permissions: '0o600'}", "0600 root:root 15"},
		{"boolean", "{path: /a, content: yes}", "0644 root:root True"},
		{"quoted boolean", "{path: /a, content: 'yes'}", "0644 root:root yes"},
		{"binary", "{path: /a, content: !!binary aGkA}", "0644 root:root hi\x00"},
		{"null", "{path: /a, content: null, append: 'no', encoding: null}", "0644 root:root "},
		{"base64", "{path: /a, encoding: b64, content: " + base64.StdEncoding.EncodeToString([]byte("binary\x00")) + "}", "0644 root:root binary\x00"},
		{"gzip in base64", "{path: /a, encoding: gz+b64, content: " + base64.StdEncoding.EncodeToString(zipped("small")) + "}", "0644 root:root small"},
		{"unclean path", "{path: /../x/../a, content: x}", "0644 root:root x"},
	} {
		files, r := apply(withConfig("write_files:", "- "+tt.entry))
		if got := files["a"]; got != tt.want || len(r.Ignored) > 0 {
			t.Errorf("%s: %q, ignored %q, want %q", tt.name, got, r.Ignored, tt.want)
		}
	}
	files, _ := apply(withConfig("write_files:", "- {path: /a, content: later, append: true, defer: true}", "- {path: /a, content: 'first '}"))
	if got := files["a"]; got != "0644 root:root first later" {
		t.Errorf("deferred and appended: %q", got)
	}
}

// Each piece that cannot be applied is listed with its reason; the rest is applied.
func TestWhatIsNotApplied(t *testing.T) {
	for _, tt := range []struct {
		lines []string
		want  string
	}{
		{[]string{"packages: [nginx]"}, "packages is not applied: there is no such module here"},
		{[]string{"write_files: [{path: a, content: x}]"}, `write_files a is not written: path "a" is not absolute`},
		{[]string{"write_files: [{path: /a, encoding: rot13}]"}, `write_files /a is written as text: encoding "rot13": use text/plain, b64, gzip or gz+b64`},
		{[]string{"write_files: [{path: /a, encoding: b64, content: '*'}]"}, "write_files /a is not written: encoding b64: illegal base64 data"},
		{[]string{"write_files: [{path: /a, permissions: rw}]"}, `write_files /a has the mode 0644: permissions "rw": give an octal number`},
		{[]string{"write_files: [{content: x}]"}, "write_files[0] is not written: line 2: it has no path"},
		{[]string{"write_files: [x]"}, "write_files[0] is not written: line 2: it is no mapping"},
		{[]string{"write_files: [{path: /a, content: [x]}]"}, "write_files[0] is not written: content: line 2: it is no text"},
		{[]string{"write_files: [{path: /a, mode: x}]"}, "write_files /a: there is no key mode"},
		{[]string{"runcmd: [true]"}, "runcmd: line 2 is not executed: true is no text: quote it"},
		{[]string{"users: [true]"}, "users[0] is not created: line 2: it is no mapping"},
		{[]string{"users: {a: null}"}, "users.a is not created: line 2: it is no mapping"},
		{[]string{"users: [{name: a, uid: many}]"}, `the user "a" is not created: uid "many": give a number`},
		{[]string{"users: [{name: a, gecos: 7}]"}, "gecos of a is not set: line 2: it is no text"},
		{[]string{"users: [{name: a, snapuser: b}]"}, "snapuser of a is not applied: there is no such setting here"},
		{[]string{"groups: [7]"}, "groups: line 2 is not created: it is no name"},
		{[]string{"write_files: [{path: /a, source: {uri: 'http://x/'}}]"}, "its source http://x/ is not fetched"},
		{[]string{"runcmd: reboot"}, "runcmd is not applied: line 2: it is no list"},
		{[]string{"users: 7"}, "users is not applied: line 2: it is no list"},
		{[]string{"users: [{name: 'a:b'}]"}, `the user "a:b" is not created`},
		{[]string{"users: [{name: a, plain_text_passwd: x}]"}, "plain_text_passwd of a is not set"},
		{[]string{"a: [b"}, "the user data is not applied: yaml:"},
	} {
		files, r := apply(withConfig(tt.lines...))
		if !slices.ContainsFunc(r.Ignored, func(s string) bool { return strings.Contains(s, tt.want) }) {
			t.Errorf("%q: ignored %q, want %q", tt.lines, r.Ignored, tt.want)
		}
		if files["etc/hostname"] == "" {
			t.Errorf("%q: no host name was written", tt.lines)
		}
	}
	for data, want := range map[string]string{
		"#include\nhttp://x/\n":                              `"http://x/" of #include is not fetched`,
		"## template: jinja\n#cloud-boothook\n":              "a template makes a cloud-config or a script",
		"## template: jinja\n#cloud-config\na:\n {% do x %}": "its template: line 4: the tag do is not supported",
		`{"ignition": {"version": "3.4.0"}}`:                 "an Ignition configuration",
		"{\n  \"ignition\": {\"version\": \"3.4.0\"}}":       "an Ignition configuration",
		"hostname: web":  "it begins with no known header",
		"\x1f\x8bbroken": "the user data are not applied: gzip:",
		"Content-Type: multipart/mixed\nMIME-Version: 1.0\n\n": "names no boundary",
	} {
		_, r := apply(Instance{UserData: []byte(data)})
		if !strings.Contains(strings.Join(r.Ignored, "\n"), want) {
			t.Errorf("%q: ignored %q, want %q", data, r.Ignored, want)
		}
	}
}

func TestUsersAndKeys(t *testing.T) {
	i := withConfig("ssh_authorized_keys: [ssh-ed25519 B]")
	i.PublicKeys = []string{"ssh-ed25519 A"}
	files, _ := apply(i)
	for name, want := range map[string]string{
		"etc/passwd":                           "0644 root:root debian:x:1000:1000:Debian:/home/debian:/bin/bash\n",
		"home/debian/.ssh/authorized_keys":     "0600 debian:debian ssh-ed25519 A\nssh-ed25519 B\n",
		"etc/sudoers.d/90-cloud-init-users":    "0440 root:root debian ALL=(ALL) NOPASSWD:ALL\n",
		"var/lib/cloud/data/instance-id":       "0644 root:root i-1\n",
		"var/lib/cloud/instance/user-data.txt": "0600 root:root " + string(i.UserData),
	} {
		if files[name] != want {
			t.Errorf("%s: %q, want %q", name, files[name], want)
		}
	}
	for _, want := range []string{"sudo:x:27:debian\n", "adm:x:4:debian\n", "netdev:x:106:debian\n", "debian:x:1000:"} {
		if !strings.Contains(files["etc/group"], want) {
			t.Errorf("etc/group: %q, want %q", files["etc/group"], want)
		}
	}
	if got := files["root/.ssh/authorized_keys"]; !strings.Contains(got, `command="`) || !strings.Contains(got, "ssh-ed25519 A") {
		t.Errorf("with disable_root a login as root is not refused: %q", got)
	}

	files, r := apply(withConfig("disable_root: false", "ssh_authorized_keys: [K]", "groups: [ops, empty]",
		"users:", "- default", "- {name: ann, groups: [sudo], uid: 1500, shell: /bin/zsh, sudo: false, lock_passwd: false, hashed_passwd: $6$x, ssh_authorized_keys: [A1, A2]}",
		"- {name: daemon, system: true, homedir: /srv}", "- bob"))
	for name, wants := range map[string][]string{
		"etc/passwd":                    {"ann:x:1500:1500::/home/ann:/bin/zsh\n", "daemon:x:999:999::/srv:/bin/sh\n", "bob:x:1501:1501::/home/bob:/bin/sh\n", "debian:x:1502:"},
		"etc/shadow":                    {"ann:$6$x:", "bob:!:"},
		"etc/group":                     {"ops:x:", ":debian\n", "empty:x:"},
		"home/ann/.ssh/authorized_keys": {"0600 ann:ann A1\nA2\n"},
		"root/.ssh/authorized_keys":     {"0600 root:root K\n"},
	} {
		for _, want := range wants {
			if !strings.Contains(files[name], want) {
				t.Errorf("%s: %q, want %q", name, files[name], want)
			}
		}
	}
	if strings.Contains(files["etc/sudoers.d/90-cloud-init-users"], "ann") || len(r.Ignored) > 0 {
		t.Errorf("sudoers %q, ignored %q", files["etc/sudoers.d/90-cloud-init-users"], r.Ignored)
	}
}

// Users, groups and scalars of any form are what Debian's cloud-init takes them for (22.4.2,
// ug_util.normalize_users_groups and Distro.create_user): each row was compared with it. What is wrong is lost alone.
func TestUsersAsCloudInitTakesThem(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lines []string
		want  []string // of /etc/passwd
	}{
		{"the default user is created last", []string{"users: [default, bob]"}, []string{"bob:1000", "debian:1001"}},
		{"IDs as texts and numbers", []string{"users: [default, {name: svc, uid: '2123', groups: 'users, adm'}, {name: other, uid: 2200}]"}, []string{"svc:2123", "other:2200", "debian:2201"}},
		{"a text is sorted", []string{"users: 'b,a'"}, []string{"a:1000", "b:1001"}},
		{"a mapping", []string{"users: {bob: true, no: false, ann: {uid: 1005}, default: yes}"}, []string{"bob:1000", "ann:1005", "debian:1006"}},
		{"names within lists", []string{"users: [bob, [p, q], {name: bob, uid: 1500}]"}, []string{"bob:1500", "p:1501", "q:1502"}},
		{"a mapping without a name is the default user", []string{"users: [{shell: /bin/fish, ssh-authorized-keys: [K]}]"}, []string{"debian:1000"}},
		{"none", []string{"users: []"}, nil},
		{"one that is wrong", []string{"users: [{name: a, uid: x}, {name: b}]"}, []string{"b:1000"}},
	} {
		files, _ := apply(withConfig(tt.lines...))
		var got []string
		for line := range strings.Lines(strings.TrimPrefix(files["etc/passwd"], "0644 root:root ")) {
			if f := strings.Split(line, ":"); len(f) > 2 {
				got = append(got, f[0]+":"+f[2])
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	files, r := apply(withConfig("groups: [ops: [b, a], {ops: c}, x]", "disable_root: 0", "runcmd: [null, [echo, yes, 0o17, ' a ']]", "preserve_hostname: 'no'",
		"users:", "- {shell: /bin/fish, groups: ops, ssh-authorized-keys: {one: K}}", "- {name: a, lock_passwd: 'false', hashed_passwd: h, sudo: null}", "- {name: b, lock_passwd: 0, hashed_passwd: h, system: 'no'}"))
	for name, wants := range map[string][]string{
		"etc/passwd":                            {"debian:x:1001:1003:Debian:/home/debian:/bin/bash\n", "a:x:1000:1002:", "b:x:999:"},
		"etc/shadow":                            {"a:!h:", "b:h:"},
		"etc/group":                             {"ops:x:1000:debian\n", "x:x:1001:"},
		"home/debian/.ssh/authorized_keys":      {"K\n"},
		"var/lib/cloud/instance/scripts/runcmd": {"\necho True 15 ' a '\n"},
		"etc/hostname":                          {"node-7\n"},
		"etc/sudoers.d/90-cloud-init-users":     {"debian ALL=(ALL) NOPASSWD:ALL\n"},
	} {
		for _, want := range wants {
			if !strings.Contains(files[name], want) {
				t.Errorf("%s: %q, want %q", name, files[name], want)
			}
		}
	}
	if len(r.Ignored) != 3 || !strings.Contains(r.Ignored[0], "a is no member of ops: groups are made before users") {
		t.Errorf("ignored %q, want the three members that are not there yet", r.Ignored)
	}
}

// Anchors and aliases are YAML, and so cloud-config's, across its keys and in merges.
func TestAliasesAreExpanded(t *testing.T) {
	i := withConfig("bootcmd:", "- &first echo boot", "runcmd:", "- *first", "- &list [ls, &dir /etc]", "- *list", "- [cat, *dir]",
		"write_files:", "- &file {path: /a, content: text, permissions: 0600}", "- {<<: *file, path: /b}")
	files, r := apply(i)
	if diff := cmp.Diff([]string{"echo boot", "ls /etc", "ls /etc", "cat /etc"}, r.Run); diff != "" || len(r.Ignored) > 0 {
		t.Errorf("runcmd (-want +got):\n%s\nignored %q", diff, r.Ignored)
	}
	if want := "0600 root:root text"; files["a"] != want || files["b"] != want {
		t.Errorf("files %q and %q, want %q", files["a"], files["b"], want)
	}
}

func TestAliasesWithoutAnEndAreRefused(t *testing.T) {
	bomb := []string{"a: &a [x, x, x, x, x, x, x, x, x]"}
	for c := 'b'; c < 'k'; c++ {
		bomb = append(bomb, fmt.Sprintf("%[1]c: &%[1]c [%[2]s]", c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), ", ")))
	}
	for name, lines := range map[string][]string{
		"of itself": {"runcmd: &a [*a]"},
		"bomb":      append(bomb, "runcmd: *j"),
	} {
		_, r := apply(withConfig(lines...))
		if len(r.Run) > 0 || !slices.ContainsFunc(r.Ignored, func(l string) bool { return strings.HasPrefix(l, "runcmd of ") }) {
			t.Errorf("%s: %d commands, ignored %q", name, len(r.Run), r.Ignored)
		}
	}
}

func TestCommandsAreListedInTheirOrder(t *testing.T) {
	i := withConfig("bootcmd: [echo boot]", "runcmd:", "- systemctl enable x", "- [ls, -l, a b, it's]")
	files, r := apply(i)
	want := Result{Hostname: "node-7", Boot: []string{"echo boot"}, Run: []string{"systemctl enable x", `ls -l 'a b' 'it'\''s'`}, Scripts: []string{RunScript}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("commands: %s", diff)
	}
	if got := files["var/lib/cloud/instance/scripts/runcmd"]; got != "0700 root:root #!/bin/sh\nsystemctl enable x\nls -l 'a b' 'it'\\''s'\n" {
		t.Errorf("runcmd: %q", got)
	}
	if got, want := r.Commands(), `echo boot; systemctl enable x; ls -l 'a b' 'it'\''s'`; got != want {
		t.Errorf("Commands() = %s, want %s", got, want)
	}
	if lines, want := r.Lines(ConfigDrive, "/dev/sda2"), []string{"cloud-init: ConfigDrive of /dev/sda2, host name node-7"}; !cmp.Equal(lines, want) {
		t.Errorf("console: %q", lines)
	}
}

func TestArchiveIsSplitIntoItsParts(t *testing.T) {
	text := strings.ReplaceAll(`Content-Type: multipart/mixed; boundary="=="
MIME-Version: 1.0

--==
Content-Type: text/cloud-config

#cloud-config
hostname: first
timezone: UTC
--==
Content-Type: text/x-shellscript
Content-Transfer-Encoding: base64
Content-Disposition: attachment; filename="setup.sh"

IyEvYmluL3NoCmVjaG8gaGkK
--==
Content-Type: text/cloud-config

#cloud-config
hostname: second
--==
Content-Type: text/x-unheard-of

x
--==--
`, "\n", "\r\n")
	for name, data := range map[string][]byte{"plain": []byte(text), "gzip": zipped(text)} {
		files, r := apply(Instance{UserData: data})
		if r.Hostname != "second" || files["etc/timezone"] != "0644 root:root UTC\n" {
			t.Errorf("%s: host name %q, timezone %q: parts are merged by key, the later one wins", name, r.Hostname, files["etc/timezone"])
		}
		if got := files["var/lib/cloud/instance/scripts/setup.sh"]; got != "0700 root:root #!/bin/sh\necho hi\n" {
			t.Errorf("%s: script %q", name, got)
		}
		if want := []string{"part-004 is not applied: it begins with no known header, such as #cloud-config"}; !cmp.Equal(r.Ignored, want) {
			t.Errorf("%s: ignored %q", name, r.Ignored)
		}
	}
}

func TestContentDecidesOnAPartThatIsCalledAScript(t *testing.T) {
	files, r := apply(Instance{UserData: []byte("Content-Type: multipart/mixed; boundary=b\nMIME-Version: 1.0\n\n" +
		"--b\nContent-Type: text/x-shellscript\n\n#cloud-config\nhostname: web\n" +
		"--b\nContent-Type: text/x-not-multipart\n\n#cloud-config\ntimezone: UTC\n" +
		"--b\nContent-Type: text/x-shellscript\n\n#!/bin/sh\necho\n--b--\n")})
	if r.Hostname != "web" || files["etc/timezone"] != "0644 root:root UTC\n" {
		t.Errorf("host name %q, timezone %q: parts are not read by their content", r.Hostname, files["etc/timezone"])
	}
	if want := []string{"/var/lib/cloud/instance/scripts/part-003"}; !cmp.Equal(r.Scripts, want) || len(r.Ignored) > 0 {
		t.Errorf("scripts %q, want %q; ignored %q", r.Scripts, want, r.Ignored)
	}
}

func TestRead(t *testing.T) {
	volume := func(files map[string]string) fs.FS {
		m := fstest.MapFS{}
		for name, text := range files {
			m[name] = &fstest.MapFile{Data: []byte(text)}
		}
		return m
	}
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  Instance
		err   string
	}{
		{"config drive", map[string]string{
			"openstack/2012-08-10/meta_data.json": `{"uuid": "old"}`,
			"openstack/latest/meta_data.json":     `{"uuid": "u", "hostname": "h", "public_keys": {"b": "K2\n", "a": "K1"}}`,
			"openstack/latest/user_data":          "#!x", "openstack/latest/network_data.json": "{}",
		}, Instance{Source: ConfigDrive, ID: "u", Hostname: "h", PublicKeys: []string{"K1", "K2"}, UserData: []byte("#!x"), NetworkData: []byte("{}"),
			MetaData: dict{"uuid": "u", "hostname": "h", "public_keys": dict{"b": "K2\n", "a": "K1"}}}, ""},
		{"Metal3's name", map[string]string{"openstack/latest/meta_data.json": `{"uuid": "u", "local-hostname": "h"}`},
			Instance{Source: ConfigDrive, ID: "u", Hostname: "h", MetaData: dict{"uuid": "u", "local-hostname": "h"}}, ""},
		{"NoCloud", map[string]string{"meta-data": "instance-id: i\nlocal-hostname: h\npublic-keys: [K]\n", "user-data": "#!x", "network-config": "version: 2"},
			Instance{Source: NoCloud, ID: "i", Hostname: "h", PublicKeys: []string{"K"}, UserData: []byte("#!x"), NetworkData: []byte("version: 2"),
				MetaData: dict{"instance-id": "i", "local-hostname": "h", "public-keys": []any{"K"}}}, ""},
		{"config drive with interfaces", map[string]string{"openstack/latest/meta_data.json": `{"uuid": "u", "network_config": {"content_path": "/content/0000"}}`},
			Instance{Source: ConfigDrive, ID: "u", Interfaces: true, MetaData: dict{"uuid": "u", "network_config": dict{"content_path": "/content/0000"}}}, ""},
		{"NoCloud with interfaces", map[string]string{"meta-data": "instance-id: i\nnetwork-interfaces: |\n  auto eth0\n"}, Instance{Source: NoCloud, ID: "i", Interfaces: true, MetaData: dict{"instance-id": "i", "network-interfaces": "auto eth0\n"}}, ""},
		{"nothing", map[string]string{"README": ""}, Instance{}, "no data source"},
		{"no version", map[string]string{"openstack/latest/user_data": ""}, Instance{}, "no data source"},
		{"broken metadata", map[string]string{"openstack/latest/meta_data.json": "["}, Instance{}, "openstack/latest/meta_data.json: unexpected end"},
		{"broken NoCloud", map[string]string{"meta-data": "[a"}, Instance{}, "meta-data: yaml:"},
	} {
		got, err := Read(volume(tt.files))
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: error %v, want %q", tt.name, err, tt.err)
			}
			continue
		}
		for name := range got.Files {
			if string(got.Files[name]) != tt.files[name] {
				t.Errorf("%s: the file %s is kept as %q", tt.name, name, got.Files[name])
			}
		}
		if len(got.Files) == 0 || len(got.UserData) > 0 && len(got.Files) < 2 {
			t.Errorf("%s: %d files are kept", tt.name, len(got.Files))
		}
		got.Files = nil
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", tt.name, err, diff)
		}
	}
}

func TestRootListsDirectories(t *testing.T) {
	r := Root{}
	r.write("etc/ssh/sshd_config", 0o644, "x")
	r.write("etc/motd", 0o644, "y")
	names := func(dir string) (out []string) {
		entries, _ := r.List(dir)
		for _, e := range entries {
			out = append(out, fmt.Sprintf("%s %t", e.Name, e.Dir))
		}
		return out
	}
	for dir, want := range map[string][]string{"": {"etc true"}, "/": {"etc true"}, "/etc": {"motd false", "ssh true"}, "etc/ssh/": {"sshd_config false"}} {
		if got := names(dir); !cmp.Equal(got, want) {
			t.Errorf("%q: %q, want %q", dir, got, want)
		}
	}
	for _, dir := range []string{"et", "etc/motd", "x"} {
		if e, ok := r.List(dir); ok {
			t.Errorf("%q: %v", dir, e)
		}
	}
	if got := slices.Sorted(maps.Keys(r)); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// User data are written by users, and a server boots whatever they are.
func FuzzConfigure(f *testing.F) {
	f.Add([]byte("#cloud-config\nusers: [default, {name: a, groups: x}]\nwrite_files: [{path: /a, content: b}]\nruncmd: [[a, b]]"), []byte(`{"links": [{"id": "a"}]}`))
	f.Add([]byte("Content-Type: multipart/mixed; boundary=a\n\n--a\n\nx\n--a--"), []byte("version: 2"))
	f.Add(zipped("#!/bin/sh"), []byte(nil))
	f.Add([]byte("#cloud-config\nusers: {a: &a [*a]}\ngroups: [[a]]"), []byte(nil))
	f.Fuzz(func(t *testing.T, user, network []byte) {
		for _, source := range []string{ConfigDrive, NoCloud} {
			files, r := apply(Instance{Source: source, UserData: user, NetworkData: network})
			if _, ok := files["etc/hostname"]; !ok && !bytes.Contains(user, []byte("preserve")) && !bytes.HasPrefix(user, []byte{0x1f}) {
				t.Errorf("no host name: %+v", r)
			}
			for name := range files {
				if !fs.ValidPath(name) {
					t.Errorf("path %q", name)
				}
			}
		}
	})
}
