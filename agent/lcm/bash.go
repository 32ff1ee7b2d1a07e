package lcm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/agent/sys"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// shell is the interpreter of bash items.
const shell = "/bin/bash"

// paramsOfBash are the params that are no variable of a script's environment.
var paramsOfBash = []string{item.ParamScript, item.ParamURL, item.ParamSHA256, item.ParamPath, item.ParamArgs, item.ParamTimeout}

// bash executes an item of the runner bash: a script by its text, its URL or its path. All
// other params are in its environment.
func (a *agent) bash(ctx context.Context, m *lcmv1.LCMMachine, it lcmv1.LCMStateItem, log *itemLog) (out result) {
	p := it.Params
	script := []byte(p[item.ParamScript])
	if len(script) == 0 && p[item.ParamURL] != "" {
		var err error
		if script, err = a.fetch(ctx, m, p[item.ParamURL], p[item.ParamSHA256]); err != nil {
			return failed(err)
		}
	}
	file := p[item.ParamPath]
	if len(script) > 0 {
		dir, remove, err := a.temporary(sys.File{Name: "script", Mode: 0o700, Content: script})
		if err != nil {
			return failed(err)
		}
		defer func() { out = remove(out) }()
		file = path.Join(dir, "script")
	}
	if !path.IsAbs(file) {
		return failed(fmt.Errorf("%s %q: give %s, %s, or the absolute path of a script", item.ParamPath, file, item.ParamScript, item.ParamURL))
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if !slices.Contains(paramsOfBash, name) {
			env = append(env, name+"="+p[name])
		}
	}
	var text tail
	output := io.MultiWriter(&text, log)
	code, err := a.System.Exec(ctx, sys.Command{
		Args: append([]string{shell, a.System.Path(file)}, strings.Fields(p[item.ParamArgs])...),
		Env:  env, Stdout: output, Stderr: output,
	})
	if err != nil {
		return failed(errors.Join(err, errors.New(text.last())))
	}
	return result{code: code, message: text.last()}
}

// temporary writes files to a new directory in memory that only the superuser reads. The
// function that it returns removes them, and adds a failure to a result.
func (a *agent) temporary(files ...sys.File) (dir string, remove func(result) result, err error) {
	dir = path.Join(runDir, "item")
	remove = func(r result) result {
		if err := a.System.Remove(dir); err != nil {
			return result{code: max(r.code, 1), message: err.Error() + "\n" + r.message, data: r.data}
		}
		return r
	}
	all := []sys.File{{Name: runDir, Mode: fs.ModeDir | 0o700}, {Name: dir, Mode: fs.ModeDir | 0o700}}
	for _, f := range files {
		f.Name = path.Join(dir, f.Name)
		all = append(all, f)
	}
	if err := errors.Join(a.System.Remove(dir), a.System.Put(all...)); err != nil {
		return "", nil, errors.Join(err, a.System.Remove(dir))
	}
	return dir, remove, nil
}

// tail is the end of a command's output.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const maxOutput = 64 << 10 // bytes that are remembered of an output

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p[max(0, len(p)-maxOutput):]...)
	if over := len(t.b) - maxOutput; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

// text returns the output, or its end.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.b), "?")
}

// last returns the last lines, as much as a message holds.
func (t *tail) last() string {
	text := strings.TrimSpace(t.text())
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[len(text)-maxMessage:], "")
		if _, lines, ok := strings.Cut(text, "\n"); ok {
			text = lines
		}
	}
	return text
}
