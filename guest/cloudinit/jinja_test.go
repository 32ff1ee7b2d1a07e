package cloudinit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// templateVars are the variables of the templates of the tests.
var templateVars = dict{
	"v1": dict{"local-hostname": "web-1", "region": nil, "public_ssh_keys": []any{"A", "B"}},
	"ds": dict{"meta_data": dict{
		"local-hostname": "web-1.example.com", "a.b": dict{"c": int64(1)}, "name": "it's", "n": int64(7), "f": 1.5, "yes": true,
		"list": []any{"b", "A", int64(3), nil, []any{true, "x\ny"}}, "words": []any{"b", "A", "c"}, "text": "Ab cd-ef\nä \U0001f600 <&'\">\n",
		"nics": []any{dict{"name": "eth0", "mtu": int64(1500)}, dict{"name": "eth1", "mtu": int64(9000)}},
	}},
}

// templates are bodies of templates. The real cloud-init renders them to the same texts, or neither does.
var templates = []string{
	"{{ ds.meta_data.local_hostname }} {{ local_hostname }} {{ v1['local-hostname'] }} {{ ds.meta_data.a_b.c }} {{ ds['meta_data']['a.b'].c }}",
	"{{ nope }} {{ ds.nope }} {{ ds['no-pe'] }} {{ ds.meta_data.words[9] }} {{ nope|default('x') }} {{ region|default('x') }} {{ region|d('x', true) }}",
	"{{ nope.deeper }}", "{{ nope - x }}", "{{ nope + 1 }}", "{{ local-hostname }}", "{{ nope|upper }} {{ nope|length }} {{ nope|join }} {{ nope == nop2 }}",
	"{{ region }} {{ ds.meta_data.list }} {{ ds.meta_data.nics }} {{ ds.meta_data.yes }} {{ ds.meta_data.f }}",
	"{% for k in public_ssh_keys %}\n- {{ loop.index }}/{{ loop.length }} {{ k }}{% if not loop.last %},{% endif %}\n{% endfor %}\nend\n",
	"{% for n in ds.meta_data.nics if n.mtu > 1500 %}{{ n.name }} {{ loop.index0 }}{{ loop.revindex }}{{ loop.first }}{{ loop.previtem }}{% else %}none{% endfor %}",
	"{% for n in [] %}x{% else %}none{% endfor %} {% for a, b in ds.meta_data.nics[0].items() %}{{ a }}={{ b }};{% endfor %}",
	"{% for c in 'ab' %}{{ c }}{{ loop.cycle('x', 'y') }}{% for d in [1] %}{{ loop.index }}{% endfor %}{% endfor %}{{ c }}{{ loop }}",
	"{% for k in ds.meta_data.nics[0] %}{{ k }}{% endfor %} {% for i in 5 %}{% endfor %}", "{% for i in nope %}x{% else %}e{% endfor %}",
	"{% set x = 1 %}{% for i in [1,2] %}{% set x = i %}{{ x }}{% endfor %}{{ x }}{% if true %}{% set x = 5 %}{% endif %}{{ x }}",
	"{% set a, b = ds.meta_data.words[:2] %}{{ a ~ b }}{% set t %}in {{ a }}{% endset %}[{{ t|upper }}]",
	"{% if ds.meta_data.n == 7 and not nope %}yes{% elif 1 %}elif{% else %}no{% endif %}{% if 0 %}a{% elif 2 > 1 %}b{% else %}c{% endif %}",
	"a {# comment\n over lines #}\nb\n{#- x -#}\n c", "  {%- if 1 -%}  x  {%- endif %}  \n y\n\n", "{{- 'x' -}}  \n y {{ 'z' }}\nw", "{% if 1 +%}\nx{% endif %}\n\n",
	"{% raw %}\n{{ not }} {% this %}{% endraw %}\nz", "{%- raw -%}  {{ a }}  {%- endraw -%}  z", "}} %} { % #}", "",
	"{{ 1 + 2 * 3 - 4 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 2 ** 10 }} {{ -2 ** 2 }} {{ 2 ** -1 }} {{ 1.5 + 1 }} {{ 1e3 }} {{ 0x1f }} {{ 1_000 }} {{ 7.0 // 2 }}",
	"{{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 'a' in 'abc' }} {{ 'A' not in ds.meta_data.words }} {{ 'mtu' in ds.meta_data.nics[0] }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 1 != '1' }}",
	"{{ 'x' if 0 else 'y' }} {{ 'x' if 0 }} {{ 1 if nope else 2 if 0 else 3 }} {{ nope or 'o' }} {{ 0 and 1 }} {{ not 1 }} {{ none }} {{ None }} {{ true and [] }}",
	"{{ 'a' ~ 1 ~ none }} {{ 'a' 'b' }} {{ 'a' * 3 }} {{ [1] + [2] }} {{ [1, 2] * 2 }} {{ 3 * 'x' }} {{ 'a' + 'b' }} {{ ('a', 'b')|join('-') }} {{ [] }}",
	"{{ 'a' + 1 }}", "{{ 1 < 'a' }}", "{{ 1 / 0 }}", "{{ [1]|sum }} {{ [1, 2.5]|sum }} {{ [3, 1]|min }} {{ ['b', 'A']|max }} {{ []|max }}",
	"{{ 'aBc dEf-gH (x)'|title }}|{{ 'aBc DE'|capitalize }}|{{ ' x '|trim }}|{{ 'xxaxx'|trim('x') }}|{{ 'aaa'|replace('a', 'b') }}|{{ 'aaa'|replace('a', 'b', 2) }}|{{ 12|replace(1, 3) }}",
	"{{ 'abc'|length }} {{ ds.meta_data.words|count }} {{ ds.meta_data.words|first }} {{ 'abc'|last }} {{ []|first }} {{ 'abc'|first|upper }} {{ ds.meta_data.words|join }} {{ ds.meta_data.nics|join(', ', attribute='name') }}",
	"{{ '12'|int + 1 }} {{ 'x'|int }} {{ 'x'|int(5) }} {{ '1.9'|int }} {{ 'ff'|int(0, 16) }} {{ '0x1f'|int(base=16) }} {{ 1.9|int }} {{ '1.5'|float }} {{ 'x'|float }} {{ -3|abs }} {{ true|int }} {{ none|int }} {{ ' 7 '|int }}",
	"{{ ds.meta_data.nics|tojson }} {{ ds.meta_data.text|tojson }} {{ ds.meta_data.list|tojson }} {{ 1.0|tojson }}",
	"{{ ds.meta_data.nics|tojson(2) }}\n{{ []|tojson(indent=2) }}{{ [[]]|tojson(1) }}", "{{ nope|tojson }}",
	"{{ ds.meta_data.words|sort }} {{ ds.meta_data.words|sort(true) }} {{ ds.meta_data.words|sort(case_sensitive=true) }} {{ ds.meta_data.nics|sort(attribute='mtu', reverse=true)|map(attribute='name')|join(',') }} {{ ['a', 'A', 'b']|unique|list }} {{ [1, 2]|reverse|list }} {{ 'abc'|reverse }}",
	"{{ ['a', 'b']|map('upper')|list }} {{ ds.meta_data.nics|map(attribute='nope')|list }} {{ ds.meta_data.nics|map(attribute='nope', default='d')|join }} {{ ['aXb']|map('replace', 'X', '-')|first }}",
	"{{ 'a\nb\n\nc'|indent }}|{{ 'a\nb'|indent(2, true) }}|{{ 'a\n\nb'|indent(width=1, blank=true) }}|{{ 'a\nb'|indent('> ') }}",
	"{{ '<a href=\"x\">&'|e }} {{ '<'|escape }} {{ 'a b/c?ä'|urlencode }} {{ 1|string ~ 2 }} {{ 'abc'|list }} {{ (ds.meta_data.nics[0]|dictsort)[0][1] }} {{ ds.meta_data.nics[0]|list }}",
	"{{ nope is defined }} {{ region is none }} {{ region is defined }} {{ 1 is number }} {{ 'a' is string }} {{ [] is mapping }} {{ ds is mapping }} {{ 3 is odd }} {{ 4 is even }} {{ 6 is divisibleby 3 }} {{ 6 is divisibleby(4) }} {{ 1 is not none }} {{ true is boolean }} {{ 1 is integer }} {{ 1.0 is float }} {{ 1 is in [1] }} {{ 1 is eq 1 }} {{ 'a' is lower }} {{ nope is undefined and 1 }} {{ [] is iterable }} {{ '' is sequence }} {{ not nope is defined }} {{ true is true }}",
	"{{ 'a.b.c'.split('.')[0] }} {{ 'a b  c'.split() }} {{ 'a.b.c'.split('.', 1) }} {{ 'a.b.c'.rsplit('.', 1)[1] }} {{ 'aB'.upper() }} {{ ' a '.strip() }} {{ 'xay'.strip('xy') }} {{ 'abc'.startswith('ab') }} {{ 'abc'.endswith('c') }} {{ 'aba'.replace('a', 'x') }} {{ ','.join(['a', 'b']) }} {{ 'abc'.find('c') }} {{ 'abc'.find('x') }} {{ '12'.isdigit() }} {{ 'abca'.count('a') }}",
	"{{ ds.meta_data.get('n') }} {{ ds.meta_data.get('x', 3) }} {{ ds.meta_data.get('x') }} {{ ds.meta_data.nics[0].keys()|list }} {{ ds.meta_data.nics[0].values()|list }}",
	"{{ range(3)|list }} {{ range(1, 7, 2)|list }} {{ range(3, 0, -1)|join }} {% for i in range(2) %}{{ i }}{% endfor %}",
	"{{ 'abc'[0] }} {{ 'abc'[-1] }} {{ 'abc'[1:] }} {{ 'abc'[:-1] }} {{ 'abcd'[1:3] }} {{ ds.meta_data.words[-2:] }} {{ ds.meta_data.words.0 }} {{ 'äb'[0] }} {{ ds.meta_data.list[-1][0] }}",
	`{{ 'it\'s' }} {{ "q\"" }} {{ '\x41\u00e4\n|' }} {{ '\q' }} {{ ['it\'s', '"', '\'"', 'a\\b', "\t\x01é😀"] }}`,
	"{{ 1 }", "{{ }}", "{{ 1 + }}", "{% if %}{% endif %}", "{% if 1 %}", "{% endif %}", "{% for x %}{% endfor %}", "{{ 'a }}", "{# x", "{{ 1|nope }}", "{{ 1 is nope }}", "{{ nope() }}", "{% nope %}", "{{ 1 2 }}", "{% raw %}x",
	"{{ [1, 2][0] }} {{ (1) }} {{ (1,)|length }} {{ ()|length }} {{ [1,] }} {{ 2 ** 3 ** 2 }}", "{{ -1|abs }} {{ -ds.meta_data.n }} {{ +1 }} {{ - -1 }} {{ not not 1 }}", "{{ 1e20 }} {{ 1e16 }} {{ 123456789.125 }} {{ 0.0001 }} {{ 0.00001 }} {{ 1.0e-7 }}",
	"x\r\ny {{ 1 }}\r\n", "{{\n1\n}}\n", "no newline", "newlines\n\n\n", "{% if 1 %}\n\nx\n{% endif %}\n", "{{ ds.meta_data.text }}", "{{ 'a' if nope is defined else 'b' }}{{ (nope is defined)|string }}",
}

