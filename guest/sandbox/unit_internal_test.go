package sandbox

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/sys"
)

// loading calls do with a loader of a system that has files.
func loading(t *testing.T, files Tree, do func(*loader)) {
	t.Helper()
	s := New(Config{Base: Tree{
		"etc/hostname": File(0o644, "web-0.example\n"), "etc/machine-id": File(0o444, "0123456789abcdef0123456789abcdef\n"),
		"etc/passwd": File(0o644, "root:x:0:0:root:/root:/bin/bash\nweb:x:2001:2002::/home/web:/bin/sh\n"), "etc/group": File(0o644, "root:x:0:\nweb:x:2002:\nlog:x:40:a,web\n"),
	}, Store: &kept{}, Boot: sys.Boot{ID: "11111111-2222-3333-4444-555555555555"}})
	if err := s.Put(files); err != nil {
		t.Fatal(err)
	}
	if err := s.withUnits(func(l *loader) error { do(l); return nil }); err != nil {
		t.Fatal(err)
	}
}

// kept stores a layer in memory.
type kept struct{ b []byte }

func (k *kept) Load() ([]byte, error) { return k.b, nil }
func (k *kept) Save(b []byte) error   { k.b = b; return nil }

const (
	etc = "etc/systemd/system/"
	lib = "usr/local/lib/systemd/system/"
	run = "run/systemd/system/"
)

func text(lines ...string) Node { return File(0o644, strings.Join(lines, "\n")+"\n") }

func TestCommandLines(t *testing.T) {
	for line, want := range map[string][]command{
		"/bin/a b":                  {{args: []string{"/bin/a", "b"}}},
		"-/bin/a":                   {{args: []string{"/bin/a"}, ignore: true}},
		"+-/bin/a":                  {{args: []string{"/bin/a"}, ignore: true, privileged: true}},
		"@/bin/a name b":            {{args: []string{"/bin/a", "b"}, name: "name"}},
		"-@/bin/a name":             {{args: []string{"/bin/a"}, name: "name", ignore: true}},
		"!!:/bin/a 'b c' \"d\"":     {{args: []string{"/bin/a", "b c", "d"}, literal: true}},
		"!/bin/a":                   {{args: []string{"/bin/a"}, privileged: true}},
		`/bin/a ; -b c`:             {{args: []string{"/bin/a"}}, {args: []string{"b", "c"}, ignore: true}},
		`/bin/a \; b`:               {{args: []string{"/bin/a", ";", "b"}}},
		`/bin/a b; c`:               {{args: []string{"/bin/a", "b;", "c"}}},
		`a x\x41\101\ty "\s" \q ""`: {{args: []string{"a", "xAA\ty", " ", `\q`, ""}}},
		"-":                         nil,
		"@":                         nil,
		"@/a":                       nil,
		"":                          nil,
		"- ":                        nil,
		`-""`:                       nil,
		"; a":                       nil,
		`a "b`:                      nil,
	} {
		got, err := parseCommands(line)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(command{})); diff != "" || (err != nil) != (want == nil) {
			t.Errorf("parseCommands(%q), error %v (-want +got):\n%s", line, err, diff)
		}
	}
}

func TestVariablesOfCommands(t *testing.T) {
	env := []string{"ONE=a", "TWO=b  'c d'", "EMPTY="}
	for line, want := range map[string][]string{
		"/bin/a $ONE $TWO":           {"/bin/a", "a", "b", "c d"},
		"/bin/a ${TWO}x $EMPTY $NOT": {"/bin/a", "b  'c d'x"},
		"/bin/a ${EMPTY} ${NOT}":     {"/bin/a", "", ""},
		"/bin/a $$ONE x$ONE $$ $1 $": {"/bin/a", "$ONE", "x$ONE", "$", "$1", "$"},
		":/bin/a $ONE ${TWO}":        {"/bin/a", "$ONE", "${TWO}"},
		"/bin/a ${ONE ${O-E} '$ONE'": {"/bin/a", "${ONE", "${O-E}", "a"},
	} {
		c, err := parseCommands(line)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c[0].argv(env)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s, error %v (-want +got):\n%s", line, err, diff)
		}
	}
}

