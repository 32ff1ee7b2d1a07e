package file

import "reflect"

// Key returns the key of a struct field in a file. It returns false when the
// field cannot stand in a file, as a hook cannot.
func Key(f reflect.StructField) (string, bool) { return keyOf(f), writable(f) }
