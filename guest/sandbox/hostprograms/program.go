package hostprograms

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/agent/sys"
)

// Host is a server as its programs see and change it, by absolute paths. sandbox.Host implements it.
type Host interface {
	ReadFile(name string) ([]byte, error)
	ReadDir(name string) ([]string, error)
	Stat(name string) (sys.FileInfo, error)
	Put(files ...sys.File) error
	Remove(names ...string) error
}

// Server gives a program access to its server.
type Server struct {
	Host
	Kernel  *Kernel
	Release string                 // of the kernel (uname(2))
	Cmdline func() string          // of the kernel at its boot (proc_cmdline(5))
	Disks   func() []Disk          // those of the hardware, by name
	Boot    sys.Boot               // the present one
	Now     func() time.Time       // the server's clock
	Active  func(unit string) bool // reports whether a unit runs
	// Changed tells that the kernel has other modules than before.
	Changed func() error
}

// Disk is a disk of the server's hardware.
type Disk struct {
	Name       string   // "sda"
	Partitions []string // "sda1"
}

// Call is a run of a program.
type Call struct {
	*Server
	Name  string // of the program
	Args  []string
	Dir   string // the working directory
	UID   int    // of the user who calls it
	Input []byte // what InputOf has read

	out, err strings.Builder
}

// Program is one of Programs. Its exit code is that of the real one.
type Program struct {
	run     func(*Call) int
	process bool // its input comes from a process in the server
	// input names the file that Input reads; "-": standard input, "": none. nil: never any.
	input func(args []string) string
}

// Names are the names of Programs, sorted.
func Names() []string { return slices.Sorted(maps.Keys(Programs)) }

// NeedsProcess reports whether a program's input depends on the process that calls it.
func NeedsProcess(name string) bool { return Programs[name].process }

// Run runs a program and returns its output and its exit code.
func (c *Call) Run() (out, problems string, code int) {
	p, ok := Programs[c.Name]
	if !ok {
		return "", c.Name + ": command not found\n", 127
	}
	code = p.run(c)
	return c.out.String(), c.err.String(), code
}

func (c *Call) print(format string, args ...any) { fmt.Fprintf(&c.out, format, args...) }

// complain writes a line to standard error, and returns an exit code of 1.
func (c *Call) complain(format string, args ...any) int {
	fmt.Fprintf(&c.err, format+"\n", args...)
	return 1
}

// mayChange reports whether the caller is the superuser.
func (c *Call) mayChange() bool { return c.UID == 0 }

// text reads a file of the server; one that is not there is empty.
func (c *Call) text(name string) string {
	b, err := c.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(b)
}

func (c *Call) exists(name string) bool {
	_, err := c.Stat(name)
	return err == nil
}

// put writes a file with a mode.
func (c *Call) put(name string, mode fs.FileMode, text string) error {
	return c.Put(sys.File{Name: name, Mode: mode, Content: []byte(text)})
}

// configFiles returns the files of directories that have a suffix, by their names: of those with one
// name, that of the first directory.
func (c *Call) configFiles(suffix string, dirs ...string) (out []string) {
	at := map[string]string{}
	for _, dir := range dirs {
		names, err := c.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, n := range names {
			if at[n] == "" && strings.HasSuffix(n, suffix) {
				at[n] = path.Join(dir, n)
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(at)) {
		out = append(out, at[n])
	}
	return out
}

// lines returns the words of the lines of a text, without comments.
func lines(text string) (out [][]string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && line[0] != '#' && line[0] != ';' {
			out = append(out, strings.Fields(line))
		}
	}
	return out
}

// options splits arguments into options and words: value says which options take a value, which is
// the next argument or stands behind "=" (getopt_long(3)). Of options that it knows neither there nor
// among flags the first is the error's.
type options struct {
	set   map[string][]string // by the name that it is known by: "-n" for "--dry-run"
	words []string
}

func (o options) has(name string) bool { return len(o.set[name]) > 0 }

func (o options) value(name string) string {
	if v := o.set[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

var errNoValue = errors.New("requires an argument")

// parse reads arguments. names has all options: the key is one as it is written, the value the name
// that it is known by, with "=" at its end if it takes a value. untilWord ends the options at the
// first word.
func parse(args []string, names map[string]string, untilWord bool) (o options, err error) {
	o.set = map[string][]string{}
	for i := 0; i < len(args); i++ {
		a := args[i]
		take := func(name, value string, assigned bool) error {
			known, takes := strings.CutSuffix(names[name], "=")
			switch {
			case known == "":
				return fmt.Errorf("unrecognized option '%s'", name)
			case takes && !assigned:
				if i++; i == len(args) {
					return fmt.Errorf("option '%s' %w", name, errNoValue)
				}
				value = args[i]
			}
			o.set[known] = append(o.set[known], value)
			return nil
		}
		switch {
		case a == "--":
			o.words = append(o.words, args[i+1:]...)
			return o, nil
		case strings.HasPrefix(a, "--"):
			name, value, assigned := strings.Cut(a, "=")
			err = take(name, value, assigned)
		case len(a) > 1 && a[0] == '-':
			for rest := a[1:]; rest != "" && err == nil; rest = rest[1:] {
				if strings.HasSuffix(names["-"+rest[:1]], "=") && len(rest) > 1 {
					err = take("-"+rest[:1], rest[1:], true)
					break
				}
				err = take("-"+rest[:1], "", false)
			}
		default:
			o.words = append(o.words, a)
			if untilWord {
				o.words = append(o.words, args[i+1:]...)
				return o, nil
			}
		}
		if err != nil {
			return o, err
		}
	}
	return o, nil
}

// maxInput is how many bytes of its caller's a program reads.
const maxInput = 512 << 10

// Input returns what a program reads before it runs, as its caller: its standard input, or a file.
func Input(name string, args []string, stdin io.Reader, read func(name string) ([]byte, error)) ([]byte, error) {
	of := Programs[name].input
	if of == nil {
		return nil, nil
	}
	file := of(args)
	switch file {
	case "":
		return nil, nil
	case "-":
		b, err := io.ReadAll(io.LimitReader(stdin, maxInput+1))
		return bounded(b, err)
	}
	return bounded(read(file))
}

func bounded(b []byte, err error) ([]byte, error) {
	if err == nil && len(b) > maxInput {
		err = fmt.Errorf("its input has more than %d KiB", maxInput>>10)
	}
	return b, err
}
