// Package integrity notices that files of a lab were cut off, changed or removed while
// no lab used them: Seal lists the files with their sizes and checksums in a file of
// their directory, and Check compares them. It does not interpret the files.
package integrity

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// File is the name of the list, in the directory that it is about.
const File = "files.json"

// format is the format of the list. Check refuses others.
const format = 1

// large is the size in bytes from which on the content of a Rule.Large file does not
// count: it would take too long to read all of them at each start.
const large = 64 << 20

// Rule selects files for the list, and has the fix for a damaged one.
type Rule struct {
	// Pattern is that of path.Match, for names relative to the directory, with slashes.
	Pattern string
	// Running files are listed while a lab runs, too: it does not change them.
	Running bool
	// SizeOnly leaves the content alone: users may change it.
	SizeOnly bool
	// Large leaves the content of files of 64 MiB and more alone.
	Large bool
	// Unlisted files are not listed, because the lab makes them anew. They must not be
	// directories.
	Unlisted bool
	// Fix is the user's choice when a file is damaged, besides putting back a copy of it.
	Fix string
}

// entry is the line of a file in the list.
type entry struct {
	Size int64  `json:"size"` // bytes
	Sum  string `json:"crc32c,omitempty"`
}

// list is the content of the file.
type list struct {
	Format int              `json:"format"`
	Files  map[string]entry `json:"files"`
	Sum    string           `json:"crc32c"` // checksum of the encoded Files
}

// DamageError names a file that is not as it was listed.
type DamageError struct {
	Path   string
	Detail string
	Fix    string
}

// Error implements error.
func (e *DamageError) Error() string { return fmt.Sprintf("%s %s: %s", e.Path, e.Detail, e.Fix) }

// Check compares the listed files that match a rule with the list. It returns a
// *DamageError for each that differs. Without a list there is nothing to compare. A file
// that skip, if not nil, accepts is not compared.
func Check(dir string, rules []Rule, skip func(name string) bool) error {
	l, err := read(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range rules {
		if !r.Unlisted {
			continue
		}
		if st, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(r.Pattern))); err == nil && st.IsDir() {
			errs = append(errs, &DamageError{Path: filepath.Join(dir, r.Pattern), Detail: "is a directory", Fix: "move it away: the lab makes a file there"})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.Files)) {
		r, ok := ruleOf(rules, name)
		if !ok || skip != nil && skip(name) {
			continue
		}
		if detail := compare(filepath.Join(dir, filepath.FromSlash(name)), l.Files[name]); detail != "" {
			fix := "put back the file as it was when the lab stopped"
			if r.Fix != "" {
				fix += ", or " + r.Fix
			}
			errs = append(errs, &DamageError{
				Path: filepath.Join(dir, filepath.FromSlash(name)), Detail: detail,
				Fix: fmt.Sprintf("%s; to go on with what is there now, remove %s", fix, filepath.Join(dir, File)),
			})
		}
	}
	return errors.Join(errs...)
}

// compare returns how a file differs from its entry; "" when it does not.
func compare(name string, want entry) string {
	st, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "is missing"
	case err != nil:
		return "cannot be read: " + err.Error()
	case !st.Mode().IsRegular():
		return "is no file"
	case st.Size() == 0 && want.Size > 0:
		return "is empty"
	case st.Size() != want.Size:
		return fmt.Sprintf("has %d bytes and had %d when the lab stopped", st.Size(), want.Size)
	case want.Sum == "":
		return ""
	}
	sum, err := sumOf(name)
	if err != nil {
		return "cannot be read: " + err.Error()
	}
	if sum != want.Sum {
		return "was changed after the lab stopped"
	}
	return ""
}

// Seal lists the files that match a rule: all of a lab that has stopped, or those that a
// running lab does not change. Of the list that is there it keeps the files that match
// none.
func Seal(dir string, rules []Rule, running bool) error {
	old, err := read(dir)
	if err != nil {
		return err
	}
	l := list{Format: format, Files: map[string]entry{}}
	for name, e := range old.Files {
		if _, ok := ruleOf(rules, name); !ok {
			l.Files[name] = e
		}
	}
	for _, r := range rules {
		if r.Unlisted || running && !r.Running {
			continue
		}
		names, err := filepath.Glob(filepath.Join(escape(dir), filepath.FromSlash(r.Pattern)))
		if err != nil {
			return fmt.Errorf("%s: %w", r.Pattern, err)
		}
		for _, name := range names {
			e, ok, err := r.entry(name)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(dir, name)
			if err != nil {
				return err
			}
			if rel = filepath.ToSlash(rel); ok && !temporary(rel) {
				l.Files[rel] = e
			}
		}
	}
	return write(dir, l)
}

// Forget removes from the list the files that match a rule, because a lab is about to
// change them.
func Forget(dir string, rules []Rule) error {
	l, err := read(dir)
	if err != nil || len(l.Files) == 0 {
		return err
	}
	maps.DeleteFunc(l.Files, func(name string, _ entry) bool { _, ok := ruleOf(rules, name); return ok })
	return write(dir, l)
}

// entry describes a file. ok is false when there is no regular file of that name.
func (r Rule) entry(name string) (e entry, ok bool, err error) {
	st, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !st.Mode().IsRegular() {
		return e, false, nil
	}
	if err != nil {
		return e, false, err
	}
	e.Size = st.Size()
	if !r.SizeOnly && (!r.Large || e.Size < large) {
		e.Sum, err = sumOf(name)
	}
	return e, err == nil, err
}

// temporary reports whether a file was left by a process that was killed while it wrote.
func temporary(name string) bool {
	switch path.Ext(name) {
	case ".part", ".new", ".tmp":
		return true
	}
	return false
}

func ruleOf(rules []Rule, name string) (Rule, bool) {
	for _, r := range rules {
		if ok, err := path.Match(r.Pattern, name); ok && err == nil {
			return r, true
		}
	}
	return Rule{}, false
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumOf(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := crc32.New(castagnoli)
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%08x", h.Sum32()), nil
}

func read(dir string) (l list, err error) {
	name := filepath.Join(dir, File)
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	const fix = "remove it, and the lab starts with its files as they are now"
	if err != nil {
		return l, &DamageError{Path: name, Detail: "cannot be read: " + err.Error(), Fix: fix}
	}
	if err := json.Unmarshal(b, &l); err != nil {
		return l, &DamageError{Path: name, Detail: "is damaged: " + err.Error(), Fix: fix}
	}
	if sum, err := l.sum(); err != nil || sum != l.Sum || l.Format != format {
		return l, &DamageError{Path: name, Detail: "is damaged: its checksum is wrong", Fix: fix}
	}
	return l, nil
}

func (l list) sum() (string, error) {
	b, err := json.Marshal(l.Files)
	return fmt.Sprintf("%08x", crc32.Checksum(b, castagnoli)), err
}

// write replaces the list at once.
func write(dir string, l list) (err error) {
	l.Format = format
	if l.Sum, err = l.sum(); err != nil {
		return err
	}
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(dir, File)
	if err := replace(name, append(b, '\n')); err != nil {
		return err
	}
	return nil
}

// replace writes a file at once. It is durable: a list from before a power cut would not
// fit the files of the lab that started after it.
func replace(name string, b []byte) error {
	f, err := os.OpenFile(name+".part", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// escape escapes the characters of a path that mean something in a pattern.
func escape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}
