package lab

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/metalab-dev/metalab/emulator/lab/store"
)

// A state of the models is a struct of pointers, its parts, each stored by
// itself under the host's name, the model's and its own: what a step leaves
// alone costs nothing to store.

// changed lists the parts of a host's state that differ from what they were.
func (st hostState) changed(host string, was hostState) []store.Put {
	var puts []store.Put
	each(reflect.ValueOf(st), reflect.ValueOf(was), host+"/", func(key string, is, was reflect.Value) {
		if is.Pointer() != was.Pointer() {
			puts = append(puts, store.Put{Kind: store.Hosts, Key: key, Value: is.Interface()})
		}
	})
	return puts
}

// load reads one stored part. One that this release does not know is left
// alone.
func (st *hostState) load(part string, raw []byte) (err error) {
	v := reflect.ValueOf(st).Elem()
	each(v, v, "", func(key string, is, _ reflect.Value) {
		if key == part {
			err = json.Unmarshal(raw, is.Addr().Interface())
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
