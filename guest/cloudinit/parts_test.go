package cloudinit

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// partsText lists parts as cloud-init's walk does: name, kind and content.
func partsText(parts []part) (out []string) {
	for _, p := range parts {
		out = append(out, fmt.Sprintf("%s %s %s", p.name, p.kind, p.content))
	}
	return out
}

func mixed(parts ...string) string {
	return "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"=b=\"\n\n--=b=\n" + strings.Join(parts, "\n--=b=\n") + "\n--=b=--\n"
}

// Each case is what cloud-init 22.4.2 makes of the same user data.
func TestPartsOfUserData(t *testing.T) {
	zip := base64.StdEncoding.EncodeToString(zipped("#cloud-config\na: 1\n"))
	nested := strings.ReplaceAll(strings.TrimPrefix(mixed("Content-Type: text/plain\n\n#!/bin/sh\n"), "MIME-Version: 1.0\n"), "=b=", "=n=")
	for _, tt := range []struct {
		name, data    string
		want, ignored []string
	}{
		{"config", "\n #Cloud-Config\na: 1", []string{"part-001 text/cloud-config \n #Cloud-Config\na: 1"}, nil},
		{"upstart", "#upstart-job\nx", []string{"part-001 text/plain #upstart-job\nx"}, nil},
		{"binary", "#cloud-config\n\xff", []string{"part-001 text/cloud-config #cloud-config\n\xff"}, nil},
		{"archive", "#cloud-config-archive\n- '#!/bin/sh'\n- a: 1\n  content: 'b: 2'\n- type: text/cloud-boothook\n  filename: hook\n  content: x\n- 7\n- {type: nothing, content: x}\n- {content: [x]}\n- {content: !!binary aGkA}\n- 'c: 3'\n- !!binary aGkA\n- '#include http://x/'",
			[]string{
				"part-001 text/x-shellscript #!/bin/sh", "part-002 text/cloud-config b: 2", "hook text/cloud-boothook x",
				"part-004 text/plain hi\x00", "part-005 text/cloud-config c: 3", "part-006 text/x-include-url #include http://x/",
			},
			[]string{
				"entry 4 of the user data is not applied: line 8: it is no text or mapping",
				`entry 5 of the user data is not applied: type "nothing" is no MIME type: give one such as text/cloud-config`,
				"entry 6 of the user data is not applied: line 10: content: its content is no text",
				"entry 9 of the user data is not applied: line 13: it is no text or mapping",
			}},
		{"archive that is no list", "#cloud-config-archive\na: b", nil, []string{"the user data is not applied: line 2: it is no list"}},
		{"include", "#include-once\nhttp://x/\n#include http://y/\n# comment\n\n", nil, []string{
			`"http://x/" of #include is not fetched: servers of a lab fetch no user data, so put what is there into them`,
			`"http://y/" of #include is not fetched: servers of a lab fetch no user data, so put what is there into them`,
		}},
		{"message without parts", "Mime-Version: 1.0\nContent-Type: text/cloud-config\n\na: 1", []string{"part-001 text/cloud-config a: 1"}, nil},
		{"config that names MIME-Version", "#cloud-config\na: 'MIME-Version: 1'", []string{"part-001 text/cloud-config #cloud-config\na: 'MIME-Version: 1'"}, nil},
		{"message without MIME-Version", strings.TrimPrefix(mixed("\na: 1"), "MIME-Version: 1.0\n"), []string{"part-001 text/plain " + strings.TrimPrefix(mixed("\na: 1"), "MIME-Version: 1.0\n")}, nil},
		{"nested", mixed("Content-Type: text/cloud-config\n\na: 1", nested, "\n#cloud-config-archive\n- 'b: 2'"),
			[]string{"part-001 text/cloud-config a: 1", "part-002 text/x-shellscript #!/bin/sh\n", "part-003 text/cloud-config b: 2"}, nil},
		{"compressed part", mixed("Content-Type: application/x-gzip; name=z\nContent-Transfer-Encoding: base64\n\n"+zip, "Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n"+zip),
			[]string{"z text/cloud-config #cloud-config\na: 1\n", "part-002 text/plain " + string(zipped("#cloud-config\na: 1\n"))}, nil},
		{"compressed part that is none", mixed("Content-Type: application/gzip\n\nx", "\n#!/x"), []string{"part-001 text/x-shellscript #!/x"}, []string{"part-001 is not applied: gzip: unexpected EOF"}},
		{"type of a template", mixed("Content-Type: text/cloud-config\n\n## template: jinja\na: 1"), []string{"part-001 text/cloud-config ## template: jinja\na: 1"}, nil},
		{"no last boundary", strings.TrimSuffix(mixed("\n#!/x\n"), "\n--=b=--\n"), []string{"part-001 text/x-shellscript #!/x\n"}, nil},
		{"header lines", mixed("Content-Disposition: attachment;\n filename=\"a b/c\"\nMerge-Type: x\n\n#!/x"), []string{"a b/c text/x-shellscript #!/x"}, nil},
	} {
		r := Result{}
		if got := partsText(partsOf([]byte(tt.data), "the user data", &r)); !cmp.Equal(got, tt.want) || !cmp.Equal(r.Ignored, tt.ignored) {
			t.Errorf("%s: parts differ (-got +want):\n%signored %s", tt.name, cmp.Diff(got, tt.want), cmp.Diff(r.Ignored, tt.ignored))
		}
	}
}

