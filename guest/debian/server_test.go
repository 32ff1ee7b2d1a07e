package debian

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// layer is a sandbox.Store.
type layer struct {
	mu sync.Mutex
	b  []byte
}

func (l *layer) Load() ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b, nil
}

func (l *layer) Save(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = b
	return nil
}

// functions are of the shell in which the scripts below run.
const functions = `check() { "$@" >/tmp/out 2>&1 || { echo "$* ended with code $?:"; cat /tmp/out; failed=1; }; }
is() { [ "$1" = "$2" ] || { echo "got '$1', want '$2'"; failed=1; }; }
here() { command -v "$1" >/dev/null; }
`

// checks are those of programs that read the tree.
const checks = `
check pwck -r -q
check grpck -r
check sh -n /etc/profile
check bash -n /etc/bash* /etc/skel/.bashrc /root/.bashrc
for f in /etc/update-motd.d/* /etc/grub.d/*; do [ ! -e "$f" ] || check sh -n "$f"; done
is "$(sh -lc 'echo $PATH')" /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
is "$(sh -c '. /etc/os-release; echo $ID')" "$WANT_ID"
is "$(cat /usr/lib/os-release)" "$(cat /etc/os-release)"
is "$(getent hosts localhost | tr -s ' ')" "::1 localhost ip6-localhost ip6-loopback"
is "$(getent passwd nobody)" nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
here visudo && check visudo -c
here openssl && check openssl req -newkey rsa:2048 -nodes -x509 -subj /CN=x -keyout /tmp/key -out /tmp/pem
here logrotate && check logrotate -d /etc/logrotate.conf
here grub-script-check && [ -e /boot/grub/grub.cfg ] && check grub-script-check /boot/grub/grub.cfg
here sshd && { mkdir -p /run/sshd; ssh-keygen -q -N '' -t ed25519 -f /etc/ssh/ssh_host_ed25519_key; check sshd -t; }
check mount -a
here findmnt && is "$(findmnt --tab-file /etc/fstab -n -o TARGET /)" /
[ -e /etc/apt ] && here apt-get && check apt-get update && is "$(cat /tmp/out)" "Reading package lists..."
exit ${failed:-0}
`

// users make accounts and log in as them: only the superuser of this machine can give a server files
// and processes of others.
const users = `
is "$(stat -c %a:%U:%G /etc/shadow /var/tmp | tr '\n' ' ')" "640:root:${WANT_SHADOW} 1777:root:root "
useradd -m -c 'Bob B.' -s /bin/bash bob || failed=1
is "$(id bob)" "uid=1000(bob) gid=1000(bob) groups=1000(bob)"
is "$(getent group bob)" bob:x:1000:
is "$(grep -c '^bob:100000:65536$' /etc/subuid)" 1
useradd -r svc && is "$(test "$(id -u svc)" -lt 1000 && id -gn svc)" svc
groupadd ops && is "$(getent group ops)" ops:x:1001: && usermod -aG ops,users bob
check sh -c 'echo bob:secret | chpasswd'
case "$(grep ^bob: /etc/shadow)" in bob:\$*) ;; *) echo "no password of bob"; failed=1;; esac
check chage -l bob
check pwck -r -q
check grpck -r
check userdel svc
is "$(su - bob -c 'id -un; id -gn; pwd; echo $HOME $LOGNAME' 2>&1 | tr '\n' ' ')" "bob bob /home/bob /home/bob bob "
is "$(su - bob -c 'echo $PATH')" "$WANT_PATH"
is "$(su -s /bin/sh nobody -c 'id -u')" 65534
is "$(runuser -u bob -- id -un)" bob
is "$(su - bob -c 'ls -A' | tr '\n' ' ')" ".bash_logout .bashrc .profile "
is "$(stat -c %a:%U:%G /home/bob)" "$WANT_HOME"
is "$(su - -c 'pwd')" /root
exit ${failed:-0}
`

// The programs of this machine take the files of each release for those of their own system: they
// find them valid, make users with groups of their own, and log in as them.
func TestProgramsTakeTheTreeForTheirOwn(t *testing.T) {
	prerequisites.Need(t, "user namespaces")
	for release, env := range map[string][]string{
		"bookworm": {"WANT_ID=debian", "WANT_SHADOW=shadow", "WANT_HOME=755:bob:bob", "WANT_PATH=" + pathOfUsers},
		"trixie":   {"WANT_ID=debian", "WANT_SHADOW=shadow", "WANT_HOME=700:bob:bob", "WANT_PATH=" + pathOfUsers},
		"jammy":    {"WANT_ID=ubuntu", "WANT_SHADOW=shadow", "WANT_HOME=750:bob:bob", "WANT_PATH=" + pathOfUsers},
		"noble":    {"WANT_ID=ubuntu", "WANT_SHADOW=shadow", "WANT_HOME=750:bob:bob", "WANT_PATH=" + pathOfUsers},
		"rocky":    {"WANT_ID=rocky", "WANT_SHADOW=root", "WANT_HOME=700:bob:bob", "WANT_PATH=" + pathOfUsers},
	} {
		t.Run(release, func(t *testing.T) {
			s := sandbox.New(sandbox.Config{Base: Base(texts[release]), Store: &layer{}, Dir: filepath.Join(t.TempDir(), "root"), RequireLimits: true})
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			scripts := []string{checks}
			if os.Getuid() == 0 {
				scripts = append(scripts, users)
			}
			for _, script := range scripts {
				var out strings.Builder
				code, err := s.Exec(patience.Within(t, time.Minute), sandbox.Command{Args: []string{"/bin/bash", "-c", functions + script}, Env: env, Stdout: &out, Stderr: &out})
				if err != nil || code != 0 {
					t.Errorf("code %d, %v:\n%s", code, err, out.String())
				}
			}
		})
	}
}

// BenchmarkFirstBoot makes a system, writes what a first boot writes, and starts its units, of
// which there are none: what the tree costs a server.
func BenchmarkFirstBoot(b *testing.B) {
	base := Base(texts["bookworm"])
	files := sandbox.Tree{}
	for _, name := range []string{
		"etc/hostname", "etc/hosts", "etc/passwd", "etc/group", "etc/shadow", "etc/gshadow", "etc/sudoers.d/90-cloud-init-users", "etc/netplan/50-cloud-init.yaml",
		"home/debian/.ssh/authorized_keys", "root/.ssh/authorized_keys", "var/lib/cloud/data/instance-id", "var/lib/cloud/instance/user-data.txt",
		"var/lib/cloud/instance/scripts/runcmd", "etc/lab-agent/config.yaml", "etc/systemd/system/lab-agent.service",
	} {
		files[name] = sandbox.File(0o644, strings.Repeat(name+"\n", 10))
	}
	for b.Loop() {
		s := sandbox.New(sandbox.Config{Base: base, Store: &layer{}})
		if err := s.Put(maps.Clone(files)); err != nil {
			b.Fatal(err)
		}
		if err := s.Boot(); err != nil {
			b.Fatal(err)
		}
	}
}
