// Package play is how the playbook of a module runs on a server: the command, its environment, the
// file of its variables, and the callback that records its failure. Agents and labctl module run
// share it, so that a module does for both the same. It executes nothing, and knows no API.
package play

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/agent/sys"
)

// Play is a run of a playbook.
type Play struct {
	Program  string // path of ansible-playbook, or its name
	Dir      string // absolute path of the module's directory
	Playbook string // path of the playbook below Dir
	Values   map[string]any
	Secret   map[string]string // those of Values that come from a Secret, as text
	KeepUser bool              // run as the present user, whatever the playbook's become
	Check    bool              // Ansible's check mode: report what would change, and change nothing
}

const (
	valuesFile = "values.yaml"
	ansibleDir = "ansible"
	// callbackDir has the callback and the file that it writes. A callback of our own leaves the
	// output as people read it: that named json prints nothing until the end, and one object.
	callbackDir = "callback"
)

// FailureFile is the file below the temporary directory that has the Failure which has ended a play.
const FailureFile = callbackDir + "/failure.json"

// failureCallback writes failure.json beside itself.
//
//go:embed lcm_failure.py
var failureCallback []byte

// Files returns the temporary files of the play, with paths below a directory that only the
// superuser may read. They are removed after the play, values of Secrets with them.
func (p Play) Files() []sys.File {
	return []sys.File{
		{Name: valuesFile, Mode: 0o600, Content: p.variables()},
		{Name: ansibleDir, Mode: fs.ModeDir | 0o700},
		{Name: callbackDir, Mode: fs.ModeDir | 0o700},
		{Name: callbackDir + "/lcm_failure.py", Mode: 0o600, Content: failureCallback},
	}
}

// Command returns the command of the play. temporary is the directory of Files as commands see it.
// No value is in its arguments or environment.
func (p Play) Command(temporary string) sys.Command {
	at := func(name string) string { return path.Join(temporary, name) }
	args := []string{p.Program, "--connection", "local", "--inventory", "localhost,", "--extra-vars", "@" + at(valuesFile)}
	if p.Check {
		args = append(args, "--check")
	}
	return sys.Command{
		Args: append(args, p.Playbook),
		Dir:  p.Dir,
		Env: []string{
			"ANSIBLE_NOCOLOR=1", "ANSIBLE_FORCE_COLOR=0", "ANSIBLE_PYTHON_INTERPRETER=auto_silent", "ANSIBLE_STDOUT_CALLBACK=default",
			// Ansible's own path of callbacks comes behind.
			"ANSIBLE_CALLBACK_PLUGINS=" + at(callbackDir) + ":~/.ansible/plugins/callback:/usr/share/ansible/plugins/callback",
			"ANSIBLE_RETRY_FILES_ENABLED=0", "ANSIBLE_LOCALHOST_WARNING=0",
			// Modules get their arguments in files, and write them to syslog.
			"ANSIBLE_LOCAL_TEMP=" + at(ansibleDir), "ANSIBLE_REMOTE_TEMP=" + at(ansibleDir),
			"ANSIBLE_NO_TARGET_SYSLOG=1", "ANSIBLE_LOG_PATH=/dev/null",
		},
	}
}

// variables returns the file of the play's variables: YAML, whose subset JSON is. A value of a
// Secret that looks like a template is tagged, so that Ansible does not execute it.
func (p Play) variables() []byte {
	var b bytes.Buffer
	b.WriteString("{")
	if p.KeepUser {
		b.WriteString(`"ansible_become": false, `)
	}
	b.WriteString(`"values": {`)
	for i, name := range slices.Sorted(maps.Keys(p.Values)) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.Write(encode(name))
		b.WriteString(": ")
		if text, secret := p.Secret[name]; secret && strings.Contains(text, "{") {
			if _, isText := p.Values[name].(string); isText {
				b.WriteString("!unsafe ")
			}
		}
		b.Write(encode(p.Values[name]))
	}
	b.WriteString("}}\n")
	return b.Bytes()
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // it was decoded from JSON, or is a text
	}
	return b
}
