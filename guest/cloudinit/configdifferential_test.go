package cloudinit_test

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/guest/cloudinit"
	"github.com/metalab-dev/metalab/guest/debian"
	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
	"github.com/metalab-dev/metalab/scenarios/sample"
)

//go:embed testdata/config.py
var configDriver string

const debian12 = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\nID=debian\n"

// unstored is a sandbox.Store that keeps nothing.
type unstored struct{}

func (unstored) Load() ([]byte, error) { return nil, nil }
func (unstored) Save([]byte) error     { return nil }

// hostsTemplate is cloud-init's template of /etc/hosts.
const hostsTemplate = "/etc/cloud/templates/hosts.debian.tmpl"

// server returns the files of a Debian server.
func server(t *testing.T) sandbox.Tree {
	t.Helper()
	hosts, err := os.ReadFile(hostsTemplate)
	if err != nil {
		t.Fatal(err)
	}
	files := sandbox.Tree{}
	for name, n := range debian.Base(debian12) {
		files[name] = n
	}
	files[hostsTemplate[1:]] = sandbox.File(0o644, string(hosts))
	return files
}

// asRoot returns files as cloudinit has them.
func asRoot(files sandbox.Tree) cloudinit.Root {
	names := func(file string) map[int]string {
		out := map[int]string{}
		for line := range strings.Lines(string(files[file].Content)) {
			f := strings.Split(line, ":")
			if id, err := strconv.Atoi(f[2]); err == nil {
				out[id] = f[0]
			}
		}
		return out
	}
	users, groups := names("etc/passwd"), names("etc/group")
	out := cloudinit.Root{}
	for name, n := range files {
		if n.Mode.IsDir() || n.Mode.IsRegular() {
			out[name] = cloudinit.File{Content: n.Content, Mode: n.Mode & (fs.ModeDir | fs.ModePerm), Owner: users[n.UID], Group: groups[n.GID]}
		}
	}
	return out
}

// places are the directories whose files are compared, as in testdata/config.py.
var places = []string{"etc", "home", "root", "srv", "opt", "var/lib/x"}

// ours returns what Configure changes, as testdata/config.py does.
func ours(t *testing.T, base sandbox.Tree, text string) (map[string]string, cloudinit.Result) {
	t.Helper()
	root, before := asRoot(base), asRoot(base)
	r := cloudinit.Configure(cloudinit.Instance{Source: cloudinit.NoCloud, ID: "i-1", Hostname: "node-7", MetaData: map[string]any{"local-hostname": "node-7"}, UserData: []byte("#cloud-config\n" + text)}, root)
	out := map[string]string{}
	for name, f := range root {
		old, was := before[name]
		if was && bytes.Equal(old.Content, f.Content) && old.Mode == f.Mode && old.Owner == f.Owner && old.Group == f.Group {
			continue
		}
		if !slices.ContainsFunc(places, func(p string) bool { return strings.HasPrefix(name, p+"/") }) {
			continue
		}
		kind := map[fs.FileMode]string{fs.ModeDir: "d", fs.ModeSymlink: "l"}[f.Mode.Type()]
		out[name] = fmt.Sprintf("%s%04o %s:%s %s", kind, f.Mode.Perm(), f.Owner, f.Group, f.Content)
	}
	return out, r
}

// volatile are texts that differ between two runs of cloud-init: times, days of passwords, and salts.
var volatile = []struct {
	of   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`(?m)^# (Created|Added) by cloud-init .*\n\n?`), ""},
	{regexp.MustCompile(`(?m)^# User rules for .*\n`), ""},
	{regexp.MustCompile(`(?m)^([^:\n]+:[^:\n]*):\d+:(\d*:\d*:\d*:\d*:\d*:)$`), "$1:DAY:$2"},
}

// commandOfRoot replaces the shell of a login as root.
var commandOfRoot = regexp.MustCompile(`command="(\\.|[^"\\])*"`)

// accountFiles have a line for each account: of these only the new ones are compared and shown, and
// that the others are still there.
var accountFiles = []string{"etc/passwd", "etc/group", "etc/shadow", "etc/gshadow"}

