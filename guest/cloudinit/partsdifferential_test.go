package cloudinit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// userDataCorpus are user data that cloud-init splits into the same parts.
func userDataCorpus() []string {
	zip := base64.StdEncoding.EncodeToString(zipped("#!/bin/sh\n"))
	out := []string{
		"#cloud-config\na: 1\n", "\n #Cloud-Config\na: 1", "#cloud-config\n\xff", "#!/bin/sh\r\necho\r\n", "#upstart-job\nx", "#cloud-boothook\n#!/x",
		"#part-handler\nx", "## Template: Jinja\n#cloud-config\n", "## template:jinja\n", "#cloud-config-jsonp\n[]", "plain", "#cloud-configuration",
		string(zipped("#cloud-config\na: 1\n")), string(zipped("")), "#include\n# nothing\n\n",
		"#cloud-config-archive\n- '#!/bin/sh'\n- {content: 'a: 1'}\n- {type: text/cloud-boothook, filename: hook, content: x}\n- 7\n- null\n- '#include http://x/'\n- {content: !!binary aGkA}\n- !!binary aGkA\n- {}\n- {type: '', content: ''}\n",
		"#cloud-config-archive\na: b", "#cloud-config-archive\n", "#cloud-config-archive\n[x",
		"#cloud-config\na: 'MIME-Version: 1'", "Mime-Version: 1.0\nContent-Type: text/cloud-config\n\na: 1", "MIME-Version: 1.0\n\n#!/x",
		mixed("\n#!/x", "Content-Type: text/cloud-config\n\n#!/x", "Content-Type: text/x-shellscript\n\n#cloud-config\na: 1", "Content-Type: text/x-shellscript\n\nno script"),
		mixed("Content-Type: application/x-gzip; name=z\nContent-Transfer-Encoding: base64\n\n"+zip, "Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n"+zip),
		mixed("Content-Disposition: attachment;\n filename=\"a b/c\"\n\n#!/x", "Content-Type: TEXT/Cloud-Config; charset=\"us-ascii\"\nContent-Transfer-Encoding: quoted-printable\n\na: =31\n"),
		mixed("Content-Type: text/cloud-config-archive\n\n- '#!/x'\n", "\n#cloud-config-archive\n- 'b: 2'\n", "Content-Type: nonsense\n\n#!/x", "no header\n\n#!/x"),
		mixed(strings.ReplaceAll(strings.TrimPrefix(mixed("Content-Type: text/plain\n\n#!/x\n", "\n#!/y"), "MIME-Version: 1.0\n"), "=b=", "=n="), "\n#!/z"),
		strings.TrimSuffix(mixed("\n#!/x\n"), "\n--=b=--\n"), strings.ReplaceAll(mixed("\n#!/x", "\n#!/y\n\n"), "\n", "\r\n"),
		"preamble\n" + mixed("\n#!/x"), mixed("\n#!/x") + "epilogue\n", strings.TrimPrefix(mixed("\n#!/x"), "MIME-Version: 1.0\n"),
		"#cloud-config\nlaunch-index: 2\n", "#cloud-config\nlaunch-index: '1'\n", "#cloud-config\nlaunch-index: x\n", "#!/bin/sh\n# launch-index\n",
		mixed("Launch-Index: 1\n\n#!/one", "Launch-Index: 2\n\n#!/two", "Launch-Index: x\n\n#!/none", "\n#!/all", "Launch-Index: 2\n\n#cloud-config\nlaunch-index: 1\n",
			"Launch-Index:  1 \n\n#cloud-config\nlaunch-index: 2\n", "\n#cloud-config\nlaunch-index: true\n", "\n#cloud-config\nlaunch-index: 2.5\n"),
		"#cloud-config-archive\n- {launch-index: 1, content: '#!/one'}\n- {launch-index: 2, content: '#!/two'}\n- {content: 'launch-index: 2'}\n",
	}
	return out
}

// launchOf returns the launch-index of the server for which user data of the corpus are: 1 where they
// have any.
func launchOf(text string) any {
	if strings.Contains(strings.ToLower(text), "launch-index") {
		return int64(1)
	}
	return nil
}

func TestPartsAreThoseOfCloudInit(t *testing.T) {
	python := prerequisites.Need(t, "cloud-init 22.4.2")
	corpus := userDataCorpus()
	var encoded []any
	for _, text := range corpus {
		encoded = append(encoded, []any{base64.StdEncoding.EncodeToString([]byte(text)), launchOf(text)})
	}
	question, err := json.Marshal(encoded)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-W", "ignore", "testdata/parts.py")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(question), os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all [][][3]string
	if err := json.Unmarshal(answer, &all); err != nil {
		t.Fatal(err)
	}
	for n, parts := range all {
		if parts == nil {
			t.Errorf("%q: cloud-init fails", corpus[n])
			continue
		}
		var got, want []string
		i := Instance{MetaData: dict{"launch-index": launchOf(corpus[n])}}
		for _, p := range i.launched(partsOf([]byte(corpus[n]), "the user data", &Result{})) {
			got = append(got, p.name+" "+p.kind+" "+strings.TrimSpace(string(p.content)))
		}
		for _, p := range parts {
			kind := p[1]
			if _, why := unapplied[kind]; !why && !applied[kind] {
				kind = unknown // of which nothing is done
			}
			content, err := base64.StdEncoding.DecodeString(p[2])
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, p[0]+" "+kind+" "+strings.TrimSpace(string(content)))
		}
		if d := cmp.Diff(got, want); d != "" {
			t.Errorf("%.300q (-got +want):\n%s", corpus[n], d)
		}
	}
}
