package lcm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/agent/lcm/play"
	"github.com/metalab-dev/metalab/agent/sys"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// ansiblePackage is the package that has ansible-playbook, in Debian and Ubuntu.
const ansiblePackage = "ansible"

// ansible executes an item of the runner ansible: a playbook on this server, with one
// variable, values. It has no terminal and no input. The values are in a file in memory
// that is removed after the play; values of a Secret are in no object, log or command line.
func (a *agent) ansible(ctx context.Context, _ *lcmv1.LCMMachine, it lcmv1.LCMStateItem, log *itemLog) (out result) {
	p := it.Params
	dir, playbook, program := p[item.ParamPath], p[item.ParamPlaybook], orElse(p[item.ParamAnsible], item.AnsiblePlaybook)
	if !path.IsAbs(dir) {
		return failed(fmt.Errorf("%s %q: give the absolute path of the playbook's directory", item.ParamPath, dir))
	}
	if !fs.ValidPath(playbook) {
		return failed(fmt.Errorf("%s %q: give the path of a file below %s", item.ParamPlaybook, playbook, dir))
	}
	if !path.IsAbs(program) {
		return failed(fmt.Errorf("%s %q: give the absolute path of ansible-playbook", item.ParamAnsible, program))
	}
	if err := a.checkModule(dir, p[item.ParamSHA256]); err != nil {
		return failed(err)
	}
	values, hidden, err := a.values(ctx, dir, p)
	if err != nil {
		return failed(err)
	}
	run := play.Play{Program: program, Dir: dir, Playbook: playbook, Values: values, Secret: hidden, KeepUser: a.KeepUser}
	temporary, remove, err := a.temporary(run.Files()...)
	if err != nil {
		return failed(err)
	}
	defer func() { out = remove(out) }()
	hide := newRedactor(hidden)
	log.mask(hide)
	var text tail
	output := io.MultiWriter(&text, log)
	command := run.Command(a.System.Path(temporary))
	command.Stdout, command.Stderr = output, output
	code, err := a.System.Exec(ctx, command)
	switch {
	case err != nil && ctx.Err() == nil:
		return failed(err)
	case code == sys.CodeNotFound:
		return result{code: code, message: fmt.Sprintf("%s is not on this server: install the package %s", program, ansiblePackage)}
	}
	end := hide.redact(text.text())
	out = result{code: code, data: recap(end)}
	if code != 0 {
		out.message = a.failure(temporary, end, hide)
	}
	if err != nil && code == 0 { // its deadline has ended it
		out.code = 1
	}
	return out
}

// checkModule returns an error unless the archive with the SHA-256 sum was unpacked in the
// directory. "" accepts any directory.
func (a *agent) checkModule(dir, sum string) error {
	if sum == "" {
		return nil
	}
	got, err := a.System.ReadFile(dir + sumSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s %q: no archive was unpacked there: its item of the runner downloader comes first", item.ParamPath, dir)
	}
	if err != nil {
		return err
	}
	if text := strings.TrimSpace(string(got)); text != sum {
		return fmt.Errorf("%s %q: %w", item.ParamPath, dir, &module.SumError{Got: text, Want: sum})
	}
	return nil
}

// values returns the values of a play, and those of its Secret alone, as text.
func (a *agent) values(ctx context.Context, dir string, p map[string]string) (values map[string]any, hidden map[string]string, err error) {
	if text := p[item.ParamValues]; text != "" {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber() // a float64 would round long integers
		if err := d.Decode(&values); err != nil {
			return nil, nil, fmt.Errorf("%s: give a JSON object", item.ParamValues) // the decoder's error may quote a value
		}
	}
	ref := p[item.ParamSecretRef]
	if ref == "" {
		return values, nil, nil
	}
	namespace, name, ok := strings.Cut(ref, "/")
	if !ok || namespace == "" || name == "" {
		return nil, nil, fmt.Errorf("%s %q: give NAMESPACE/NAME of a Secret", item.ParamSecretRef, ref)
	}
	s, err := a.api.secret(ctx, namespace, name)
	if err != nil {
		return nil, nil, err
	}
	if older(s.Metadata.ResourceVersion, p[item.ParamSecretVersion]) {
		return nil, nil, fmt.Errorf("Secret %s has resourceVersion %s, and the item needs %s: the API server is behind", ref, s.Metadata.ResourceVersion, p[item.ParamSecretVersion])
	}
	schema, err := a.schema(dir)
	if err != nil {
		return nil, nil, err
	}
	hidden = map[string]string{}
	for key, data := range s.Data {
		hidden[key] = string(data)
	}
	return schema.Merge(values, s.Data), hidden, nil
}

// older reports whether a resourceVersion is before another; versions that are no numbers
// are not compared.
func older(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x < y
}

// schema returns the schema of the module in a directory; nil if it has none, or if there
// is no module but a playbook alone.
func (a *agent) schema(dir string) (*module.Schema, error) {
	text, err := a.System.ReadFile(path.Join(dir, module.MetadataFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := module.ParseMetadata(text)
	if err != nil || m.Schema == "" {
		return nil, err
	}
	if text, err = a.System.ReadFile(path.Join(dir, m.Schema)); err != nil {
		return nil, err
	}
	return module.ParseSchema(text)
}

// recapLine is a line of the play recap.
var recapLine = regexp.MustCompile(`^localhost +: (ok=\d+.*)$`)

// recap returns the numbers of the play recap: ok, changed, failed and others.
func recap(output string) map[string]any {
	var out map[string]any
	for line := range strings.Lines(output) {
		m := recapLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		out = map[string]any{}
		for word := range strings.FieldsSeq(m[1]) {
			name, text, _ := strings.Cut(word, "=")
			if n, err := strconv.Atoi(text); err == nil {
				out[name] = n
			}
		}
	}
	return out
}
