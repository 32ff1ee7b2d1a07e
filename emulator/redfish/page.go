package redfish

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// page is the representation of a resource as it is sent. It is immutable.
type page struct {
	body stretches
	mime mime
	// The values of headers, made once.
	content, link, allow []string
	etag, length         [1]string // the ETag with its quotes
}

// stretches are a body in up to three parts, of which bodies can share those
// that are the same.
type stretches [3][]byte

// size is how many bytes there are.
func (s *stretches) size() int { return len(s[0]) + len(s[1]) + len(s[2]) }

// whole are all of them.
func (s *stretches) whole() []byte {
	if len(s[1]) == 0 && len(s[2]) == 0 {
		return s[0]
	}
	return slices.Concat(s[0], s[1], s[2])
}

// key names a page by whose it is: a machine's, or a model's if it shows
// nothing else.
type key struct {
	id  *machine.Identity
	p   *machine.Profile
	uri string
}

// made is a page with what it was made from. It is immutable.
type made struct {
	page
	at snapshot
	inPieces
	takes    []taking
	skeleton *skeleton // of one that was remade
}

// page is the representation of a resource, or nil when it is not there.
func (s *Service) page(m *match, at *snapshot) *page {
	if m.base != nil {
		m = m.base
	}
	if m.fresh {
		return s.anew(m, at)
	}
	f := faceOf(at.d)
	needs := m.shows
	if f != nil {
		needs |= f.beside(s, m.schema)
	}
	k := key{id: at.m.Identity, uri: m.uri}
	if needs == 0 {
		k = key{p: at.m.Profile, uri: m.uri}
	}
	old, known := s.pages.get(k)
	if known && needs.same(&old.at, at) {
		return &old.page
	}
	if !m.isThere(at) {
		return nil
	}
	if !known {
		old = &made{}
	}
	is := s.bare(m, at, old)
	if f != nil && is.mime == jsonType && is.body.size() > 0 {
		body, tag, takes := s.faced(f, m, is, old, needs != m.shows)
		is.page, is.takes = newPage(jsonType, stretches{body}, tag, m.describedBy), takes
	}
	if known && m.spares == nil { // it depends on nothing else
		is.allow = old.allow
	} else {
		is.allow = m.takes(m.view(at))
	}
	s.pages.put(k, is)
	return &is.page
}

// bare is the page of a resource as the tree has it. What is as it was in an
// older one, which may be empty, is taken from that.
func (s *Service) bare(m *match, at *snapshot, old *made) *made {
	is := &made{at: *at}
	switch {
	case m.upload != nil:
		is.page = newPage(jsonType, stretches{}, "", nil)
	case m.raw != nil:
		kind, body := m.raw(s, m.view(at))
		is.page = newPage(kind, stretches{body}, written(etag(body), at.d.Protocol.ETags), nil)
	case m.live != nil:
		var body stretches
		var tag string
		body, is.inPieces, tag = m.compose(at, &old.at, &old.inPieces)
		is.page = newPage(jsonType, body, tag, m.describedBy)
	default:
		body, tag := seal(m.object(m.view(at)), m.volatile, at.d.Protocol)
		is.page = newPage(jsonType, stretches{body}, tag, m.describedBy)
	}
	return is
}

func newPage(kind mime, body stretches, etag string, link []string) page {
	return page{
		body: body, mime: kind, content: kind.header(), link: link,
		etag: [1]string{etag}, length: [1]string{strconv.Itoa(body.size())},
	}
}

// tag is the ETag.
func (p *page) tag() string { return p.etag[0] }

// shown is a member as its collection shows it.
func (m *match) shown(v view, id string) object {
	uri := v.uri + "/" + id
	if m.member == nil {
		return ref(uri)
	}
	ids := maps.Clone(v.ids)
	if ids == nil {
		ids = map[string]string{}
	}
	ids[m.of] = id
	v.uri, v.ids = uri, ids
	return (&match{route: &route{resource: m.member}, uri: uri, ids: ids}).object(v)
}