// notAsCloudInit are templates that cloud-init renders and a server of the lab does not, with the reason.
var notAsCloudInit = map[string]string{
	"{% do 1 %}":                           "the tag do is not supported",
	"{% macro a() %}{% endmacro %}":        "the tag macro is not supported",
	"{% with a = 1 %}{{ a }}{% endwith %}": "the tag with is not supported",
	"{{ {'a': 1} }}":                       "mappings within an expression are not supported",
	"{{ [1]|batch(2)|list }}":              "the filter batch is not supported",
	"{{ [1] is sameas 1 }}":                "the test sameas is not supported",
	"{{ dict(a=1) }}":                      "the function dict is not supported",
	"{{ 'abc'[::2] }}":                     "slices with a step are not supported",
	"{{ 'a'.zfill(3) }}":                   "the method zfill of texts is not supported",
	"{% set n = namespace(a=1) %}":         "the function namespace is not supported",
	"{{ 2 ** 60 }}":                        "is too large",
}

const templateHead = "## template: jinja\n"

// One process of Python compares all templates.
func TestTemplatesAreRenderedAsByCloudInit(t *testing.T) {
	python := prerequisites.Need(t, "cloud-init 22.4.2")
	all := map[string]string{}
	for _, body := range append(slices.Clone(templates), slices.Sorted(maps.Keys(notAsCloudInit))...) {
		all[body] = templateHead + body
	}
	question, err := json.Marshal(map[string]any{"data": templateVars, "templates": all})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-W", "ignore", "testdata/templates.py")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(question), os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]*string
	if err := json.Unmarshal(answer, &want); err != nil {
		t.Fatal(err)
	}
	vars := variables(templateVars)
	for body, template := range all {
		got, _, err := render(template, vars, new(int))
		reason := notAsCloudInit[body]
		switch w := want[body]; {
		case reason != "":
			if err == nil || !strings.Contains(err.Error(), reason) || w == nil {
				t.Errorf("%q is %q, error %v, want %q; cloud-init: %v", body, got, err, reason, w)
			}
		case w == nil && (err == nil && got != ""):
			t.Errorf("%q is %q, and cloud-init loses it", body, got)
		case w != nil && (err != nil || got != *w):
			t.Errorf("%q is\n%q, error %v, want\n%q", body, got, err, *w)
		}
	}
}