func TestSyntaxOfUnitFiles(t *testing.T) {
	u := unit{name: "x.service", keys: map[string][]string{}}
	u.parse("etc/x", "\ufeff[Unit]\nDescription = a \\\n# between\n  b\n;c\nAfter=a\nAfter=\nAfter=b\n[Service]\nEnvironment=A=1\nEnvironment=\nEnvironment=B=2\nPrivateTmp=yes\nFoo=1\nX-Mine=1\nnonsense\n[X-Other]\na=b\n[Odd]\na=b\n[Install\n")
	want := map[string][]string{
		"Unit.Description": {"a  b"}, "Unit.After": {"a", "b"}, "Service.Environment": {"B=2"}, "Service.PrivateTmp": {"yes"}, "Service.X-Mine": {"1"},
		"X-Other.a": {"b"}, "Odd.a": {"b"},
	}
	if diff := cmp.Diff(want, u.keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	problems := []string{
		"/etc/x:14: Unknown key name 'Foo' in section 'Service', ignoring.", "/etc/x:16: Missing '=', ignoring line.",
		"/etc/x:19: Unknown section 'Odd'. Ignoring.", "/etc/x:21: Invalid section header '[Install'",
	}
	if diff := cmp.Diff(problems, u.problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"PrivateTmp="}, u.inert); diff != "" {
		t.Errorf("keys without an effect (-want +got):\n%s", diff)
	}
}

// The order of drop-ins is that of systemd.unit(5): by name, whichever directory they are in, and of
// those with one name the first of the more specific directory.
func TestDropIns(t *testing.T) {
	files := Tree{
		lib + "foo-bar@.service":                text("[Service]", "ExecStart=/bin/first %i", "Environment=A=1"),
		etc + "foo-bar@x.service.d/30-a.conf":   text("[Service]", "ExecStart=", "ExecStart=/bin/third"),
		lib + "foo-bar@.service.d/20-b.conf":    text("[Service]", "ExecStart=", "ExecStart=/bin/second"),
		run + "foo-.service.d/40-c.conf":        text("[Service]", "Environment=C=%i"),
		etc + "service.d/50-d.conf":             text("[Service]", "Environment=D=4"),
		lib + "foo-bar@x.service.d/50-d.conf":   text("[Service]", "Environment=D=own"),
		etc + "foo-bar@x.service.d/60-e.conf":   {Mode: fs.ModeSymlink | 0o777, Link: "/dev/null"},
		lib + "foo-bar@x.service.d/60-e.conf":   text("[Service]", "Environment=E=hidden"),
		etc + "foo-bar@x.service.d/70-no.other": text("[Service]", "Environment=F=1"),
	}
	loading(t, files, func(l *loader) {
		u, err := l.load("foo-bar@x.service")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"A=1", "C=x", "D=own"}, u.environment); diff != "" {
			t.Errorf("Environment= (-want +got):\n%s", diff)
		}
		if c := u.lines("ExecStart"); len(c) != 1 || c[0].args[0] != "/bin/third" {
			t.Errorf("ExecStart= is %v", c)
		}
		if diff := cmp.Diff([]string{lib + "foo-bar@.service.d/20-b.conf", etc + "foo-bar@x.service.d/30-a.conf", run + "foo-.service.d/40-c.conf", lib + "foo-bar@x.service.d/50-d.conf"}, u.drops); diff != "" {
			t.Errorf("drop-ins (-want +got):\n%s", diff)
		}
	})
}

