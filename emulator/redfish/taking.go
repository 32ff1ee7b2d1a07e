package redfish

import (
	"net/url"
	"slices"
	"strings"
)

// taking is a value of another resource, or of what is remembered, that a body
// shows.
type taking struct {
	from string // as dialect.Datum.From, filled in
	is   []byte // JSON; empty where there is none
	by   shows  // what it depends on
}

// takings are those of a body.
type takings struct {
	s    *Service
	at   *snapshot
	of   browse
	was  *made // the page before, which may have none
	is   []taking
	seen map[string]object // resources that were looked at
}

// value is what is taken, as JSON; empty where there is nothing.
func (t *takings) value(from, self string) []byte {
	if strings.Contains(from, "{") {
		d := t.at.d
		from = strings.NewReplacer("{system}", d.SystemID, "{manager}", d.ManagerID, "{chassis}", d.ChassisID, "{self}", self).Replace(from)
	}
	same := func(is taking) bool { return is.from == from }
	if i := slices.IndexFunc(t.is, same); i >= 0 {
		return t.is[i].is
	}
	if i := slices.IndexFunc(t.was.takes, same); i >= 0 && t.was.takes[i].by.same(&t.was.at, t.at) {
		t.is = append(t.is, t.was.takes[i])
		return t.was.takes[i].is
	}
	is := taking{from: from}
	address, path, property := strings.Cut(from, "#")
	if property {
		if m := t.s.find(&url.URL{Path: address}); m != nil {
			is.by = m.shows
		}
		is.is = t.property(address, path)
	} else {
		is.by = showsKept
		if v, ok := t.of.take(from); ok {
			is.is = appendValue(nil, v)
		}
	}
	t.is = append(t.is, is)
	return is.is
}

// property is that of another resource.
func (t *takings) property(address, path string) []byte {
	if m := t.s.find(&url.URL{Path: address}); m != nil && m.action == nil && m.brief[path] != nil {
		if v := m.view(t.at); m.missing(v) == "" && m.there(v) {
			return appendValue(nil, m.brief[path](v))
		}
		return nil
	}
	o, seen := t.seen[address]
	if !seen {
		o = t.s.bodyAt(address, t.at)
		if t.seen == nil {
			t.seen = map[string]object{}
		}
		t.seen[address] = o
	}
	top, _, _ := strings.Cut(path, "/")
	is, ok := o[top]
	if !ok {
		return nil
	}
	v, ok := valueAt(decode(encode(object{top: is})), path)
	if !ok {
		return nil
	}
	return appendValue(nil, v)
}

// read is a value that was taken.
func (t *takings) read(from string) (any, bool) {
	is := t.value(from, "")
	if len(is) == 0 {
		return nil, false
	}
	return decode(slices.Concat([]byte(`{"x":`), is, []byte("}")))["x"], true
}