// A template that cannot be rendered names line and expression, and is lost alone.
func TestTemplateErrorsNameTheLine(t *testing.T) {
	for body, want := range map[string]string{
		"a\n{{ nope.x }}":              `line 3: "nope" is undefined`,
		"\n\n{% frob %}":               "line 4: the tag frob is not supported",
		"{# \n #}{{ 1|frob }}":         "line 3: the filter frob is not supported",
		"\n{% for i in range(3) %}\nx": "line 4: endfor is missing",
		"{{ 1":                         "line 2: the tag has no end: write }}",
	} {
		if _, _, err := render(templateHead+body, dict{}, new(int)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", body, err, want)
		}
	}
}

// A template can make loops, texts and lists without an end out of a few bytes.
func TestTemplatesAreBounded(t *testing.T) {
	double := strings.Repeat("{% set a = [a, a] %}", 40)
	for name, body := range map[string]string{
		"range":         "{{ range(10000000000)|list }}",
		"loops":         strings.Repeat("{% for i in range(1000) %}", 5) + "x" + strings.Repeat("{% endfor %}", 5),
		"text":          "{{ 'a' * 10000000000 }}",
		"texts":         "{% set a = 'xxxxxxxxxx' %}" + strings.Repeat("{% set a = a ~ a %}", 60),
		"replace":       "{% set a = 'x' * 10000 %}{{ a|replace('x', a) }}",
		"join":          "{% set a = 'x' * 10000 %}{{ a|join(a) }}",
		"indent":        "{{ 'a\nb'|indent(1000000000) }}",
		"lists":         "{% set a = [1] %}" + double + "{{ a }}",
		"json":          "{% set a = [1] %}" + double + "{{ a|tojson }}",
		"equal":         "{% set a = [1] %}" + double + "{% set b = a %}{% set a = [1] %}" + double + "{{ a == b }}",
		"json indented": "{{ [[[1]]]|tojson(100000000) }}",
		"brackets":      "{{ " + strings.Repeat("(", 100000) + " }}",
		"minus":         "{{ " + strings.Repeat("- ", 100000) + "1 }}",
		"not":           "{{ " + strings.Repeat("not ", 100000) + "1 }}",
		"attributes":    "{{ a" + strings.Repeat(".b", 100000) + " }}",
		"filters":       "{{ a" + strings.Repeat("|upper", 100000) + " }}",
		"tags":          strings.Repeat("{% if 1 %}", 10000),
		"elif":          "{% if 1 %}" + strings.Repeat("{% elif 1 %}", 10000) + "{% endif %}",
		"long":          strings.Repeat("x", maxTemplate),
	} {
		if text, _, err := render(templateHead+body, dict{}, new(int)); err == nil {
			t.Errorf("%s: %d bytes and no error", name, len(text))
		}
	}
}