// news returns the lines of a file that another text does not have, and says how many of that are gone.
func news(text, old string) string {
	have := map[string]bool{}
	for line := range strings.Lines(old) {
		have[line] = true
	}
	out, kept := "", 0
	for line := range strings.Lines(text) {
		if have[line] {
			kept++
			continue
		}
		out += line
	}
	return fmt.Sprintf("%s(%d lines are gone)", out, len(have)-kept)
}

// normal returns the text of a change without what differs between two runs.
func normal(name, change, old string) string {
	mode, rest, _ := strings.Cut(change, " ")
	owner, content, _ := strings.Cut(rest, " ")
	if slices.Contains(accountFiles, name) {
		content = news(content, old)
	}
	if strings.HasPrefix(name, "etc/") {
		for _, v := range volatile {
			content = v.of.ReplaceAllString(content, v.with)
		}
	}
	switch {
	case path.Base(name) == "authorized_keys": // a set in Python has no order
		lines := slices.Sorted(strings.Lines(commandOfRoot.ReplaceAllString(content, "COMMAND")))
		content = strings.Join(lines, "")
	case name == "etc/hosts":
		out := ""
		for line := range strings.Lines(content) {
			if words := strings.Fields(line); len(words) > 0 && words[0][0] != '#' {
				out += strings.Join(words, " ") + "\n"
			}
		}
		content = out
	}
	if strings.HasPrefix(name, "etc/sudoers.d/") {
		content = strings.TrimLeft(strings.ReplaceAll(content, "\n\n", "\n"), "\n")
	}
	return mode + " " + owner + " " + content
}

// Files, users, groups, names and keys that a cloud-config makes are those of Debian 12's cloud-init, whose
// modules run in a server. One process of Python applies all cases.
func TestConfigIsThatOfDebiansCloudInit(t *testing.T) {
	prerequisites.Need(t, "cloud-init 22.4.2")
	prerequisites.Need(t, "user namespaces")
	if os.Getuid() != 0 {
		return // only the superuser can give files to others
	}
	cases := sample.Rows(t, "the cloud-configs of cloud-init", 25, configCases)
	question, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	base := server(t)
	page, err := os.ReadFile("../../docs/cloud-init.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, reason := range configDifferences {
		if !slices.Contains(configCases, name) || !strings.Contains(strings.Join(strings.Fields(string(page)), " "), reason) {
			t.Errorf("%s: it is no case, or docs/cloud-init.md does not say %q", name, reason)
		}
	}
	s := sandbox.New(sandbox.Config{Base: base, Store: unstored{}, Dir: filepath.Join(t.TempDir(), "root"), RequireLimits: true})
	defer s.Close()
	var answer, log bytes.Buffer
	code, err := s.Exec(t.Context(), sandbox.Command{Args: []string{"/usr/bin/python3", "-W", "ignore", "-c", configDriver}, Stdin: bytes.NewReader(question), Stdout: &answer, Stderr: &log})
	if err != nil || code != 0 {
		t.Fatalf("cloud-init: code %d, %v\n%s", code, err, log.String())
	}
	var all []map[string]*string
	if err := json.Unmarshal(answer.Bytes(), &all); err != nil {
		t.Fatalf("%v\n%s", err, answer.String())
	}
	if testing.Verbose() {
		t.Log(log.String())
	}
	for n, changes := range all {
		got, r := ours(t, base, cases[n])
		want := map[string]string{}
		for name, change := range changes {
			if change == nil {
				want[name] = "removed"
				continue
			}
			head, content, _ := strings.Cut(*change, " ")
			owner, encoded, _ := strings.Cut(content, " ")
			text, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil {
				t.Fatal(err)
			}
			if head[0] == 'd' && got[name] == "" { // directories exist by the files in them
				continue
			}
			if path.Base(name) == "authorized_keys" && len(text) == 0 {
				continue // docs/cloud-init.md: a file without a key is not written
			}
			want[name] = normal(name, head+" "+owner+" "+string(text), string(base[name].Content))
		}
		for name, change := range got {
			got[name] = normal(name, change, string(base[name].Content))
		}
		diff := cmp.Diff(want, got)
		known, is := configDifferences[cases[n]]
		switch {
		case diff != "" && !is:
			t.Errorf("%s\n(-cloud-init +ours):\n%s\nignored: %q", cases[n], diff, r.Ignored)
		case diff == "" && is:
			t.Errorf("%s no longer differs: drop it from configDifferences (%s)", cases[n], known)
		}
	}
}
