package osimage

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
	mcv1 "github.com/openshift/api/machineconfiguration/v1"
)

// PermanentError is an error that another attempt meets again.
type PermanentError struct{ Err error }

// Error implements error.
func (e *PermanentError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *PermanentError) Unwrap() error { return e.Err }

func permanent(err error) error { return &PermanentError{err} }

// Input is what Build builds of.
type Input struct {
	Containerfile string
	Config        *mcv1.MachineConfig
	Context       map[string][]byte // files of the build's context, by their paths
	// Pull returns an image of a registry.
	Pull func(ctx context.Context, ref string) (v1.Image, error)
	HTTP *http.Client // fetches the sources of ADD; nil means that none is fetched
	Log  io.Writer    // steps, for people; nil means nobody reads them
}

// stage is a stage of a Containerfile.
type stage struct {
	name  string
	image v1.Image
	root  tree // nil until a step needs it
	env   []string
}

type build struct {
	Input
	stages []*stage
	pulled map[string]v1.Image
}

// Build returns the image of the last stage of a Containerfile. The stages of the controller are
// done without a shell; of the user's instructions COPY, ADD, ENV and LABEL are. Others are a
// PermanentError.
func Build(ctx context.Context, in Input) (v1.Image, error) {
	if in.Log == nil {
		in.Log = io.Discard
	}
	parsed, userLine, err := split(in.Containerfile)
	if err != nil {
		return nil, permanent(err)
	}
	b := &build{Input: in, pulled: map[string]v1.Image{}}
	for _, p := range parsed {
		if err := b.stage(ctx, p, userLine); err != nil {
			return nil, err
		}
	}
	return b.stages[len(b.stages)-1].image, nil
}

// note writes a line of the log. A reader that has gone does not stop the build.
func (b *build) note(format string, args ...any) { _, _ = fmt.Fprintf(b.Log, format+"\n", args...) }

func (b *build) stage(ctx context.Context, p instructions.Stage, userLine int) error {
	ours := len(p.Location) > 0 && p.Location[0].Start.Line < userLine
	s := &stage{name: strings.ToLower(p.Name)}
	b.note("STEP FROM %s", p.BaseName)
	if p.Platform != "" {
		return permanent(fmt.Errorf("FROM --platform=%s is not supported: the image has the platform of its base", p.Platform))
	}
	from, err := b.image(ctx, p.BaseName)
	if err != nil {
		return fmt.Errorf("FROM %s: %w", p.BaseName, err)
	}
	s.image = from.image
	c, err := s.image.ConfigFile()
	if err != nil {
		return fmt.Errorf("FROM %s: %w", p.BaseName, err)
	}
	s.env = slices.Clone(c.Config.Env)
	b.stages = append(b.stages, s)
	if ours && s.name == StageConfigs {
		if err := b.applyConfig(s); err != nil {
			return err
		}
	}
	for _, cmd := range p.Commands {
		line := cmd.Location()[0].Start.Line
		if _, label := cmd.(*instructions.LabelCommand); line < userLine && !label {
			continue // done above, without a shell
		}
		if err := b.command(ctx, s, cmd); err != nil {
			return fmt.Errorf("line %d, %s: %w", max(line-userLine+1, 1), strings.ToUpper(cmd.Name()), err)
		}
	}
	return nil
}

