package debian

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/guest/sandbox"
)

// texts are an os-release of each release that is here, and of a distribution that is not.
var texts = map[string]string{
	"bookworm": Bookworm,
	"trixie":   "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"13\"\nVERSION_CODENAME=trixie\nID=debian\n",
	"jammy":    "PRETTY_NAME=\"Ubuntu 22.04.5 LTS\"\nNAME=\"Ubuntu\"\nVERSION_ID=\"22.04\"\nVERSION_CODENAME=jammy\nID=ubuntu\nID_LIKE=debian\nUBUNTU_CODENAME=jammy\n",
	"noble":    "PRETTY_NAME=\"Ubuntu 24.04.3 LTS\"\nNAME=\"Ubuntu\"\nVERSION_ID=\"24.04\"\nVERSION_CODENAME=noble\nID=ubuntu\nID_LIKE=debian\nUBUNTU_CODENAME=noble\n",
	"rocky":    "NAME=\"Rocky Linux\"\nVERSION=\"9.4 (Blue Onyx)\"\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=\"9.4\"\nPRETTY_NAME=\"Rocky Linux 9.4 (Blue Onyx)\"\n",
}

func TestOSReleaseDecidesOnTheRelease(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{Bookworm, "bookworm"},
		{"ID=debian\nVERSION_ID=12\n", "bookworm"},
		{"ID='debian'\nVERSION_ID='13'\n", "trixie"},
		{`ID="debian"` + "\n" + `VERSION_ID="11"` + "\n", "bookworm"},
		{"ID=debian\nVERSION_ID=14\n", "trixie"},
		{"ID=debian\nVERSION_CODENAME=trixie\n", "trixie"},
		{"ID=debian\n", "trixie"}, // testing has no VERSION_ID
		{"ID=ubuntu\nVERSION_ID=\"22.04\"\n", "jammy"},
		{"ID=ubuntu\nVERSION_ID=20.04\n", "jammy"},
		{"ID=ubuntu\nVERSION_ID=23.04\n", "jammy"},
		{"ID=ubuntu\nVERSION_ID=23.10\n", "noble"},
		{"ID=ubuntu\nVERSION_ID=25.10\n", "noble"},
		{"ID=ubuntu\nVERSION_ID=NaN\n", "noble"},
		{"ID=linuxmint\nID_LIKE=\"ubuntu debian\"\nVERSION_ID=\"21.3\"\nVERSION_CODENAME=virginia\nUBUNTU_CODENAME=jammy\n", "jammy"},
		{"ID=linuxmint\nID_LIKE=debian\nVERSION_ID=\"6\"\nVERSION_CODENAME=faye\nDEBIAN_CODENAME=bookworm\n", "bookworm"},
		{"ID=raspbian\nID_LIKE=debian\nVERSION_ID=\"13\"\nVERSION_CODENAME=trixie\n", "trixie"},
		{"ID=kali\nID_LIKE=debian\nVERSION_ID=\"2025.1\"\nVERSION_CODENAME=kali-rolling\n", "trixie"},
		{"# ID=ubuntu\nID=debian\nID=rocky\n", ""}, // the last one counts
		{"ID=notdebian\nID_LIKE=debianish\n", ""},
		{texts["rocky"], ""},
		{"", ""},
		{"\x00=\"\\\n'", ""},
	} {
		if got := releaseOf(tt.text); got.codename != tt.want {
			t.Errorf("releaseOf(%q) = %q, want %q", tt.text, got.codename, tt.want)
		}
	}
}

func TestFieldsAreReadAsAShellDoes(t *testing.T) {
	got := Fields("A=1\nB=\"a \\\"b\\\" \\$c\"\nC='x\\y'\n# D=2\n\nE\nF=a\\ b\nA=3\n")
	want := map[string]string{"A": "3", "B": `a "b" $c`, "C": `x\y`, "F": "a b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Fields (-want +got):\n%s", diff)
	}
}

// show returns a node as a line.
func show(t sandbox.Tree, name string) string {
	n, ok := t[name]
	switch {
	case !ok:
		return "-"
	case n.Mode&fs.ModeSymlink != 0:
		return "-> " + n.Link
	case n.Mode.IsDir():
		return "dir"
	}
	return string(n.Content)
}