// What templates make is bounded for all of them together.
func TestTemplatesShareTheirBound(t *testing.T) {
	half := "\n" + templateHead + "#!/bin/sh\n{% for i in range(300000) %}x{% endfor %}"
	_, r := apply(Instance{UserData: []byte(mixed(half, half, half))})
	if len(r.Scripts) != 1 || len(r.Ignored) != 2 {
		t.Errorf("%d scripts, ignored %q", len(r.Scripts), r.Ignored)
	}
}

// Templates have the names of the data source, with the keys that cloud-init adds.
func TestInstanceData(t *testing.T) {
	root := Root{"etc/os-release": {Content: []byte("ID=ubuntu\nVERSION_ID=\"24.04\"\nVERSION_CODENAME=noble\n")}}
	body := "{{ v1.local_hostname }} {{ local_hostname }} {{ ds.meta_data.local_hostname }} {{ ds.meta_data['local-hostname'] }} {{ instance_id }} {{ v1.region }} " +
		"{{ distro }} {{ distro_version }} {{ v1.distro_release }} {{ platform }} {{ cloud_name }} {{ cloud_id }} {{ availability_zone }} {{ subplatform }} {{ public_ssh_keys }} {{ ds.meta_data.dsmode }} {{ ds.network_json }} {{ sys_info.dist[0] }}"
	drive := Instance{
		Source: ConfigDrive, ID: "u", Hostname: "web.example.com", PublicKeys: []string{"K"}, Device: "/dev/sr0", NetworkData: []byte(`{"links": []}`),
		MetaData: dict{"uuid": "u", "hostname": "web.example.com", "availability_zone": "nova"},
	}
	noCloud, err := ParseNoCloud([]byte("instance-id: i-1\nlocal-hostname: web.example.com\nregion: north\n"))
	if err != nil {
		t.Fatal(err)
	}
	noCloud.Device = "/var/lib/cloud/seed/nocloud"
	for _, tt := range []struct {
		i    Instance
		want string
	}{
		{drive, "web web web.example.com web.example.com u None ubuntu 24.04 noble configdrive configdrive configdrive nova config-disk (/dev/sr0) ['K'] CI_MISSING_JINJA_VAR/dsmode {'links': []} ubuntu"},
		{noCloud, "web web web.example.com web.example.com i-1 north ubuntu 24.04 noble nocloud unknown nocloud None seed-dir (/var/lib/cloud/seed/nocloud) [] net CI_MISSING_JINJA_VAR/network_json ubuntu"},
	} {
		if got, _, err := render(templateHead+body, instanceData(tt.i, root), new(int)); err != nil || got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s, error %v", tt.i.Source, got, tt.want, err)
		}
	}
}