func TestNamesOfUnits(t *testing.T) {
	files := Tree{
		lib + "real.service":     text("[Service]", "ExecStart=/bin/a"),
		etc + "alias.service":    {Mode: fs.ModeSymlink | 0o777, Link: "/" + lib + "real.service"},
		etc + "one.service":      {Mode: fs.ModeSymlink | 0o777, Link: "two.service"},
		etc + "two.service":      {Mode: fs.ModeSymlink | 0o777, Link: "one.service"},
		etc + "mask.service":     {Mode: fs.ModeSymlink | 0o777, Link: "/dev/null"},
		lib + "mask.service":     text("[Service]", "ExecStart=/bin/a"),
		etc + "empty.service":    File(0o644, ""),
		etc + "foo@.service":     text("[Service]", "ExecStart=/bin/a %i"),
		etc + "foo@own.service":  text("[Service]", "ExecStart=/bin/own"),
		"opt/x/linked.service":   text("[Service]", "ExecStart=/bin/linked"),
		etc + "linked.service":   {Mode: fs.ModeSymlink | 0o777, Link: "/opt/x/linked.service"},
		etc + "dangling.service": {Mode: fs.ModeSymlink | 0o777, Link: "/opt/x/dangling.service"},
	}
	loading(t, files, func(l *loader) {
		for name, want := range map[string]string{
			"alias.service": "real.service", "foo@a.service": "foo@a.service", "foo@own.service": "foo@own.service", "linked.service": "linked.service",
			"mask.service": "masked", "empty.service": "masked", "one.service": "", "none.service": "", "dangling.service": "", "../x.service": "", "x.y": "", "multi-user.target": "multi-user.target",
		} {
			u, err := l.load(name)
			got := u.name
			if u.mask {
				got = "masked"
			}
			if got != want || (err != nil) != (want == "") {
				t.Errorf("load(%q) = %q, %v, want %q", name, got, err, want)
			}
		}
		if u, _ := l.load("foo@own.service"); u.lines("ExecStart")[0].args[0] != "/bin/own" {
			t.Error("a file of an instance is not read")
		}
		for name, want := range map[string]string{"alias.service": "alias", "mask.service": "masked", "real.service": "enabled", "linked.service": "linked"} {
			if name == "real.service" {
				continue
			}
			if got, err := l.fileState(name); got != want || err != nil {
				t.Errorf("fileState(%q) = %q, %v, want %q", name, got, err, want)
			}
		}
	})
}

func TestSpecifiers(t *testing.T) {
	files := Tree{etc + "a-b@.service": text("[Service]", `ExecStart=/bin/a %n %N %p %P %i %I %j %J %f %H %l %m %b %t %S %C %L %E %h %u %U %g %G %T %V 5%% %Z`, "WorkingDirectory=/x/%i")}
	loading(t, files, func(l *loader) {
		u, err := l.load(`a-b@c-d\x2de.service`)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Fields(`/bin/a a-b@c-d\x2de.service a-b@c-d\x2de a-b a/b c-d\x2de c/d-e b b /c/d-e web-0.example web-0 0123456789abcdef0123456789abcdef ` +
			`11111111222233334444555555555555 /run /var/lib /var/cache /var/log /etc /root root 0 root 0 /tmp /var/tmp 5% %Z`)
		if diff := cmp.Diff(want, u.lines("ExecStart")[0].args); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got := u.get("Service.WorkingDirectory"); got != `/x/c-d\x2de` {
			t.Errorf("WorkingDirectory= is %q", got)
		}
	})
}