// image returns an earlier stage or an image of a registry.
func (b *build) image(ctx context.Context, name string) (*stage, error) {
	for _, s := range b.stages {
		if s.name == strings.ToLower(name) {
			return s, nil
		}
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(b.stages) {
		return b.stages[n], nil
	}
	if name == "scratch" {
		return &stage{image: empty.Image}, nil
	}
	img := b.pulled[name]
	if img == nil {
		var err error
		if img, err = b.Pull(ctx, name); err != nil {
			return nil, err
		}
		b.pulled[name] = img
	}
	return &stage{image: img}, nil
}

// applyConfig adds the layer of the MachineConfig.
func (b *build) applyConfig(s *stage) error {
	b.note("STEP apply MachineConfig %s", b.Config.Name)
	return s.addLayer("MachineConfig "+b.Config.Name, func(l *layer) error {
		base := s.image
		return configure(l, b.Config, func(name string) ([]byte, error) {
			if e, added := l.entries[name]; added {
				return e.content, nil
			}
			files, err := read(base, name)
			return files[""].content, err
		})
	})
}

// addLayer adds a layer that fill fills.
func (s *stage) addLayer(by string, fill func(*layer) error) error {
	if s.root == nil {
		var err error
		if s.root, err = list(s.image); err != nil {
			return err
		}
	}
	l := newLayer(s.root)
	if err := fill(l); err != nil {
		return err
	}
	content, err := l.image()
	if err != nil {
		return err
	}
	s.image, err = mutate.Append(s.image, mutate.Addendum{Layer: content, History: v1.History{Created: v1.Time{Time: time.Unix(0, 0).UTC()}, CreatedBy: by}})
	return err
}

// change changes the configuration of the image.
func (s *stage) change(f func(*v1.Config)) error {
	c, err := s.image.ConfigFile()
	if err != nil {
		return err
	}
	c = c.DeepCopy()
	f(&c.Config)
	s.image, err = mutate.Config(s.image, c.Config)
	return err
}

func (b *build) command(ctx context.Context, s *stage, cmd instructions.Command) error {
	expand := func(word string) (string, error) {
		out, _, err := shell.NewLex('\\').ProcessWord(word, shell.EnvsFromSlice(s.env))
		return out, err
	}
	if e, ok := cmd.(instructions.SupportsSingleWordExpansion); ok {
		if err := e.Expand(expand); err != nil {
			return permanent(err)
		}
	}
	switch c := cmd.(type) {
	case *instructions.EnvCommand:
		return s.change(func(to *v1.Config) {
			for _, kv := range c.Env {
				to.Env = setEnv(to.Env, kv.Key, kv.Value)
				b.note("STEP ENV %s=%s", kv.Key, kv.Value)
			}
			s.env = slices.Clone(to.Env)
		})
	case *instructions.LabelCommand:
		return s.change(func(to *v1.Config) {
			if to.Labels == nil {
				to.Labels = map[string]string{}
			}
			for _, kv := range c.Labels {
				to.Labels[kv.Key] = kv.Value
				b.note("STEP LABEL %s=%s", kv.Key, kv.Value)
			}
		})
	case *instructions.CopyCommand:
		if c.Link || c.Parents || len(c.ExcludePatterns) > 0 {
			return permanent(errors.New("of the flags --from, --chown and --chmod are supported"))
		}
		b.note("STEP %s", c.String())
		return b.copy(ctx, s, copying{SourcesAndDest: c.SourcesAndDest, from: c.From, chown: c.Chown, chmod: c.Chmod, by: c.String()}, expand)
	case *instructions.AddCommand:
		if c.Link || c.KeepGitDir != nil || c.Unpack != nil || len(c.ExcludePatterns) > 0 {
			return permanent(errors.New("of the flags --checksum, --chown and --chmod are supported"))
		}
		b.note("STEP %s", c.String())
		return b.copy(ctx, s, copying{SourcesAndDest: c.SourcesAndDest, chown: c.Chown, chmod: c.Chmod, checksum: c.Checksum, fetch: true, by: c.String()}, expand)
	case *instructions.RunCommand:
		return permanent(errors.New("the lab's builder starts no program: use COPY, ADD, ENV and LABEL, or a cluster whose nodes run pods"))
	}
	return permanent(errors.New("the lab's builder has the instructions FROM, COPY, ADD, ENV and LABEL"))
}

func setEnv(env []string, key, value string) []string {
	i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, key+"=") })
	if i < 0 {
		return append(slices.Clone(env), key+"="+value)
	}
	env = slices.Clone(env)
	env[i] = key + "=" + value
	return env
}

// copying is a COPY or ADD.
type copying struct {
	instructions.SourcesAndDest
	from, chown, chmod, checksum, by string
	fetch                            bool // sources may be URLs
}