// What differs between the releases is what differs between their installations.
func TestTreeFollowsTheRelease(t *testing.T) {
	order := []string{"bookworm", "trixie", "jammy", "noble", "rocky"}
	const (
		present = "present"
		dir     = "dir"
		none    = "-"
	)
	for name, wants := range map[string][]string{
		"etc/debian_version":                      {"12.11\n", "13.1\n", "bookworm/sid\n", "trixie/sid\n", none},
		"etc/lsb-release":                         {none, none, present, present, none},
		"etc/apt/sources.list":                    {present, present, present, present, none},
		"etc/apt/sources.list.d":                  {dir, dir, dir, dir, none},
		"etc/apt/sources.list.d/debian.sources":   {none, present, none, none, none},
		"etc/apt/sources.list.d/ubuntu.sources":   {none, none, none, present, none},
		"var/lib/dpkg/status":                     {"", "", "", "", none},
		"etc/sysctl.conf":                         {present, none, present, present, present},
		"etc/rsyslog.conf":                        {none, none, present, present, none},
		"var/log/syslog":                          {none, none, "", "", none},
		"var/log/wtmp":                            {"", none, "", "", ""},
		"etc/network/interfaces.d":                {dir, dir, none, none, none},
		"etc/netplan":                             {none, none, dir, dir, none},
		"etc/chrony/conf.d":                       {dir, dir, dir, dir, none},
		"etc/chrony.conf":                         {none, none, none, none, present},
		"etc/default/locale":                      {"LANG=C.UTF-8\n", "-> ../locale.conf", "LANG=C.UTF-8\n", "LANG=C.UTF-8\n", none},
		"etc/bash.bashrc":                         {present, present, present, present, none},
		"etc/pam.d/common-auth":                   {present, present, present, present, none},
		"etc/pam.d/system-auth":                   {none, none, none, none, present},
		"etc/pam.d/su":                            {present, present, present, present, present},
		"etc/motd":                                {present, present, none, none, none},
		"etc/systemd/system/sysinit.target.wants": {dir, dir, dir, dir, dir},
		"vmlinuz":                                 {"-> boot/vmlinuz-6.1.0-37-" + architecture(), "-> boot/vmlinuz-6.12.43+deb13-" + architecture(), none, none, none},
		"boot/vmlinuz":                            {none, none, "-> vmlinuz-5.15.0-151-generic", "-> vmlinuz-6.8.0-79-generic", none},
		"boot/vmlinuz-6.8.0-79-generic":           {none, none, none, present, none},
		"boot/config-5.15.0-151-generic":          {none, none, present, none, none},
	} {
		for i, release := range order {
			got := show(Tree(texts[release]), name)
			if wants[i] == present && got != none && got != dir && got != "" {
				continue
			}
			if got != wants[i] {
				t.Errorf("%s of %s is %q, want %q", name, release, got, wants[i])
			}
		}
	}
	for name, wants := range map[string][]string{ // parts of texts
		"etc/apt/sources.list":                  {"bookworm-security main contrib", "sources.list.d/debian.sources", "http://security.ubuntu.com/ubuntu jammy-security main", "ubuntu.sources", ""},
		"etc/apt/sources.list.d/ubuntu.sources": {"", "", "", "Suites: noble noble-updates noble-backports\n", ""},
		"etc/login.defs":                        {"ENCRYPT_METHOD SHA512\n", "HOME_MODE 0700\n", "HOME_MODE 0750\n", "HOME_MODE 0750\n", "USERGROUPS_ENAB yes\n"},
		"etc/cloud/cloud.cfg": {
			"name: \"debian\"\n", "groups: [adm, audio, cdrom, dialout, dip, floppy, netdev, plugdev, sudo, video]\n",
			"groups: [adm, audio, cdrom, dialout, dip, floppy, lxd, netdev, plugdev, sudo, video]\n", "groups: [adm, cdrom, dip, lxd, sudo]\n", "gecos: \"rocky Cloud User\"\n",
		},
		"etc/sudoers": {"%sudo ALL", "%sudo ALL", "%sudo ALL", ":/snap/bin\"", "%wheel ALL"},
		"etc/issue":   {"12 (bookworm) \\n \\l\n", "13 (trixie)", "Ubuntu 22.04.5 LTS \\n", "Ubuntu 24.04.3 LTS \\n", "Blue Onyx"},
		"etc/passwd":  {"\n_apt:x:42:", "\ndhcpcd:x:", "\ngnats:x:41:", "\nsyslog:x:102:", "\nbin:x:1:1:"},
	} {
		for i, release := range order {
			if got := show(Tree(texts[release]), name); !strings.Contains(got, wants[i]) && wants[i] != "" {
				t.Errorf("%s of %s is %q, want it to contain %q", name, release, got, wants[i])
			}
		}
	}
}