func TestEnvironmentFiles(t *testing.T) {
	lines := "# comment \\\nwith more\nA=plain value  \n B = 'single \\n' \nC=\"dou\\\"ble \\x \\$\"\nD=go \\\non\nE=a\"b c\"'d'\nF=\n=no\nno line\n1X=y\nG=\"two\nlines\"\n;H=1\nexport I=1\n"
	want := []string{"A=plain value", `B=single \n`, `C=dou"ble \x $`, "D=go on", "E=ab cd", "F=", "G=two\nlines"}
	if diff := cmp.Diff(want, assignmentsOf(lines)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	files := Tree{
		"etc/default/a": File(0o644, "X=file\nY=1\n"), "etc/conf.d/2.env": File(0o644, "Y=2\n"), "etc/conf.d/1.env": File(0o644, "Y=1\nW=gone\n"),
		etc + "x.service":  text("[Service]", `Environment=X=unit "V=a b" Y='c'`, "EnvironmentFile=/etc/default/a", "EnvironmentFile=-/etc/none", "EnvironmentFile=/etc/conf.d/*.env", "UnsetEnvironment=W LANG", "ExecStart=/bin/a"),
		etc + "no.service": text("[Service]", "EnvironmentFile=/etc/none", "ExecStart=/bin/a"),
	}
	loading(t, files, func(l *loader) {
		u, _ := l.load("x.service")
		got, err := u.variables(l.f, []string{"USER=web"})
		if diff := cmp.Diff([]string{managerEnvironment[0], "USER=web", "X=file", "V=a b", "Y=2"}, got); diff != "" || err != nil {
			t.Errorf("error %v (-want +got):\n%s", err, diff)
		}
		u, _ = l.load("no.service")
		if _, err := u.variables(l.f, nil); err == nil || !strings.Contains(err.Error(), "EnvironmentFile=/etc/none") {
			t.Errorf("a file that is not there: %v", err)
		}
	})
}

func TestTimeSpans(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5": 5 * time.Second, "1min 5s": 65 * time.Second, "2h30min": 150 * time.Minute, "1.5s": 1500 * time.Millisecond, "200ms": 200 * time.Millisecond,
		"1d 1w": 8 * day, "infinity": infinity, "3 hours 2 m": 182 * time.Minute, "99999999y": infinity, "": -1, "x": -1, "5 parsecs": -1, "s": -1,
	} {
		got, ok := parseSpan(text)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("parseSpan(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestConditions(t *testing.T) {
	files := Tree{
		"etc/full": File(0o755, "x"), "etc/empty": File(0o644, ""), "etc/link": {Mode: fs.ModeSymlink | 0o777, Link: "full"}, "srv/d/a": File(0o644, ""),
		"proc/cmdline": File(0o444, "quiet root=/dev/sda ro\n"), "etc/os-release": File(0o644, "ID=debian\nVERSION_ID=\"12\"\n"),
	}
	loading(t, files, func(l *loader) {
		for line, want := range map[string]bool{
			"PathExists=/etc/full": true, "PathExists=!/etc/full": false, "PathExists=/etc/none": false, "PathExistsGlob=/etc/f*": true, "PathExistsGlob=/etc/z*": false,
			"PathIsDirectory=/srv/d": true, "PathIsDirectory=/etc/full": false, "PathIsSymbolicLink=/etc/link": true, "PathIsMountPoint=/proc": true, "PathIsMountPoint=/etc": false,
			"DirectoryNotEmpty=/srv/d": true, "FileNotEmpty=/etc/full": true, "FileNotEmpty=/etc/empty": false, "FileIsExecutable=/etc/full": true, "FileIsExecutable=/etc/empty": false,
			"FirstBoot=yes": false, "FirstBoot=no": true, "Host=web-*": true, "Host=db": false, "KernelCommandLine=quiet": true, "KernelCommandLine=root": true, "KernelCommandLine=root=/dev/sdb": false,
			"Virtualization=no": true, "Virtualization=yes": false, "Virtualization=!container": true, "User=root": true, "User=web": false,
			"OSRelease=ID=debian VERSION_ID>=11": true, "OSRelease=VERSION_ID<12": false, "KernelVersion=>=2.6": true, "KernelVersion=<2.6": false,
		} {
			key, value, _ := strings.Cut(line, "=")
			u := unit{keys: map[string][]string{"Unit.Condition" + key: {value}}}
			if got := l.unmet(u, "Condition") == ""; got != want {
				t.Errorf("Condition%s is %t, want %t", line, got, want)
			}
		}
		for _, tt := range []struct {
			values []string
			want   bool
		}{
			{[]string{"|/etc/none", "|/etc/full"}, true}, {[]string{"|/etc/none", "|!/etc/full"}, false}, {[]string{"|/etc/full", "/etc/none"}, false},
		} {
			u := unit{keys: map[string][]string{"Unit.AssertPathExists": tt.values}}
			if got := l.unmet(u, "Assert") == ""; got != tt.want {
				t.Errorf("AssertPathExists=%q is %t, want %t", tt.values, got, tt.want)
			}
		}
	})
}

func TestCredentials(t *testing.T) {
	loading(t, Tree{}, func(l *loader) {
		for text, want := range map[string]credential{
			"":                                    {account: account{"root", "/root", "/bin/sh", 0, 0}},
			"User=web":                            {account{"web", "/home/web", "/bin/sh", 2001, 2002}, true, []int{40}},
			"User=2001\nGroup=log":                {account{"web", "/home/web", "/bin/sh", 2001, 40}, true, []int{40}},
			"User=web\nSupplementaryGroups=web 7": {account{"web", "/home/web", "/bin/sh", 2001, 2002}, true, []int{40, 2002, 7}},
			"User=nobody2":                        {},
			"Group=none":                          {},
			"User=99999999":                       {},
		} {
			u := unit{name: "x.service", keys: map[string][]string{}}
			u.parse("x", "[Service]\n"+text)
			got, err := u.credential(l.f)
			if want.name == "" {
				if err == nil {
					t.Errorf("%s: no error", text)
				}
				continue
			}
			if needsRoot := want.uid > 0 && os.Getuid() != 0; needsRoot {
				if err == nil || !strings.Contains(err.Error(), "run the lab as root") {
					t.Errorf("%s without privileges: %v", text, err)
				}
				continue
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(credential{}, account{})); diff != "" || err != nil {
				t.Errorf("%s, error %v (-want +got):\n%s", text, err, diff)
			}
		}
	})
}

// Units start with what they need, behind what they wait for; cycles are broken.
func TestTransactions(t *testing.T) {
	service := func(lines ...string) Node {
		return text(append([]string{"[Service]", "ExecStart=/bin/a", "[Unit]"}, lines...)...)
	}
	link := func(to string) Node { return Node{Mode: fs.ModeSymlink | 0o777, Link: "/" + etc + to} }
	files := Tree{
		etc + "a.service":                         service("Requires=c.service", "Wants=b.service none.service", "After=b.service c.service"),
		etc + "b.service":                         service("After=c.service"),
		etc + "c.service":                         service(),
		etc + "self.service":                      service("Requires=self.service", "After=self.service"),
		etc + "loop1.service":                     service("Requires=loop2.service", "After=loop2.service"),
		etc + "loop2.service":                     service("Requires=loop1.service", "After=loop1.service"),
		etc + "lacks.service":                     service("Requires=none.service"),
		etc + "multi-user.target.wants/b.service": link("b.service"),
		etc + "multi-user.target.wants/in.target": link("in.target"),
		etc + "in.target":                         text("[Unit]", "Before=b.service"),
		etc + "in.target.requires/c.service":      link("c.service"),
		etc + "timers.target.wants/early.service": link("early.service"),
		etc + "early.service":                     service(),
	}
	loading(t, files, func(l *loader) {
		for name, want := range map[string]string{
			"a.service": "c b a", "self.service": "self", "loop1.service": "loop2 loop1", "lacks.service": "lacks",
		} {
			plan, err := l.plan(false, name)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, st := range plan.steps {
				got = append(got, strings.TrimSuffix(st.unit.name, ".service"))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("plan(%s) = %v, want %v", name, got, want)
			}
			if cycle := len(plan.reports) > 0; cycle != (name == "loop1.service") {
				t.Errorf("plan(%s) reports %q", name, plan.reports)
			}
			if (plan.by[name].missing != nil) != (name == "lacks.service") {
				t.Errorf("%s lacks %v", name, plan.by[name].missing)
			}
		}
		plan, err := l.plan(true, "default.target")
		if err != nil {
			t.Fatal(err)
		}
		at := map[string]int{}
		for i, st := range plan.steps {
			at[st.unit.name] = i + 1
		}
		for _, pair := range [][2]string{{"early.service", "timers.target"}, {"c.service", "in.target"}, {"in.target", "b.service"}, {"b.service", "multi-user.target"}, {"basic.target", "c.service"}} {
			if at[pair[0]] == 0 || at[pair[0]] > at[pair[1]] {
				t.Errorf("%s is step %d, %s is step %d", pair[0], at[pair[0]], pair[1], at[pair[1]])
			}
		}
		if _, err := l.plan(false, "none.service"); err == nil {
			t.Error("a unit that is not there is started")
		}
	})
}

// What a distribution has enabled does not start at a boot, but by hand and where the server has
// enabled it; its targets want none of the machine's daemons.
func TestServicesOfTheDistributionStayDown(t *testing.T) {
	const vendor = "usr/lib/systemd/system/"
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o644} }
	of := fstest.MapFS{
		vendor + "ssh.service": file("[Service]\nExecStart=/usr/sbin/sshd\n[Install]\nWantedBy=multi-user.target\n"), vendor + "cron.service": file("[Service]\nExecStart=/usr/sbin/cron\n"),
		vendor + "dbus.service": file("[Service]\nExecStart=/usr/bin/dbus\n"), vendor + "multi-user.target": file("[Unit]\nRequires=basic.target\nWants=dbus.service\n"),
		vendor + "basic.target": file(""), vendor + "multi-user.target.wants/getty.target": file(""),
	}
	of[vendor+"basic.target"].Data = []byte("[Unit]\n")
	base := Tree{}
	for _, name := range []string{"ssh.service", "cron.service"} {
		base[etc+"multi-user.target.wants/"+name] = Node{Mode: fs.ModeSymlink | 0o777, Link: "/" + vendor + name}
	}
	layer := Tree{
		etc + "multi-user.target.wants/own.service":  {Mode: fs.ModeSymlink | 0o777, Link: "/" + etc + "own.service"},
		etc + "own.service":                          text("[Service]", "ExecStart=/bin/own"),
		etc + "multi-user.target.wants/cron.service": {Mode: fs.ModeSymlink | 0o777, Link: "/lib/systemd/system/cron.service"},
	}
	s := New(Config{Base: base})
	s.base = base
	l, err := s.newLoader(storedFiles{view{layer, base, machine{FS: of}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, boot := range []bool{true, false} {
		plan, err := l.plan(boot, "multi-user.target")
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]bool{"own.service": true, "cron.service": true, "ssh.service": !boot, "dbus.service": false} {
			if got := plan.by[name] != nil; got != want {
				t.Errorf("plan(boot %t) has %s: %t, want %t", boot, name, got, want)
			}
		}
	}
	if state, err := l.fileState("ssh.service"); state != "enabled" || err != nil {
		t.Errorf("fileState = %q, %v", state, err)
	}
}

// FuzzUnit reads unit files of any content.
func FuzzUnit(f *testing.F) {
	f.Add("[Unit]\nAfter=a b\n[Service]\nExecStart=-\nRestartSec=1min 5s\nEnvironment=\"a=b c\" d\n[Install]\nWantedBy=multi-user.target\n")
	f.Add("[\n=\n\\\n]\nExecStart=@@\n")
	f.Add("[Service]\nExecStart=/a \\x %i ${A} $B '\nConditionPathExistsGlob=/*/*\nStandardOutput=file:\n[Unit]\nConditionKernelVersion=>\n")
	f.Fuzz(func(t *testing.T, text string) {
		l := &loader{about: map[byte]string{}, f: storedFiles{view{Tree{}, Tree{}, machine{}}}, units: map[string]unit{}}
		for range unitDirs {
			l.dirs = append(l.dirs, map[string]bool{})
		}
		u := unit{name: "x@y.service", names: []string{"x@y.service"}, keys: map[string][]string{}}
		u.parse("etc/systemd/system/x@y.service", text)
		l.expand(&u)
		for key := range u.keys {
			u.duration(key, startInterval)
			u.words(key)
			u.is(key)
		}
		for _, c := range u.commands {
			if c.err != nil {
				continue
			}
			if args, err := c.argv([]string{"A=b 'c"}); err == nil && (len(args) == 0 || args[0] == "") {
				t.Errorf("the command %v has no program", c)
			}
		}
		u.installs()
		u.startLimit()
		_, _ = u.outputs() // errors are fine
		_, _ = u.input()
		_, _ = u.credential(l.f)
		_, _ = u.variables(l.f, nil)
		l.unmet(u, "Condition")
		assignmentsOf(text)
	})
}
