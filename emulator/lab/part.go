package lab

import (
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"strings"

	"github.com/metalab-dev/metalab/emulator/lab/store"
)

// A state of the models is a struct of pointers, its parts, each stored by
// itself under the host's name, the model's and its own: what a step leaves
// alone costs nothing to store.

// divided is a part that is too large to be stored again whenever it changes.
// Its head is stored as other parts are, its pieces by themselves below that.
type divided interface {
	// Head is the part without its pieces.
	Head() any
	// Changes are the pieces that differ from those of the same part as it
	// was before, by key; nil is one that is gone.
	Changes(before any) iter.Seq2[string, any]
	// Join adds a piece; pieces come in the order of their keys.
	Join(decode func(piece any) error) error
}

// changed lists the parts of a host's state that differ from what they were.
func (st hostState) changed(host string, was hostState) []store.Put {
	var puts []store.Put
	each(reflect.ValueOf(st), reflect.ValueOf(was), host+"/", func(key string, is, was reflect.Value) {
		if is.Pointer() == was.Pointer() {
			return
		}
		d, ok := is.Interface().(divided)
		if !ok {
			puts = append(puts, store.Put{Kind: store.Hosts, Key: key, Value: is.Interface()})
			return
		}
		puts = append(puts, store.Put{Kind: store.Hosts, Key: key, Value: d.Head()})
		for piece, value := range d.Changes(was.Interface()) {
			if value == nil {
				value = store.Gone
			}
			puts = append(puts, store.Put{Kind: store.Hosts, Key: key + "/" + piece, Value: value})
		}
	})
	return puts
}

// load reads one stored part. One that this release does not know is left
// alone.
func (st *hostState) load(part string, raw []byte) (err error) {
	v := reflect.ValueOf(st).Elem()
	name, _, isPiece := strings.Cut(part, "/")
	each(v, v, "", func(key string, is, _ reflect.Value) {
		switch {
		case key != name:
		case !isPiece:
			err = json.Unmarshal(raw, is.Addr().Interface())
		default:
			if d, ok := is.Interface().(divided); ok && !is.IsNil() { // the head comes first
				err = d.Join(func(piece any) error { return json.Unmarshal(raw, piece) })
			}
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	return nil
}

// each calls f with every part of a state, and with the same part of another.
func each(is, was reflect.Value, key string, f func(key string, is, was reflect.Value)) {
	for i := range is.NumField() {
		name, _, _ := strings.Cut(is.Type().Field(i).Tag.Get("json"), ",")
		if is.Field(i).Kind() == reflect.Pointer {
			f(key+name, is.Field(i), was.Field(i))
			continue
		}
		each(is.Field(i), was.Field(i), key+name+".", f)
	}
}
