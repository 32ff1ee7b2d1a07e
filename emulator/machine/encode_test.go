package machine

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// fill sets a value and all in it to something, or leaves it as it is.
func fill(r *rand.Rand, v reflect.Value) {
	if r.IntN(3) == 0 {
		return
	}
	if at, ok := v.Addr().Interface().(*time.Time); ok {
		*at = time.Unix(r.Int64N(1<<33), r.Int64N(1e9)*r.Int64N(2)).In([]*time.Location{time.UTC, time.FixedZone("", 5400)}[r.IntN(2)])
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"Off", "", "a<b>&\"\\\u2028ü\n", "x y"}[r.IntN(4)])
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64() - r.Int64())
	case reflect.Uint64:
		v.SetUint(r.Uint64())
	case reflect.Uint8:
		v.SetUint(r.Uint64N(256))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	default:
		panic("a kind that fill does not know: " + v.Type().String())
	}
}

func TestMainIsEncodedAsTheLibraryDoes(t *testing.T) {
	for seed := range uint64(3000) {
		var m Main
		fill(rand.New(rand.NewPCG(seed, 0)), reflect.ValueOf(&m).Elem())
		want, err := json.Marshal(&m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := m.AppendJSON([]byte("x")); err != nil || string(got) != "x"+string(want) {
			t.Fatalf("seed %d: AppendJSON() = %s, %v\nwant %s", seed, got[1:], err, want)
		}
	}
	m := Main{Since: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}
	if _, err := m.AppendJSON(nil); err == nil {
		t.Error("AppendJSON() takes a time that no JSON has")
	}
}
