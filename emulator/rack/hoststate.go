package rack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/rack/store"
)

// The state of a model is a struct of pointers to its parts. Each part is stored
// under a key of the host's name, the model and the part, so that a step stores only
// the parts that it has changed.

// dividedPart is a part that is too large to be stored whenever it changes. Its head
// is stored like other parts, its pieces under keys below that.
type dividedPart interface {
	// Head returns the part without its pieces.
	Head() any
	// Changes yields what was added to pieces since an earlier version of the part,
	// by key. A nil value empties a piece.
	Changes(before any) iter.Seq2[string, any]
	// Join adds back what Changes has yielded: in the order of the keys and, for one
	// key, in the order of its additions.
	Join(decode func(more any) error) error
}

// changedParts returns what to store of a host's state: the parts that differ from
// those of an earlier state.
func (st *hostState) changedParts(host string, was *hostState) []store.Put {
	if *st == *was {
		return nil
	}
	var puts []store.Put
	is, old := reflect.ValueOf(st).Elem(), reflect.ValueOf(was).Elem()
	for _, p := range parts() {
		a, b := is.Field(p.at[0]).Field(p.at[1]), old.Field(p.at[0]).Field(p.at[1])
		if a.Pointer() == b.Pointer() {
			continue
		}
		key := host + "/" + p.key
		d, ok := a.Interface().(dividedPart)
		if !ok {
			puts = append(puts, store.Put{Kind: store.Hosts, Key: key, Value: a.Interface()})
			continue
		}
		puts = append(puts, store.Put{Kind: store.Hosts, Key: key, Value: d.Head()})
		for piece, value := range d.Changes(b.Interface()) {
			put := store.Put{Kind: store.Hosts, Key: key + "/" + piece, Value: value, More: true}
			if value == nil {
				put.Value, put.More = store.Gone, false
			}
			puts = append(puts, put)
		}
	}
	return puts
}

// load reads one stored part. It ignores parts that this release does not know.
func (st *hostState) load(part string, raw []byte) (err error) {
	v := reflect.ValueOf(st).Elem()
	name, _, isPiece := strings.Cut(part, "/")
	i := slices.IndexFunc(parts(), func(p partField) bool { return p.key == name })
	if i < 0 {
		return nil
	}
	is := v.FieldByIndex(parts()[i].at)
	if !isPiece {
		err = json.Unmarshal(raw, is.Addr().Interface())
	} else if d, ok := is.Interface().(dividedPart); ok && !is.IsNil() { // the head was loaded before
		for added := json.NewDecoder(bytes.NewReader(raw)); added.More() && err == nil; {
			err = d.Join(added.Decode)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	return nil
}

// partField locates a part in a hostState and in the store.
type partField struct {
	at  []int  // index of the model's field, then of the part's, for reflect
	key string // below the host's name
}

// parts returns all parts of a hostState.
var parts = sync.OnceValue(func() []partField { return partFields(reflect.TypeFor[hostState](), nil, "") })

func partFields(t reflect.Type, at []int, key string) []partField {
	var out []partField
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		here := append(slices.Clip(at), i)
		if f.Type.Kind() == reflect.Pointer {
			out = append(out, partField{here, key + name})
			continue
		}
		out = append(out, partFields(f.Type, here, key+name+".")...)
	}
	return out
}