// Cloud-configs and scripts may be templates; each that cannot be rendered is lost alone, and a variable
// that there is not is named.
func TestTemplatesOfUserData(t *testing.T) {
	i := Instance{Source: NoCloud, ID: "i", Hostname: "web", MetaData: dict{"local-hostname": "web", "instance-id": "i"}, UserData: []byte(mixed(
		"\n## template: jinja\n#cloud-config\nwrite_files:\n- {path: /a, content: '{{ ds.meta_data.local_hostname }}'}\n- {path: /b, content: '{{ ds.meta_data.name }}'}",
		"Content-Type: text/jinja2; name=s\n\n## template: jinja\n#!/bin/sh\necho {{ v1.instance_id }}\n",
		"\n## template: jinja\n#cloud-config\nlocale: {{ nope.x }}",
		"\n#cloud-config\ntimezone: UTC",
	))}
	files, r := apply(i)
	want := []string{
		"part-001: its template has a variable that there is not: name",
		`part-003 is not applied: its template: line 3: "nope" is undefined`,
	}
	if !slices.Equal(r.Ignored, want) {
		t.Errorf("ignored %q, want %q", r.Ignored, want)
	}
	for name, want := range map[string]string{
		"a": "0644 root:root web", "b": "0644 root:root CI_MISSING_JINJA_VAR/name", "etc/timezone": "0644 root:root UTC\n",
		"var/lib/cloud/instance/scripts/s": "0700 root:root #!/bin/sh\necho i\n",
	} {
		if files[name] != want {
			t.Errorf("%s: %q, want %q", name, files[name], want)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, body := range templates {
		f.Add(body)
	}
	vars := variables(templateVars)
	f.Fuzz(func(t *testing.T, body string) {
		before := fmt.Sprint(vars)
		text, _, err := render(templateHead+body, vars, new(int))
		if len(text) > 2*maxWork || err != nil && text != "" {
			t.Errorf("%d bytes, error %v", len(text), err)
		}
		if fmt.Sprint(vars) != before {
			t.Error("a template has changed the variables")
		}
	})
}