// fixed is the body but for what is live: what its row shows, and what all rows
// have in common.
func (m *match) fixed(v view) object {
	var o object
	if m.of != "" {
		o = object{"Name": m.name}
		var members []object
		for _, id := range things[m.of](v) {
			members = append(members, m.shown(v, id))
		}
		o["Members@odata.count"] = len(members)
		o["Members"] = append([]object{}, members...) // never null
		if capable := m.capable(v); capable != nil {
			o["@Redfish.CollectionCapabilities"] = capable
		}
	} else {
		o = m.read(v)
		if _, ok := o["Id"]; !ok && o["Members"] == nil { // collections have none
			o["Id"] = v.uri[strings.LastIndexByte(v.uri, '/')+1:]
		}
	}
	if times := m.applyTimes(v); times != nil {
		o[operationTimes] = times
	}
	if m.patch != nil {
		annotate(o, m.patch.inputs, v)
	}
	if _, ok := o["@odata.id"]; !ok {
		o["@odata.id"] = v.uri
	}
	o["@odata.type"] = odataType(m.schema)
	if m.typed != "" {
		o["@odata.type"] = "#" + m.typed
	}
	for _, r := range m.below {
		below := v
		below.uri = v.uri + r.uri[strings.LastIndexByte(r.uri, '/'):]
		if _, taken := o[r.link]; !taken && (r.when == nil || r.when(below)) {
			o[r.link] = ref(below.uri)
		}
	}
	all, _ := o["Actions"].(object)
	if all == nil {
		all = object{}
	}
	for i := range m.actions {
		if a := &m.actions[i]; a.hidden {
			continue
		} else if a.when == nil || a.when(v) {
			all["#"+a.name] = a.object(v)
			if times := m.applyTimes(v); times != nil && a.defers {
				all["#"+a.name].(object)[operationTimes] = times
			}
		}
	}
	if len(all) > 0 {
		o["Actions"] = all
	}
	return o
}

// seal encodes a body and gives it its ETag, which depends on the rest of it,
// but for what is volatile, and on nothing else: it changes if and only if the
// representation does. Of a collection the body shows a page; the ETag is of
// all members.
func seal(o object, volatile []string, as dialect.Protocol) ([]byte, string) {
	rest := encode(o)
	lasting := rest
	if len(volatile) > 0 {
		lasting = encode(without(o, volatile))
	}
	if members, ok := o["Members"].([]object); ok && as.PageSize > 0 && len(members) > as.PageSize {
		first := maps.Clone(o)
		first["Members"] = members[:as.PageSize]
		first["Members@odata.nextLink"] = fmt.Sprintf("%s?$skip=%d", o["@odata.id"], as.PageSize)
		rest = encode(first)
	}
	tag := written(etag(lasting), as.ETags)
	head := `{"@odata.etag":` + strconv.Quote(tag) + `,`
	return append([]byte(head), rest[1:]...), tag
}

// without is an object but for some of its properties, which are named by their
// paths: "A", "A/B".
func without(o object, paths []string) object {
	less := maps.Clone(o)
	for _, path := range paths {
		name, rest, deeper := strings.Cut(path, "/")
		if below, ok := less[name].(object); ok && deeper {
			less[name] = without(below, []string{rest})
			continue
		}
		delete(less, name)
	}
	return less
}

// typeName is the name of a schema without its version.
func typeName(schema string) string {
	name, _, _ := strings.Cut(schema, ".")
	return name
}

func odataType(schema string) string { return "#" + schema + "." + typeName(schema) }

// published is where the DMTF and SNIA publish a type's schemas.
func published(schema string) string {
	if strings.HasPrefix(schema, "Volume") {
		return "http://redfish.dmtf.org/schemas/swordfish/v1/"
	}
	return "http://redfish.dmtf.org/schemas/v1/"
}

func jsonSchema(schema string) string { return published(schema) + schema + ".json" }

// kept is a bounded store of things that can be made again: two generations,
// of which the older is dropped when the younger is full.
type kept[K comparable, V any] struct {
	mu         sync.RWMutex
	young, old map[K]V
	room, used int // of the younger generation, in what size counts
	size       func(V) int
}

func newKept[K comparable, V any](room int, size func(V) int) *kept[K, V] {
	return &kept[K, V]{young: map[K]V{}, room: room, size: size}
}

func (c *kept[K, V]) get(k K) (V, bool) {
	c.mu.RLock()
	v, young := c.young[k]
	old := false
	if !young {
		v, old = c.old[k]
	}
	c.mu.RUnlock()
	if old {
		c.put(k, v)
	}
	return v, young || old
}

func (c *kept[K, V]) put(k K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was, ok := c.young[k]; ok {
		c.used -= c.size(was)
	} else if c.used >= c.room {
		c.young, c.old, c.used = map[K]V{}, c.young, 0
	}
	c.young[k] = v
	c.used += c.size(v)
}
