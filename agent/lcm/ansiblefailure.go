package lcm

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// callbackDir has the callback and the file that it writes, below the directory of a play's
// temporary files. A callback of our own leaves the output as people read it: that named json
// prints nothing until the end, and one object.
const callbackDir = "callback"

// failureCallback writes failure.json beside itself.
//
//go:embed lcm_failure.py
var failureCallback []byte

// playFailure is the failure that has ended a play, as the callback writes it.
type playFailure struct {
	Task    string `json:"task"`
	Item    string `json:"item"` // of a loop, the first that has failed
	More    int    `json:"more"` // other items that have failed
	Message string `json:"message"`
	Stderr  string `json:"stderr"`
}

// String returns the failure in one text.
func (f playFailure) String() string {
	out := f.Task + ": "
	if f.Item != "" {
		out += "item " + f.Item + ": "
	}
	out += f.Message
	if f.Stderr != "" {
		out += ": " + f.Stderr
	}
	if f.More > 0 {
		out += fmt.Sprintf(" (%d items have failed)", f.More+1)
	}
	return out
}

// failure returns the task that has ended a play and its message. Where there is none, because
// Ansible has not come to the end of the play, it returns the end of the output.
func (a *agent) failure(temporary, output string, hide redactor) string {
	var f playFailure
	text, err := a.System.ReadFile(path.Join(temporary, callbackDir, "failure.json"))
	if err == nil && json.Unmarshal(text, &f) == nil {
		return hide.redact(f.String())
	}
	var t tail
	_, _ = t.Write([]byte(output)) // it takes all
	return missingCollection(output) + t.last()
}

// unresolvedText is that of ansible-core 2.14; 2.19 begins it with a capital letter.
var unresolvedText = regexp.MustCompile(`(?i)couldn't resolve module/action '([^']+)'`)

// missingCollection returns a line about the module that a playbook names and Ansible does not
// find: nearly all such modules are in collections, which ansible-core has not. It returns "" for
// other outputs.
func missingCollection(output string) string {
	m := unresolvedText.FindStringSubmatch(output)
	if m == nil || strings.HasPrefix(m[1], "ansible.builtin.") {
		return ""
	}
	where := "it is in a collection"
	if parts := strings.Split(m[1], "."); len(parts) > 2 {
		where = "it is in the collection " + parts[0] + "." + parts[1]
	}
	return fmt.Sprintf("the module %s is not on this server: %s, which the package %s has and ansible-core has not, or its name is misspelt\n", m[1], where, ansiblePackage)
}
