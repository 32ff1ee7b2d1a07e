package sandbox_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/smallroot"
)

// rootFileSystem makes a small root file system of its own: a shell with its libraries, a unit of
// the distribution's and one of the image's author's, and links that lead to this machine's files
// for those who follow them here. Its /usr is merged, or not.
func rootFileSystem(t *testing.T, merged bool) *sandbox.Root {
	t.Helper()
	d, top := smallroot.New(t, merged), ""
	if merged {
		top = "usr/"
	}
	dir, put, link := d.Path, d.Put, d.Link
	put("etc/machine-id", "uninitialized\n", 0o444)
	put("etc/secret/key", "k", 0o600)
	put("usr/bin/systemctl", "#!/bin/sh\necho the image\n", 0o755)
	put(top+"sbin/reboot", "#!/bin/sh\necho the image\n", 0o755)
	put("usr/bin/tool", "#!/bin/sh\necho tool\n", 0o755)
	put("usr/lib/systemd/system/daemon.service", "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo daemon > /etc/daemon'\n", 0o644)
	link("/lib/systemd/system/daemon.service", "etc/systemd/system/multi-user.target.wants/daemon.service")
	put("etc/systemd/system/agent.service", "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo agent > /etc/agent'\n", 0o644)
	link("/etc/systemd/system/agent.service", "etc/systemd/system/multi-user.target.wants/agent.service")
	link("/etc/hostname", "etc/absolute")
	link("../../../../../../../../../etc/hostname", "etc/relative")
	link("/etc", "var/outside")
	put("var/lib/state", "s", 0o644)
	for _, d := range []string{"var/lib", "etc", "usr/bin"} {
		if err := os.Chmod(filepath.Join(dir, d), 0o711); err != nil {
			t.Fatal(err)
		}
	}
	return &sandbox.Root{Dir: dir, Attributes: func(name string) (fs.FileMode, int, int, bool) {
		return 0o755 | fs.ModeSetuid, 0, 7, name == "usr/bin/tool"
	}}
}

// contentsBelow returns the files below a directory with their modes and contents.
func contentsBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		out[name] = info.Mode().String() + info.ModTime().String()
		if d.Type().IsRegular() {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			out[name] += string(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A system with a root file system of its own has that below its layer and nothing of this machine,
// whether processes run or not; nothing changes the root file system.
func TestARootFileSystemOfItsOwn(t *testing.T) {
	needNamespaces(t)
	for name, merged := range map[string]bool{"merged /usr": true, "separate /bin": false} {
		t.Run(name, func(t *testing.T) {
			root, top := rootFileSystem(t, merged), "usr/"
			if merged {
				top = ""
			}
			before := contentsBelow(t, root.Dir)
			var told strings.Builder
			s, _ := booted(t, func(c *sandbox.Config) {
				c.Root = func() *sandbox.Root { return root }
				c.Own = sandbox.Tree{"etc/machine-id": sandbox.File(0o444, "its own\n")}
				c.Report = func(line string) { told.WriteString(line + "\n") }
			})
			look := func() {
				t.Helper()
				checkFile(t, s, "etc/os-release", "ID=small\nPRETTY_NAME=\"Small 1\"\n")
				checkFile(t, s, "etc/machine-id", "its own\n")
				checkFile(t, s, top+"lib/systemd/system/daemon.service", "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo daemon > /etc/daemon'\n")
				for _, outside := range []string{"usr/bin/env", "etc/absolute", "etc/relative", "var/outside/hostname", "srv", "home", "etc/debian_version"} {
					checkNoFile(t, s, outside)
				}
				entries, err := s.ReadDir(".")
				if want := "bin dev etc lib lib64 mnt proc root run sbin sys tmp usr var"; err != nil || strings.Join(names(entries), " ") != want {
					t.Errorf("the root has %q, %v, want %s", names(entries), err, want)
				}
				for _, dir := range []string{"var/lib", "etc", "usr/bin"} {
					if n, err := s.Stat(dir); err != nil || n.Mode.Perm() != 0o711 {
						t.Errorf("/%s has %v, %v", dir, n.Mode, err)
					}
				}
			}
			look()
			if n, err := s.Stat("usr/bin/tool"); err != nil || n.Mode != 0o755|fs.ModeSetuid || n.GID != 7 {
				t.Errorf("a set-user-ID program is seen as %v of group %d, %v", n.Mode, n.GID, err)
			}
			if err := s.Boot(); err != nil {
				t.Fatal(err)
			}
			if want := "systemd: not started at a boot, since a server costs no process before something runs: daemon.service; use systemctl start\n"; !strings.Contains(told.String(), want) {
				t.Errorf("the console shows %q, want %q", told.String(), want)
			}
			checkFile(t, s, "etc/agent", "agent\n")
			checkNoFile(t, s, "etc/daemon")
			got, code := run(t, s, "tool; systemctl is-active agent daemon; cat /etc/os-release; echo x > /etc/secret/key; echo y > /usr/bin/new; cd /; echo *; ls || echo none; systemctl start daemon; read d < /etc/daemon; echo $d; cat /sys/* /proc/mounts | while read a b c d; do case $b in /home*|/root*|/work*) echo $b; esac; done 2> /dev/null")
			want := "tool\ninactive\ninactive\nID=small\nPRETTY_NAME=\"Small 1\"\nbin dev etc lib lib64 mnt proc root run sbin sys tmp usr var\n/bin/sh: 1: ls: not found\nnone\ndaemon\ncat: '/sys/*': No such file or directory\n"
			if diff := cmp.Diff(want, got); diff != "" || code != 0 {
				t.Errorf("code %d (-want +got):\n%s", code, diff)
			}
			look()
			reboot := "exec 3> /etc/kept; command -v reboot; read line < $(command -v reboot); case $line in '#!'*) echo of the image;; esac"
			if got, _ := run(t, s, reboot); !strings.HasSuffix(got, "/sbin/reboot\n") {
				t.Errorf("reboot: %q", got)
			}
			changes, err := s.Changes()
			if err != nil {
				t.Fatal(err)
			}
			var changed []string
			for _, c := range changes {
				if c.What != "changed" || c.Name == "etc/secret/key" {
					changed = append(changed, c.Name+" "+c.What)
				}
			}
			if diff := cmp.Diff([]string{"etc/agent added", "etc/daemon added", "etc/kept added", "etc/secret/key changed", "usr/bin/new added"}, changed); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, contentsBelow(t, root.Dir)); diff != "" {
				t.Errorf("the root file system changed (-before +after):\n%s", diff)
			}
		})
	}
}

// What cannot be a root is refused with the reason, and the next command says it again.
func TestARootFileSystemThatCannotBe(t *testing.T) {
	needNamespaces(t)
	root := rootFileSystem(t, true)
	gone := &sandbox.Root{Dir: filepath.Join(t.TempDir(), "gone")}
	linked := rootFileSystem(t, true)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(filepath.Join(root.Dir, "tmp"), nil, 0o600))
	must(os.Symlink("/etc", filepath.Join(linked.Dir, "usr/lib/metalab")))
	for want, r := range map[string]*sandbox.Root{"/tmp is no directory": root, "no such file or directory": gone, "reached through a link": linked} {
		s, _ := booted(t, func(c *sandbox.Config) { c.Root = func() *sandbox.Root { return r } })
		for range 2 {
			_, err := s.Exec(t.Context(), sandbox.Command{Args: []string{"/bin/sh", "-c", ":"}})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
}