// What makes much of a short text is bounded, and says so.
func TestPartsAreBounded(t *testing.T) {
	deep := "Content-Type: text/plain\n\nx"
	for n := range 40 {
		b := fmt.Sprintf("b%d", n)
		deep = "Content-Type: multipart/mixed; boundary=" + b + "\n\n--" + b + "\n" + deep + "\n--" + b + "--\n"
	}
	for name, tt := range map[string]struct{ data, want string }{
		"deep": {"MIME-Version: 1.0\n" + deep, "more than 16 MIME messages are within each other"},
		"many": {"#cloud-config-archive\n" + strings.Repeat("- x\n", 2000), "it has more than 1024 parts"},
		"bomb": {string(zipped(strings.Repeat("\x00", maxUnpacked+1))), "unpack to more than 67108864 bytes"},
		"urls": {"#include\n" + strings.Repeat("http://x/\n", 100), "80 more URLs"},
	} {
		r := Result{}
		parts := partsOf([]byte(tt.data), "the user data", &r)
		if !strings.Contains(strings.Join(r.Ignored, "\n"), tt.want) || len(parts) > maxParts {
			t.Errorf("%s: %d parts, ignored %q, want %q", name, len(parts), r.Ignored, tt.want)
		}
	}
}

// Scripts have the places, the order and the names that cloud-init gives them.
func TestScriptsOfAllKinds(t *testing.T) {
	i := Instance{ID: "i-1", VendorData: []byte("#!/bin/sh\r\necho v\r\n"), UserData: []byte(mixed(
		"Content-Type: text/x-shellscript; name=\"z/(1) a.sh\"\n\n#!/z", "Content-Type: text/x-shellscript-per-boot\n\n#!/b",
		"Content-Type: text/x-shellscript-per-once\n\n#!/o", "Content-Type: text/x-shellscript-per-instance\n\n#!/i",
		"Content-Type: text/cloud-boothook; name=h2\n\n#cloud-boothook\n#!/h", "Content-Type: text/cloud-boothook; name=h1\n\n#!/h",
		"Content-Type: text/x-shellscript; name=..\n\n#!/n", "Content-Type: text/cloud-config\n\nruncmd: [x]",
	))}
	files, r := apply(i)
	want := Result{
		Hostname: "localhost", Run: []string{"x"}, HookEnv: []string{"INSTANCE_ID=i-1"},
		Hooks:       []string{"/var/lib/cloud/instance/boothooks/h2", "/var/lib/cloud/instance/boothooks/h1"},
		BootScripts: []string{"/var/lib/cloud/scripts/per-boot/part-002"},
		Scripts: []string{
			"/var/lib/cloud/instance/scripts/vendor/part-001", "/var/lib/cloud/scripts/per-once/part-003",
			"/var/lib/cloud/scripts/per-instance/part-004", RunScript, "/var/lib/cloud/instance/scripts/z_(1)a.sh",
		},
		Ignored: []string{`.. is not applied: ".." is no name for a file`},
	}
	if d := cmp.Diff(r, want); d != "" {
		t.Error(d)
	}
	for name, want := range map[string]string{
		"var/lib/cloud/instance/scripts/vendor/part-001": "0700 root:root #!/bin/sh\necho v\n",
		"var/lib/cloud/instance/boothooks/h2":            "0700 root:root #!/h",
	} {
		if files[name] != want {
			t.Errorf("%s: %q, want %q", name, files[name], want)
		}
	}
}

