package lcm

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/metalab-dev/metalab/agent/lcm/play"
)

// failure returns the task that has ended a play and its message. Where there is none, because
// Ansible has not come to the end of the play, it returns the end of the output.
func (a *agent) failure(temporary, output string, hide redactor) string {
	var f play.Failure
	text, err := a.System.ReadFile(path.Join(temporary, play.FailureFile))
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