func (b *build) copy(ctx context.Context, s *stage, c copying, expand func(string) (string, error)) error {
	perm, owner, err := c.attributes()
	if err != nil {
		return permanent(err)
	}
	files := map[string]entry{} // by destination
	into := strings.HasSuffix(c.DestPath, "/") || len(c.SourcePaths)+len(c.SourceContents) > 1
	for _, src := range c.SourceContents {
		text := src.Data
		if src.Expand {
			if text, err = expand(text); err != nil {
				return permanent(err)
			}
		}
		files[destination(c.DestPath, src.Path, into)] = entry{kind: tar.TypeReg, mode: fileMode, content: []byte(text)}
	}
	for _, src := range c.SourcePaths {
		if strings.ContainsAny(src, "*?[") {
			return permanent(fmt.Errorf("source %q: patterns are not supported: name each file", src))
		}
		found, err := b.source(ctx, c, src)
		if err != nil {
			return fmt.Errorf("source %q: %w", src, err)
		}
		for rel, e := range found {
			to := path.Join(c.DestPath, rel)
			if rel == "" {
				to = destination(c.DestPath, src, into)
			}
			e.uid, e.gid = 0, 0
			files[to] = e
		}
	}
	return s.addLayer(c.by, func(l *layer) error {
		for to, e := range files {
			if perm != nil && e.kind == tar.TypeReg {
				e.mode = *perm
			}
			if owner != nil {
				e.uid, e.gid = owner[0], owner[1]
			}
			if err := l.add(to, e); err != nil {
				return permanent(err)
			}
		}
		return nil
	})
}

// attributes returns the values of --chmod and --chown.
func (c copying) attributes() (perm *int64, owner *[2]int, err error) {
	if c.chmod != "" {
		v, err := strconv.ParseInt(c.chmod, 8, 64)
		if err != nil || v < 0 || v > 0o7777 {
			return nil, nil, fmt.Errorf("--chmod=%s: use octal digits, such as 0644", c.chmod)
		}
		perm = &v
	}
	if c.chown != "" {
		user, group, both := strings.Cut(c.chown, ":")
		if !both {
			group = user
		}
		uid, uerr := strconv.Atoi(user)
		gid, gerr := strconv.Atoi(group)
		if uerr != nil || gerr != nil {
			return nil, nil, fmt.Errorf("--chown=%s: use numbers, such as 0:0", c.chown)
		}
		owner = &[2]int{uid, gid}
	}
	return perm, owner, nil
}

func destination(dest, source string, into bool) string {
	if into {
		return path.Join(dest, path.Base(source))
	}
	return dest
}

// source returns the files of one source, by their paths relative to it.
func (b *build) source(ctx context.Context, c copying, src string) (map[string]entry, error) {
	switch {
	case strings.HasPrefix(src, "http://"), strings.HasPrefix(src, "https://"):
		if !c.fetch {
			return nil, permanent(errors.New("COPY has no URLs: use ADD"))
		}
		content, err := b.fetch(ctx, src, c.checksum)
		return map[string]entry{"": {kind: tar.TypeReg, mode: 0o600, content: content}}, err
	case c.from != "":
		from, err := b.image(ctx, c.from)
		if err != nil {
			return nil, fmt.Errorf("--from=%s: %w", c.from, err)
		}
		found, err := read(from.image, src)
		if err != nil {
			return nil, permanent(fmt.Errorf("--from=%s: %w", c.from, err))
		}
		return found, nil
	}
	content, has := b.Context[clean(src)]
	if !has {
		return nil, permanent(fmt.Errorf("the build's context has no such file: it has %s. Use a here-document (COPY <<EOF /path), --from or ADD of a URL", ContextConfig))
	}
	return map[string]entry{"": {kind: tar.TypeReg, mode: fileMode, content: content}}, nil
}

// maxFetch is how many bytes ADD fetches, and fetchTime how long that may take.
const (
	maxFetch  = 64 << 20
	fetchTime = 2 * time.Minute
)

// fetch returns the content of a URL whose checksum is known: else the same build might give
// another digest tomorrow.
func (b *build) fetch(ctx context.Context, url, checksum string) ([]byte, error) {
	want, ok := strings.CutPrefix(checksum, "sha256:")
	if !ok {
		return nil, permanent(errors.New("ADD of a URL needs --checksum=sha256:HEX, so that the same build gives the same image"))
	}
	if b.HTTP == nil {
		return nil, permanent(errors.New("this builder fetches no URLs"))
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, permanent(err)
	}
	resp, err := b.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() // it was read, or is of no use
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered %s", resp.Status)
	}
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxFetch+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxFetch {
		return nil, permanent(fmt.Errorf("it has more than %d bytes", maxFetch))
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != want {
		return nil, permanent(fmt.Errorf("its SHA-256 is %x, not %s", sum, want))
	}
	return content, nil
}