// Programs refuse files whose modes and owners are others than these.
func TestModesAndOwnersAreThoseOfAnInstallation(t *testing.T) {
	tree := Tree(texts["bookworm"])
	for name, want := range map[string]string{
		"root":                            "drwx------ 0:0",
		"etc/shadow":                      "-rw-r----- 0:42",
		"etc/gshadow":                     "-rw-r----- 0:42",
		"etc/sudoers":                     "-r--r----- 0:0",
		"etc/sudoers.d":                   "drwxr-xr-x 0:0",
		"etc/ssl/private":                 "drwx------ 0:0",
		"etc/update-motd.d/10-uname":      "-rwxr-xr-x 0:0",
		"etc/chrony/chrony.keys":          "-rw-r----- 0:109",
		"etc/audit":                       "drwxr-x--- 0:0",
		"var/tmp":                         "dtrwxrwxrwx 0:0",
		"var/mail":                        "dgrwxrwxr-x 0:8",
		"var/local":                       "dgrwxrwxr-x 0:50",
		"var/spool/cron/crontabs":         "dtrwx-wx--- 0:101",
		"var/log/btmp":                    "-rw-rw---- 0:43",
		"var/log/journal":                 "dgrwxr-xr-x 0:999",
		"var/lib/apt/lists/partial":       "drwx------ 42:0",
		"var/lib/chrony":                  "drwxr-x--- 102:109",
		"var/lib/dbus/machine-id":         "Lrwxrwxrwx 0:0",
		"boot/grub/grub.cfg":              "-rw------- 0:0",
		"usr/local/share/ca-certificates": "drwxr-xr-x 0:0",
	} {
		n := tree[name]
		if got := fmt.Sprintf("%v %d:%d", n.Mode, n.UID, n.GID); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if n := Tree(texts["noble"])["var/log"]; n.GID != 102 || n.Mode != fs.ModeDir|0o775 {
		t.Errorf("var/log of Ubuntu is %v of the group %d, want drwxrwxr-x of syslog", n.Mode, n.GID)
	}
}

// A tree is one that a disk can have: valid names below directories that are in it, links that stay
// in the root, and texts that are small.
func TestTreesAreWhole(t *testing.T) {
	for release, text := range texts {
		for of, tree := range map[string]sandbox.Tree{"tree": Tree(text), "base": Base(text)} {
			size := 0
			for name, n := range tree {
				if !fs.ValidPath(name) || sandbox.Clean(name) != name {
					t.Errorf("%s, %s: %q is no valid name", release, of, name)
				}
				if up := path.Dir(name); up != "." && !tree[up].Mode.IsDir() {
					t.Errorf("%s, %s: %s has no directory", release, of, name)
				}
				size += len(n.Content)
			}
			if of == "tree" && size > 64<<10 {
				t.Errorf("%s: %d bytes of files, want at most 64 KiB", release, size)
			}
			layer, err := tree.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if back, err := sandbox.Unpack(bytes.NewReader(layer)); err != nil || len(back) != len(tree) {
				t.Errorf("%s, %s: Unpack has %d of %d nodes, %v", release, of, len(back), len(tree), err)
			}
		}
		for _, name := range []string{
			"etc/fstab", "etc/environment", "etc/hosts", "etc/resolv.conf", "etc/login.defs", "etc/skel/.bashrc", "etc/profile.d", "etc/pam.d/sshd", "etc/security/limits.d",
			"etc/sysctl.d", "etc/modules-load.d", "etc/modprobe.d", "etc/systemd/system/multi-user.target.wants", "etc/default/grub", "etc/ssh/sshd_config", "etc/ssh/sshd_config.d",
			"etc/sudoers.d", "etc/cron.d", "etc/logrotate.d", "etc/rsyslog.d", "etc/audit/rules.d", "etc/cloud/cloud.cfg.d", "var/tmp", "var/cache", "var/log", "var/lib/systemd",
			"root/.bashrc", "root/.profile", "boot/grub",
		} {
			if _, ok := Tree(text)[name]; !ok {
				t.Errorf("%s has no %s", release, name)
			}
		}
	}
}

func TestEqualTextsShareABase(t *testing.T) {
	at := func(text string) uintptr { return reflect.ValueOf(Base(text)).Pointer() }
	if at(texts["noble"]) != at(strings.Clone(texts["noble"])) {
		t.Error("servers with the same os-release have bases of their own")
	}
	if at(texts["noble"]) == at(texts["noble"]+"X=1\n") {
		t.Error("servers with different texts share a base")
	}
	for name := range sandbox.MachineFiles() {
		if _, ok := Base(texts["rocky"])[name]; !ok {
			t.Errorf("a base has no %s, which programs of this machine need", name)
		}
	}
}

// Each name and ID is there once, and each user has its group.
func TestAccountsAreConsistent(t *testing.T) {
	for release, text := range texts {
		tree := Tree(text)
		ids := map[string][]string{}
		for _, file := range []string{"passwd", "group"} {
			seen := map[string]bool{}
			for line := range strings.Lines(show(tree, "etc/"+file)) {
				f := strings.Split(strings.TrimSpace(line), ":")
				if want := map[string]int{"passwd": 7, "group": 4}[file]; len(f) != want || f[1] != "x" || seen[f[0]] || slices.Contains(ids[file], f[2]) {
					t.Errorf("%s: the line %q of %s is no account, or one of a name or ID that is there", release, line, file)
				}
				seen[f[0]] = true
				ids[file] = append(ids[file], f[2])
				if file == "passwd" && f[3] == "" {
					t.Errorf("%s: %s has no group", release, f[0])
				}
			}
		}
		for line := range strings.Lines(show(tree, "etc/passwd")) {
			if gid := strings.Split(line, ":")[3]; !slices.Contains(ids["group"], gid) {
				t.Errorf("%s: there is no group %s, which %q has", release, gid, line)
			}
		}
	}
}

// No text of os-release panics or makes a tree that a disk cannot have.
func FuzzTree(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name := range Tree(text) {
			if !fs.ValidPath(name) && text == strings.ToValidUTF8(text, "") {
				t.Errorf("Tree(%q) has the name %q", text, name)
			}
		}
	})
}