func TestVendorData(t *testing.T) {
	for _, tt := range []struct{ source, vendor, user, want string }{
		{NoCloud, "#cloud-config\nhostname: v", "#cloud-config\n{}", "v"},
		{NoCloud, "#cloud-config\nhostname: v", "#cloud-config\nhostname: u", "u"},
		{NoCloud, "#cloud-config\nhostname: v", "#cloud-config\nvendor_data: {enabled: no}", "localhost"},
		{NoCloud, "#cloud-config\nhostname: v", "#cloud-config\nvendor_data: {enabled: true, disabled_handlers: [text/cloud-config]}", "localhost"},
		{ConfigDrive, `"#cloud-config\nhostname: v"`, "", "v"},
		{ConfigDrive, `{"cloud-init": "#cloud-config\nhostname: v"}`, "", "v"},
		{ConfigDrive, `{"cloud-init": ["#cloud-config\nhostname: v", "#cloud-config\nhostname: w"]}`, "", "w"},
		{ConfigDrive, `{"other": 1}`, "", "localhost"},
	} {
		if _, r := apply(Instance{Source: tt.source, VendorData: []byte(tt.vendor), UserData: []byte(tt.user)}); r.Hostname != tt.want || len(r.Ignored) > 0 {
			t.Errorf("%s %s with %s: host name %s, want %s; ignored %q", tt.source, tt.vendor, tt.user, r.Hostname, tt.want, r.Ignored)
		}
	}
	for _, tt := range []struct{ user, static, dynamic, want string }{
		{"", "hostname: v", "hostname: d", "d"},
		{"hostname: u", "hostname: v", "hostname: d", "u"},
		{"vendor_data2: {enabled: false}", "hostname: v", "hostname: d", "v"},
		{"vendor_data: {enabled: false}", "hostname: v", "hostname: d", "d"},
	} {
		text := func(s string) []byte { return []byte(`{"cloud-init": "#cloud-config\n` + s + `"}`) }
		files, r := apply(Instance{Source: ConfigDrive, UserData: []byte("#cloud-config\n" + tt.user), VendorData: text(tt.static), VendorData2: text(tt.dynamic)})
		if r.Hostname != tt.want || len(r.Ignored) > 0 {
			t.Errorf("%+v: host name %s, ignored %q", tt, r.Hostname, r.Ignored)
		}
		if files["var/lib/cloud/instance/vendor-data2.txt"] == "" {
			t.Errorf("%+v: vendor-data2.txt is missing", tt)
		}
	}
	files, r := apply(Instance{Source: ConfigDrive, VendorData: []byte(`["#!/v1", "#!/v2"]`), VendorData2: []byte(`"#!/d"`)})
	if got := files["var/lib/cloud/instance/scripts/vendor/part-001"]; !strings.HasSuffix(got, "#!/d") || len(r.Scripts) != 1 {
		t.Errorf("the vendor's scripts are %q, the first %q, want those of the dynamic data", r.Scripts, got)
	}
	if _, r := apply(Instance{Source: ConfigDrive, VendorData: []byte(`{"cloud-init": {}}`)}); len(r.Ignored) != 1 {
		t.Errorf("ignored %q", r.Ignored)
	}
}
